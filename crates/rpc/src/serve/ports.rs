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
            return Self::bind_pairs(frames, IfTaken::Fail);
        }
        let frames = frames.iter().map(Listener::bind).collect::<Result<_, _>>()?;
        Ok(Self { frames, http: Self::bind_http(http)? })
    }

    /// Binds both for a process that comes back to the addresses that it had. A next port may have been taken while it
    /// was away: HTTP has any free port then, because the process is needed for its frames.
    pub fn bind_again(frames: &[Address]) -> Result<Self, Error> {
        Self::bind_pairs(frames, IfTaken::AnyPort)
    }

    fn bind_pairs(frames: &[Address], if_taken: IfTaken) -> Result<Self, Error> {
        let pairs = frames.iter().map(|address| bind_pair(address, if_taken));
        let (frames, http) = pairs.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(Self { frames, http })
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

/// What to do when the port beside one that was named is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfTaken {
    Fail,
    AnyPort,
}

fn bind_pair(address: &Address, if_taken: IfTaken) -> Result<(Listener, Listener), Error> {
    let mut attempts = 0..ATTEMPTS;
    let mut unfit = VecDeque::new();
    loop {
        let frames = Listener::bind(address).map_err(|error| match if_taken {
            IfTaken::Fail => error,
            IfTaken::AnyPort => of_return(error, address),
        })?;
        let beside = frames.address().http()?;
        let is_chosen = frames.address() == address;
        match Listener::bind(&beside) {
            Ok(http) => return Ok((frames, http)),
            Err(error) if !is_in_use(&error) => return Err(of_http(error, &beside)),
            Err(_) if !is_chosen && attempts.next().is_some() => {
                if unfit.len() == UNFIT_LIMIT {
                    unfit.pop_front();
                }
                unfit.push_back(frames);
            }
            Err(error) => {
                let other = beside.any_port().filter(|_| if_taken == IfTaken::AnyPort);
                let http = Listener::bind(&other.ok_or_else(|| of_http(error, &beside))?)?;
                tracing::warn!(taken = %beside, http = %http.address(), "the port for HTTP is taken: another is used");
                return Ok((frames, http));
            }
        }
    }
}

fn is_in_use(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
}

/// The error of a listener, with another description of what failed.
fn described(error: Error, what: String) -> Error {
    match error {
        Error::Io { source, .. } => Error::Io { what, source },
        other => other,
    }
}

fn of_return(error: Error, address: &Address) -> Error {
    described(
        error,
        format!("come back at {address}, where jobs expect this process (end what uses the port)"),
    )
}

fn of_http(error: Error, address: &Address) -> Error {
    described(error, format!("serve HTTP at {address} (--http names another address)"))
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

    #[test]
    fn a_process_that_comes_back_has_http_elsewhere_if_its_port_is_taken() {
        let any: Address = "127.0.0.1:0".parse().unwrap();
        let had = Ports::bind(std::slice::from_ref(&any), &[]).unwrap();
        let (frames, http) = had.addresses();
        drop(had.frames);
        let back = Ports::bind_again(&frames).unwrap();
        let (same, other) = back.addresses();
        assert_eq!(same, frames);
        assert!(other != http && other[0].to_string().starts_with("tcp:127.0.0.1:"), "{other:?}");
        // The port of frames is the one that others know.
        let text = Ports::bind_again(&frames).unwrap_err().to_string();
        assert!(text.contains("where jobs expect this process (end what uses the port)"), "{text}");
        drop((had.http, back));
        assert_eq!(Ports::bind_again(&frames).unwrap().addresses(), (frames, http));
    }
}
