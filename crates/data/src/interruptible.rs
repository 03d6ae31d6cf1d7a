//! A reader of standard input that can be stopped: a plain read would wait until some process writes.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes per read.
const CHUNK_BYTES: usize = 128 << 10;
/// Chunks that may wait in the queue.
const QUEUE_CHUNKS: usize = 4;
/// Time between two checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Ends the wait for standard input when it is raised.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(pub Arc<AtomicBool>);

/// A reader that ends when the stop flag is raised and no bytes wait. It returns the bytes of an incomplete line only
/// with the bytes that follow, so that a stop never leaves half a line.
pub(crate) struct InterruptibleReader {
    chunks: Receiver<std::io::Result<Vec<u8>>>,
    /// Bytes to return, from `at` to `end`; the line behind `end` is not complete.
    bytes: Vec<u8>,
    at: usize,
    end: usize,
    stop: StopFlag,
}

impl InterruptibleReader {
    /// Reads `raw` on a thread of its own. That thread cannot be ended before `raw` ends.
    pub(crate) fn new(mut raw: impl Read + Send + 'static, stop: StopFlag) -> Self {
        let (sender, chunks) = sync_channel(QUEUE_CHUNKS);
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = match raw.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(count) => {
                        chunk.truncate(count);
                        Ok(chunk)
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_last = read.is_err();
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { chunks, bytes: Vec::new(), at: 0, end: 0, stop }
    }

    fn add(&mut self, chunk: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(chunk);
        self.end = memchr::memrchr(b'\n', &self.bytes).map_or(0, |last| last + 1);
    }
}

impl Read for InterruptibleReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.end && !buffer.is_empty() {
            match self.chunks.recv_timeout(POLL_INTERVAL) {
                Ok(chunk) => self.add(&chunk?),
                Err(RecvTimeoutError::Timeout) if self.stop.0.load(Ordering::Relaxed) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.end == self.bytes.len() => return Ok(0),
                Err(RecvTimeoutError::Disconnected) => self.end = self.bytes.len(),
            }
        }
        let count = buffer.len().min(self.end - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_in_their_order() {
        for text in ["", "one line", "a\nb\n", "a\n\nb"] {
            let mut read = String::new();
            let raw = std::io::Cursor::new(text.as_bytes().to_vec());
            InterruptibleReader::new(raw, StopFlag::default()).read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn who_waits_stops_at_the_end_of_a_line() {
        struct Endless(Option<&'static [u8]>);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let Some(bytes) = self.0.take() else {
                    loop {
                        std::thread::park();
                    }
                };
                buffer[..bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
        }
        let stop = StopFlag::default();
        stop.0.store(true, Ordering::Relaxed);
        let mut read = String::new();
        InterruptibleReader::new(Endless(Some(b"a\nb\nhalf")), stop).read_to_string(&mut read).unwrap();
        // Waiting bytes are read before the stop flag counts.
        assert_eq!(read, "a\nb\n");
    }
}
