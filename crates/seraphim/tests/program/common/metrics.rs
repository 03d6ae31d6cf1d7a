//! Reads what a member serves at `/metrics`, with a strict parser for the used part of `OpenMetrics` 1.0.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for an answer.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Returns the place of HTTP of a process whose frames are at `place`: the next port.
pub(crate) fn http(place: &str) -> String {
    let (host, port) = place.trim_start_matches("tcp:").rsplit_once(':').expect("it has a port");
    format!("{host}:{}", port.parse::<u16>().expect("it is a number") + 1)
}

/// Returns the body of an answer.
pub(crate) fn get(place: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(place).expect("it takes connections");
    stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("it is a socket");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let (head, body) = text.split_once("\r\n\r\n").expect("it speaks HTTP");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    if path == "/metrics" {
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
        check_format(body);
    }
    body.to_owned()
}

/// Returns the sum of all series of this name that have all these labels.
pub(crate) fn value(text: &str, name: &str, labels: &[&str]) -> f64 {
    let series = text.lines().filter(|line| {
        let rest = line.strip_prefix(name).unwrap_or("-");
        rest.starts_with(['{', ' ']) && labels.iter().all(|label| rest.contains(label))
    });
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Checks the text as a scraper reads it. Every family is contiguous after its HELP and TYPE, occurs once, and has the
/// samples of its type. No series occurs twice. Buckets do not decrease, and the last one equals the count.
pub(crate) fn check_format(text: &str) {
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("it does not end with EOF: {text}"));
    let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
    let (mut family, mut kind, mut buckets) = (String::new(), String::new(), Vec::<f64>::new());
    // Whether a histogram lacks its last bucket.
    let mut is_open = false;
    for line in body.lines() {
        let fault = |what: &str| format!("{what}: {line:?}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{}", fault("no help")));
            assert!(!is_open, "{}", fault("the buckets above do not end with +Inf"));
            assert!(!help.is_empty() && families.insert(name.to_owned()), "{}", fault("a family comes once"));
            (family, kind) = (name.to_owned(), String::new());
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of) = rest.split_once(' ').unwrap_or_else(|| panic!("{}", fault("no type")));
            assert!(name == family && kind.is_empty(), "{}", fault("a type follows its help"));
            assert!(["counter", "gauge", "histogram"].contains(&of), "{}", fault("an unknown type"));
            of.clone_into(&mut kind);
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{}", fault("no value")));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{}", fault("no number")));
        assert!(series.insert(name.to_owned()), "{}", fault("a series comes once"));
        let (bare, labels) = match name.split_once('{') {
            None => (name, String::new()),
            Some((bare, rest)) => {
                let rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("{}", fault("open labels")));
                (bare, rest.to_owned())
            }
        };
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (key, quoted) = label.split_once('=').unwrap_or_else(|| panic!("{}", fault("no label")));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_quoted = quoted.len() >= 2 && quoted.starts_with('"') && quoted.ends_with('"');
            assert!(key.chars().all(is_name) && is_quoted, "{}", fault("a bad label"));
        }
        let end = bare.strip_prefix(&family).unwrap_or_else(|| panic!("{}", fault("of no family above it")));
        let ends: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => panic!("{}", fault("a sample without a type")),
        };
        assert!(ends.contains(&end) && value >= 0.0, "{}", fault("no sample of its type"));
        match end {
            "_count" if kind == "histogram" => {
                assert!(!is_open, "{}", fault("the buckets above do not end with +Inf"));
                (buckets, is_open) = (vec![value], true);
            }
            "_bucket" => {
                let last = buckets.len().checked_sub(2).map_or(0.0, |_| buckets[buckets.len() - 1]);
                assert!(value >= last, "{}", fault("buckets fall"));
                buckets.push(value);
                if labels.contains("le=\"+Inf\"") {
                    assert_eq!(value, buckets[0], "{}", fault("the last bucket is the count"));
                    is_open = false;
                }
            }
            _ => {}
        }
    }
    assert!(!families.is_empty() && !is_open, "nothing is told, or not all: {text}");
}
