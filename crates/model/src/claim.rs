//! The claim of a running training on the name of its model, so that two trainings do not work for one name.
//!
//! A claim is a hidden file beside the model with a lock on it, which ends with the process. What a process that was killed
//! has left is no claim.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use store::file_identity::resolve_link;
use store::machine;
use store::temp_output::{TempOutputs, sibling};

use crate::error::Error;

/// The role of a claim that takes the place of another one.
const NEXT: &str = "claim";

/// The claim of a training on the name of its model. It ends when this value is dropped.
#[derive(Debug)]
pub struct ModelClaim {
    path: PathBuf,
    file: File,
    outputs: TempOutputs,
}

impl ModelClaim {
    /// Claims the name of a model. `training` is the training of which another process may have the claim: it goes on here.
    /// None where files cannot be locked, and in stores.
    ///
    /// # Errors
    /// [`Error::ModelClaimed`]; [`Error::Io`].
    pub fn take(model: &Path, training: Option<&str>, outputs: &TempOutputs) -> Result<Option<Self>, Error> {
        if store::address(model).is_some() {
            return Ok(None);
        }
        let model = &*resolve_link(model);
        let path = claim_path(model);
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).read(true).write(true).open(&path);
            let mut file = file.map_err(Error::io("write to", &path))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(Some(Self::new(path, file, outputs))),
                // Its owner has removed it meanwhile.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text).map_err(Error::io("read", &path))?;
                    let (owner, process) = text.split_once('\n').unwrap_or_default();
                    if training != Some(owner) {
                        let process = process.trim_end().to_owned();
                        return Err(Error::ModelClaimed { path: model.to_owned(), process });
                    }
                    return Self::replace(path, outputs).map(Some);
                }
                Err(TryLockError::Error(_)) => return Ok(None),
            }
        }
    }

    /// Puts a new claim in the place of one that another process has.
    fn replace(path: PathBuf, outputs: &TempOutputs) -> Result<Self, Error> {
        let next = sibling(&path, NEXT);
        let file = File::create(&next).map_err(Error::io("write to", &next))?;
        let locked = file.try_lock().map_err(std::io::Error::from);
        let replaced = locked.and_then(|()| std::fs::rename(&next, &path));
        replaced.map_err(Error::io("write to", &path))?;
        Ok(Self::new(path, file, outputs))
    }

    fn new(path: PathBuf, file: File, outputs: &TempOutputs) -> Self {
        outputs.add(&path);
        Self { path, file, outputs: outputs.clone() }
    }

    /// Records which training this is, and which process, for those that meet the claim.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_training(&mut self, training: &str) -> Result<(), Error> {
        let text = format!("{training}\nprocess {} on {}\n", std::process::id(), machine::host());
        let file = &mut self.file;
        let written =
            file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(Error::io("write to", &self.path))
    }
}

impl Drop for ModelClaim {
    fn drop(&mut self) {
        self.outputs.forget(&self.path);
        // Another process may have put its own claim there. An error leaves a file that is no claim any more.
        if is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn claim_path(model: &Path) -> PathBuf {
    let name = model.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    model.with_file_name(format!(".{name}.claim"))
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().map(identity).ok() == std::fs::metadata(path).map(identity).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_trainings_with_one_name_the_second_is_refused_until_the_first_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (outputs, model) = (TempOutputs::default(), folder.path().join("m"));
        let take = |training| ModelClaim::take(&model, training, &outputs);
        let mut first = take(None).unwrap().unwrap();
        first.set_training("one").unwrap();
        let text = take(None).unwrap_err().to_string();
        let process = format!("process {}", std::process::id());
        assert!(text.contains(&process) && text.contains("another --model"), "{text}");
        assert!(matches!(take(Some("two")), Err(Error::ModelClaimed { .. })));
        assert!(ModelClaim::take(&folder.path().join("other"), None, &outputs).unwrap().is_some());
        drop(first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        assert!(take(None).unwrap().is_some());
    }

    #[test]
    fn the_same_training_takes_the_claim_over_from_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let (outputs, model) = (TempOutputs::default(), folder.path().join("m"));
        let take = |training| ModelClaim::take(&model, training, &outputs);
        let mut first = take(None).unwrap().unwrap();
        first.set_training("one").unwrap();
        let mut second = take(Some("one")).unwrap().unwrap();
        second.set_training("one").unwrap();
        drop(first);
        assert!(
            matches!(take(Some("two")), Err(Error::ModelClaimed { .. })),
            "the claim of the second one stays"
        );
        drop(second);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_claim_of_a_process_that_was_killed_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m");
        std::fs::write(claim_path(&model), "one\nprocess 1 on elsewhere\n").unwrap();
        let outputs = TempOutputs::default();
        drop(ModelClaim::take(&model, None, &outputs).unwrap().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
