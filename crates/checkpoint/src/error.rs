//! Errors of checkpoints.

/// An error of reading or writing checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file of a checkpoint is not as it was written.
    #[error(
        "{location}/{path} is damaged at byte {offset}: {what}. Use an earlier checkpoint: `seraphim checkpoints \
         verify` says which are whole"
    )]
    Damaged { location: String, path: String, offset: u64, what: String },
    /// A file that a manifest names is missing or has another size.
    #[error("{location}/{path} has {actual} bytes, and its checkpoint was written with {expected}")]
    FileSize { location: String, path: String, expected: u64, actual: u64 },
    #[error("{location}/{path} is missing: the checkpoint is not complete")]
    MissingFile { location: String, path: String },
    /// The checkpoint was written by a later version of this program.
    #[error(
        "{location}/{path} has version {version} of the format of checkpoints, and this program reads versions up to \
         {newest}: continue with the program that wrote it"
    )]
    NewerFormat { location: String, path: String, version: u32, newest: u32 },
    /// The folder belongs to another training.
    #[error(
        "{location} has the checkpoints of another training ({owner}): continue that with --resume latest, name \
         another folder with --checkpoints, or remove the folder"
    )]
    OtherTraining { location: String, owner: String },
    /// A checkpoint has only changes, and what they build on is missing or another one.
    #[error(
        "checkpoint {number} in {location} has only what changed after checkpoint {base}, which is missing or was written \
         again: use an earlier checkpoint"
    )]
    MissingBase { location: String, number: u64, base: u64 },
    #[error("{location} has no complete checkpoint")]
    NoCheckpoint { location: String },
    #[error("{location} has no checkpoint {number}; it has {existing}")]
    UnknownNumber { location: String, number: u64, existing: String },
    #[error("writing {location}/{path} failed: {source}{}", store::io_advice(source))]
    Write { location: String, path: String, source: std::io::Error },
}
