//! Where a master is, for members and clients that only know a file that it writes: a supervisor may start it on any machine.

use driver::Error;
use member::MasterLocator;
use rpc::transport::Address;

/// The addresses of a master, as its file has them: frames in the first line, HTTP in the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub frames: Address,
    pub http: Address,
}

impl Announcement {
    /// Reads the file at a location, such as `hdfs://HOST:PORT/FOLDER/master`.
    ///
    /// # Errors
    /// If it is not there yet, or has something else.
    pub fn read(location: &str) -> Result<Self, Error> {
        let (store, name) = store::open_folder_of(location).map_err(model::Error::Store)?;
        let bytes = store.read(name).map_err(model::Error::Store)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().map(str::parse::<Address>);
        match (lines.next(), lines.next()) {
            (Some(Ok(frames)), Some(Ok(http))) => Ok(Self { frames, http }),
            _ => Err(Error::request(
                format!("{location} does not have the two addresses of a master"),
                "name the file of `seraphim master --announce`",
            )),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&self, location: &str) -> Result<(), Error> {
        let (store, name) = store::open_folder_of(location).map_err(model::Error::Store)?;
        let text = format!("{}\n{}\n", self.frames, self.http);
        Ok(store.write(name, text.as_bytes()).map_err(model::Error::Store)?)
    }
}

/// Finds the master by its address, or by the location of the file that it writes.
///
/// # Errors
/// If the text is neither.
pub fn master_locator(text: &str) -> Result<MasterLocator, Error> {
    if !text.contains("://") {
        return Ok(text.parse::<Address>().map_err(Error::process)?.into());
    }
    let location = text.to_owned();
    Ok(MasterLocator::new(text.to_owned(), move || {
        Announcement::read(&location).map(|announced| announced.frames).map_err(|error| rpc::Error::Io {
            what: format!("find the master by {location}"),
            source: std::io::Error::other(error.to_string()),
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_found_where_its_file_says_also_when_it_has_moved() {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("file://{}/master", folder.path().display());
        let locator = master_locator(&location).unwrap();
        assert!(locator.locate().unwrap_err().to_string().contains("master"));
        for port in [7070, 7072] {
            let own = |port: u16| format!("127.0.0.1:{port}").parse::<Address>().unwrap();
            Announcement { frames: own(port), http: own(port + 1) }.write(&location).unwrap();
            assert_eq!(locator.locate().unwrap(), own(port));
            assert_eq!(Announcement::read(&location).unwrap().http, own(port + 1));
        }
        std::fs::write(folder.path().join("master"), "nonsense").unwrap();
        assert!(Announcement::read(&location).unwrap_err().to_string().contains("two addresses"));
        assert_eq!(master_locator("127.0.0.1:7070").unwrap().to_string(), "tcp:127.0.0.1:7070");
        assert!(master_locator("nowhere").is_err());
    }
}
