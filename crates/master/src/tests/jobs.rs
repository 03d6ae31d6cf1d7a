//! Tests of jobs from submission to their end, and of the notifications about them.

use control::limits::{ERROR_BYTES, TITLE_BYTES};
use control::{ClientRequest, ClientResponse, JobState, JobSubmission, SubmissionId};
use rpc::message::{ControlBody, FaultKind};
use rpc::service::Service;
use serde_json::{Value, json};

use super::test_master::{LEASE, TestMaster, bytes, server, submission, worker, worker_of};
use crate::Settings;
use crate::runner::{JobEvent, JobResult, RunnerReport};

/// One server (1) and two workers (2, 3), on connections with the same numbers.
fn cluster() -> TestMaster {
    cluster_with(Settings::default())
}

fn cluster_with(settings: Settings) -> TestMaster {
    let mut world = TestMaster::with(settings);
    world.register(1, "s", 10, server());
    world.register(2, "w1", 20, worker());
    world.register(3, "w2", 30, worker());
    world
}

fn done(value: Value) -> RunnerReport {
    RunnerReport::Ended(Ok(value.into()))
}

#[test]
fn a_job_waits_for_its_members_and_says_for_how_many() {
    let mut world = TestMaster::new();
    let job = world.submit("train", 1, 2);
    world.register(1, "s", 10, server());
    world.register(2, "w1", 20, worker());
    assert!(world.take_started().is_empty());
    let status = world.job(job);
    assert_eq!(status.state, JobState::Queued);
    assert_eq!(
        status.progress,
        json!({ "waits_for": "members: 1 of 1 servers and 1 of 2 workers are connected" })
    );
    world.register(3, "w2", 30, worker());
    let started = world.take_started();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].spec, json!({ "what": "train" }));
    let ids = |members: &[rpc::message::control::Member]| members.iter().map(|m| m.id).collect::<Vec<_>>();
    assert_eq!((ids(&started[0].servers), ids(&started[0].workers)), (vec![1], vec![2, 3]));
    assert_eq!(world.state(job), JobState::Running);
}

#[test]
fn a_job_runs_only_on_workers_of_its_group() {
    let mut world = cluster();
    let of_group = |title: &str, servers, workers| JobSubmission {
        worker_group: "gpu".into(),
        ..submission(title, servers, workers)
    };
    let job = world.submit_job(of_group("train", 1, 2));
    world.register(4, "w3", 40, worker_of("gpu"));
    let waits_for =
        json!({ "waits_for": "members: 1 of 1 servers and 1 of 2 workers of group \"gpu\" are connected" });
    assert_eq!(world.job(job).progress, waits_for);
    world.register(5, "w4", 50, worker_of("gpu"));
    let ids = |members: &[rpc::message::control::Member]| members.iter().map(|m| m.id).collect::<Vec<_>>();
    assert_eq!(ids(&world.take_started()[0].workers), [4, 5]);
    let three = world.submit("without a group", 1, 3);
    assert_eq!(world.state(three), JobState::Queued, "two workers are in no group");
    world.submit("without a group", 1, 2);
    assert_eq!(ids(&world.take_started()[0].workers), [2, 3]);
    // A lost worker is replaced by another one of the group.
    world.receive(4, 0, ControlBody::Leave);
    world.runner(job, RunnerReport::ReplaceMembers);
    world.register(6, "w5", 60, worker());
    assert!(world.job(job).progress["waits_for"].is_null() && world.events_of(job).iter().all(is_no_start));
    world.register(7, "w6", 70, worker_of("gpu"));
    let events = world.events_of(job);
    let started = events.iter().find_map(|event| match event {
        JobEvent::Members { workers, .. } => Some(ids(workers)),
        _ => None,
    });
    assert_eq!(started, Some(vec![5, 7]), "{events:?}");
}

fn is_no_start(event: &JobEvent) -> bool {
    !matches!(event, JobEvent::Members { .. })
}

#[test]
fn a_job_has_its_members_in_the_order_of_their_names() {
    for names in [["a", "b", "c"], ["c", "a", "b"]] {
        let mut world = TestMaster::new();
        world.register(1, "s", 10, server());
        for (place, name) in names.iter().enumerate() {
            let connection = 2 + place as u64;
            world.register(connection, name, 10 * connection, worker());
        }
        world.submit("train", 1, 3);
        let started = world.take_started();
        let found: Vec<&str> = started[0].workers.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(found, ["a", "b", "c"]);
    }
}

#[test]
fn a_member_that_is_away_starts_no_job() {
    let mut world = cluster();
    world.close(3);
    let job = world.submit("j", 1, 2);
    assert_eq!(world.state(job), JobState::Queued);
    assert_eq!(world.register(4, "w2", 30, worker()), Some(3));
    assert_eq!(world.state(job), JobState::Running);
}

#[test]
fn several_jobs_run_at_once_up_to_the_limit_on_the_members_with_the_fewest() {
    let mut world = cluster_with(Settings { running_job_limit: 2, ..Settings::default() });
    let jobs = [world.submit("a", 1, 1), world.submit("b", 1, 1), world.submit("c", 1, 1)];
    let started = world.take_started();
    let workers: Vec<u32> = started.iter().map(|start| start.workers[0].id).collect();
    assert_eq!(workers, [2, 3]);
    assert_eq!(world.state(jobs[2]), JobState::Queued);
    let waits_for = json!({ "waits_for": "one of 2 running jobs to end (running_job_limit)" });
    assert_eq!(world.job(jobs[2]).progress, waits_for);
    world.runner(jobs[1], done(json!(1)));
    let started = world.take_started();
    assert_eq!((started[0].job, started[0].workers[0].id), (jobs[2], 3));
}

#[test]
fn a_job_that_lacks_members_does_not_hold_up_the_next() {
    let mut world = cluster();
    let large = world.submit("large", 5, 5);
    let small = world.submit("small", 1, 1);
    assert_eq!((world.state(large), world.state(small)), (JobState::Queued, JobState::Running));
}

#[test]
fn too_many_waiting_jobs_are_refused() {
    let mut world = TestMaster::with(Settings { queued_job_limit: 1, ..Settings::default() });
    world.submit("a", 1, 1);
    let repeat = ClientRequest::Submit { id: SubmissionId([1; 16]), submission: submission("a", 1, 1) };
    world.call(9, ClientRequest::Submit { id: SubmissionId([9; 16]), submission: submission("b", 1, 1) });
    let (kind, text) = world.refusal_of(9);
    assert_eq!(kind, FaultKind::Busy);
    assert!(text.contains("queued_job_limit"), "{text}");
    world.call(9, repeat);
    assert_eq!(world.answers_to(9), [Ok(ClientResponse::Submitted { job: 1 })], "a repeat is no job more");
}

#[test]
fn waiting_jobs_of_too_many_bytes_are_refused() {
    let mut world = TestMaster::with(Settings { queued_limit_bytes: 1_000, ..Settings::default() });
    world.submit("a", 1, 1);
    world.call(
        9,
        ClientRequest::Submit { id: SubmissionId([9; 16]), submission: submission(&"b".repeat(1_000), 1, 1) },
    );
    let (kind, text) = world.refusal_of(9);
    assert_eq!(kind, FaultKind::Busy);
    assert!(text.contains("queued_limit_bytes"), "{text}");
    world.submit("c", 1, 1);
}

#[test]
fn a_submission_that_is_repeated_is_answered_with_the_same_job_at_any_time_of_its_life() {
    let mut world = TestMaster::new();
    let job = world.submit("a", 1, 1);
    let repeat = ClientRequest::Submit { id: SubmissionId([1; 16]), submission: submission("a", 1, 1) };
    let again = |world: &mut TestMaster| {
        world.call(9, repeat.clone());
        assert_eq!(world.answers_to(9), [Ok(ClientResponse::Submitted { job })]);
        assert_eq!(world.status().1.len(), 1);
    };
    again(&mut world);
    world.register(1, "s", 10, server());
    world.register(2, "w", 20, worker());
    assert_eq!((world.state(job), world.take_started().len()), (JobState::Running, 1));
    again(&mut world);
    world.runner(job, done(json!(1)));
    again(&mut world);
    assert_eq!(world.state(job), JobState::Done);
    assert!(world.take_started().is_empty(), "nothing is started again");
}

#[test]
fn a_submission_id_that_comes_with_another_job_is_refused() {
    let mut world = TestMaster::new();
    let job = world.submit("a", 1, 1);
    let id = SubmissionId([1; 16]);
    for other in [submission("b", 1, 1), submission("a", 2, 1), submission("a", 1, 2)] {
        world.call(9, ClientRequest::Submit { id, submission: other });
        let (kind, text) = world.refusal_of(9);
        assert_eq!(kind, FaultKind::Invalid);
        assert!(text.contains(&format!("job {job}")) && text.contains("new id"), "{text}");
    }
    assert_eq!(world.status().1.len(), 1);
}

#[test]
fn a_queued_job_is_cancelled_at_once() {
    let mut world = TestMaster::new();
    let job = world.submit("a", 1, 1);
    world.call(9, ClientRequest::Cancel { job });
    assert_eq!(world.answers_to(9), [Ok(ClientResponse::Cancelled { was_live: true })]);
    assert_eq!(world.state(job), JobState::Cancelled);
    world.register(1, "s", 10, server());
    world.register(2, "w", 20, worker());
    assert!(world.take_started().is_empty());
    world.call(9, ClientRequest::Cancel { job });
    assert_eq!(world.answers_to(9), [Ok(ClientResponse::Cancelled { was_live: false })]);
    world.call(9, ClientRequest::Cancel { job: 55 });
    assert_eq!(world.refusal_of(9).0, FaultKind::NoSuchJob);
}

#[test]
fn a_running_job_is_cancelled_when_its_runner_has_ended() {
    let mut world = cluster();
    let job = world.submit("a", 1, 1);
    world.take_started();
    for _ in 0..2 {
        world.call(9, ClientRequest::Cancel { job });
    }
    assert_eq!(world.events_of(job), [JobEvent::Cancelled], "the runner gets one event");
    assert_eq!(world.state(job), JobState::Running);
    world.runner(job, RunnerReport::Ended(Err("stopped at epoch 3".into())));
    let status = world.job(job);
    assert_eq!((status.state, status.error.as_deref()), (JobState::Cancelled, Some("stopped at epoch 3")));
}

#[test]
fn a_cancelled_job_that_saved_what_it_had_is_cancelled_and_one_that_was_done_already_is_done() {
    for (is_complete, state) in [(false, JobState::Cancelled), (true, JobState::Done)] {
        let mut world = cluster();
        let job = world.submit("a", 1, 1);
        world.call(9, ClientRequest::Cancel { job });
        world.runner(job, RunnerReport::Progress(json!({ "epochs": 3 })));
        let report = json!({ "saved": true });
        world.runner(job, RunnerReport::Ended(Ok(JobResult { report, is_complete })));
        let status = world.job(job);
        assert_eq!((status.state, status.error), (state, None));
        assert_eq!(status.progress, json!({ "epochs": 3 }));
    }
}

#[test]
fn the_status_of_ended_jobs_is_short_and_their_reports_are_kept_within_a_limit() {
    /// Most bytes of an ended job in `status`.
    const STATUS_BYTES: usize = 1_000;
    let report = json!({ "epochs": vec![json!({ "epoch": 1, "training": { "loss": 0.25 } }); 5_000] });
    let report_bytes = report.to_string().len() as u64;
    let limit = 10 * report_bytes;
    let mut world = cluster_with(Settings { report_limit_bytes: limit, ..Settings::default() });
    for _ in 0..35 {
        let job = world.submit("a", 1, 1);
        world.runner(job, RunnerReport::Progress(json!({ "epochs": 5_000 })));
        world.runner(job, done(report.clone()));
    }
    let (_, jobs) = world.status();
    assert_eq!(jobs.len(), 35);
    for job in &jobs {
        assert_eq!(job.progress, json!({ "epochs": 5_000 }));
        assert!(serde_json::to_string(job).unwrap().len() < STATUS_BYTES);
    }
    let mut detail = |job| {
        world.call(7, ClientRequest::Watch { job });
        match world.answers_to(7).as_slice() {
            [Ok(ClientResponse::Job(status))] => status.progress.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(detail(35), report, "who asks for one job is given its report");
    assert_eq!(detail(26), report);
    assert_eq!(detail(25), json!({ "epochs": 5_000 }), "the oldest reports are forgotten");
    let mut metrics = rpc::Metrics::default();
    world.master.metrics(&mut metrics);
    let text = control::metrics_text(metrics);
    let held = format!("seraphim_master_report_bytes {limit}");
    assert!(text.lines().any(|line| line == held), "{held} in\n{text}");
}

#[test]
fn what_clients_and_members_write_is_short_and_can_be_printed() {
    let mut world = cluster();
    let job = world.submit(&format!("\u{1b}[2J{}", "x".repeat(5_000)), 1, 1);
    world.runner(job, RunnerReport::Ended(Err(format!("\u{7}{}", "y".repeat(50_000)))));
    let status = world.job(job);
    assert!(status.title.starts_with('\u{fffd}') && status.title.len() <= TITLE_BYTES, "{}", status.title);
    let error = status.error.unwrap();
    assert!(error.starts_with('\u{fffd}') && error.len() <= ERROR_BYTES);
    world.receive(2, 2, ControlBody::Heartbeat { id: 2, report: json!("z".repeat(1 << 20)) });
    assert_eq!(world.status().0[1], (2, Value::Null));
    assert_eq!(world.register(5, "w\u{1b}[2J", 50, worker()), None);
    let long = vec!["tcp:h:1".to_owned(); 1_000];
    let kind = rpc::message::MemberKind::Server { addresses: long, lanes: 1, memory_limit_bytes: 1 };
    assert_eq!(world.register(6, "many", 60, kind), None);
}

#[test]
fn a_runner_is_told_the_title_that_is_shown() {
    let mut world = cluster();
    let job = world.submit(&format!("\u{1b}[2J{}", "x".repeat(5_000)), 1, 1);
    let told = world.take_started()[0].title.clone();
    assert!(told.starts_with('\u{fffd}') && told.len() <= TITLE_BYTES, "{told}");
    assert_eq!(told, world.job(job).title);
}

#[test]
fn a_runner_that_fails_is_a_failed_job() {
    let mut world = cluster();
    let job = world.submit("a", 1, 1);
    world.runner(job, RunnerReport::Progress(json!({ "epoch": 1 })));
    world.runner(job, RunnerReport::Ended(Err("no worker can read x".into())));
    let status = world.job(job);
    assert_eq!((status.state, status.error.as_deref()), (JobState::Failed, Some("no worker can read x")));
    assert_eq!(status.progress, json!({ "epoch": 1 }), "what was reached stays to be seen");
    world.runner(job, done(json!(2)));
    assert_eq!(world.state(job), JobState::Failed, "reports after the end are ignored");
}

#[test]
fn words_travel_between_the_runner_and_the_workers_of_its_job_only() {
    let mut world = cluster();
    let job = world.submit("a", 1, 1);
    world.take_started();
    world.runner(job, RunnerReport::ToTask { worker: 2, body: bytes("go") });
    world.runner(job, RunnerReport::ToTask { worker: 3, body: bytes("not of this job") });
    assert_eq!(world.bodies_to(2), [ControlBody::ToTask { job, body: bytes("go") }]);
    assert!(world.bodies_to(3).is_empty());
    world.receive(2, 1, ControlBody::FromTask { job, body: bytes("done") });
    world.receive(3, 1, ControlBody::FromTask { job, body: bytes("not of this job") });
    assert_eq!(world.events_of(job), [JobEvent::FromTask { worker: 2, body: bytes("done") }]);
    world.receive(8, 0, ControlBody::FromTask { job, body: bytes("who?") });
    assert_eq!(world.fault_to(8).unwrap().0, FaultKind::Invalid);
    world.runner(job, done(Value::Null));
    world.receive(2, 2, ControlBody::FromTask { job, body: bytes("late") });
    assert!(world.events_of(job).is_empty());
}

#[test]
fn the_runner_hears_that_a_member_of_its_job_is_gone() {
    let mut world = cluster();
    let (with, without) = (world.submit("a", 1, 2), world.submit("b", 1, 0));
    world.take_started();
    world.now = LEASE / 2;
    world.heartbeat(1, 1);
    world.heartbeat(3, 3);
    world.at(LEASE);
    let orders = world.master.take_commands();
    let [crate::runner::RunnerCommand::ToRunner { job, event: JobEvent::MemberLost { member, .. } }] =
        orders.as_slice()
    else {
        panic!("{orders:?}")
    };
    assert_eq!((*job, member.id), (with, 2));
    assert_eq!(world.state(with), JobState::Running, "the runner decides what becomes of the job");
    assert_eq!(world.state(without), JobState::Running);
    assert!(world.bodies_to(3).iter().any(|body| matches!(body, ControlBody::Gone { .. })));
}

#[test]
fn the_status_has_members_with_their_last_report_and_jobs_with_progress() {
    let mut world = cluster();
    world.heartbeat(2, 2);
    let job = world.submit("a", 1, 1);
    world.runner(job, RunnerReport::Progress(json!({ "epoch": 2 })));
    let (members, jobs) = world.status();
    assert_eq!(members, [(1, Value::Null), (2, json!({ "of": 2 })), (3, Value::Null)]);
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].title.as_str(), &jobs[0].progress), ("a", &json!({ "epoch": 2 })));
    let mut metrics = rpc::Metrics::default();
    world.master.metrics(&mut metrics);
    let text = control::metrics_text(metrics);
    for line in [
        "seraphim_master_members{kind=\"server\"} 1",
        "seraphim_master_members{kind=\"worker\"} 2",
        "seraphim_master_jobs{state=\"running\"} 1",
        "seraphim_master_heartbeats_total 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
}

#[test]
fn a_watcher_hears_every_change_until_the_end() {
    let mut world = TestMaster::new();
    let job = world.submit("a", 0, 1);
    world.call(7, ClientRequest::Watch { job });
    world.call(8, ClientRequest::Watch { job });
    world.call(8, ClientRequest::Unwatch);
    world.register_quietly(1, "w", 10);
    world.runner(job, RunnerReport::Progress(json!(1)));
    world.runner(job, RunnerReport::Progress(json!(1)));
    world.runner(job, done(json!(2)));
    let news: Vec<(JobState, Value)> = world
        .answers_to(7)
        .into_iter()
        .map(|answer| match answer {
            Ok(ClientResponse::Job(status)) => (status.state, status.progress),
            other => panic!("{other:?}"),
        })
        .collect();
    let states: Vec<JobState> = news.iter().map(|(state, _)| *state).collect();
    assert_eq!(states, [JobState::Queued, JobState::Running, JobState::Running, JobState::Done]);
    assert_eq!(news[3].1, json!(2));
    assert_eq!(world.answers_to(8).len(), 1, "a client that has left gets no more answers");
    world.call(7, ClientRequest::Watch { job });
    assert_eq!(world.answers_to(7).len(), 1, "a job that has ended: its end, once");
    world.call(7, ClientRequest::Watch { job: 99 });
    assert_eq!(world.refusal_of(7).0, FaultKind::NoSuchJob);
}

#[test]
fn too_many_watchers_are_refused_and_places_come_back() {
    let mut world = TestMaster::with(Settings { watcher_limit: 1, ..Settings::default() });
    let job = world.submit("a", 0, 1);
    world.call(7, ClientRequest::Watch { job });
    world.call(8, ClientRequest::Watch { job });
    let (kind, text) = world.refusal_of(8);
    assert_eq!(kind, FaultKind::Busy);
    assert!(text.contains("watcher_limit"), "{text}");
    world.call(7, ClientRequest::Unwatch);
    world.call(8, ClientRequest::Watch { job });
    assert!(matches!(world.answers_to(8).as_slice(), [Ok(ClientResponse::Job(_))]));
}

#[test]
fn ended_jobs_are_forgotten_above_the_limit() {
    let mut world = cluster_with(Settings { ended_job_limit: 2, ..Settings::default() });
    for _ in 0..4 {
        let job = world.submit("a", 1, 1);
        world.runner(job, done(Value::Null));
    }
    let remembered: Vec<u32> = world.status().1.iter().map(|job| job.id).collect();
    assert_eq!(remembered, [3, 4]);
}

#[test]
fn a_checkpoint_is_asked_of_a_running_job_only() {
    let mut world = TestMaster::new();
    let job = world.submit("a", 1, 1);
    world.call(7, ClientRequest::Checkpoint { job });
    assert!(world.refusal_of(7).1.contains("is queued"));
    world.register(1, "s", 10, server());
    world.register(2, "w", 20, worker());
    assert_eq!(world.state(job), JobState::Running);
    world.call(7, ClientRequest::Checkpoint { job });
    assert_eq!(world.answers_to(7), [Ok(ClientResponse::CheckpointRequested)]);
    assert_eq!(world.events_of(job), [JobEvent::CheckpointRequested]);
    world.receive(2, 0, ControlBody::Leave);
    world.runner(job, RunnerReport::ReplaceMembers);
    world.events_of(job);
    world.call(7, ClientRequest::Checkpoint { job });
    assert!(world.refusal_of(7).1.contains("waits for members"));
    assert_eq!(world.events_of(job), []);
    world.call(8, ClientRequest::Checkpoint { job: 99 });
    assert_eq!(world.refusal_of(8).0, FaultKind::NoSuchJob);
}
