//! Tests of `page_header.rs`.

use super::*;

/// A data page of 3 values, plain, 12 bytes, with statistics, which the parser skips.
const HEADER: [u8; 25] = [
    0x15, 0, 0x15, 24, 0x15, 24, 0x15, 2, 0x1c, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18, 1, b'x',
    0x11, 0, 0, 0,
];

#[test]
fn a_header_is_read_and_its_end_is_known() {
    let bytes = [&HEADER[..], b"the page"].concat();
    let header = PageHeader::parse(&bytes).unwrap().unwrap();
    assert_eq!((header.kind, header.num_values, header.checksum), (PageKind::Data, 3, Some(1)));
    assert_eq!((header.uncompressed_size, header.compressed_size), (12, 12));
    assert_eq!(header.header_size, HEADER.len());
    assert_eq!(header.encoding().unwrap(), Encoding::PLAIN);
    assert_eq!(header.definition_encoding().unwrap(), Encoding::RLE);
}

#[test]
fn a_header_that_goes_on_behind_the_bytes_is_none_yet() {
    for end in 0..HEADER.len() {
        assert!(PageHeader::parse(&HEADER[..end]).unwrap().is_none(), "{end} bytes");
    }
}

#[test]
fn what_no_header_can_say_is_refused() {
    let negative = [0x15, 0, 0x15, 1];
    let without_part = [0x15, 0, 0x15, 24, 0x15, 24, 0];
    let deep = [[0xcc; 60], [0; 60]].concat();
    let list_without_end = [0x99, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    for bytes in [&negative[..], &without_part, &deep, &[0x1f]] {
        assert!(PageHeader::parse(bytes).is_err(), "{bytes:?}");
    }
    assert!(PageHeader::parse(&list_without_end).unwrap().is_none());
}

#[test]
fn encodings_have_the_numbers_of_the_format() {
    let known = [
        (0, "PLAIN"),
        (2, "PLAIN_DICTIONARY"),
        (3, "RLE"),
        (4, "BIT_PACKED"),
        (5, "DELTA_BINARY_PACKED"),
        (6, "DELTA_LENGTH_BYTE_ARRAY"),
        (7, "DELTA_BYTE_ARRAY"),
        (8, "RLE_DICTIONARY"),
        (9, "BYTE_STREAM_SPLIT"),
    ];
    for (number, name) in known {
        assert_eq!(encoding(number).unwrap().to_string(), name);
    }
    for number in [-1, 1, 10] {
        let text = encoding(number).unwrap_err().to_string();
        assert!(text.contains(&format!("the unknown encoding {number}")), "{text}");
    }
    assert!(matches!(size(i64::from(i32::MAX)), Ok(0x7fff_ffff)));
    assert!(size(1 << 31).is_err() && size(-1).is_err());
}
