//! Tests of what survives a master: the changes that it reports, the folder in which they lie, and a new master with them.

use control::{ClientRequest, ClientResponse, JobState, JobSubmission, SubmissionId};
use rpc::message::ControlBody;
use serde_json::json;

use super::test_master::{TestMaster, server, submission, worker, worker_of};
use crate::record::{RecordChange, Records, Standing};
use crate::runner::RunnerReport;
use crate::state_folder::StateFolder;

/// A master with one server and one worker, and its folder.
fn recorded(folder: &StateFolder) -> TestMaster {
    let mut world = TestMaster::new();
    world.master.restore(folder.load().expect("it was written by a master"));
    world.register(1, "s", 10, server());
    world.register(2, "w", 20, worker());
    world
}

fn write(folder: &StateFolder, world: &mut TestMaster) {
    for change in world.master.take_changes() {
        folder.write(&change).expect("the folder is ours");
    }
}

fn submit(world: &mut TestMaster, id: u8, title: &str) -> Option<u32> {
    submit_job(world, id, submission(title, 1, 1))
}

fn submit_job(world: &mut TestMaster, id: u8, submission: JobSubmission) -> Option<u32> {
    world.call(5, ClientRequest::Submit { id: SubmissionId([id; 16]), submission });
    match world.answers_to(5).pop() {
        Some(Ok(ClientResponse::Submitted { job })) => Some(job),
        _ => None,
    }
}

#[test]
fn a_new_master_goes_on_with_the_jobs_of_the_earlier_one() {
    let place = std::env::temp_dir().join(format!("seraphim-records-{}", std::process::id()));
    let folder = StateFolder::open(&place).expect("the folder is ours");
    let mut world = recorded(&folder);
    for id in 1..=4 {
        assert_eq!(submit(&mut world, id, &format!("job {id}")), Some(id.into()));
    }
    world.runner(1, RunnerReport::Ended(Ok(json!({}).into())));
    world.runner(2, RunnerReport::Record(json!({ "training": "abc" })));
    world.call(6, ClientRequest::Cancel { job: 3 });
    world.take_started();
    write(&folder, &mut world);
    drop(folder);

    let folder = StateFolder::open(&place).expect("the earlier master has let it go");
    let mut world = TestMaster::new();
    world.master.restore(folder.load().expect("it was written by a master"));
    assert_eq!(world.master.take_changes(), [], "what was read is recorded already");
    world.receive(9, 1, ControlBody::AskContinuedRuns);
    assert_eq!(world.bodies_to(9), [ControlBody::ContinuedRuns { runs: vec![2, 3, 4] }]);
    let states: Vec<JobState> = (1..=4).map(|job| world.state(job)).collect();
    assert_eq!(states, [JobState::Done, JobState::Queued, JobState::Cancelled, JobState::Queued]);
    assert!(world.job(3).error.is_some_and(|error| error.contains("its checkpoints are kept")));
    assert_eq!(submit(&mut world, 2, "job 2"), Some(2), "a repeat of an earlier submission");
    assert_eq!(submit(&mut world, 2, "another"), None, "another job with its id");

    world.register(1, "s", 10, server());
    world.register(2, "w", 20, worker());
    let started = world.take_started();
    let ids: Vec<u32> = started.iter().map(|start| start.job).collect();
    assert_eq!(ids, [2, 4]);
    assert_eq!(started[0].recorded, json!({ "training": "abc" }));
    assert!(started.iter().all(|start| start.run > 4), "no member knows the numbers of their runs");
    let next = submit(&mut world, 7, "job 7");
    assert!(next > Some(6), "{next:?}");
    write(&folder, &mut world);
    drop(folder);

    // A third master knows the runs of both, for members that were away under the second.
    let folder = StateFolder::open(&place).expect("the second master has let it go");
    let mut world = TestMaster::new();
    world.master.restore(folder.load().expect("it was written by a master"));
    world.receive(9, 1, ControlBody::AskContinuedRuns);
    let told = world.bodies_to(9);
    let [ControlBody::ContinuedRuns { runs }] = told.as_slice() else { panic!("{told:?}") };
    assert!([2, 4, started[0].run, started[1].run].iter().all(|run| runs.contains(run)), "{runs:?}");
    drop(folder);
    std::fs::remove_dir_all(place).expect("the folder is ours");
}

#[test]
fn a_new_master_gives_a_job_to_workers_of_its_group() {
    let place = std::env::temp_dir().join(format!("seraphim-groups-{}", std::process::id()));
    let folder = StateFolder::open(&place).expect("the folder is ours");
    let mut world = recorded(&folder);
    let job = || JobSubmission { worker_group: "g".into(), ..submission("a", 1, 1) };
    assert_eq!(submit_job(&mut world, 1, job()), Some(1));
    write(&folder, &mut world);
    drop(folder);

    let folder = StateFolder::open(&place).expect("the earlier master has let it go");
    let mut world = recorded(&folder);
    assert_eq!(world.state(1), JobState::Queued);
    assert_eq!(submit_job(&mut world, 1, job()), Some(1), "a repeat of an earlier submission");
    assert_eq!(submit(&mut world, 1, "a"), None, "without the group it is another job");
    world.register(3, "w2", 30, worker_of("g"));
    assert_eq!(world.take_started()[0].workers[0].name, "w2");
    drop(folder);
    std::fs::remove_dir_all(place).expect("the folder is ours");
}

#[test]
fn a_folder_has_what_was_written_last_and_what_was_forgotten_is_gone() {
    let place = std::env::temp_dir().join(format!("seraphim-state-{}", std::process::id()));
    let folder = StateFolder::open(&place).expect("the folder is ours");
    assert_eq!(folder.load().expect("it is empty"), Records::default());
    let mut world = recorded(&folder);
    submit(&mut world, 1, "a");
    submit(&mut world, 2, "b");
    let changes = world.master.take_changes();
    let submitted = changes.iter().filter(|change| matches!(change, RecordChange::Submitted(_)));
    assert_eq!(submitted.count(), 2);
    for change in &changes {
        folder.write(change).expect("the folder is ours");
    }
    let standing = Standing { error: Some("lost".into()), ..Standing::queued(2) };
    folder.write(&RecordChange::Moved { job: 2, standing: standing.clone() }).expect("the folder is ours");
    folder.write(&RecordChange::Forgotten { job: 1 }).expect("the folder is ours");
    // A removal that was interrupted, and a submission whose master died at once.
    std::fs::create_dir_all(place.join("jobs/00000009")).expect("the folder is ours");
    std::fs::remove_file(place.join("jobs/00000002/standing.json")).expect("it was written");
    let records = folder.load().expect("it is whole");
    assert_eq!(records.last_id, 2);
    let jobs: Vec<(u32, &Standing)> = records.jobs.iter().map(|(job, at)| (job.job, at)).collect();
    assert_eq!(jobs, [(2, &Standing::queued(2))]);
    folder.write(&RecordChange::Moved { job: 2, standing: standing.clone() }).expect("the folder is ours");
    assert_eq!(folder.load().expect("it is whole").jobs[0].1, standing);
    assert!(!place.join("jobs/00000009").exists());
    drop(folder);
    std::fs::remove_dir_all(place).expect("the folder is ours");
}
