//! Inputs of every kind: their lines, their first bytes, and what they tell about themselves.

use std::io::Write as _;

use super::*;
use crate::format::testing::gzip;

/// Returns the lines that a first pass sees.
fn lines_of(bytes: &[u8], quotes: Option<Quotes>) -> Vec<Vec<u8>> {
    let input = Input::memory("f", bytes).expect("text");
    let mut lines = Vec::new();
    input
        .for_each_line(quotes, |line| {
            lines.push(line.to_vec());
            Ok(())
        })
        .expect("readable");
    lines
}

#[test]
fn a_first_pass_sees_every_line_of_a_long_file() {
    // Lines of 27 and 28 bytes that cross the ends of several chunks.
    let lines: Vec<Vec<u8>> = (0..40_000).map(|at| format!("{at:020},value").into_bytes()).collect();
    for end in ["\n", "\r\n"] {
        let text = lines.join(end.as_bytes());
        for tail in ["", end] {
            let text = [&text[..], tail.as_bytes()].concat();
            assert!(lines_of(&text, None) == lines, "the lines with {end:?}, {tail:?} at the end");
            assert!(lines_of(&gzip(&text), None) == lines, "the same of gzip");
        }
    }
}

#[test]
fn a_first_pass_takes_the_mark_off_and_keeps_quoted_line_breaks() {
    let quotes = Quotes { delimiter: b',', backslash: false };
    let text = b"\xef\xbb\xbfa,b\n\n\"x\ny\",2\n\xef\xbb\xbf3,4";
    let with: [&[u8]; 4] = [b"a,b", b"", b"\"x\ny\",2", b"\xef\xbb\xbf3,4"];
    let without: [&[u8]; 5] = [b"a,b", b"", b"\"x", b"y\",2", b"\xef\xbb\xbf3,4"];
    assert_eq!(lines_of(text, Some(quotes)), with);
    assert_eq!(lines_of(text, None), without);
    assert!(lines_of(b"", None).is_empty());
    assert!(lines_of(b"\xef\xbb\xbf", None).is_empty());
}

#[test]
fn the_error_of_a_line_ends_the_first_pass() {
    let input = Input::memory("f", &b"1\n2\n3\n"[..]).expect("text");
    let mut seen = 0;
    let result = input.for_each_line(None, |_| {
        seen += 1;
        if seen == 2 { Err(Error::StandardInputTaken) } else { Ok(()) }
    });
    assert!(matches!(result, Err(Error::StandardInputTaken)));
    assert_eq!(seen, 2);
}

#[test]
fn the_head_is_the_whole_of_a_short_file_and_the_begin_of_a_long_one() {
    let lines = |bytes: &[u8]| {
        let head = Input::memory("f", bytes).expect("text").head().expect("readable");
        let lines: Vec<Vec<u8>> = head.lines().map(<[u8]>::to_vec).collect();
        (head.bytes.len(), head.is_complete, lines)
    };
    let (size_bytes, is_complete, rows) = lines(b"\xef\xbb\xbf1,2\r\n3,4");
    assert_eq!((size_bytes, is_complete), (11, true));
    assert_eq!(rows, [b"1,2".to_vec(), b"3,4".to_vec()]);

    let long = [&b"1,2\n"[..], &b"5".repeat(HEAD_BYTES)].concat();
    assert_eq!(lines(&long), (HEAD_BYTES, false, vec![b"1,2".to_vec()]));
    assert_eq!(lines(&long[4..]), (HEAD_BYTES, false, vec![b"".to_vec()]));
    assert!(lines(&long[5..]).1, "one byte less than the head holds");
}

#[test]
fn an_input_tells_where_it_is_and_how_large() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"1,2\n").expect("room");
    let input = Input::file(file.path()).expect("a file");
    assert_eq!((input.path(), input.bytes()), (Some(file.path()), None));
    assert_eq!(input.name(), file.path().display().to_string());
    assert_eq!((input.size_bytes(), input.splittable_bytes()), (Some(4), Some(4)));
    file.write_all(b"3,4\n").expect("room");
    assert_eq!((input.size_bytes(), input.current_size_bytes()), (Some(4), Some(8)));
    assert!(input.is_rereadable() && input.arrays().is_none());

    let zipped = gzip(b"1,2\n");
    let input = Input::memory("m", &zipped[..]).expect("gzip");
    assert_eq!((input.path(), input.bytes().map(|bytes| bytes.to_vec())), (None, Some(zipped.clone())));
    assert_eq!((input.size_bytes(), input.splittable_bytes()), (Some(zipped.len() as u64), None));
    assert_eq!(input.current_size_bytes(), None);
    assert!(input.is_rereadable() && input.partition().is_empty());

    let day = vec![("day".to_owned(), "1".to_owned())];
    let input = Input::stream("s".to_owned(), Box::new(Cursor::new(zipped))).expect("gzip");
    let input = input.with_partition(day.clone());
    assert_eq!((input.path(), input.bytes(), input.size_bytes()), (None, None, None));
    assert!(!input.is_rereadable());
    assert_eq!(input.partition(), day);
}

#[test]
fn a_stream_is_read_once_with_the_bytes_of_its_head() {
    let text = b"1,2\n".repeat(HEAD_BYTES / 2);
    for bytes in [text.clone(), gzip(&text)] {
        let input = Input::stream("s".to_owned(), Box::new(Cursor::new(bytes))).expect("text");
        assert_eq!(input.head().expect("a head").bytes[..], text[..HEAD_BYTES]);
        let mut count = 0;
        input
            .for_each_line(None, |line| {
                count += usize::from(line == b"1,2");
                Ok(())
            })
            .expect("the first reader");
        assert_eq!(count, HEAD_BYTES / 2);
        assert!(matches!(input.for_each_line(None, |_| Ok(())), Err(Error::StandardInputTaken)));
    }
}

#[test]
fn a_message_names_three_files() {
    let files = |count: usize| {
        let files: Result<Vec<Input>, Error> =
            (0..count).map(|at| Input::memory(format!("f{at}"), &b"1"[..])).collect();
        list_names(&files.expect("text"))
    };
    assert_eq!(files(1), "f0");
    assert_eq!(files(3), "f0, f1, f2");
    assert_eq!(files(5), "f0, f1, f2 and 2 more");
}
