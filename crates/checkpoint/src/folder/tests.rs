use matrix::{OwnedValues, RowBlock};
use tempfile::TempDir;

use super::*;
use crate::content::RowsOf;
use crate::manifest::tests::manifest;

struct World {
    root: TempDir,
    folder: Folder,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path().join("checkpoints").to_str().unwrap()).unwrap();
        Self { root, folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join("checkpoints").join(name)
    }

    fn claim(&self, training: &str) -> Result<(), Error> {
        self.folder.take(&Claim { training: training.into(), title: format!("training {training}") })
    }

    /// Writes a checkpoint with two parts, but no manifest.
    fn parts(&self, number: u64) -> Manifest {
        let mut manifest = manifest(number);
        for (name, task) in [("part-0", 0), ("part-1", 1)] {
            let mut part = self.folder.create_part(number, name).unwrap();
            part.write_task(&state(task)).unwrap();
            if task == 0 {
                let rows = RowBlock::of_values(vec![3, 9], OwnedValues::F32(vec![1.0, 2.0]));
                part.write_rows(0, RowsOf::Now, &rows).unwrap();
            }
            let size_bytes = self.folder.finish_part(number, name, part).unwrap();
            let tasks = BTreeSet::from([task]);
            let (has_rows, row_counts) = (task == 0, Vec::new());
            manifest.parts.push(PartFile { name: name.into(), size_bytes, tasks, has_rows, row_counts });
        }
        manifest
    }

    fn write(&self, number: u64) -> Manifest {
        let manifest = self.parts(number);
        self.folder.commit(&manifest).unwrap();
        manifest
    }

    /// Writes a checkpoint that builds on another one, or on none.
    fn write_on(&self, number: u64, base: Option<Base>) -> Base {
        let manifest = Manifest { base, ..self.parts(number) };
        self.folder.commit(&manifest).unwrap()
    }
}

fn state(task: u32) -> SavedTask {
    SavedTask { algorithm: "lr".into(), task, task_count: 2, epoch: 3, clock: 7, bytes: vec![task as u8; 5] }
}

#[test]
fn a_checkpoint_is_there_when_its_manifest_is() {
    let world = World::new();
    assert_eq!(world.folder.numbers().unwrap(), [0u64; 0]);
    assert!(world.folder.latest().unwrap().0.is_none());
    assert!(matches!(world.folder.manifest(1), Err(Error::NoCheckpoint { .. })));
    world.claim("t-1").unwrap();
    let written = world.parts(1);
    assert!(world.folder.latest().unwrap().0.is_none(), "its manifest is missing");
    world.folder.commit(&written).unwrap();
    assert_eq!(world.folder.latest().unwrap().0, Some(written.clone()));
    let summary = world.folder.verify(&written).unwrap();
    assert_eq!((summary.part_count, summary.row_count, summary.task_count), (2, 2, 2));
    assert_eq!(world.folder.states(&written, [1, 0].into_iter()).unwrap(), [state(1), state(0)]);
    let text = world.folder.manifest(2).unwrap_err().to_string();
    assert!(text.contains("no checkpoint 2; it has 00000001"), "{text}");
}

#[test]
fn what_did_not_become_complete_is_removed_and_nothing_else() {
    let world = World::new();
    world.parts(1);
    world.write(2);
    world.parts(3);
    assert_eq!(world.folder.incomplete_numbers().unwrap(), BTreeSet::from([1, 3]));
    for number in 1..=4 {
        world.folder.remove_incomplete(number).unwrap();
    }
    assert!(world.folder.incomplete_numbers().unwrap().is_empty());
    assert_eq!(world.folder.latest().unwrap().0.map(|manifest| manifest.number), Some(2));
    assert!(!world.path("00000003").exists());
    world.folder.check_writable().unwrap();
    assert_eq!(std::fs::read_dir(world.path("")).unwrap().count(), 1, "the check leaves nothing");
    std::fs::write(world.root.path().join("file"), "").unwrap();
    let below_a_file = Folder::open(world.root.path().join("file/checkpoints").to_str().unwrap()).unwrap();
    assert!(below_a_file.check_writable().is_err());
}

#[test]
fn a_changed_byte_anywhere_is_noticed_and_the_checkpoint_before_is_used() {
    let world = World::new();
    world.write(1);
    let second = world.write(2);
    for name in ["part-0", "part-1", "manifest"] {
        let path = world.path("00000002").join(name);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, changed).unwrap();
            let (latest, damages) = world.folder.latest().unwrap();
            assert_eq!(latest.unwrap().number, 1, "{name} byte {at}");
            assert!(damages[0].to_string().contains(name), "{} for {name} byte {at}", damages[0]);
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(world.folder.latest().unwrap().0.unwrap(), second);
}

#[test]
fn a_missing_or_cut_file_is_named() {
    let world = World::new();
    let manifest = world.write(4);
    let path = world.path("00000004/part-1");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let text = world.folder.verify(&manifest).unwrap_err().to_string();
    assert!(text.contains("00000004/part-1 has") && text.contains("written with"), "{text}");
    std::fs::remove_file(&path).unwrap();
    let text = world.folder.verify(&manifest).unwrap_err().to_string();
    assert!(text.contains("00000004/part-1 is missing"), "{text}");
    let error = world.folder.states(&manifest, std::iter::once(1)).unwrap_err();
    assert!(matches!(error, Error::MissingFile { .. }), "{error}");
    assert_eq!(world.folder.states(&manifest, std::iter::once(0)).unwrap(), [state(0)]);
}

#[test]
fn a_folder_has_one_owner() {
    let world = World::new();
    world.claim("t-1").unwrap();
    world.claim("t-1").unwrap();
    let text = world.claim("t-2").unwrap_err().to_string();
    assert!(text.contains("another training (training t-1)") && text.contains("--checkpoints"), "{text}");
    let mut other = manifest(1);
    other.training = "t-2".into();
    assert!(matches!(world.folder.commit(&other), Err(Error::OtherTraining { .. })));
    assert!(matches!(world.folder.remove_all(&"t-2".into()), Err(Error::OtherTraining { .. })));
    world.write(1);
    world.folder.remove_all(&"t-1".into()).unwrap();
    assert!(!world.path("").exists());
}

#[test]
fn old_and_incomplete_checkpoints_are_removed() {
    let world = World::new();
    for number in [1, 2, 4, 5] {
        world.write(number);
    }
    // 3 was never completed; 6 is being written.
    world.parts(3);
    world.parts(6);
    assert_eq!(world.folder.numbers().unwrap(), [1, 2, 4, 5]);
    assert_eq!(world.folder.prune(2, 5).unwrap(), [1, 2, 3]);
    assert_eq!(world.folder.numbers().unwrap(), [4, 5]);
    assert!(world.path("00000006/part-0").exists());
    assert_eq!(world.folder.prune(2, 5).unwrap(), [0u64; 0]);
    assert_eq!(world.folder.prune(1, 4).unwrap(), [0u64; 0], "newer ones are not its business");
    assert_eq!(world.folder.prune(0, 5).unwrap(), [4], "what was just written is kept always");
}

#[test]
fn damaged_checkpoints_do_not_count_when_others_are_removed() {
    let world = World::new();
    for number in 1..=5 {
        world.write(number);
    }
    for name in ["00000005/part-0", "00000003/manifest"] {
        let mut bytes = std::fs::read(world.path(name)).unwrap();
        bytes[20] ^= 1;
        std::fs::write(world.path(name), bytes).unwrap();
    }
    assert_eq!(world.folder.prune_verified(9).unwrap(), [0u64; 0], "there are only three");
    assert_eq!(world.folder.prune_verified(2).unwrap(), [1]);
    assert_eq!(world.folder.prune_verified(0).unwrap(), [2, 3], "one whole stays");
    assert_eq!(world.folder.numbers().unwrap(), [4, 5]);
    std::fs::remove_file(world.path("00000004/part-1")).unwrap();
    assert_eq!(world.folder.prune_verified(1).unwrap(), [0u64; 0], "none is whole");
}

fn numbers_of(chain: &[Manifest]) -> Vec<u64> {
    chain.iter().map(|manifest| manifest.number).collect()
}

#[test]
fn what_a_checkpoint_builds_on_is_read_and_kept_with_it() {
    let world = World::new();
    world.write(1);
    let full = world.write_on(2, None);
    let third = world.write_on(3, Some(full));
    world.write_on(4, Some(third));
    let last = world.folder.manifest(4).unwrap();
    assert_eq!(numbers_of(&world.folder.chain(&last).unwrap()), [2, 3, 4]);
    let summary = world.folder.verify(&last).unwrap();
    assert_eq!((summary.part_count, summary.row_count, summary.task_count), (2, 2, 2), "its own");
    assert_eq!(world.folder.prune(1, 4).unwrap(), [1], "2 and 3 are needed");
    assert_eq!(world.folder.prune_verified(1).unwrap(), [0u64; 0]);
    world.write_on(5, None);
    assert_eq!(world.folder.prune(2, 5).unwrap(), [0u64; 0], "4 is kept with those before");
    assert_eq!(world.folder.prune_verified(1).unwrap(), [2, 3, 4]);
}

#[test]
fn a_checkpoint_whose_base_is_damaged_missing_or_written_again_is_not_used() {
    let world = World::new();
    world.write(1);
    let full = world.write_on(2, None);
    world.write_on(3, Some(full));
    let last = world.folder.manifest(3).unwrap();
    let found = |world: &World| {
        let (latest, damages) = world.folder.latest().unwrap();
        (latest.unwrap().number, damages.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    };
    assert_eq!(found(&world), (3, String::new()));
    let path = world.path("00000002/part-0");
    let whole = std::fs::read(&path).unwrap();
    let mut changed = whole.clone();
    changed[40] ^= 1;
    std::fs::write(&path, changed).unwrap();
    let (number, text) = found(&world);
    assert_eq!(number, 1);
    assert!(text.contains("00000002/part-0 is damaged"), "{text}");
    std::fs::write(&path, whole).unwrap();
    // The same number, in another run.
    world.folder.commit(&Manifest { created_s: 5, ..world.parts(2) }).unwrap();
    let (number, text) = found(&world);
    assert_eq!(number, 2);
    assert!(
        text.contains("checkpoint 3 in") && text.contains("only what changed after checkpoint 2"),
        "{text}"
    );
    std::fs::remove_dir_all(world.path("00000002")).unwrap();
    assert!(matches!(world.folder.chain(&last), Err(Error::MissingBase { number: 3, base: 2, .. })));
    // A checkpoint that names a later one as its base ends no search.
    let later = Manifest { base: Some(Base { number: 9, crc32c: 0 }), ..manifest(7) };
    assert!(matches!(world.folder.chain(&later), Err(Error::MissingBase { .. })));
}
