//! Where a process accepts connections.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;

/// An address, written `tcp:HOST:PORT`, `HOST:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host and port.
    Tcp(String),
    /// The path of a socket on this machine.
    Unix(PathBuf),
}

impl Address {
    /// Where a process serves HTTP, unless its user names an address: the port after the port of its frames, or the path
    /// of their socket with `.http` appended.
    pub fn http(&self) -> Result<Self, Error> {
        match self {
            Address::Unix(path) => {
                let mut beside = path.clone().into_os_string();
                beside.push(".http");
                Ok(Address::Unix(beside.into()))
            }
            Address::Tcp(place) => {
                let next = place.rsplit_once(':').and_then(|(host, port)| {
                    Some(format!("{host}:{}", port.parse::<u16>().ok()?.checked_add(1)?))
                });
                let problem = "has no next port for HTTP: give --http";
                next.map(Address::Tcp).ok_or_else(|| Error::Address { text: self.to_string(), problem })
            }
        }
    }

    /// Any free port of the same host; `None` for a path.
    pub(crate) fn any_port(&self) -> Option<Self> {
        let Address::Tcp(place) = self else { return None };
        place.rsplit_once(':').map(|(host, _)| Address::Tcp(format!("{host}:0")))
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |problem| Error::Address { text: text.to_owned(), problem };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong("has no path")) } else { Ok(Address::Unix(path.into())) };
        }
        let place = text.strip_prefix("tcp:").unwrap_or(text);
        let Some((host, port)) = place.rsplit_once(':') else { return Err(wrong("has no port")) };
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        if port.parse::<u16>().is_err() {
            return Err(wrong("has a port that is not a number from 0 to 65535"));
        }
        Ok(Address::Tcp(place.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(place) => write!(f, "tcp:{place}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
