use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::bad_lines::{BadLinePolicy, BadLineTally};
use crate::format::RecordReader;
use crate::label::LabelRule;
use crate::sink::{HoldoutRule, Sink};

/// Gives `count` records. Record `i` has label `i`, weight `1 + i % 2`, group `i * 3` and `i % 4` entries made from
/// `i`.
struct Numbered {
    next: u64,
    count: u64,
}

fn entries(i: u64) -> impl Iterator<Item = (u32, u64, f32)> {
    (0..i % 4).map(move |e| (e as u32, i * 1000 + e * e * 70_000, (i % 7 + e) as f32))
}

impl RecordReader for Numbered {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while self.next < self.count && sink.record_count() < record_limit {
            let i = self.next;
            for (field, key, value) in entries(i) {
                sink.builder().push_with_field(field, key, value);
            }
            sink.end_record(Some(i as f64), (1 + i % 2) as f32, Some(i * 3)).expect("any label is real");
            self.next += 1;
        }
        Ok(self.next < self.count)
    }
}

/// Limits with which all blocks are cached in memory, all on disk, and the first ones in memory.
const MEMORY: u64 = 1 << 30;
const DISK: u64 = 0;
const BOTH: u64 = 5_000;

fn task_data(
    count: u64,
    memory_limit_bytes: Option<u64>,
    shuffle: Shuffle,
    batch_size: impl Into<BatchSize>,
    folder: &tempfile::TempDir,
) -> TaskData {
    let reader = Reader::new(
        Box::new(Numbered { next: 0, count }),
        Sink::new(LabelRule::Real, BadLineTally::new(BadLinePolicy::Fail)),
    );
    let keep = memory_limit_bytes
        .map(|memory_limit_bytes| CacheConfig { memory_limit_bytes, folder: folder.path().to_owned() });
    TaskData::new(reader, keep, shuffle, 1, 0, batch_size)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn epoch(data: &mut dyn BatchStream, number: u64) -> Vec<Batch> {
    data.start_epoch(number).expect("the epoch starts");
    let mut batches = Vec::new();
    while let Some(batch) = data.next().expect("a batch or the end") {
        batches.push(batch.clone());
    }
    assert!(data.next().expect("the end again").is_none());
    batches
}

/// Returns the record numbers in their order, after it has checked that each record is complete.
fn records(batches: &[Batch]) -> Vec<u64> {
    let mut numbers = Vec::new();
    for batch in batches {
        for r in 0..batch.record_count() {
            let i = batch.labels[r] as u64;
            assert_eq!((batch.weight(r), batch.groups[r]), ((1 + i % 2) as f32, i * 3));
            let seen: Vec<_> = batch
                .entries(r)
                .map(|e| {
                    let value = batch.values.get(e).copied().unwrap_or(1.0);
                    (batch.fields[e], batch.columns[batch.indices[e] as usize], value)
                })
                .collect();
            assert_eq!(seen, entries(i).collect::<Vec<_>>(), "record {i}");
            numbers.push(i);
        }
    }
    numbers
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

proptest! {
    #[test]
    fn each_record_comes_once_an_epoch(
        count in 0u64..300,
        batch_size in 1usize..40,
        scan: bool,
        is_numbered: bool,
        shuffle in prop::sample::select(vec![Shuffle::None, Shuffle::Batches, Shuffle::Records]),
        memory_limit in prop::sample::select(vec![MEMORY, DISK, BOTH]),
    ) {
        let folder = folder();
        let mut data = task_data(count, Some(memory_limit), shuffle, batch_size, &folder);
        if is_numbered {
            data.number_records();
        }
        if scan {
            data.scan().expect("room enough");
            data.reconfigure(BatchSize::Fixed(batch_size + 3), shuffle, true, None).expect("room enough");
            data.reconfigure(BatchSize::Fixed(batch_size), shuffle, true, None).expect("room enough");
        }
        for number in 0..3 {
            let batches = epoch(&mut data, number);
            for batch in &batches {
                // The label of a record is its number.
                let wanted: Vec<u64> = batch.labels.iter().map(|&label| label as u64).collect();
                prop_assert_eq!(&batch.numbers, &if is_numbered { wanted } else { Vec::new() });
            }
            let numbers = records(&batches);
            let in_order: Vec<u64> = (0..count).collect();
            if shuffle == Shuffle::None || (number == 0 && !scan) {
                prop_assert_eq!(&numbers, &in_order);
            }
            prop_assert_eq!(sorted(numbers), in_order);
            let sizes: Vec<usize> = batches.iter().map(Batch::record_count).collect();
            prop_assert!(sizes.iter().filter(|&&size| size != batch_size).count() <= 1, "{:?}", sizes);
        }
    }
}

#[test]
fn kept_epochs_equal_the_first_to_the_bit() {
    let folder = folder();
    for limit in [MEMORY, DISK, BOTH] {
        let mut data = task_data(1000, Some(limit), Shuffle::None, 64, &folder);
        let first = epoch(&mut data, 0);
        assert_eq!(epoch(&mut data, 1), first);
        assert_eq!(epoch(&mut data, 2), first);
    }
}

#[test]
fn the_order_hangs_on_seed_and_epoch_alone() {
    let folder = folder();
    for shuffle in [Shuffle::Batches, Shuffle::Records] {
        let mut a = task_data(5000, Some(MEMORY), shuffle, 20, &folder);
        let mut b = task_data(5000, Some(DISK), shuffle, 20, &folder);
        b.scan().expect("room enough");
        let (_, first, second) = (epoch(&mut a, 0), epoch(&mut a, 1), epoch(&mut a, 2));
        assert_eq!(epoch(&mut b, 2), second, "epoch 2 without an epoch 1");
        assert_eq!(epoch(&mut b, 1), first, "and epoch 1 after it");
        assert_ne!(first, second);
    }
}

#[test]
fn a_run_that_continues_has_the_epochs_that_would_have_followed() {
    let folder = folder();
    for shuffle in [Shuffle::Batches, Shuffle::Records] {
        let data = || task_data(2000, Some(MEMORY), shuffle, 20, &folder);
        let (mut whole, mut continued) = (data(), data());
        let expected: Vec<_> = (0..4).map(|number| epoch(&mut whole, number)).collect();
        continued.set_first_epoch(2);
        assert_eq!([epoch(&mut continued, 0), epoch(&mut continued, 1)], expected[2..]);
    }
    // Without a shuffle all epochs are equal, and the first needs no cache.
    let mut data = task_data(100, None, Shuffle::None, 7, &folder);
    data.set_first_epoch(2);
    assert_eq!(records(&epoch(&mut data, 0)), (0..100).collect::<Vec<_>>());
}

#[test]
fn records_leave_their_batches_when_records_are_shuffled() {
    let folder = folder();
    let neighbours = |numbers: &[u64]| numbers.windows(2).filter(|w| w[0] + 1 == w[1]).count();
    let mut data = task_data(5000, Some(MEMORY), Shuffle::Records, 20, &folder);
    data.scan().expect("room enough");
    let mixed = records(&epoch(&mut data, 0));
    // In a window of 320 records a neighbour follows by chance once in 320 cases.
    assert!(neighbours(&mixed) < 100, "{}", neighbours(&mixed));
    let window: BTreeSet<u64> = mixed[..20 * WINDOW_BLOCKS].iter().map(|i| i / 20).collect();
    assert_eq!(window.len(), WINDOW_BLOCKS, "the first window has the records of that many batches");
    assert!(window.iter().next_back() > Some(&20), "which come from the whole file");
}

#[test]
fn an_epoch_left_early_is_parsed_to_its_end_before_the_next() {
    let folder = folder();
    let mut data = task_data(100, Some(MEMORY), Shuffle::None, 7, &folder);
    data.start_epoch(0).expect("it starts");
    assert!(data.next().expect("a batch").is_some());
    assert_eq!(records(&epoch(&mut data, 1)), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_second_epoch_of_nothing_kept_is_an_error_that_says_so() {
    let folder = folder();
    let mut data = task_data(10, None, Shuffle::None, 3, &folder);
    assert_eq!(records(&epoch(&mut data, 0)).len(), 10);
    let error = data.start_epoch(1).expect_err("nothing was kept");
    assert!(matches!(error, Error::NotCached { epoch: 1, task: 0 }), "{error}");
    assert!(data.scan().is_err(), "nor is there a place to scan into");
}

#[test]
fn held_out_records_are_in_no_epoch() {
    let folder = folder();
    let mut data = task_data(1000, Some(MEMORY), Shuffle::Records, 10, &folder);
    data.reader_mut().set_holdout(HoldoutRule::Share(0.2, stream(1, Purpose::Validation, 0, 0)));
    let first = epoch(&mut data, 0);
    let held = records(&data.take_holdout());
    let second = epoch(&mut data, 1);
    assert!(held.len() > 100);
    assert_eq!(sorted(records(&first)), sorted(records(&second)));
    assert_eq!(sorted([records(&first), held].concat()), (0..1000).collect::<Vec<_>>());
}

#[test]
fn growing_batches_grow_over_all_epochs() {
    let folder = folder();
    let mut data = task_data(20_000, Some(MEMORY), Shuffle::Records, BatchSize::Growing, &folder);
    let sizes = |batches: &[Batch]| batches.iter().map(Batch::record_count).collect::<Vec<_>>();
    let first = sizes(&epoch(&mut data, 0));
    assert_eq!(first[0], BatchSize::SMALLEST);
    assert!(first[..first.len() - 1].is_sorted() && first[first.len() - 2] > 250);
    assert_eq!(sizes(&epoch(&mut data, 1))[0], 20_000 / 64, "the second epoch goes on where the first ended");
}

#[test]
fn what_is_kept_is_counted() {
    let folder = folder();
    let mut data = task_data(100, Some(DISK), Shuffle::None, 10, &folder);
    assert_eq!(data.cache_stats(), CacheStats::default());
    data.scan().expect("room enough");
    let stats = data.cache_stats();
    assert_eq!((stats.block_count, stats.memory_bytes), (10, 0));
    assert!(stats.disk_bytes > 1000);
}

#[test]
fn a_memory_stream_repeats_its_batches() {
    let folder = folder();
    let batches = epoch(&mut task_data(50, None, Shuffle::None, 8, &folder), 0);
    let mut memory = MemoryStream::new(batches.clone());
    assert_eq!(epoch(&mut memory, 0), batches);
    assert_eq!(epoch(&mut memory, 5), batches);
}

#[test]
fn read_ahead_every_batch_is_the_same_in_every_epoch() {
    for (limit, shuffle) in [(MEMORY, Shuffle::None), (BOTH, Shuffle::Records), (DISK, Shuffle::Batches)] {
        let (one, two) = (folder(), folder());
        let mut plain = task_data(900, Some(limit), shuffle, BatchSize::Growing, &one);
        let mut inner = task_data(900, Some(limit), shuffle, BatchSize::Growing, &two);
        let mut ahead = crate::LookAhead::new(&mut inner);
        for number in 0..3 {
            let wanted = epoch(&mut plain, number);
            let mut read = Vec::new();
            ahead.start_epoch(number).unwrap();
            while let Some(window) = ahead.next_window(2).unwrap() {
                read.push(window[0].clone());
            }
            assert!(wanted.len() > 3 && read == wanted, "epoch {number}, {shuffle:?}");
        }
    }
}

#[test]
fn scanned_data_are_read_as_if_they_had_not_been_scanned() {
    let folder = folder();
    for shuffle in [Shuffle::None, Shuffle::Batches, Shuffle::Records] {
        for (scanned_size, size) in [(7, 7), (7, 20), (20, 7)] {
            let mut plain = task_data(500, Some(MEMORY), shuffle, size, &folder);
            let mut scanned = task_data(500, Some(MEMORY), Shuffle::Batches, scanned_size, &folder);
            scanned.scan().expect("room enough");
            scanned.reconfigure(BatchSize::Fixed(size), shuffle, false, None).expect("room enough");
            for number in 0..3 {
                let (found, expected) = (epoch(&mut scanned, number), epoch(&mut plain, number));
                assert!(found == expected, "epoch {number}, {shuffle:?}, {scanned_size} to {size}");
            }
        }
    }
}

#[test]
fn records_are_held_out_of_scanned_data_as_while_they_are_read() {
    let folder = folder();
    let chance = || stream(1, Purpose::Validation, 0, 0);
    for size in [7, 20] {
        let mut plain = task_data(500, Some(MEMORY), Shuffle::Records, size, &folder);
        plain.reader_mut().set_holdout(HoldoutRule::Share(0.1, chance()));
        plain.scan().expect("room enough");
        let mut scanned = task_data(500, Some(MEMORY), Shuffle::Batches, 7, &folder);
        scanned.scan().expect("room enough");
        let holdout = Some((0.1, chance()));
        scanned.reconfigure(BatchSize::Fixed(size), Shuffle::Records, true, holdout).expect("room enough");
        let held = records(&scanned.take_holdout());
        assert!(held.len() > 25 && held == records(&plain.take_holdout()));
        for number in 0..3 {
            assert!(epoch(&mut scanned, number) == epoch(&mut plain, number), "epoch {number}");
        }
    }
}

#[test]
fn growing_batches_grow_over_scanned_data_too() {
    let folder = folder();
    let mut plain = task_data(20_000, Some(MEMORY), Shuffle::None, BatchSize::Growing, &folder);
    let mut scanned = task_data(20_000, Some(MEMORY), Shuffle::None, 1000, &folder);
    scanned.scan().expect("room enough");
    scanned.reconfigure(BatchSize::Growing, Shuffle::None, false, None).expect("room enough");
    assert!(epoch(&mut scanned, 0) == epoch(&mut plain, 0));
}

#[test]
fn what_an_epoch_reads_from_the_cache_is_kept_until_its_end() {
    let folder = folder();
    let mut data = task_data(100, Some(MEMORY), Shuffle::None, 10, &folder);
    data.start_epoch(0).expect("it starts");
    data.next().expect("a batch");
    data.start_epoch(1).expect("it starts");
    data.release_cache();
    let mut count = 0;
    while let Some(batch) = data.next().expect("cached") {
        count += batch.record_count();
    }
    assert_eq!((count, data.cache_stats().block_count), (100, 10));

    // The only epoch reads the files, and need not store what it reads.
    let mut data = task_data(100, Some(MEMORY), Shuffle::None, 10, &folder);
    data.start_epoch(0).expect("it starts");
    data.release_cache();
    while data.next().expect("read").is_some() {}
    assert_eq!(data.cache_stats(), CacheStats::default());
    assert_eq!(data.reader().summary().record_count, 100);
}

#[test]
fn batches_whose_records_are_all_held_out_are_left_out() {
    let folder = folder();
    let mut data = task_data(50, Some(MEMORY), Shuffle::None, 1, &folder);
    data.reader_mut().set_holdout(HoldoutRule::Share(0.9, stream(1, Purpose::Validation, 0, 0)));
    let batches = epoch(&mut data, 0);
    let held = data.take_holdout().iter().map(Batch::record_count).sum::<usize>();
    assert!(batches.iter().all(|batch| batch.record_count() == 1) && held > 25, "{held} of 50");
    assert_eq!(batches.len() + held, 50);
    assert_eq!(data.cache_stats().block_count, batches.len() as u64);
}

#[test]
#[should_panic(expected = "no epoch was started")]
fn a_batch_belongs_to_an_epoch() {
    let _ = task_data(10, None, Shuffle::None, 3, &folder()).next();
}

#[test]
#[should_panic(expected = "an epoch was started")]
fn settings_are_fixed_once_an_epoch_was_started() {
    let mut data = task_data(10, Some(MEMORY), Shuffle::None, 3, &folder());
    data.start_epoch(0).expect("it starts");
    let _ = data.reconfigure(BatchSize::Fixed(2), Shuffle::None, false, None);
}
