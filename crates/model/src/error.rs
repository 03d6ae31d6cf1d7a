//! The errors of the model directory, and of outputs on disk.

use std::path::PathBuf;

use store::io_advice;

/// An error of this crate. Variants carry data; the text says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}{}", path.display(), io_advice(source))]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A store cannot be used, or a file of it not read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What is wrong with the copy of a model of a store.
    #[error("{address}: {source}")]
    Remote {
        /// Where the model is.
        address: String,
        source: Box<Error>,
    },
    /// The target of a new model exists.
    #[error("{} already exists; choose another --model, or add --overwrite to replace it", path.display())]
    ModelExists { path: PathBuf },
    /// Another training that runs writes its model to the same place.
    #[error(
        "{} is the --model of another training that runs now ({process}); choose another --model, or wait for its end",
        path.display()
    )]
    ModelClaimed {
        path: PathBuf,
        /// The process of the other training.
        process: String,
    },
    /// `--overwrite` names a model whose folder also contains other files.
    #[error(
        "{} contains {}, which is not part of the model, so --overwrite does not replace the folder; move the file \
         away, or choose another --model",
        path.display(),
        file.display()
    )]
    ForeignFileInModel {
        path: PathBuf,
        /// The name of a file that is not part of the model.
        file: PathBuf,
    },
    /// `--overwrite` names something that is neither a model nor an empty folder.
    #[error(
        "{} is neither a model nor an empty folder, so --overwrite does not replace it; choose another --model",
        path.display()
    )]
    NotReplaceable { path: PathBuf },
    /// The path is not a model directory.
    #[error("{} is not a model: {reason}; give the directory that `seraphim train --model` wrote", path.display())]
    NotAModel {
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Another version of the program wrote the model.
    #[error(
        "{} has model format version {actual}, this program ({}) reads version {newest}; use the program that wrote it ({written_by}), or train again{}",
        path.display(),
        env!("CARGO_PKG_VERSION"),
        damage_note(*damage)
    )]
    ModelVersion {
        /// The path of the manifest.
        path: PathBuf,
        /// The format version in the file.
        actual: u64,
        /// The newest format version that this program reads.
        newest: u64,
        /// The version of the program that wrote the file.
        written_by: String,
        /// Recorded and actual checksum when they differ: then the version itself may be corrupt.
        damage: Option<(u32, u32)>,
    },
    /// The checksum of a file differs from the recorded one.
    #[error(
        "{} is damaged: its checksum is {actual:08x}, the recorded one is {expected:08x}; restore the file or train \
         again",
        path.display()
    )]
    Checksum {
        path: PathBuf,
        /// Recorded CRC-32C.
        expected: u32,
        /// CRC-32C of the bytes in the file.
        actual: u32,
    },
    /// The length of a file differs from the recorded one.
    #[error(
        "{} is damaged: it has {actual} bytes, the recorded length is {expected}; restore the file or train again",
        path.display()
    )]
    Length {
        path: PathBuf,
        /// Recorded length in bytes.
        expected: u64,
        /// Actual length in bytes.
        actual: u64,
    },
    /// A value of a new model is infinite or NaN.
    #[error("column {column} of the row {key} of {matrix} is {value}, so the model cannot be saved")]
    NotFinite {
        matrix: String,
        /// The key of the row.
        key: u64,
        column: u64,
        value: f64,
    },
    /// The contents of a model file are invalid.
    #[error("{}: {what}; restore the model or train again", path.display())]
    BadModel {
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Error {
    /// Returns a function for `map_err` that makes an [`Error::Io`].
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn damage_note(damage: Option<(u32, u32)>) -> String {
    damage.map_or_else(String::new, |(expected, actual)| {
        format!(
            " (the file was changed after it was written: its checksum is {actual:08x}, the recorded one is \
             {expected:08x})"
        )
    })
}
