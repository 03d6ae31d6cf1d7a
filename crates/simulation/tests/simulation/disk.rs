//! Checkpoints on a disk that fails: it fills up, and when the power fails it may lose what was renamed last, keep only
//! the beginning of a file, or flip a bit. A training writes checkpoints, is killed at any moment, and continues; a writer
//! of an earlier run may have been frozen, and ends its checkpoint later. The checker knows all bytes that were written.

mod faulty_store;

use std::collections::BTreeSet;
use std::sync::Arc;

use checkpoint::folder::{Claim, folder_name};
use checkpoint::{Base, Content, Error, Folder, Manifest, PartFile, RowsOf, SavedTask, TrainingId};
use faulty_store::FaultyStore;
use math::random::{Purpose, RandomStream, stream};
use matrix::{ElementType, MatrixSpec, OwnedValues, PushRule, RowBlock};
use store::Store;

/// Maximum number of checkpoints of a run: a damaged claim refuses them all.
const CHECKPOINT_LIMIT: u32 = 100;

/// Number of rows, and of those that an increment has.
const ALL_ROWS: u64 = 30;
const CHANGED_ROWS: u64 = 10;

/// A fault that is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    /// The newest checkpoint is taken without reading it.
    NewestIsTaken,
    /// Checkpoints of an earlier run that are newer than the one just written count when old ones are removed.
    EarlierRunsCount,
    /// A checkpoint is removed on which another one builds.
    BasesAreRemoved,
}

/// How often something happened in the runs of many seeds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    written: u64,
    refused: u64,
    killed: u64,
    power_failures: u64,
    damaged_files: u64,
    skipped_checkpoints: u64,
    frozen_writers: u64,
    nothing_left: u64,
    increments: u64,
}

impl Facts {
    fn counts(&mut self) -> [&mut u64; 9] {
        let Self { written, refused, killed, power_failures, damaged_files, .. } = self;
        let [skipped, frozen] = [&mut self.skipped_checkpoints, &mut self.frozen_writers];
        let [nothing, increments] = [&mut self.nothing_left, &mut self.increments];
        [written, refused, killed, power_failures, damaged_files, skipped, frozen, nothing, increments]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let mut other = *other;
        self.counts().into_iter().zip(other.counts()).for_each(|(sum, more)| *sum += *more);
    }

    pub(crate) fn is_whole(mut self) -> bool {
        self.counts().into_iter().all(|count| *count > 0)
    }
}

/// A training and its disk.
struct World {
    random: RandomStream,
    store: FaultyStore,
    folder: Folder,
    injected_fault: Option<InjectedFault>,
    worker_count: u32,
    run: u32,
    keep: usize,
    faults: Vec<String>,
    facts: Facts,
}

fn training() -> TrainingId {
    TrainingId::from("training")
}

fn claim() -> Claim {
    Claim { training: training(), title: "a training".into() }
}

fn state(number: u64, run: u32, task: u32, task_count: u32) -> SavedTask {
    let bytes = vec![run as u8; 20 + task as usize];
    SavedTask { algorithm: "lr".into(), task, task_count, epoch: number, clock: number * 10, bytes }
}

impl World {
    fn new(seed: u64, injected_fault: Option<InjectedFault>) -> Self {
        let mut random = stream(seed, Purpose::Test, 1, 0);
        let store = FaultyStore::default();
        let folder = Folder::in_store(Arc::new(store.clone()));
        let worker_count = 1 + random.below(3) as u32;
        let keep = 1 + random.below(4) as usize;
        let (faults, facts) = (Vec::new(), Facts::default());
        Self { random, store, folder, injected_fault, worker_count, run: 1, keep, faults, facts }
    }

    fn manifest(&self, number: u64) -> Manifest {
        Manifest {
            format_version: checkpoint::manifest::VERSION,
            program_version: "0".into(),
            training: training(),
            number,
            created_s: 0,
            job: serde_json::json!({ "run": self.run }),
            data: Vec::new(),
            task_count: self.worker_count,
            epoch: number,
            is_within_epoch: false,
            clock: number * 10,
            base: None,
            matrices: vec![MatrixSpec::sparse("w", ElementType::F32, 1, PushRule::Add, 4)],
            parts: Vec::new(),
        }
    }

    /// Writes the file of a worker.
    fn write_part(&self, number: u64, worker: u32, row_count: u64) -> Result<PartFile, Error> {
        let name = format!("part-training-{}-{worker}", self.run);
        let failed = |source| self.folder.write_error(number, &name, source);
        let mut part = self.folder.create_part(number, &name)?;
        if worker == 0 {
            part.write_driver(&number.to_le_bytes()).map_err(failed)?;
        }
        part.write_task(&state(number, self.run, worker, self.worker_count)).map_err(failed)?;
        if worker == 0 {
            let values = OwnedValues::F32(vec![number as f32; row_count as usize]);
            let rows = RowBlock::of_values((0..row_count).collect(), values);
            part.write_rows(0, RowsOf::Now, &rows).map_err(failed)?;
        }
        let size_bytes = self.folder.finish_part(number, &name, part)?;
        let (tasks, has_rows) = (BTreeSet::from([worker]), worker == 0);
        Ok(PartFile { name, size_bytes, tasks, has_rows, row_counts: vec![row_count] })
    }

    /// Writes a checkpoint; with a base, one that has only what has changed.
    fn write(&self, number: u64, base: Option<Base>) -> Result<Base, Error> {
        let mut manifest = Manifest { base, ..self.manifest(number) };
        let row_count = if base.is_some() { CHANGED_ROWS } else { ALL_ROWS };
        for worker in 0..self.worker_count {
            manifest.parts.push(self.write_part(number, worker, row_count)?);
        }
        self.complete(&manifest)
    }

    fn complete(&self, manifest: &Manifest) -> Result<Base, Error> {
        self.folder.take(&claim())?;
        let base = self.folder.commit(manifest)?;
        let counted = if self.injected_fault == Some(InjectedFault::EarlierRunsCount) {
            self.folder.numbers()?.last().copied().unwrap_or(manifest.number)
        } else {
            manifest.number
        };
        self.folder.prune(self.keep, counted)?;
        if self.injected_fault == Some(InjectedFault::BasesAreRemoved) {
            for old in self.folder.numbers()?.iter().rev().skip(self.keep) {
                self.store.remove(&folder_name(*old))?;
            }
        }
        Ok(base)
    }

    /// The checkpoints whose files all have the bytes that were written.
    fn whole(&self) -> Vec<u64> {
        let disk = self.store.disk();
        let is_kept =
            |path: &str| disk.files.get(path).is_some_and(|bytes| disk.wanted.get(path) == Some(bytes));
        let manifests = disk.files.keys().filter(|path| path.ends_with("/manifest") && is_kept(path));
        let whole = manifests.filter_map(|path| {
            let (manifest, crc32c) = Manifest::from_text(&disk.files[path], "disk", path).ok()?;
            let folder = path.strip_suffix("/manifest")?;
            let has_parts = manifest.parts.len() == manifest.task_count as usize
                && manifest.parts.iter().all(|part| is_kept(&format!("{folder}/{}", part.name)));
            has_parts.then_some((Base { number: manifest.number, crc32c }, manifest.base))
        });
        // Bases have smaller numbers, and so come first.
        let mut found: Vec<Base> = Vec::new();
        for (own, base) in whole {
            if base.is_none_or(|base| found.contains(&base)) {
                found.push(own);
            }
        }
        found.iter().map(|base| base.number).collect()
    }

    /// Does something that must leave a whole checkpoint if there is one.
    fn checked<T>(&mut self, what: &str, work: impl FnOnce(&Self) -> T) -> T {
        let before = self.whole();
        let result = work(self);
        let after = self.whole();
        if !before.is_empty() && after.is_empty() {
            self.faults.push(format!("{what}: the whole checkpoints {before:?} are all gone"));
        }
        result
    }

    /// Finds where the training continues; returns the number of the checkpoint, 0 at the beginning.
    fn resume(&mut self) -> u64 {
        let whole = self.whole();
        let found = if self.injected_fault == Some(InjectedFault::NewestIsTaken) {
            let newest = self.folder.numbers().ok().and_then(|numbers| numbers.last().copied());
            newest.and_then(|number| self.folder.manifest(number).ok())
        } else {
            match self.folder.latest() {
                Ok((found, damages)) => {
                    self.facts.skipped_checkpoints += damages.len() as u64;
                    found
                }
                Err(error) => {
                    self.faults.push(format!("the checkpoints cannot be read: {error}"));
                    None
                }
            }
        };
        let number = found.as_ref().map_or(0, |manifest| manifest.number);
        let newest = whole.last().copied().unwrap_or(0);
        self.facts.nothing_left += u64::from(newest == 0);
        if number != newest {
            self.faults
                .push(format!("the training continues from {number}, the newest whole one is {newest}"));
        }
        if let Some(manifest) = found
            && let Err(what) = self.check_contents(&manifest)
        {
            self.faults.push(format!("checkpoint {number}: {what}"));
        }
        number
    }

    fn check_contents(&self, manifest: &Manifest) -> Result<(), String> {
        let number = manifest.number;
        let run = manifest.job["run"].as_u64().unwrap_or(0) as u32;
        let text = |error: Error| error.to_string();
        let states = self.folder.states(manifest, 0..self.worker_count).map_err(text)?;
        if (0..).zip(&states).any(|(task, found)| *found != state(number, run, task, self.worker_count)) {
            return Err("the states are others".into());
        }
        let chain = self.folder.chain(manifest).map_err(text)?;
        if chain.iter().any(|each| each.job != manifest.job) {
            return Err("it builds on a checkpoint of another run".into());
        }
        let mut rows = vec![0.0; ALL_ROWS as usize];
        for each in &chain {
            self.apply_rows(each, &mut rows)?;
        }
        let (first, changed) = (chain[0].number as f32, CHANGED_ROWS as usize);
        let is_own = rows[..changed].iter().all(|value| *value == number as f32)
            && rows[changed..].iter().all(|value| *value == first);
        if is_own { Ok(()) } else { Err("the rows are others".into()) }
    }

    /// Sets the rows that a checkpoint itself has.
    fn apply_rows(&self, manifest: &Manifest, all: &mut [f32]) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let part = manifest.parts.iter().find(|part| part.has_rows).ok_or("it has no rows")?;
        let mut reader = self.folder.open_part(manifest, part).map_err(text)?;
        while let Some(content) = reader.read().map_err(text)? {
            if let Content::Rows { rows: RowBlock { keys, values: OwnedValues::F32(values), .. }, .. } =
                content
            {
                keys.iter().zip(values).for_each(|(key, value)| all[*key as usize] = value);
            }
        }
        Ok(())
    }

    /// A run of the training from a checkpoint until it is killed. Returns a checkpoint whose manifest a frozen process has
    /// still to write.
    fn train(&mut self, from: u64) -> Option<Manifest> {
        {
            let mut disk = self.store.disk();
            disk.is_killed = false;
            disk.left_until_kill = Some(self.random.below(6_000));
            disk.left_until_full = (self.random.below(3) == 0).then(|| self.random.below(4_000));
        }
        let (mut number, mut last) = (from, None);
        for _ in 0..CHECKPOINT_LIMIT {
            number += 1;
            let base = last.take().filter(|_| self.random.below(3) > 0);
            self.facts.increments += u64::from(base.is_some());
            match self.checked("a checkpoint is written", |world| world.write(number, base)) {
                Ok(base) => {
                    self.facts.written += 1;
                    last = Some(base);
                }
                Err(_) if self.store.disk().is_killed => break,
                Err(_) => {
                    self.facts.refused += 1;
                    // Somebody makes room.
                    self.store.disk().left_until_full = None;
                }
            }
        }
        self.facts.killed += 1;
        let mut disk = self.store.disk();
        (disk.is_killed, disk.left_until_kill, disk.left_until_full) = (false, None, None);
        drop(disk);
        if self.random.below(4) > 0 {
            return None;
        }
        // The process was only frozen: its files are written, but not its manifest.
        let mut manifest = self.manifest(number);
        let parts: Result<Vec<_>, _> =
            (0..self.worker_count).map(|worker| self.write_part(number, worker, ALL_ROWS)).collect();
        manifest.parts = parts.ok()?;
        Some(manifest)
    }
}

/// Returns the faults of a run, and the counts of what happened.
pub(crate) fn run(seed: u64, injected_fault: Option<InjectedFault>) -> (Vec<String>, Facts) {
    let mut world = World::new(seed, injected_fault);
    let mut frozen: Option<Manifest> = None;
    for _ in 0..2 + world.random.below(4) {
        let from = world.resume();
        let left = world.train(from);
        if let Some(manifest) = frozen.take() {
            world.facts.frozen_writers += 1;
            // It may be refused, as when its files are gone.
            let _ = world.checked("a frozen process writes its manifest", |world| world.complete(&manifest));
        }
        frozen = left;
        if world.random.below(2) == 0 {
            // It also ends what was frozen.
            frozen = None;
            world.facts.power_failures += 1;
            world.facts.damaged_files += world.store.disk().fail_power(&mut world.random);
        }
        world.run += 1;
        world.keep = 1 + world.random.below(4) as usize;
    }
    world.resume();
    (world.faults, world.facts)
}

/// What a failing seed was about.
pub(crate) fn summary(seed: u64) -> String {
    let world = World::new(seed, None);
    format!("{} workers, {} checkpoints are kept at first", world.worker_count, world.keep)
}
