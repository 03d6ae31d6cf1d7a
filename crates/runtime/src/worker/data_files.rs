//! Which files a training reads, and whether they are still the same when it goes on.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use checkpoint::DataFile;
use data::Source;
use driver::Error;
use driver::run_info::data_digest;
use job::{Exit, TrainJob};
use model::ModelReader;
use model::manifest::DataDigest;

use crate::environment::Environment;
use crate::input;
use crate::input::TrainingInput;

/// Size of the blocks of a file that its digest reads, and most of them.
const BLOCK_BYTES: u64 = 64 << 10;
const BLOCK_LIMIT: u64 = 64;

/// The size above which the digest of a file is of samples: a change between them is not noticed.
pub const SAMPLED_BYTES: u64 = BLOCK_BYTES * BLOCK_LIMIT;

/// The files of the data; none if some can be read only once or lie in memory.
pub fn data_files(input: &TrainingInput) -> Option<Vec<DataFile>> {
    let sources = std::iter::once(&input.source).chain(&input.validation);
    sources.flat_map(Source::files).map(data_file).collect()
}

fn data_file(input: &data::Input) -> Option<DataFile> {
    if let Some(version) = input.version() {
        let size_bytes = input.size_bytes()?;
        let hash = math::hash::combine(size_bytes, math::hash::named_key(b"version", version.as_bytes()));
        let (path, digest) = (input.name().to_owned(), Some(format!("{hash:016x}")));
        return Some(DataFile { path, size_bytes, modified_ms: None, digest });
    }
    let path = std::path::absolute(input.path()?).ok()?;
    let metadata = std::fs::metadata(&path).ok()?;
    let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Some(DataFile {
        path: path.display().to_string(),
        size_bytes: metadata.len(),
        modified_ms: since_1970.map(|time| time.as_millis() as u64),
        digest: digest(&path, metadata.len()).ok(),
    })
}

/// The digests of the files that a job reads; none if they can be read only once.
pub fn data_digests(job: &TrainJob, environment: Environment<'_>) -> Result<Vec<DataDigest>, Error> {
    let previous = job.from.as_deref().map(|path| ModelReader::open(path, false)).transpose()?;
    let schema = previous.as_ref().map(|model| &model.manifest.schema);
    let input = input::open(job, &*job.algorithm_job(environment.families)?, schema, environment)?;
    Ok(data_files(&input).unwrap_or_default().iter().filter_map(data_digest).collect())
}

/// A hash of a file: of all its bytes, or if it is large of blocks that lie evenly over it.
fn digest(path: &Path, size_bytes: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut block = Vec::new();
    let count = size_bytes.div_ceil(BLOCK_BYTES).min(BLOCK_LIMIT);
    let mut hash = size_bytes;
    for i in 0..count {
        // The first block begins the file, and the last one ends it.
        let start = (size_bytes.saturating_sub(BLOCK_BYTES)) * i / count.saturating_sub(1).max(1);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        (&mut file).take(BLOCK_BYTES).read_to_end(&mut block)?;
        hash = math::hash::combine(hash, math::hash::named_key(b"data", &block));
    }
    Ok(format!("{hash:016x}"))
}

/// Checks that the data are those of `owner`, which the error names; returns notices.
pub fn check_data(owner: &str, saved: &[DataFile], present: &[DataFile]) -> Result<Vec<String>, Error> {
    let changed = |what: String| Error::UnusableData {
        what: format!(
            "the data are not those of {owner}: {what}. Train from the beginning, or bring the data back"
        ),
        exit: Exit::Data,
    };
    let mut notices = Vec::new();
    for (saved, present) in saved.iter().zip(present) {
        if saved.path != present.path {
            return Err(changed(format!("{} was read, and now it is {}", saved.path, present.path)));
        }
        if saved.size_bytes != present.size_bytes {
            let (before, now) = (saved.size_bytes, present.size_bytes);
            return Err(changed(format!("{} had {before} bytes and has {now}", saved.path)));
        }
        if saved.digest.is_some() && saved.digest != present.digest {
            return Err(changed(format!("the contents of {} have changed", saved.path)));
        }
        if saved.modified_ms != present.modified_ms {
            notices.push(format!(
                "{} was written again since {owner}: the result is that of an undisturbed training only if its contents are \
                 the same",
                saved.path
            ));
        }
    }
    if saved.len() != present.len() {
        return Err(changed(format!("there were {} files and are {}", saved.len(), present.len())));
    }
    Ok(notices)
}
