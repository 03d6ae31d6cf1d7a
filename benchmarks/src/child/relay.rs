//! A simulated distance: bytes through a relay arrive later by a fixed delay in each direction. Bytes in flight do not
//! wait for each other, so the relay adds only latency.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Largest piece that the relay forwards at once.
const PIECE_BYTES: usize = 256 << 10;

/// Listens on a free port and forwards every connection to `target`, with `delay` in each direction. Returns the
/// address. Its threads end with the connections, the listening one with the process.
pub(super) fn start(target: String, delay: Duration) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(&target) else { continue };
            if let Err(error) = join(&near, &far, delay) {
                eprintln!("relay to {target}: {error:#}");
            }
        }
    });
    Ok(address)
}

fn join(near: &TcpStream, far: &TcpStream, delay: Duration) -> Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    one_way(near.try_clone()?, far.try_clone()?, delay);
    one_way(far.try_clone()?, near.try_clone()?, delay);
    Ok(())
}

fn one_way(mut from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if sender.send((Instant::now() + delay, piece[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || deliver(&receiver, to));
}

fn deliver(pieces: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (due, piece) in pieces {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    // The other end may have closed it already.
    let _ = to.shutdown(Shutdown::Write);
}
