//! Object stores (S3, Google Cloud Storage, Azure) and HDFS. Calls run on one thread with a runtime, and each has a limit.
//!
//! A file is one object: it is visible when its upload is complete. Files above [`PART_BYTES`] are sent in parts, some at
//! the same time. A folder is the common beginning of names.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    GetOptions, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload,
};
use tokio_stream::StreamExt as _;

use crate::error::Error;
use crate::fault::{explain, is_refused};
#[cfg(feature = "cloud")]
use crate::object_calls::CALL_LIMIT;
use crate::object_calls::{CallError, begin, call, end, runtime};
use crate::{Entry, EntryKind, FileFacts, FileWriter, Store, path};

/// Size of the parts in which files are sent and read.
const PART_BYTES: usize = 8 << 20;
/// Size of the first part of a file that is read; each later one has twice the size of the one before.
const FIRST_PART_BYTES: usize = 256 << 10;
/// A range of up to this size, such as a column of Parquet, is read whole: its parts are large from the first on.
const SHORT_RANGE_BYTES: u64 = 32 << 20;
/// Number of parts of a file under way at the same time.
const PARTS_UNDER_WAY: usize = 4;
/// Beginning of the names of files that are not finished, which some stores list.
const UNFINISHED: &str = ".";

/// Files below a prefix of an object store.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFolder {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    location: String,
    /// Whether folders exist without files, as in HDFS, and are removed like files.
    has_folders: bool,
}

impl ObjectFolder {
    /// The folder at a location with one of these schemes; none for another scheme.
    pub(crate) fn open(scheme: &str, location: &str) -> Option<Result<Self, Error>> {
        let build = builder(scheme)?;
        let opened = build(location).and_then(|store| {
            let rest = location.split_once("://").map_or("", |(_, rest)| rest);
            let prefix = Path::parse(rest.split_once('/').map_or("", |(_, path)| path))?;
            let has_folders = scheme == "hdfs";
            Ok(Self { store, prefix, location: location.to_owned(), has_folders })
        });
        Some(opened.map_err(|error| Error::Unusable { location: location.into(), problem: explain(&error) }))
    }

    fn path(&self, path: &str) -> Result<Path, Error> {
        if path.is_empty() {
            return Ok(self.prefix.clone());
        }
        path::check(path)?;
        let parts = path.split('/').fold(self.prefix.clone(), Path::join);
        Ok(parts)
    }

    fn failed(&self, action: &'static str, path: &str, error: CallError) -> Error {
        Error::io(action, &self.location, path, error.into_io())
    }
}

type Built = Result<Arc<dyn ObjectStore>, object_store::Error>;

/// What opens the stores of a scheme.
fn builder(scheme: &str) -> Option<fn(&str) -> Built> {
    match scheme {
        #[cfg(feature = "cloud")]
        "s3" | "s3a" => Some(|url| {
            let builder = object_store::aws::AmazonS3Builder::from_env().with_url(url).with_retry(retries());
            Ok(Arc::new(builder.build()?))
        }),
        #[cfg(feature = "cloud")]
        "gs" => Some(|url| {
            let builder = object_store::gcp::GoogleCloudStorageBuilder::from_env().with_url(url);
            Ok(Arc::new(builder.with_retry(retries()).build()?))
        }),
        #[cfg(feature = "cloud")]
        "az" | "abfs" | "abfss" | "azure" => Some(|url| {
            let builder = object_store::azure::MicrosoftAzureBuilder::from_env().with_url(url);
            Ok(Arc::new(builder.with_retry(retries()).build()?))
        }),
        #[cfg(feature = "hdfs")]
        "hdfs" => Some(|url| {
            let rest = url.trim_start_matches("hdfs://");
            let host = rest.split_once('/').map_or(rest, |(host, _)| host);
            let store = hdfs_client(host).map(hdfs_native_object_store::HdfsObjectStore::new);
            Ok(Arc::new(store.map_err(|error| unusable("hdfs", error))?))
        }),
        _ => None,
    }
}

#[cfg(feature = "hdfs")]
fn hdfs_client(host: &str) -> hdfs_native::Result<hdfs_native::Client> {
    // The default of the client takes three minutes to notice that no name node answers.
    let builder = hdfs_native::ClientBuilder::new()
        .with_url(format!("hdfs://{host}"))
        .with_config([("dfs.client.failover.max.attempts", "3")]);
    builder.with_io_runtime(runtime().clone()).build()
}

#[cfg(feature = "hdfs")]
fn unusable(store: &'static str, error: hdfs_native::HdfsError) -> object_store::Error {
    object_store::Error::Generic { store, source: error.into() }
}

/// As [`crate::create_private_folder`], in HDFS.
#[cfg(feature = "hdfs")]
pub(crate) fn create_private_folder(location: &str) -> Result<(), Error> {
    /// Its user alone reads, writes and lists it.
    const PRIVATE: u32 = 0o700;
    let rest = location.trim_start_matches("hdfs://");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, path) = (host.to_owned(), format!("/{path}"));
    let made = call(async move {
        let client = hdfs_client(&host).map_err(|error| unusable("hdfs", error))?;
        client.mkdirs(&path, PRIVATE, true).await.map_err(|error| unusable("hdfs", error))
    });
    made.map_err(|error| Error::io("create", location, "", error.into_io()))
}

#[cfg(feature = "cloud")]
fn retries() -> object_store::RetryConfig {
    object_store::RetryConfig { max_retries: 5, retry_timeout: CALL_LIMIT / 2, ..Default::default() }
}

impl Store for ObjectFolder {
    fn location(&self) -> &str {
        &self.location
    }

    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, Error> {
        let at = self.path(path)?;
        Ok(Box::new(ObjectWriter {
            folder: self.clone(),
            path: path.to_owned(),
            at,
            buffer: Vec::new(),
            upload: None,
            under_way: VecDeque::new(),
        }))
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool, Error> {
        let (store, at) = (Arc::clone(&self.store), self.path(path)?);
        let payload = PutPayload::from_bytes(Bytes::copy_from_slice(bytes));
        match call(async move { store.put_opts(&at, payload, PutMode::Create.into()).await }) {
            Ok(_) => Ok(true),
            Err(CallError::Store(
                object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. },
            )) => Ok(false),
            Err(error) => Err(self.failed("write", path, error)),
        }
    }

    fn facts(&self, path: &str) -> Result<FileFacts, Error> {
        let (store, at) = (Arc::clone(&self.store), self.path(path)?);
        let head = call(async move {
            match store.head(&at).await {
                // The answer to HEAD has no reason: it is asked for by GET.
                Err(error) if is_refused(&error) => {
                    let first_byte = GetOptions { range: Some((0..1).into()), ..Default::default() };
                    store.get_opts(&at, first_byte).await.map(|got| got.meta)
                }
                head => head,
            }
        });
        head.map(|meta| facts_of(&meta)).map_err(|error| self.failed("read", path, error))
    }

    fn open_range(
        &self,
        path: &str,
        facts: &FileFacts,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, Error> {
        let is_short = range.end.saturating_sub(range.start) <= SHORT_RANGE_BYTES;
        let mut reader = ObjectReader {
            store: Arc::clone(&self.store),
            at: self.path(path)?,
            facts: facts.clone(),
            next_bytes: first_part_bytes(&range),
            unasked: range,
            parts: VecDeque::new(),
            part: Bytes::new(),
        };
        if is_short {
            // Several such ranges are opened before the first one is read.
            reader.read_ahead(1);
        }
        Ok(Box::new(reader))
    }

    fn files(&self, folder: &str) -> Result<Vec<(String, FileFacts)>, Error> {
        let prefix = self.prefix.parts().count();
        let files = self.list_all(folder)?.into_iter().filter_map(|object| {
            let path: Vec<_> =
                object.location.parts().skip(prefix).map(|part| part.as_ref().to_owned()).collect();
            let is_whole = object.location.filename().is_some_and(|name| !name.starts_with(UNFINISHED));
            is_whole.then(|| (path.join("/"), facts_of(&object)))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(files)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        let (store, at) = (Arc::clone(&self.store), self.path(folder)?);
        let listed = call(async move { store.list_with_delimiter(Some(&at)).await });
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_missing_file() => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("list", folder, error)),
        };
        let name = |path: &Path| path.filename().map(str::to_owned);
        let folders = listed.common_prefixes.iter().filter_map(name);
        let folders = folders.map(|name| Entry { name, kind: EntryKind::Folder });
        let files = listed.objects.iter().filter_map(|object| {
            Some(Entry { name: name(&object.location)?, kind: EntryKind::File { size_bytes: object.size } })
        });
        let mut entries: Vec<Entry> =
            folders.chain(files).filter(|entry| !entry.name.starts_with(UNFINISHED)).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        let files = self.remove_if(path, |_| true)?;
        let root = self.path(path)?;
        let mut folders = BTreeSet::new();
        for file in files.iter().filter(|_| self.has_folders) {
            let own = file.parts().count();
            let depths = root.parts().count()..own;
            folders.extend(depths.map(|depth| file.parts().take(depth).collect::<Path>()));
        }
        // Those below come before those that contain them.
        for folder in folders.into_iter().rev() {
            self.delete(path, folder)?;
        }
        if path.is_empty() { Ok(()) } else { self.delete(path, root) }
    }

    /// Parts of uploads that were never completed are not listed: a rule of the bucket removes them.
    fn remove_unfinished(&self, folder: &str) -> Result<(), Error> {
        self.remove_if(folder, |name| name.starts_with(UNFINISHED)).map(drop)
    }
}

impl ObjectFolder {
    /// All objects in a folder and below it.
    fn list_all(&self, folder: &str) -> Result<Vec<ObjectMeta>, Error> {
        let (store, at) = (Arc::clone(&self.store), self.path(folder)?);
        let listed = call(async move {
            let mut objects = store.list(Some(&at));
            let mut listed = Vec::new();
            while let Some(object) = objects.next().await {
                listed.push(object?);
            }
            Ok(listed)
        });
        match listed {
            Err(error) if error.is_missing_file() => Ok(Vec::new()),
            listed => listed.map_err(|error| self.failed("list", folder, error)),
        }
    }

    /// Removes the files below a folder whose names are chosen; returns them.
    fn remove_if(&self, folder: &str, is_chosen: impl Fn(&str) -> bool) -> Result<Vec<Path>, Error> {
        let listed = self.list_all(folder)?.into_iter().map(|object| object.location);
        let chosen: Vec<Path> = listed.filter(|path| path.filename().is_some_and(&is_chosen)).collect();
        chosen.iter().try_for_each(|at| self.delete(folder, at.clone()))?;
        Ok(chosen)
    }

    /// Removes what is at a path; it may be missing. `folder`: where it is, for errors.
    fn delete(&self, folder: &str, at: Path) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        match call(async move { store.delete(&at).await }) {
            Ok(()) => Ok(()),
            Err(error) if error.is_missing_file() => Ok(()),
            Err(error) => Err(self.failed("remove", folder, error)),
        }
    }
}

/// A file that is sent.
struct ObjectWriter {
    folder: ObjectFolder,
    path: String,
    at: Path,
    /// What is not sent yet, less than a part.
    buffer: Vec<u8>,
    /// Begins with the first whole part.
    upload: Option<Arc<Mutex<Box<dyn MultipartUpload>>>>,
    under_way: VecDeque<Receiver<Result<(), CallError>>>,
}

impl ObjectWriter {
    fn send_part(&mut self) -> Result<(), CallError> {
        let upload = if let Some(upload) = &self.upload {
            Arc::clone(upload)
        } else {
            let (store, at) = (Arc::clone(&self.folder.store), self.at.clone());
            let upload = call(async move { store.put_multipart(&at).await })?;
            Arc::clone(self.upload.insert(Arc::new(Mutex::new(upload))))
        };
        if self.under_way.len() >= PARTS_UNDER_WAY {
            self.end_first()?;
        }
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        // Some stores begin the call where it is made, so this belongs to the runtime.
        let _inside = runtime().enter();
        let part = upload.lock().unwrap_or_else(PoisonError::into_inner).put_part(payload);
        self.under_way.push_back(begin(part));
        Ok(())
    }

    fn end_first(&mut self) -> Result<(), CallError> {
        self.under_way.pop_front().map_or(Ok(()), |part| end(&part))
    }

    fn complete(&mut self) -> Result<(), CallError> {
        if self.upload.is_none() {
            let (store, at) = (Arc::clone(&self.folder.store), self.at.clone());
            let payload = PutPayload::from(std::mem::take(&mut self.buffer));
            return call(async move { store.put(&at, payload).await }).map(drop);
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        while !self.under_way.is_empty() {
            self.end_first()?;
        }
        match self.upload.take() {
            Some(upload) => call(async move { exclusive(upload)?.complete().await }).map(drop),
            None => Ok(()),
        }
    }
}

/// The upload when no part of it is under way.
fn exclusive(upload: Arc<Mutex<Box<dyn MultipartUpload>>>) -> object_store::Result<Box<dyn MultipartUpload>> {
    let inner =
        Arc::into_inner(upload).map(|upload| upload.into_inner().unwrap_or_else(PoisonError::into_inner));
    inner
        .ok_or_else(|| object_store::Error::Generic { store: "upload", source: "a part is under way".into() })
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == PART_BYTES {
            self.send_part().map_err(CallError::into_io)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for ObjectWriter {
    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let completed = self.complete();
        completed.map_err(|error| self.folder.failed("write", &self.path, error))
    }
}

impl Drop for ObjectWriter {
    /// Frees the parts of an upload that was not finished.
    fn drop(&mut self) {
        self.under_way.clear();
        if let Some(upload) = self.upload.take() {
            // Nobody waits for it: what cannot be freed here is freed by a rule of the bucket.
            drop(begin(async move {
                match exclusive(upload) {
                    Ok(mut upload) => upload.abort().await,
                    Err(_) => Ok(()),
                }
            }));
        }
    }
}

/// The facts of an object.
fn facts_of(meta: &ObjectMeta) -> FileFacts {
    let version = meta.e_tag.clone().unwrap_or_else(|| meta.last_modified.to_rfc3339());
    let modified_ms = u64::try_from(meta.last_modified.timestamp_millis()).ok();
    FileFacts { size_bytes: meta.size, version, modified_ms }
}

/// A part of a file that has not changed since its facts were seen.
async fn part(
    store: Arc<dyn ObjectStore>,
    at: Path,
    facts: FileFacts,
    range: Range<u64>,
) -> object_store::Result<Bytes> {
    let length = range.end - range.start;
    let options = GetOptions { range: Some(range.into()), ..Default::default() };
    let got = store.get_opts(&at, options).await?;
    let is_same = facts_of(&got.meta) == facts;
    let bytes = got.bytes().await?;
    if !is_same || bytes.len() as u64 != length {
        return Err(object_store::Error::Generic { store: "file", source: Error::changed().into() });
    }
    Ok(bytes)
}

/// A part of a file that is read from its beginning to its end. The first part is small, and later ones are larger and asked
/// for ahead: a reader that stops early has asked for little.
struct ObjectReader {
    store: Arc<dyn ObjectStore>,
    at: Path,
    facts: FileFacts,
    /// What was not asked for.
    unasked: Range<u64>,
    /// Size of the next part.
    next_bytes: usize,
    parts: VecDeque<Receiver<Result<Bytes, CallError>>>,
    part: Bytes,
}

impl ObjectReader {
    /// Asks for parts until `limit` of them are under way.
    fn read_ahead(&mut self, limit: usize) {
        while self.parts.len() < limit && !self.unasked.is_empty() {
            let end = self.unasked.end.min(self.unasked.start + self.next_bytes as u64);
            let range = self.unasked.start..end;
            self.unasked.start = end;
            self.next_bytes = PART_BYTES.min(self.next_bytes * 2);
            self.parts.push_back(begin(part(
                Arc::clone(&self.store),
                self.at.clone(),
                self.facts.clone(),
                range,
            )));
        }
    }
}

fn first_part_bytes(range: &Range<u64>) -> usize {
    let size = range.end.saturating_sub(range.start);
    if size > SHORT_RANGE_BYTES { FIRST_PART_BYTES } else { FIRST_PART_BYTES.max(size as usize / 4) }
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.part.is_empty() {
            self.read_ahead(1);
            if let Some(part) = self.parts.pop_front() {
                self.part = end(&part).map_err(CallError::into_io)?;
                let is_first = self.next_bytes <= FIRST_PART_BYTES * 2;
                self.read_ahead(if is_first { 1 } else { PARTS_UNDER_WAY });
            }
        }
        let count = out.len().min(self.part.len());
        out[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
