//! Tests of jobs and of whole matrices.

use matrix::{Consistency, ElementType, MatrixSpec, OwnedValues, PushRule};
use rpc::message::*;

use super::world::*;
use crate::OpenJobs;

fn wide() -> MatrixSpec {
    let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 };
    MatrixSpec { rows: 300_000, columns: 2, element: ElementType::F32, rule, ..spec("w", Consistency::Asp) }
}

fn export_all(world: &mut World) -> (Vec<u64>, Vec<OwnedValues>) {
    let (mut keys, mut pages) = (Vec::new(), Vec::new());
    let mut from = 0;
    loop {
        let export = Export { request: 1, job: JOB, matrix: 0, from, skip: 0 };
        let Message::ExportPage(page) = only(world.send(TOOL, Message::Export(export))) else { panic!() };
        keys.extend(page.keys);
        pages.push(page.values);
        let Some(next) = page.next else {
            assert_eq!(keys.len() as u64, page.row_count);
            return (keys, pages);
        };
        from = next;
    }
}

#[test]
fn opening_and_closing_may_be_repeated() {
    let mut world = World::new(1, Consistency::Bsp);
    let again = open(1, vec![spec("w", Consistency::Bsp)]);
    assert!(matches!(only(world.send(TOOL, Message::OpenJob(again))), Message::Done(_)));
    let other = open(2, vec![spec("w", Consistency::Bsp)]);
    assert_eq!(fault(&world.send(TOOL, Message::OpenJob(other))).kind, FaultKind::Invalid);
    let close = || Message::CloseJob(CloseJob { request: 2, job: JOB, reason: "cancelled".into() });
    for _ in 0..2 {
        assert!(matches!(only(world.send(TOOL, close())), Message::Done(_)));
    }
    assert_eq!(world.lane.memory.bytes(), 0);
    let out = world.push(0, 0, 0);
    assert_eq!(fault(&out).kind, FaultKind::Stopped);
    assert!(fault(&out).text.contains("cancelled"));
    let twins = open(1, vec![spec("w", Consistency::Bsp), spec("w", Consistency::Bsp)]);
    assert_eq!(fault(&world.send(TOOL, Message::OpenJob(twins))).kind, FaultKind::Invalid);
    let many = open(u32::MAX, vec![spec("w", Consistency::Bsp)]);
    assert_eq!(fault(&world.send(TOOL, Message::OpenJob(many))).kind, FaultKind::TooLarge);
    let bad = open(1, vec![MatrixSpec { columns: 0, ..spec("w", Consistency::Bsp) }]);
    assert!(fault(&world.send(TOOL, Message::OpenJob(bad))).text.contains("columns is 0"));
}

#[test]
fn whoever_waits_when_a_job_is_closed_is_told_why() {
    let mut world = World::new(3, Consistency::Ssp { staleness: 0 });
    world.tick(0, 1);
    world.tick(1, 1);
    world.pull(5, 0, 1);
    world.push(0, 1, 0);
    world.send(1, barrier(6, 1, 0, None));
    let out =
        world.send(TOOL, Message::CloseJob(CloseJob { request: 2, job: JOB, reason: "by hand".into() }));
    let told: Vec<_> = out
        .iter()
        .filter_map(|effect| match effect {
            rpc::Effect::Send { connection, message: Message::Fault(fault) } => {
                Some((*connection, fault.request))
            }
            _ => None,
        })
        .collect();
    assert_eq!(told, [(0, 5), (0, 0), (1, 6)]);
    assert_eq!(world.lane.deferred_bytes, 0);
}

#[test]
fn pages_of_a_matrix_go_out_and_come_back() {
    let mut world = World::with(config(), open(1, vec![wide()]));
    let push = |index, value| Push {
        values: OwnedValues::F32(vec![value; 4]).into(),
        keys: KeyList::Listed(vec![10, 200_000]),
        ..push(0, 0, index, 0.0)
    };
    world.send(0, Message::Push(push(0, 1.0)));
    let (keys, pages) = export_all(&mut world);
    assert_eq!(keys, (0..300_000).collect::<Vec<u64>>());
    assert!(pages.len() > 1 && pages.iter().all(|page| page.len() * 4 <= rpc::CHUNK_BYTES));
    assert!(world.lane.jobs[&JOB].export_cache.is_none(), "the last page lets the copy go");
    world.send(0, Message::Push(push(1, 3.0)));
    assert_ne!(export_all(&mut world).1, pages);
    let mut start = 0;
    for values in &pages {
        let count = values.len() / 6; // w, z and n of two columns.
        let keys = keys[start..start + count].to_vec();
        let import = Import {
            request: 1,
            job: JOB,
            matrix: 0,
            first: start == 0,
            row_count: 300_000,
            with_slots: true,
            keys,
            values: values.clone(),
        };
        assert!(matches!(only(world.send(TOOL, Message::Import(import))), Message::Done(_)));
        start += count;
    }
    assert_eq!(export_all(&mut world).1, pages);
    let import = Import {
        request: 1,
        job: JOB,
        matrix: 0,
        first: true,
        row_count: 0,
        with_slots: true,
        keys: vec![1],
        values: OwnedValues::F32(vec![1.0]),
    };
    assert_eq!(fault(&world.send(TOOL, Message::Import(import.clone()))).kind, FaultKind::Invalid);
    let many = Import { row_count: u64::MAX, values: OwnedValues::F32(vec![1.0; 6]), ..import };
    let refusal = world.send(TOOL, Message::Import(many));
    assert_eq!(fault(&refusal).kind, FaultKind::TooLarge);
    assert!(fault(&refusal).text.contains("rows of matrix \"w\" need"), "{}", fault(&refusal).text);
    assert_eq!(export_all(&mut world).1, pages, "nothing has changed");
}

#[test]
fn a_page_is_not_older_than_a_push_or_a_tick_before_it() {
    let mut world =
        World::with(config(), open(1, vec![MatrixSpec { rows: 600_000, ..spec("w", Consistency::Bsp) }]));
    let row_10 = |world: &mut World| {
        let export = Export { request: 1, job: JOB, matrix: 0, from: 10, skip: 0 };
        let Message::ExportPage(page) = only(world.send(TOOL, Message::Export(export))) else { panic!() };
        let OwnedValues::F64(values) = page.values else { panic!() };
        values[0]
    };
    assert_eq!(row_10(&mut world), 0.0);
    let push = Push { keys: KeyList::Listed(vec![10, 300_000]), ..push(0, 0, 0, 1.0) };
    world.send(0, Message::Push(push));
    assert_eq!(row_10(&mut world), 0.0, "staged");
    world.tick(0, 1);
    assert_eq!(row_10(&mut world), 1.0);
}

#[test]
fn rows_are_kept_aside_and_put_back() {
    let mut world = World::new(1, Consistency::Asp);
    let restore = || Message::RestoreRows(RestoreRows { request: 1, job: JOB, snapshot: 0 });
    assert_eq!(fault(&world.send(TOOL, restore())).kind, FaultKind::Invalid);
    world.push(0, 0, 0);
    world.send(
        TOOL,
        Message::KeepRows(KeepRows { request: 1, job: JOB, snapshot: 0, records_changes: false }),
    );
    world.push(0, 0, 1);
    assert_eq!(world.rows(), [2.0; 2]);
    for _ in 0..2 {
        assert!(matches!(only(world.send(TOOL, restore())), Message::Done(_)));
        assert_eq!(world.rows(), [1.0; 2]);
    }
    world.push(0, 0, 2);
    assert_eq!(world.rows(), [2.0; 2]);
}

#[test]
fn a_snapshot_is_read_while_tasks_push() {
    let large = MatrixSpec { rows: 300_000, ..spec("w", Consistency::Asp) };
    let mut world = World::with(config(), open(1, vec![large]));
    let push = |clock| Push { keys: KeyList::Listed(vec![10, 200_000]), ..push(0, clock, 0, 1.0) };
    world.send(0, Message::Push(push(0)));
    world.send(
        TOOL,
        Message::KeepRows(KeepRows { request: 1, job: JOB, snapshot: 1, records_changes: false }),
    );
    let memory = |world: &mut World| {
        world.lane.count_memory();
        world.lane.memory.bytes()
    };
    let shared = memory(&mut world);
    let (mut rows, mut next) = (Vec::new(), Some(0));
    while let Some(block) = next {
        let pushed = world.send(0, Message::Push(push(block + 1)));
        assert!(pushed.is_empty(), "{pushed:?}");
        let scan = ScanRows { request: 2, job: JOB, matrix: 0, snapshot: 1, block, only_changed: false };
        let Message::ExportPage(page) = only(world.send(TOOL, Message::ScanRows(scan))) else { panic!() };
        assert_eq!((page.row_count, page.nonzero_count), (300_000, 0));
        let OwnedValues::F64(values) = page.values else { panic!() };
        rows.extend(page.keys.into_iter().zip(values));
        next = page.next;
    }
    let OwnedValues::F64(now) = &export_all(&mut world).1[0] else { panic!() };
    assert!(now[10] > 3.0, "there were several blocks");
    rows.sort_by_key(|row| row.0);
    let expected = (0..300_000).map(|key| (key, if key == 10 || key == 200_000 { 1.0 } else { 0.0 }));
    assert!(rows.into_iter().eq(expected), "the pushes since then are not in it");
    let copied = memory(&mut world);
    assert!(
        (1..shared / 4).contains(&(copied - shared)),
        "pages were copied, whatever was pushed: {copied} of {shared}"
    );
    for number in [0, 2] {
        let scan =
            ScanRows { request: 2, job: JOB, matrix: 0, snapshot: number, block: 0, only_changed: false };
        assert_eq!(fault(&world.send(TOOL, Message::ScanRows(scan))).kind, FaultKind::Invalid);
    }
    for (matrix, block) in [(0, 1 << 40), (1, 0)] {
        let scan = ScanRows { request: 2, job: JOB, matrix, snapshot: 1, block, only_changed: false };
        assert!(matches!(
            fault(&world.send(TOOL, Message::ScanRows(scan))).kind,
            FaultKind::NotFound | FaultKind::Invalid
        ));
    }
    let drop = |snapshot| Message::DropRows(DropRows { request: 3, job: JOB, snapshot });
    assert!(matches!(only(world.send(TOOL, drop(1))), Message::Done(_)));
    assert!(memory(&mut world) < copied);
    assert_eq!(fault(&world.send(TOOL, drop(2))).kind, FaultKind::Invalid);
    let scan = ScanRows { request: 2, job: JOB, matrix: 0, snapshot: 1, block: 0, only_changed: false };
    assert!(fault(&world.send(TOOL, Message::ScanRows(scan))).text.contains("there is no snapshot 1"));
}

#[test]
fn a_scan_of_changes_has_what_was_pushed_between_two_snapshots() {
    let large = MatrixSpec { rows: 300_000, ..spec("w", Consistency::Asp) };
    let mut world = World::with(config(), open(1, vec![large]));
    let keep = |world: &mut World, records_changes| {
        let keep = KeepRows { request: 1, job: JOB, snapshot: 1, records_changes };
        assert!(matches!(only(world.send(TOOL, Message::KeepRows(keep))), Message::Done(_)));
        let (mut keys, mut next) = (Vec::new(), Some(0));
        while let Some(block) = next {
            let scan = ScanRows { request: 2, job: JOB, matrix: 0, snapshot: 1, block, only_changed: true };
            let Message::ExportPage(page) = only(world.send(TOOL, Message::ScanRows(scan))) else { panic!() };
            keys.extend(page.keys);
            next = page.next;
        }
        let drop = DropRows { request: 3, job: JOB, snapshot: 1 };
        world.send(TOOL, Message::DropRows(drop));
        keys
    };
    assert_eq!(keep(&mut world, true).len(), 300_000, "nothing is known of what was before");
    for (clock, keys) in [vec![10, 200_000], vec![11, 200_001]].into_iter().enumerate() {
        let push = Push { keys: KeyList::Listed(keys.clone()), ..push(0, clock as u64, 0, 1.0) };
        world.send(0, Message::Push(push));
        assert_eq!(keep(&mut world, true), keys);
    }
    assert_eq!(keep(&mut world, true), [0u64; 0]);
    assert_eq!(keep(&mut world, false).len(), 300_000, "that one does not know");
    assert_eq!(keep(&mut world, true), [0u64; 0], "it does not end the record");
}

#[test]
fn a_snapshot_for_whose_copy_there_is_no_memory_is_refused() {
    let mut world = World::with(config(), open(1, vec![wide()]));
    world.push(0, 0, 0);
    world.lane.count_memory();
    world.lane.config.memory_limit_bytes = world.lane.memory.bytes() * 2 - 1;
    let keep = Message::KeepRows(KeepRows { request: 1, job: JOB, snapshot: 1, records_changes: false });
    let refusal = world.send(TOOL, keep);
    assert_eq!(fault(&refusal).kind, FaultKind::TooLarge);
    assert!(fault(&refusal).text.contains("a copy of the rows needs"));
}

#[test]
fn whoever_wants_to_know_is_told_which_jobs_are_open() {
    let mut world = World::new(1, Consistency::Asp);
    let open_jobs = OpenJobs::default();
    world.lane = world.lane.with_open_jobs(open_jobs.clone());
    world.send(TOOL, Message::OpenJob(OpenJob { job: 8, ..open(1, vec![spec("w", Consistency::Asp)]) }));
    assert_eq!(open_jobs.list(), [8]);
    world.send(TOOL, Message::CloseJob(CloseJob { request: 2, job: 8, reason: "over".into() }));
    assert!(open_jobs.list().is_empty());
}

#[test]
fn the_copy_that_pages_come_from_stays_while_another_matrix_is_pushed() {
    let large = MatrixSpec { rows: 300_000, ..spec("large", Consistency::Bsp) };
    let mut world = World::with(config(), open(1, vec![large, spec("w", Consistency::Bsp)]));
    world.send(TOOL, Message::Export(Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 }));
    let has_copy = |world: &World| world.lane.jobs[&JOB].export_cache.is_some();
    assert!(has_copy(&world), "more pages will be asked for");
    assert!(world.send(0, Message::Push(Push { matrix: 1, ..push(0, 0, 0, 1.0) })).is_empty());
    assert!(has_copy(&world), "no clock has changed");
}

#[test]
fn why_the_last_jobs_were_closed_is_remembered_and_of_earlier_ones_forgotten() {
    let mut world = World::new(1, Consistency::Asp);
    for job in 100..165 {
        world.send(TOOL, Message::OpenJob(OpenJob { job, ..open(1, vec![spec("w", Consistency::Asp)]) }));
        world.send(TOOL, Message::CloseJob(CloseJob { request: 2, job, reason: format!("{job} is over") }));
    }
    let known: Vec<JobId> = (0..200).filter(|job| world.lane.closed_jobs.reason(*job).is_some()).collect();
    assert_eq!(known, (101..165).collect::<Vec<JobId>>());
}
