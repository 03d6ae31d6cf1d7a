//! Clients over real sockets: the token, jobs that are submitted twice, lost answers, watchers that leave, health.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Instant;

use common::{Cluster, FnRunner, LIMIT, carry, new_id, quick, worker};
use control::{Client, Error, JobState, JobSubmission};
use master::{JobEvent, JobLink, Settings};
use rpc::transport::Address;
use serde_json::{Value, json};

/// A job without members, which lasts until it is cancelled.
fn submission(title: &str) -> JobSubmission {
    JobSubmission {
        title: title.into(),
        spec: json!({ "n": u64::MAX }),
        servers: 0,
        workers: 0,
        worker_group: String::new(),
    }
}

fn until_cancelled() -> FnRunner<impl Fn(JobLink) -> Result<Value, String> + Send + Sync> {
    FnRunner(|link: JobLink| match link.receive(LIMIT) {
        JobEvent::Cancelled => Err("stopped".into()),
        other => Err(format!("{other:?}")),
    })
}

fn refusal(error: &Error) -> String {
    match error {
        Error::Refused { code, text } => format!("{code:?}: {text}"),
        other => panic!("{other}"),
    }
}

#[test]
fn everything_that_a_client_does_needs_the_token_but_health() {
    let cluster = Cluster::start(quick(), b"secret", until_cancelled());
    let client = |token: &[u8]| Client::new(cluster.http.clone(), token);
    let right = client(b"secret");
    let job = right.submit(new_id(), &submission("a"), LIMIT).unwrap();
    for (token, text) in [(&b"wrong"[..], "not the one of this cluster"), (b"", "a token is required")] {
        let wrong = client(token);
        let errors = [
            wrong.submit(new_id(), &submission("b"), LIMIT).unwrap_err(),
            wrong.status(LIMIT).unwrap_err(),
            wrong.cancel(job, LIMIT).unwrap_err(),
            wrong.watch(job, |_| true).unwrap_err(),
        ];
        for error in errors {
            assert!(
                refusal(&error).starts_with("Unauthenticated: ") && refusal(&error).contains(text),
                "{error}"
            );
        }
        assert!(wrong.is_well(LIMIT).unwrap());
    }
    let status = right.status(LIMIT).unwrap();
    assert_eq!(status.jobs.len(), 1, "nothing of what strangers wanted was done");
    assert!(!status.jobs[0].state.is_over());
    assert!(right.cancel(job, LIMIT).unwrap());
    let mut states = Vec::new();
    let see = |status: &control::JobStatus| {
        states.push((status.state, status.error.clone()));
        true
    };
    right.watch(job, see).unwrap();
    assert_eq!(states.last(), Some(&(JobState::Cancelled, Some("stopped".into()))));
    assert!(!right.cancel(job, LIMIT).unwrap(), "it had ended before");
}

#[test]
fn a_submission_that_is_repeated_is_the_same_job_and_its_id_is_of_no_use_for_another() {
    let cluster = Cluster::start(quick(), b"", until_cancelled());
    let (client, id) = (cluster.client(), new_id());
    let job = client.submit(id, &submission("a"), LIMIT).unwrap();
    for _ in 0..3 {
        assert_eq!(client.submit(id, &submission("a"), LIMIT).unwrap(), job);
    }
    assert_ne!(client.submit(new_id(), &submission("a"), LIMIT).unwrap(), job);
    let error = client.submit(id, &submission("b"), LIMIT).unwrap_err();
    assert!(
        refusal(&error).starts_with("InvalidArgument: ") && refusal(&error).contains("another job"),
        "{error}"
    );
    assert_eq!(cluster.status().1.len(), 2);
}

/// A proxy that forwards what a client sends. It returns nothing on the first connection, and cuts that one as soon as
/// `is_done`.
fn swallow_first(master: &Address, is_done: impl Fn() -> bool + Send + 'static) -> Address {
    let Address::Tcp(place) = master.clone() else { panic!("{master}") };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    std::thread::spawn(move || {
        for (number, near) in listener.incoming().enumerate() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&place).unwrap());
            let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || carry(near, far));
            if number > 0 {
                std::thread::spawn(move || carry(far_too, near_too));
                continue;
            }
            while !is_done() {
                std::thread::yield_now();
            }
            near_too.shutdown(Shutdown::Both).unwrap();
        }
    });
    address
}

#[test]
fn a_submission_whose_answer_is_lost_is_sent_again_and_runs_once() {
    let cluster = Cluster::start(quick(), b"", until_cancelled());
    let looking = cluster.client();
    let between = swallow_first(&cluster.http, move || !looking.status(LIMIT).unwrap().jobs.is_empty());
    let job = Client::new(between, b"").submit(new_id(), &submission("a"), LIMIT).unwrap();
    let jobs = cluster.status().1;
    assert_eq!(jobs.iter().map(|status| status.id).collect::<Vec<_>>(), [job]);
}

#[test]
fn a_watcher_that_leaves_gives_its_place_to_another() {
    let settings = Settings { watcher_limit: 1, ..quick() };
    let cluster = Cluster::start(settings, b"", until_cancelled());
    let job = cluster.submit(0, 0, Value::Null);
    let deadline = Instant::now() + LIMIT;
    for round in 0..5 {
        // The `Unwatch` of the previous watcher is on its way.
        while let Err(error) = cluster.client().watch(job, |_| false) {
            assert!(refusal(&error).contains("watcher_limit"), "{error}");
            assert!(Instant::now() < deadline, "round {round}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn members_and_clients_are_there_at_once_over_a_unix_socket_too() {
    let folder = std::env::temp_dir().join(format!("seraphim-clients-{}", std::process::id()));
    let place = Address::Unix(folder).to_string();
    let cluster = Cluster::at(&place, quick(), b"", until_cancelled());
    let (membership, _events) = cluster.join("w", worker());
    let job = cluster.submit(0, 1, Value::Null);
    cluster.until(|members, jobs| {
        members.iter().any(|(member, _)| member.id == membership.id()) && jobs[0].state == JobState::Running
    });
    assert!(cluster.client().is_well(LIMIT).unwrap());
    assert!(cluster.client().cancel(job, LIMIT).unwrap());
}
