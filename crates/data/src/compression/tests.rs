//! Tests of `compression.rs`.

use super::*;
use crate::format::testing::gzip;

fn read_all(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let raw = Box::new(Cursor::new(bytes.to_vec()));
    let mut stream = ByteStream::new("f", raw, Compression::recognize(bytes))?;
    let (mut all, mut buffer) = (Vec::new(), [0; 100]);
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            assert_eq!(stream.consumed(), bytes.len() as u64);
            return Ok(all);
        }
        all.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn all_kinds_give_the_same_bytes() {
    let text = b"1 2:3\n".repeat(1000);
    assert_eq!(read_all(&text).unwrap(), text);
    assert_eq!(read_all(&gzip(&text)).unwrap(), text);
    assert_eq!(read_all(&zstd::encode_all(&text[..], 1).unwrap()).unwrap(), text);
}

#[test]
fn gzip_of_several_members_is_read_to_its_end() {
    let bytes = [gzip(b"a\n"), gzip(b""), gzip(b"b\n")].concat();
    assert_eq!(read_all(&bytes).unwrap(), b"a\nb\n");
}

#[test]
fn a_truncated_file_says_where_it_ends() {
    let text: Vec<u8> = (0..20_000u32).flat_map(|i| (i.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    for whole in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
        let cut = whole.len() / 2;
        match read_all(&whole[..cut]) {
            Err(Error::DamagedCompression { file, offset, reason, .. }) => {
                assert_eq!((file.as_str(), offset), ("f", cut as u64));
                assert!(reason.contains("ends early"), "{reason}");
            }
            other => panic!("{:?}", other.map(|bytes| bytes.len())),
        }
    }
}

#[test]
fn what_is_not_read_is_named() {
    for (name, head, what) in [
        ("a.csv.bz2", &b"BZh91AY&SY\x00"[..], Some("bzip2")),
        ("a.csv.xz", b"\xfd7zXZ\x00\x00\x04", Some("xz")),
        ("a.zip", b"PK\x03\x04\x14\x00", Some("zip")),
        ("a.csv.br", b"\x0b\x02\x80", Some("brotli")),
        ("a.csv", b"\xff\xfea\x00,\x00", Some("UTF-16")),
        ("a.csv", b"BZh9,1,2\n", None),
        ("a.csv", b"1,2\n", None),
    ] {
        let foreign = Compression::unsupported_kind(name, head);
        assert_eq!(foreign.is_some(), what.is_some(), "{name}");
        assert!(foreign.unwrap_or_default().contains(what.unwrap_or_default()), "{foreign:?}");
    }
    let tar = [&[b'x'; TAR_MAGIC_OFFSET][..], b"ustar\x0000"].concat();
    assert!(Compression::is_tar(&tar) && !Compression::is_tar(b"1,2\n"));
}

#[test]
fn one_cr_inside_a_line_ends_no_lines() {
    for (head, ends_lines) in [
        (&b"1,2\r3,4\r5"[..], true),
        (b"1,2\r3,4\r", false),
        (b"1,2\r3,4\r5,6\r", true),
        (b"1,2\r3,4\r5,6\r\n", false),
        (b"1\r2\r3\0", false),
        (b"a\tb\rc~\r\xe4", true),
    ] {
        assert_eq!(Compression::has_cr_lines(head), ends_lines, "{head:?}");
    }
}

#[test]
fn utf16_is_told_by_every_second_byte() {
    for (head, is_utf16) in [
        (&b"1\0,\x002\0\n\0"[..], true),
        (b"\x001\0,\x002\0\n", true),
        (b"1\0,\x002\0\n\0\0\0\0", true),
        (b"1\0,\x002\0\n", false),
        (b"1\0,\x002\x003\n", false),
        (b"\0\0\0\0\0\0\0\0", false),
        (b"1,2\n3,4\n", false),
        (b"", false),
    ] {
        assert_eq!(is_utf16_text(head), is_utf16, "{head:?}");
    }
}

#[test]
fn a_head_is_read_before_the_rest() {
    let raw = Box::new(Cursor::new(b"56789".to_vec()));
    let stream = ByteStream::new("f", raw, Compression::Plain).unwrap();
    let mut stream = stream.with_head(Arc::from(&b"01234"[..]));
    let (mut all, mut buffer) = (Vec::new(), [0; 2]);
    assert_eq!(stream.read(&mut []).unwrap(), 0);
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            count => all.extend_from_slice(&buffer[..count]),
        }
    }
    assert_eq!(all, b"0123456789");
}

#[test]
fn a_damaged_file_is_an_error() {
    let mut bytes = gzip(&b"1 2:3\n".repeat(1000));
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    assert!(matches!(read_all(&bytes), Err(Error::DamagedCompression { kind: "gzip", .. })));
}
