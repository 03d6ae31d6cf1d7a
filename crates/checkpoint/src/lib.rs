//! Checkpoints of a training: what is needed to continue it to the same final bytes.
//!
//! A training has a folder in a [store](store::Store). Each of its checkpoints is a folder there, named by its number:
//!
//! ```text
//! claim                the training that owns the folder
//! 00000012/manifest    what the checkpoint is and which files it has; written last, so without it there is none
//! 00000012/part-...    blocks: states of tasks, rows of matrices
//! ```
//!
//! | file | contents |
//! |---|---|
//! | [`manifest`] | the manifest, and its text with a checksum |
//! | [`block`] | the blocks of a file: bytes with length, version and CRC-32C |
//! | [`content`] | what a block contains: the state of the driver or of a task, or rows |
//! | [`folder`] | the folder of a training: claim, list, read, verify, remove |
//!
//! A training that continues inspects, surveys and prepares the data as the first run did, so nothing of that is stored. Rows are written in
//! the order of the tables, without sorting, and each block has every n-th bucket: when blocks are imported one after the other into a table that
//! still grows, its hashes are spread evenly.

pub mod block;
pub mod content;
mod error;
pub mod folder;
pub mod manifest;
mod training_id;

pub use content::{Content, PartReader, PartWriter, RowsOf, SavedTask};
pub use error::Error;
pub use folder::{Folder, Summary};
pub use manifest::{Base, DataFile, Manifest, PartFile};
pub use training_id::TrainingId;
