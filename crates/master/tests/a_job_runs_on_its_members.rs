//! Jobs over real sockets: a runner exchanges messages with two members, also through resets; it fails, panics, is
//! cancelled and is watched.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use common::{Cluster, FnRunner, LIMIT, Proxy, config, next, quick, server, worker};
use control::{Error, JobState, JobStatus};
use master::{JobEvent, JobLink};
use member::{MemberEvent, Membership, join};
use rpc::message::{Base64Bytes, ControlBody};
use serde_json::{Value, json};

fn encode(number: u64) -> Base64Bytes {
    Base64Bytes(number.to_le_bytes().to_vec())
}

fn decode(body: &Base64Bytes) -> Option<u64> {
    Some(u64::from_le_bytes(body.0.clone().try_into().ok()?))
}

/// Answers every number with its square, until it receives an empty message.
fn squares(membership: Membership, events: Receiver<MemberEvent>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        loop {
            if let MemberEvent::Message(ControlBody::ToTask { job, body }) = next(&events) {
                let Some(number) = decode(&body) else { break };
                membership.send(ControlBody::FromTask { job, body: encode(number * number) });
            }
        }
        membership.leave();
    })
}

/// Sums the squares of `0..count` that its workers compute, and ends them.
fn sum_of_squares(link: &JobLink) -> Result<Value, String> {
    let count = link.spec.as_u64().ok_or("the job is no number")?;
    let workers: Vec<u32> = link.workers.iter().map(|member| member.id).collect();
    for number in 0..count {
        link.send(workers[number as usize % workers.len()], encode(number));
    }
    let (mut sum, mut heard) = (0, 0);
    while heard < count {
        match link.receive(LIMIT) {
            JobEvent::FromTask { body, .. } => {
                sum += decode(&body).ok_or("no number")?;
                heard += 1;
                link.progress(json!({ "heard": heard }));
            }
            JobEvent::MemberReconnected { .. } | JobEvent::MemberDisconnected { .. } => {}
            other => return Err(format!("{other:?}")),
        }
    }
    for worker in workers {
        link.send(worker, Base64Bytes::default());
    }
    Ok(json!(sum))
}

fn end_of(cluster: &Cluster, job: u32) -> JobStatus {
    let mut last = None;
    let watched = cluster.client().watch(job, |status| {
        last = Some(status.clone());
        true
    });
    watched.unwrap();
    last.unwrap()
}

/// The sum of the squares of 0..n.
fn expected(n: u64) -> Value {
    json!((0..n).map(|i| i * i).sum::<u64>())
}

#[test]
fn a_runner_talks_to_two_workers_that_come_after_the_job() {
    let cluster = Cluster::start(quick(), b"", FnRunner(|link: JobLink| sum_of_squares(&link)));
    let job = cluster.submit(1, 2, json!(100));
    assert_eq!(cluster.status().1[0].state, JobState::Queued);
    let (_server, _events) = cluster.join("s", server());
    let threads = ["a", "b"].map(|name| {
        let (membership, events) = cluster.join(name, worker());
        squares(membership, events)
    });
    let status = end_of(&cluster, job);
    assert_eq!((status.state, status.progress), (JobState::Done, expected(100)));
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn nothing_is_lost_or_said_twice_when_connections_are_cut_in_the_middle() {
    const NUMBERS: u64 = 3000;
    let cluster = Cluster::start(quick(), b"", FnRunner(|link: JobLink| sum_of_squares(&link)));
    let proxy = Proxy::to(&cluster.address);
    let threads = ["a", "b"].map(|name| {
        let (membership, events) = join(config(&proxy.address, name, worker())).unwrap();
        squares(membership, events)
    });
    let job = cluster.submit(0, 2, json!(NUMBERS));
    let mut cut_at = 0;
    let mut last = None;
    let watched = cluster.client().watch(job, |status| {
        let heard = status.progress["heard"].as_u64().unwrap_or(0);
        if status.state == JobState::Running && heard >= cut_at && heard > 0 {
            cut_at = heard + NUMBERS / 5;
            proxy.cut();
        }
        last = Some(status.clone());
        true
    });
    watched.unwrap();
    let last = last.unwrap();
    assert_eq!((last.state, last.error, last.progress), (JobState::Done, None, expected(NUMBERS)));
    assert!(cut_at > NUMBERS / 5, "it was cut at least once");
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_runner_that_fails_or_panics_is_a_failed_job_and_the_master_lives() {
    let runner = |link: JobLink| match link.spec.as_str() {
        Some("fail") => Err("no worker can read x.csv".to_string()),
        Some("panic") => panic!("index out of range"),
        _ => Ok(json!("well")),
    };
    let cluster = Cluster::start(quick(), b"", FnRunner(runner));
    let failed = end_of(&cluster, cluster.submit(0, 0, json!("fail")));
    assert_eq!((failed.state, failed.error.as_deref()), (JobState::Failed, Some("no worker can read x.csv")));
    let panicked = end_of(&cluster, cluster.submit(0, 0, json!("panic")));
    assert_eq!(panicked.state, JobState::Failed);
    assert_eq!(panicked.error.as_deref(), Some("the runner of the job panicked: index out of range"));
    let done = end_of(&cluster, cluster.submit(0, 0, Value::Null));
    assert_eq!((done.state, done.progress), (JobState::Done, json!("well")));
}

/// A runner that runs until it is cancelled.
fn patient() -> FnRunner<impl Fn(JobLink) -> Result<Value, String> + Send + Sync> {
    FnRunner(|link: JobLink| {
        link.progress(json!("waiting"));
        loop {
            return match link.receive(LIMIT) {
                JobEvent::MemberDisconnected { .. } => continue,
                JobEvent::Cancelled => Err("stopped, nothing was saved".into()),
                JobEvent::MemberLost { member, reason } => Err(format!("{} is gone: {reason}", member.name)),
                other => Err(format!("{other:?}")),
            };
        }
    })
}

#[test]
fn a_running_job_is_cancelled() {
    let cluster = Cluster::start(quick(), b"", patient());
    let job = cluster.submit(0, 0, Value::Null);
    cluster.until(|_, jobs| jobs[0].progress == json!("waiting"));
    assert!(cluster.client().cancel(job, LIMIT).unwrap(), "it is still under way");
    let status = end_of(&cluster, job);
    assert_eq!(status.state, JobState::Cancelled);
    assert_eq!(status.error.as_deref(), Some("stopped, nothing was saved"));
    match cluster.client().cancel(77, LIMIT) {
        Err(Error::Refused { text, .. }) => assert!(text.contains("no job 77"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_runner_hears_that_a_worker_has_died() {
    let cluster = Cluster::start(quick(), b"", patient());
    let (worker, events) = cluster.join("w", worker());
    let job = cluster.submit(0, 1, Value::Null);
    cluster.until(|_, jobs| jobs[0].progress == json!("waiting"));
    // The thread ends without `Leave`, like a process that was killed.
    drop((worker, events));
    let status = end_of(&cluster, job);
    assert_eq!(status.state, JobState::Failed);
    let error = status.error.unwrap();
    assert!(error.contains("w is gone: its lease of 1000 ms expired"), "{error}");
}

#[test]
fn a_master_that_is_stopped_cancels_its_jobs_and_says_so_before_it_ends() {
    let mut cluster = Cluster::start(quick(), b"", patient());
    let job = cluster.submit(0, 0, Value::Null);
    let waiting = cluster.submit(5, 5, Value::Null);
    let watchers = [job, waiting].map(|job| {
        let (client, (tell, told)) = (cluster.client(), channel());
        let thread = std::thread::spawn(move || {
            let mut last = None;
            let watched = client.watch(job, |status| {
                // The test reads the first update only.
                let _ = tell.send(());
                last = Some(status.state);
                true
            });
            watched.unwrap();
            last
        });
        told.recv_timeout(LIMIT).unwrap();
        thread
    });
    cluster.end();
    let states = watchers.map(|thread| thread.join().unwrap());
    assert_eq!(states, [Some(JobState::Cancelled); 2]);
}
