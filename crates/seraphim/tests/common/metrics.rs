//! What a member shows at `/metrics`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for the text.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The body of an answer.
pub(crate) fn get(place: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(place).expect("it takes connections");
    stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("it is a socket");
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let (head, body) = text.split_once("\r\n\r\n").expect("it speaks HTTP");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}

/// The sum of all series of a name, those with all these labels.
pub(crate) fn value(text: &str, name: &str, labels: &[&str]) -> f64 {
    let series = text.lines().filter(|line| {
        let rest = line.strip_prefix(name).unwrap_or("-");
        rest.starts_with(['{', ' ']) && labels.iter().all(|label| rest.contains(label))
    });
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
