//! The two ports of a process: one for frames, one for HTTP.

use std::collections::VecDeque;
use std::io;

use super::listener::Listener;
use crate::error::Error;
use crate::transport::Address;

/// How often a free port is looked for whose next port is free too: the next ports may nearly all belong to connections
/// that have ended, for a minute.
const ATTEMPTS: usize = 2_000;
/// Number of unfit ports that stay bound, so that the system does not choose them again at once.
const UNFIT_LIMIT: usize = 64;

/// Listeners for frames and for HTTP.
#[derive(Debug)]
pub struct Ports {
    pub frames: Vec<Listener>,
    pub http: Vec<Listener>,
}

impl Ports {
    /// Binds both. Without addresses in `http`, HTTP is beside each address of frames ([`Address::http`]); this holds for
    /// port 0 as well.
    pub fn bind(frames: &[Address], http: &[Address]) -> Result<Self, Error> {
        if http.is_empty() {
            let pairs = frames.iter().map(bind_pair).collect::<Result<Vec<_>, _>>()?;
            let (frames, http) = pairs.into_iter().unzip();
            return Ok(Self { frames, http });
        }
        let frames = frames.iter().map(Listener::bind).collect::<Result<_, _>>()?;
        Ok(Self { frames, http: Self::bind_http(http)? })
    }

    /// Binds only HTTP.
    pub fn bind_http(http: &[Address]) -> Result<Vec<Listener>, Error> {
        http.iter().map(|address| Listener::bind(address).map_err(|error| of_http(error, address))).collect()
    }

    /// The addresses for frames and for HTTP, with the actual ports.
    pub fn addresses(&self) -> (Vec<Address>, Vec<Address>) {
        let list = |listeners: &[Listener]| listeners.iter().map(|one| one.address().clone()).collect();
        (list(&self.frames), list(&self.http))
    }
}

fn bind_pair(address: &Address) -> Result<(Listener, Listener), Error> {
    let mut attempts = 0..ATTEMPTS;
    let mut unfit = VecDeque::new();
    loop {
        let frames = Listener::bind(address)?;
        let beside = frames.address().http()?;
        let is_chosen = frames.address() == address;
        match Listener::bind(&beside) {
            Ok(http) => return Ok((frames, http)),
            Err(Error::Io { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse && !is_chosen && attempts.next().is_some() =>
            {
                if unfit.len() == UNFIT_LIMIT {
                    unfit.pop_front();
                }
                unfit.push_back(frames);
            }
            Err(error) => return Err(of_http(error, &beside)),
        }
    }
}

fn of_http(error: Error, address: &Address) -> Error {
    match error {
        Error::Io { source, .. } => {
            Error::Io { what: format!("serve HTTP at {address} (--http names another address)"), source }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_at_the_next_port_or_path_unless_it_is_named() {
        let any: Address = "127.0.0.1:0".parse().unwrap();
        for _ in 0..50 {
            let (frames, http) = Ports::bind(std::slice::from_ref(&any), &[]).unwrap().addresses();
            assert_eq!(frames[0].http().unwrap(), http[0]);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = Address::Unix(folder.path().join("socket"));
        let (_, http) = Ports::bind(std::slice::from_ref(&path), &[]).unwrap().addresses();
        assert_eq!(http, [Address::Unix(folder.path().join("socket.http"))]);
        let ports = Ports::bind(&[any.clone(), path], std::slice::from_ref(&any)).unwrap();
        assert_eq!((ports.frames.len(), ports.http.len()), (2, 1));
    }

    #[test]
    fn a_port_of_http_that_is_taken_is_named_with_what_to_do() {
        let taken = Ports::bind(&["127.0.0.1:0".parse().unwrap()], &[]).unwrap();
        let (_, http) = taken.addresses();
        for named in [Ports::bind(&http, &[]), Ports::bind(&["127.0.0.1:0".parse().unwrap()], &http)] {
            let text = named.unwrap_err().to_string();
            assert!(text.contains(&http[0].to_string()), "{text}");
        }
        let text = Ports::bind_http(&http).unwrap_err().to_string();
        assert!(text.contains("--http"), "{text}");
        assert!("h:65535".parse::<Address>().unwrap().http().unwrap_err().to_string().contains("--http"));
    }
}
