//! The folder of a training in a store: who owns it, and its checkpoints by number.

use std::collections::BTreeSet;
use std::io::{BufReader, Read};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{EntryKind, FileWriter, Store};

use crate::content::{Content, PartReader, PartWriter, SavedTask};
use crate::error::Error;
use crate::manifest::{Base, Manifest, PartFile};
use crate::training_id::TrainingId;

const CLAIM: &str = "claim";
const MANIFEST: &str = "manifest";

/// The training that owns a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub training: TrainingId,
    /// What people recognize it by.
    pub title: String,
}

/// What verification has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub part_count: usize,
    pub size_bytes: u64,
    pub row_count: u64,
    pub task_count: usize,
}

/// The folder of a training.
#[derive(Clone, Debug)]
pub struct Folder {
    store: Arc<dyn Store>,
}

/// A part that is being written.
pub type PartFileWriter = PartWriter<Box<dyn FileWriter>>;

impl Folder {
    /// The folder at `location`: a path, or an address with a scheme such as `s3://`. Nothing is read or made yet.
    ///
    /// # Errors
    /// [`Error::Store`] if the location is none.
    pub fn open(location: &str) -> Result<Self, Error> {
        Ok(Self::in_store(store::open(location)?))
    }

    /// The folder that a store is.
    pub fn in_store(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub fn location(&self) -> &str {
        self.store.location()
    }

    /// The training that owns the folder, if one does.
    ///
    /// # Errors
    /// [`Error::Damaged`] if that cannot be read.
    pub fn claim(&self) -> Result<Option<Claim>, Error> {
        let bytes = match self.store.read(CLAIM) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::Damaged {
            location: self.location().to_owned(),
            path: CLAIM.to_owned(),
            offset: 0,
            what: error.to_string(),
        })
    }

    /// Makes a training the owner of the folder, unless it has another.
    ///
    /// # Errors
    /// [`Error::OtherTraining`].
    pub fn take(&self, claim: &Claim) -> Result<(), Error> {
        let text = serde_json::json!(claim).to_string();
        if self.store.create_new(CLAIM, text.as_bytes())? {
            return Ok(());
        }
        self.check_owner(&claim.training)
    }

    /// Makes `claim` the owner of the folder instead of `before`.
    ///
    /// # Errors
    /// [`Error::OtherTraining`] if the owner is neither.
    pub fn take_over(&self, before: &TrainingId, claim: &Claim) -> Result<(), Error> {
        match self.claim()? {
            Some(owner) if owner.training == *before => {
                let mut file = self.store.create(CLAIM)?;
                let text = serde_json::json!(claim).to_string();
                file.write_all(text.as_bytes()).map_err(|source| Error::Write {
                    location: self.location().to_owned(),
                    path: CLAIM.to_owned(),
                    source,
                })?;
                Ok(file.finish()?)
            }
            _ => self.take(claim),
        }
    }

    /// Checks that a training owns the folder, or nobody does.
    ///
    /// # Errors
    /// [`Error::OtherTraining`].
    pub fn check_owner(&self, training: &TrainingId) -> Result<(), Error> {
        match self.claim()? {
            Some(owner) if owner.training != *training => {
                Err(Error::OtherTraining { location: self.location().to_owned(), owner: owner.title })
            }
            _ => Ok(()),
        }
    }

    /// The numbers of the complete checkpoints, ascending.
    ///
    /// # Errors
    /// Those of the store.
    pub fn numbers(&self) -> Result<Vec<u64>, Error> {
        let mut numbers = Vec::new();
        for number in self.all_numbers()? {
            let files = self.store.list(&folder_name(number))?;
            if files.iter().any(|entry| entry.name == MANIFEST) {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// The numbers of all checkpoints, complete or not.
    fn all_numbers(&self) -> Result<BTreeSet<u64>, Error> {
        let number_of = |name: &str| name.parse().ok().filter(|number| folder_name(*number) == name);
        let entries = self.store.list("")?;
        let folders = entries.iter().filter(|entry| entry.kind == EntryKind::Folder);
        Ok(folders.filter_map(|entry| number_of(&entry.name)).collect())
    }

    /// # Errors
    /// [`Error::UnknownNumber`], [`Error::Damaged`], [`Error::NewerFormat`].
    pub fn manifest(&self, number: u64) -> Result<Manifest, Error> {
        self.read_manifest(number).map(|(manifest, _)| manifest)
    }

    /// The manifest, and its checksum.
    fn read_manifest(&self, number: u64) -> Result<(Manifest, u32), Error> {
        let path = format!("{}/{MANIFEST}", folder_name(number));
        let bytes = match self.store.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Err(self.unknown_number(number)),
            Err(error) => return Err(error.into()),
        };
        Manifest::from_text(&bytes, self.location(), &path)
    }

    /// The checkpoints that have the rows of one: a full one, then those with changes, each after its base. The last is the
    /// checkpoint itself.
    ///
    /// # Errors
    /// [`Error::MissingBase`]; those of [`Self::manifest`] for a base.
    pub fn chain(&self, manifest: &Manifest) -> Result<Vec<Manifest>, Error> {
        let mut chain = vec![manifest.clone()];
        while let Some((number, base)) = chain.last().and_then(|last| Some((last.number, last.base?))) {
            let missing =
                || Error::MissingBase { location: self.location().to_owned(), number, base: base.number };
            let (manifest, crc) = match self.read_manifest(base.number) {
                Ok(manifest) => manifest,
                Err(Error::UnknownNumber { .. } | Error::NoCheckpoint { .. }) => return Err(missing()),
                Err(error) => return Err(error),
            };
            if base.number >= number || crc != base.crc32c {
                return Err(missing());
            }
            chain.push(manifest);
        }
        chain.reverse();
        Ok(chain)
    }

    /// The numbers, and those of the checkpoints on which they build.
    fn with_bases(&self, numbers: impl Iterator<Item = u64>) -> BTreeSet<u64> {
        let mut all = BTreeSet::new();
        for number in numbers {
            let mut next = Some(number);
            while let Some(number) = next.filter(|number| all.insert(*number)) {
                // What cannot be read is not removed for that, and needs no base.
                next = self.manifest(number).ok().and_then(|manifest| Some(manifest.base?.number));
            }
        }
        all
    }

    fn unknown_number(&self, number: u64) -> Error {
        let location = self.location().to_owned();
        match self.numbers() {
            Ok(numbers) if !numbers.is_empty() => {
                let names: Vec<String> = numbers.iter().map(|number| folder_name(*number)).collect();
                Error::UnknownNumber { location, number, existing: names.join(", ") }
            }
            _ => Error::NoCheckpoint { location },
        }
    }

    /// The newest checkpoint all of whose bytes are as they were written, and what is wrong with newer ones.
    ///
    /// # Errors
    /// Those of the store, and [`Error::NewerFormat`]: a later program may know a newer checkpoint than this one.
    pub fn latest(&self) -> Result<(Option<Manifest>, Vec<Error>), Error> {
        let mut damages = Vec::new();
        for number in self.numbers()?.into_iter().rev() {
            let manifest = match self.manifest(number) {
                Ok(manifest) => manifest,
                Err(error @ Error::NewerFormat { .. }) => return Err(error),
                Err(error) => {
                    damages.push(error);
                    continue;
                }
            };
            match self.verify(&manifest) {
                Ok(_) => return Ok((Some(manifest), damages)),
                Err(error) => damages.push(error),
            }
        }
        Ok((None, damages))
    }

    /// Checks that files can be written to the folder.
    ///
    /// # Errors
    /// Those of the store.
    pub fn check_writable(&self) -> Result<(), Error> {
        // Without an end the file does not become visible.
        Ok(self.store.create("trial").map(drop)?)
    }

    /// Begins a file of a checkpoint.
    ///
    /// # Errors
    /// Those of the store.
    pub fn create_part(&self, number: u64, name: &str) -> Result<PartFileWriter, Error> {
        let path = format!("{}/{name}", folder_name(number));
        let file = self.store.create(&path)?;
        PartWriter::new(file).map_err(|source| self.write_error(number, name, source))
    }

    /// Ends a file of a checkpoint; returns its size.
    ///
    /// # Errors
    /// Those of the store, as of a full disk.
    pub fn finish_part(&self, number: u64, name: &str, part: PartFileWriter) -> Result<u64, Error> {
        let (file, size_bytes) = part.finish().map_err(|source| self.write_error(number, name, source))?;
        file.finish()?;
        Ok(size_bytes)
    }

    /// The error that a file of a checkpoint cannot be written.
    pub fn write_error(&self, number: u64, name: &str, source: std::io::Error) -> Error {
        let path = format!("{}/{name}", folder_name(number));
        Error::Write { location: self.location().to_owned(), path, source }
    }

    /// Makes a checkpoint complete, whose parts are all written. Returns what another one needs to build on it.
    ///
    /// # Errors
    /// [`Error::OtherTraining`] if the folder has got another owner; those of the store.
    pub fn commit(&self, manifest: &Manifest) -> Result<Base, Error> {
        self.check_owner(&manifest.training)?;
        let path = format!("{}/{MANIFEST}", folder_name(manifest.number));
        let mut file = self.store.create(&path)?;
        let (text, crc32c) = manifest.to_text();
        file.write_all(text.as_bytes())
            .map_err(|source| self.write_error(manifest.number, MANIFEST, source))?;
        file.finish()?;
        Ok(Base { number: manifest.number, crc32c })
    }

    /// Opens a file of a checkpoint.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::FileSize`], [`Error::Damaged`].
    pub fn open_part(
        &self,
        manifest: &Manifest,
        part: &PartFile,
    ) -> Result<PartReader<Box<dyn Read + Send>>, Error> {
        let folder = folder_name(manifest.number);
        let path = format!("{folder}/{}", part.name);
        let location = self.location().to_owned();
        let entries = self.store.list(&folder)?;
        match entries.iter().find(|entry| entry.name == part.name).map(|entry| entry.kind) {
            Some(EntryKind::File { size_bytes }) if size_bytes == part.size_bytes => {}
            Some(EntryKind::File { size_bytes: actual }) => {
                return Err(Error::FileSize { location, path, expected: part.size_bytes, actual });
            }
            _ => return Err(Error::MissingFile { location, path }),
        }
        let file: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(1 << 20, self.store.open(&path)?));
        PartReader::new(file, &manifest.matrices, &location, &path)
    }

    /// The state of each of these tasks, in their order.
    ///
    /// # Errors
    /// Those of [`Self::open_part`]; [`Error::Damaged`] also if a part lacks a state that the manifest says it has.
    pub fn states(
        &self,
        manifest: &Manifest,
        tasks: impl Iterator<Item = u32>,
    ) -> Result<Vec<SavedTask>, Error> {
        let wanted: Vec<u32> = tasks.collect();
        let mut states: Vec<Option<SavedTask>> = wanted.iter().map(|_| None).collect();
        for part in manifest.parts.iter().filter(|part| wanted.iter().any(|task| part.tasks.contains(task))) {
            let mut reader = self.open_part(manifest, part)?;
            let mut left = part.tasks.len();
            while left > 0 {
                match reader.read()? {
                    Some(Content::Task(state)) => {
                        left -= 1;
                        if let Some(at) = wanted.iter().position(|task| *task == state.task) {
                            states[at] = Some(state);
                        }
                    }
                    Some(Content::Driver(_)) => {}
                    Some(Content::Rows { .. }) | None => break,
                }
            }
        }
        let complete: Option<Vec<SavedTask>> = states.into_iter().collect();
        complete.ok_or_else(|| Error::Damaged {
            location: self.location().to_owned(),
            path: format!("{}/{MANIFEST}", folder_name(manifest.number)),
            offset: 0,
            what: "no part has the states of all tasks".to_owned(),
        })
    }

    /// Reads every byte of a checkpoint and of those on which it builds.
    ///
    /// # Errors
    /// Those of [`Self::states`] and [`Self::chain`].
    pub fn verify(&self, manifest: &Manifest) -> Result<Summary, Error> {
        let mut summary = Summary { part_count: manifest.parts.len(), ..Summary::default() };
        for each in self.chain(manifest)? {
            let is_own = each.number == manifest.number;
            for part in &each.parts {
                let mut reader = self.open_part(&each, part)?;
                while let Some(checked) = reader.check()? {
                    summary.row_count += if is_own { checked.row_count } else { 0 };
                    summary.task_count += usize::from(is_own && checked.is_task);
                }
                summary.size_bytes += if is_own { part.size_bytes } else { 0 };
            }
        }
        self.states(manifest, 0..manifest.task_count)?;
        Ok(summary)
    }

    /// Removes the parts of a checkpoint that did not become complete. Nobody writes it any more.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove_incomplete(&self, number: u64) -> Result<(), Error> {
        if !self.numbers()?.contains(&number) {
            self.store.remove(&folder_name(number))?;
        }
        Ok(())
    }

    /// Removes what is older than the checkpoint `committed`, which was just written, but the newest complete ones: `keep`
    /// with it, and those on which they build. Those that are newer belong to an earlier run, which may have ended because
    /// they are damaged: they stay and do not count. Returns the numbers of the removed ones.
    ///
    /// # Errors
    /// Those of the store.
    pub fn prune(&self, keep: usize, committed: u64) -> Result<Vec<u64>, Error> {
        let complete = self.numbers()?.into_iter().rev().filter(|number| *number < committed);
        let remaining = self.with_bases(complete.take(keep.saturating_sub(1)).chain([committed]));
        let all = self.all_numbers()?.into_iter();
        self.remove_numbers(all.filter(|number| *number < committed && !remaining.contains(number)).collect())
    }

    /// The numbers of the checkpoints that are not complete. A running training may be writing the last one, if it is newer
    /// than all complete ones.
    ///
    /// # Errors
    /// Those of the store.
    pub fn incomplete_numbers(&self) -> Result<BTreeSet<u64>, Error> {
        let complete = self.numbers()?;
        Ok(self.all_numbers()?.into_iter().filter(|number| !complete.contains(number)).collect())
    }

    /// Removes all checkpoints that are older than the newest `keep` whole ones, all of whose bytes are read, but those on
    /// which they build; at least one whole one stays. Returns the numbers of the removed ones.
    ///
    /// # Errors
    /// Those of the store, and [`Error::NewerFormat`].
    pub fn prune_verified(&self, keep: usize) -> Result<Vec<u64>, Error> {
        let mut left = keep.max(1);
        for number in self.numbers()?.into_iter().rev() {
            match self.manifest(number).and_then(|manifest| self.verify(&manifest)) {
                Ok(_) => left -= 1,
                Err(error @ (Error::NewerFormat { .. } | Error::Store(_))) => return Err(error),
                Err(_) => {}
            }
            if left == 0 {
                let all = self.all_numbers()?;
                let remaining = self.with_bases(all.iter().copied().filter(|other| *other >= number));
                return self.remove_numbers(all.difference(&remaining).copied().collect());
            }
        }
        Ok(Vec::new())
    }

    fn remove_numbers(&self, removed: Vec<u64>) -> Result<Vec<u64>, Error> {
        for number in &removed {
            // Without its manifest a checkpoint is none, so one that is removed by half is not taken for whole.
            self.store.remove(&format!("{}/{MANIFEST}", folder_name(*number)))?;
            self.store.remove(&folder_name(*number))?;
        }
        self.store.remove_unfinished("")?;
        Ok(removed)
    }

    /// Removes all checkpoints and the claim, if this training owns the folder.
    ///
    /// # Errors
    /// [`Error::OtherTraining`]; those of the store.
    pub fn remove_all(&self, training: &TrainingId) -> Result<(), Error> {
        self.check_owner(training)?;
        for number in self.all_numbers()? {
            self.store.remove(&format!("{}/{MANIFEST}", folder_name(number)))?;
            self.store.remove(&folder_name(number))?;
        }
        self.store.remove_unfinished("")?;
        self.store.remove(CLAIM)?;
        Ok(self.store.remove("")?)
    }
}

/// The folder of a training and the number of the checkpoint that a path names; none: the path is that of the training.
pub fn split_place(path: &str) -> (String, Option<u64>) {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let number = name.parse().ok().filter(|number| folder_name(*number) == name);
    (if number.is_some() { folder } else { path }.to_owned(), number)
}

/// The name of the folder of a checkpoint.
pub fn folder_name(number: u64) -> String {
    format!("{number:08}")
}

#[cfg(test)]
mod tests;
