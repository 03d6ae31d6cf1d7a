//! WebAssembly modules with PS functions, as they are sent with a job.

use rpc::message::Base64Bytes;
use serde::{Deserialize, Serialize};

/// The modules of a job. The program that submits it has read and checked their files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Modules(pub Vec<Base64Bytes>);

impl Modules {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Total size of the modules.
    pub fn len_bytes(&self) -> usize {
        self.0.iter().map(|module| module.0.len()).sum()
    }

    /// The modules in the form of the messages to servers.
    pub fn list(&self) -> &[Base64Bytes] {
        &self.0
    }
}
