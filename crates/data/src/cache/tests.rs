use std::fs::{self, OpenOptions};
use std::io::{self, Write};

use super::*;
use crate::batch::BatchBuilder;

fn batch(number: u64) -> Batch {
    let mut builder = BatchBuilder::new();
    for r in 0..10 {
        builder.push(number * 100 + r, 0.5);
        builder.push(number * 100 + r + 7, 1.0);
        builder.end_record(r as f64, 1.0, None);
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    batch
}

fn block_bytes() -> u64 {
    let mut bytes = Vec::new();
    block::encode(&batch(0), &mut bytes);
    bytes.len() as u64
}

fn config(memory_limit_bytes: u64, folder: &std::path::Path) -> CacheConfig {
    CacheConfig { memory_limit_bytes, folder: folder.to_owned() }
}

fn check_all(cache: &mut BlockCache, count: u64) {
    let mut out = Batch::default();
    for number in (0..count).rev().chain(0..count) {
        cache.read(number as usize, &mut out).expect("a block just kept");
        assert_eq!(out, batch(number));
    }
}

#[test]
fn blocks_come_back_from_memory_from_disk_and_from_both() {
    let folder = tempfile::tempdir().expect("a folder");
    for (limit_blocks, in_memory) in [(100, 20), (20, 20), (0, 0), (3, 3)] {
        let mut cache = BlockCache::new(config(limit_blocks * block_bytes(), folder.path()), 0);
        for number in 0..20 {
            cache.add(&batch(number)).expect("room enough");
        }
        cache.seal();
        let stats = cache.stats();
        assert_eq!(stats.block_count, 20);
        assert_eq!(stats.memory_bytes, in_memory * block_bytes());
        assert_eq!(stats.disk_bytes, (20 - in_memory) * block_bytes());
        check_all(&mut cache, 20);
    }
}

#[test]
fn columns_become_ranks_in_memory_and_stay_keys_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut keys = KeySet::new();
    (0..5).for_each(|number| keys.insert(&batch(number).columns));
    keys.seal();
    for (limit, is_ranked) in [(u64::MAX, true), (0, false)] {
        let mut cache = BlockCache::new(config(limit, folder.path()), 0);
        (0..5).for_each(|number| cache.add(&batch(number)).expect("room enough"));
        let mut out = Batch::default();
        assert_eq!(cache.rank_columns(&keys, &mut out).expect("blocks just kept"), is_ranked);
        for number in 0..5 {
            cache.read(number as usize, &mut out).expect("a block just kept");
            let mut expected = batch(number);
            if is_ranked {
                expected.columns.iter_mut().for_each(|key| *key = keys.rank(*key) as u64);
            }
            assert_eq!(out, expected);
        }
        let in_memory: u64 = cache
            .locations
            .iter()
            .map(|place| match place {
                BlockLocation::Memory(bytes) => bytes.len() as u64,
                BlockLocation::Disk { .. } => 0,
            })
            .sum();
        assert_eq!(cache.stats().memory_bytes, in_memory);
    }
}

#[test]
fn adding_after_reading_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cache = BlockCache::new(config(0, folder.path()), 0);
    for number in 0..3 {
        cache.add(&batch(number)).expect("room enough");
        check_all(&mut cache, number + 1);
    }
}

#[test]
fn no_file_stays_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cache = BlockCache::new(config(0, folder.path()), 0);
    cache.add(&batch(0)).expect("room enough");
    if cfg!(unix) {
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "not even while it is used");
    }
    drop(cache);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_missing_folder_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().expect("a folder").path().join("gone");
    let mut cache = BlockCache::new(config(0, &folder), 0);
    let error = cache.add(&batch(0)).expect_err("no folder");
    assert!(error.to_string().contains("gone"), "{error}");
}

/// A disk that has space for this many bytes.
struct SmallDisk(usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_with_file_size_and_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small");
    let file = fs::File::create(&path).expect("a file");
    let room = block_bytes() as usize * 5 / 2;
    let mut cache = BlockCache::new(config(0, folder.path()), 0);
    cache.disk = Some(BlockFile::new(path.clone(), file, Box::new(SmallDisk(room))));
    cache.add(&batch(0)).expect("room enough");
    cache.add(&batch(1)).expect("room enough");
    match cache.add(&batch(2)).expect_err("the disk is full") {
        Error::CacheWrite { path: named, wanted_bytes, written_bytes, reason } => {
            assert_eq!((named, wanted_bytes, written_bytes), (path, block_bytes(), 2 * block_bytes()));
            assert!(reason.contains("no storage space"), "{reason}");
        }
        other => panic!("{other}"),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_without_room_is_an_error_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("every Linux has it");
    let mut cache = BlockCache::new(config(0, folder.path()), 0);
    cache.disk = Some(BlockFile::new(folder.path().join("named"), full(), Box::new(full())));
    let text = cache.add(&batch(0)).expect_err("the device is full").to_string();
    assert!(text.contains("No space left on device") && text.contains("named"), "{text}");
}

#[test]
fn a_block_damaged_on_disk_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
    let mut writer = file.try_clone().expect("a handle");
    let mut cache = BlockCache::new(config(0, folder.path()), 0);
    cache.disk = Some(BlockFile::new(path, file, Box::new(writer.try_clone().expect("a handle"))));
    cache.add(&batch(0)).expect("room enough");
    cache.add(&batch(1)).expect("room enough");
    io::Seek::seek(&mut writer, io::SeekFrom::Start(block_bytes() + 60)).expect("inside");
    writer.write_all(&[0xAA]).expect("a byte");
    let mut out = Batch::default();
    cache.read(0, &mut out).expect("the first is whole");
    let error = cache.read(1, &mut out).expect_err("the second is damaged");
    let text = error.to_string();
    assert!(matches!(error, Error::DamagedBlock { index: 1, .. }));
    assert!(
        text.contains(&format!("damaged at byte {}", block_bytes())) && text.contains("checksum"),
        "{text}"
    );
}

#[test]
fn a_file_cut_short_is_an_error_with_both_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("short");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
    let writer = file.try_clone().expect("a handle");
    let mut cache = BlockCache::new(config(0, folder.path()), 0);
    cache.disk = Some(BlockFile::new(path, file, Box::new(writer.try_clone().expect("a handle"))));
    cache.add(&batch(0)).expect("room enough");
    cache.add(&batch(1)).expect("room enough");
    writer.set_len(2 * block_bytes() - 1).expect("a shorter file");
    let mut out = Batch::default();
    cache.read(0, &mut out).expect("the first is whole");
    let text = cache.read(1, &mut out).expect_err("the second is not").to_string();
    let expected =
        format!("the file has {} bytes, {} were written", 2 * block_bytes() - 1, 2 * block_bytes());
    assert!(text.contains(&expected) && text.contains("short"), "{text}");
}

#[test]
fn a_block_damaged_in_memory_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cache = BlockCache::new(config(1 << 20, folder.path()), 0);
    assert!(cache.is_empty());
    cache.add(&batch(0)).expect("room enough");
    assert!(!cache.is_empty() && cache.len() == 1);
    if let BlockLocation::Memory(bytes) = &mut cache.locations[0] {
        bytes[60] ^= 1;
    }
    match cache.read(0, &mut Batch::default()).expect_err("it is damaged") {
        Error::DamagedBlock { index: 0, place, fault } => {
            assert_eq!((place.as_str(), fault.what), ("memory", "checksum"));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn tasks_of_one_folder_have_files_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cache: Vec<BlockCache> =
        (0..3).map(|task| BlockCache::new(config(0, folder.path()), task)).collect();
    for (number, cache) in (0..).zip(&mut cache) {
        cache.add(&batch(number)).expect("room enough");
    }
    let mut out = Batch::default();
    for (number, cache) in (0..).zip(&mut cache) {
        cache.read(0, &mut out).expect("a block just kept");
        assert_eq!(out, batch(number));
        let path = cache.disk.as_ref().expect("a file").path().to_owned();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let beginning = format!("seraphim-{}-{number}-", std::process::id());
        assert!(path.starts_with(folder.path()) && name.starts_with(&beginning), "{}", path.display());
    }
}
