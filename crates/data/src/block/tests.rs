use proptest::prelude::*;

use super::*;
use crate::batch::BatchBuilder;

/// Records of (label, weight, group, entries of (field, key, value)).
type Records = Vec<(i8, u8, u64, Vec<(u32, u64, i8)>)>;

fn build(records: &Records, [with_groups, with_fields, with_times]: [bool; 3]) -> Batch {
    let mut builder = BatchBuilder::new();
    for (label, weight, group, entries) in records {
        for &(field, key, value) in entries {
            if with_fields {
                builder.push_with_field(field, key, f32::from(value));
            } else {
                builder.push(key, f32::from(value));
            }
        }
        if with_times {
            builder.set_time(*group as f64 / 3.0);
        }
        builder.end_record(f64::from(*label), f32::from(*weight), with_groups.then_some(*group));
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    batch
}

fn encoded(batch: &Batch) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(batch, &mut bytes);
    bytes
}

fn example() -> Batch {
    let records =
        vec![(1, 2, 7, vec![(3, 70_000, 2), (300, 5, 1)]), (0, 1, 8, vec![]), (1, 1, 9, vec![(1, 5, -1)])];
    build(&records, [true; 3])
}

proptest! {
    #[test]
    fn a_batch_survives_its_block(
        records in prop::collection::vec(
            (any::<i8>(), 1u8..3, any::<u64>(), prop::collection::vec((0u32..70_000, any::<u64>(), 0i8..3), 0..40)),
            0..40,
        ),
        key_bits in 1u32..64,
        sections: [bool; 3],
    ) {
        let records: Records = records
            .into_iter()
            .map(|(l, w, g, e)| (l, w, g, e.into_iter().map(|(f, k, v)| (f, k >> (64 - key_bits), v)).collect()))
            .collect();
        let batch = build(&records, sections);
        let bytes = encoded(&batch);
        prop_assert_eq!(bytes.len() % ALIGN, 0);
        let mut back = example();
        prop_assert_eq!(decode(&bytes, &mut back), Ok(()));
        prop_assert_eq!(back, batch);
    }

    #[test]
    fn any_bytes_are_an_error_or_a_batch(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        counts in (0u8..4, 0u8..10, 0u8..10),
        passed in 0usize..4,
    ) {
        // Magic and version are right, then also widths and counts, then also the length, so that the later checks are
        // reached.
        let mut header = Header::of(&example());
        (header.record_count, header.entry_count, header.column_count) =
            (counts.0.into(), counts.1.into(), counts.2.into());
        if passed > 2 {
            bytes.resize(header.block_bytes(), 7);
        }
        let mut good = Vec::new();
        header.put(&mut good);
        let kept = [0, 10, HEADER_BYTES, HEADER_BYTES][passed].min(bytes.len());
        bytes[..kept].copy_from_slice(&good[..kept]);
        if passed > 0 && bytes.len() >= CHECKSUM_START {
            let sum = crc32c::crc32c(&bytes[CHECKSUM_START..]);
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        }
        check_decoded(&bytes)?;
    }

    /// The checksum is made right again, so that only the checks of counts and contents can refuse the block.
    #[test]
    fn forged_bytes_with_a_good_checksum_never_break_the_batch(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encoded(&example());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let sum = crc32c::crc32c(&bytes[CHECKSUM_START..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        check_decoded(&bytes)?;
    }
}

/// Decoding must give a consistent batch, or an error and an empty batch.
fn check_decoded(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut batch = Batch::default();
    if decode(bytes, &mut batch).is_ok() {
        prop_assert!(batch.columns.windows(2).all(|w| w[0] < w[1]));
        prop_assert!(batch.indices.iter().all(|&i| (i as usize) < batch.columns.len()));
        for r in 0..batch.record_count() {
            prop_assert!(batch.entries(r).end <= batch.entry_count());
            prop_assert!(batch.entries(r).start <= batch.entries(r).end);
        }
    } else {
        prop_assert_eq!(batch, Batch::default());
    }
    Ok(())
}

#[test]
fn every_flipped_bit_is_an_error() {
    let bytes = encoded(&example());
    let mut batch = Batch::default();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            let fault = decode(&damaged, &mut batch).expect_err("a flipped bit was not seen");
            assert!(!fault.what.is_empty());
            assert_eq!(batch, Batch::default(), "nothing of a damaged block stays");
        }
    }
}

#[test]
fn every_cut_block_is_an_error() {
    let bytes = encoded(&example());
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length], &mut Batch::default()).is_err(), "cut to {length}");
    }
}

#[test]
fn widths_follow_the_largest_number() {
    let with_columns = |count: u64, step: u64| {
        let records = (0..count).map(|i| (0, 1, 0, vec![(0, i * step, 1)])).collect();
        let batch = build(&records, [false; 3]);
        let bytes = encoded(&batch);
        let mut back = Batch::default();
        decode(&bytes, &mut back).expect("own block");
        assert_eq!(back, batch);
        (bytes[10], bytes[12])
    };
    assert_eq!(with_columns(256, 255), (1, 1));
    assert_eq!(with_columns(257, 256), (2, 2));
    assert_eq!(with_columns(65_536, 65_536), (2, 4));
    assert_eq!(with_columns(65_537, 1 << 32), (4, 8));
}

/// Returns the fault of the block of a batch that no builder makes.
fn fault_of(change: impl Fn(&mut Batch)) -> BlockFault {
    let mut batch = build(&vec![(1, 1, 0, vec![(0, 5, 1), (0, 6, 1)]); 2], [false; 3]);
    change(&mut batch);
    decode(&encoded(&batch), &mut Batch::default()).expect_err("a batch out of order")
}

#[test]
fn a_block_out_of_order_is_told() {
    let equal_columns = fault_of(|batch| batch.columns = vec![5, 5]);
    assert_eq!(
        (equal_columns.what, equal_columns.actual),
        ("number of columns that are not above the one before", 1)
    );
    let offsets = |offsets: [u32; 3]| fault_of(|batch| batch.offsets = offsets.to_vec());
    let fault = |what, actual, expected| BlockFault { what, actual, expected };
    assert_eq!(offsets([1, 2, 4]), fault("first offset", 1, 0));
    assert_eq!(offsets([0, 2, 3]), fault("last offset", 3, 4));
    assert_eq!(offsets([0, 5, 4]), fault("number of offsets below the one before", 1, 0));
    let indices = |indices: [u32; 4]| fault_of(|batch| batch.indices = indices.to_vec());
    // Two and four indices beyond the last column, which would cancel each other in a sum of bits.
    assert_eq!(indices([0, 2, 2, 0]), fault("an index", 2, 2));
    assert_eq!(indices([2, 3, 2, 3]), fault("an index", 3, 2));
    assert_eq!(fault_of(|batch| batch.columns.clear()), fault("an index", 1, 0));
}

#[test]
fn one_offset_too_many_is_a_fault_of_the_program() {
    let mut batch = example();
    batch.offsets.push(3);
    assert!(std::panic::catch_unwind(|| encoded(&batch)).is_err());
}
