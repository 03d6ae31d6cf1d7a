//! Tests of `thrift.rs`.

use super::*;

/// A structure with a field of every type, each after the one before, and number 20 at the end.
fn all_types() -> Vec<u8> {
    let mut bytes = vec![
        0x11, // 1: true
        0x12, // 2: false
        0x13, 0x85, // 3: the byte -123
        0x14, 0x81, 0x01, // 4: the 16-bit number -65
        0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, // 5: the 32-bit number 2^31 - 1
        0x16, 0x03, // 6: the 64-bit number -2
        0x17, 1, 2, 3, 4, 5, 6, 7, 8, // 7: a double
        0x18, 3, b'a', b'b', b'c', // 8: bytes
        0x19, 0x25, 0x02, 0x04, // 9: a list of two 32-bit numbers
        0x1a, 0x31, 1, 2, 1, // 10: a set of three booleans
        0x19, 0xf3, 0x10, // 11: a long list of 16 bytes
    ];
    bytes.extend([0; 16]);
    bytes.extend([0x1c, 0x15, 0x02, 0x1c, 0x00, 0x00]); // 12: a structure with a number and an empty structure
    bytes.extend([0x05, 0x28, 0x0a]); // 20, whose number is written: 5
    bytes.push(0);
    bytes
}

fn outcome<T>(result: Result<T, ThriftError>) -> Result<T, String> {
    result.map_err(|error| match error {
        ThriftError::UnexpectedEnd => "the end".to_owned(),
        ThriftError::Invalid(reason) => reason,
    })
}

#[test]
fn every_type_is_skipped_to_its_end() {
    let bytes = all_types();
    let mut reader = ThriftReader::new(&bytes);
    let (mut numbers, mut ends) = (Vec::new(), Vec::new());
    let read = reader.fields(|reader, number, kind| {
        numbers.push((number, kind));
        reader.skip(kind, 0)?;
        ends.push(reader.position());
        Ok(())
    });
    assert_eq!(outcome(read), Ok(()));
    let kinds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 12, 5];
    let expected: Vec<_> = (1..=12).chain([20]).zip(kinds).collect();
    assert_eq!(numbers, expected);
    assert_eq!(ends, [1, 2, 4, 7, 13, 15, 24, 29, 33, 38, 57, 63, 66]);
    assert_eq!(reader.position(), bytes.len());
    for number in 0..22 {
        let is_there = (1..=12).contains(&number) || number == 20;
        assert_eq!(has_field(&bytes, number), is_there, "{number}");
    }
}

#[test]
fn integers_are_those_that_are_written() {
    let bytes = all_types();
    let mut found = Vec::new();
    let read = ThriftReader::new(&bytes).fields(|reader, number, kind| {
        if (3..=6).contains(&number) || number == 20 {
            found.push(reader.integer(kind)?);
            return Ok(());
        }
        reader.skip(kind, 0)
    });
    assert_eq!(outcome(read), Ok(()));
    assert_eq!(found, [-123, -65, 2_147_483_647, -2, 5]);
    let text = outcome(ThriftReader::new(&[1]).integer(BINARY)).unwrap_err();
    assert_eq!(text, "type 8 instead of an integer");
}

#[test]
fn a_structure_that_is_cut_off_anywhere_ends_unexpectedly() {
    let bytes = all_types();
    for end in 0..bytes.len() {
        let mut reader = ThriftReader::new(&bytes[..end]);
        let read = reader.fields(|reader, _, kind| reader.skip(kind, 0));
        assert_eq!(outcome(read), Err("the end".to_owned()), "{end} bytes");
        assert!(!has_field(&bytes[..end], 1));
    }
}

#[test]
fn nesting_and_numbers_have_limits() {
    let nested = |depth: usize| [vec![0x1c; depth], vec![0; depth + 1]].concat();
    let skip =
        |bytes: &[u8]| outcome(ThriftReader::new(bytes).fields(|reader, _, kind| reader.skip(kind, 0)));
    assert_eq!(skip(&nested(DEPTH_LIMIT as usize + 1)), Ok(()));
    assert!(skip(&nested(DEPTH_LIMIT as usize + 2)).unwrap_err().contains("nested structures"));
    let long = [&[0x15][..], &[0xff; 10], &[0]].concat();
    assert_eq!(skip(&long), Err("a number of more than 64 bits".to_owned()));
    assert_eq!(skip(&[0x1d, 0]), Err("a value of type 13".to_owned()));
    let huge = [0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0];
    assert_eq!(skip(&huge), Err("the end".to_owned()), "more bytes than there are");
}
