//! A place for the sockets of this machine.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use rpc::Address;

use crate::error::Error;

/// A folder that only this user can enter, removed when it is dropped.
#[derive(Debug)]
pub struct SocketFolder(PathBuf);

impl SocketFolder {
    /// A new one in the system's temporary folder.
    pub fn new() -> Result<Self, Error> {
        let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("seraphim-{}-{:x}", std::process::id(), start.as_nanos());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).map_err(Error::io("create", &path))?;
        Ok(Self(path))
    }

    /// The address of a socket in it.
    pub fn socket(&self, name: &str) -> Address {
        Address::Unix(self.0.join(name))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // What is left in the system's temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
