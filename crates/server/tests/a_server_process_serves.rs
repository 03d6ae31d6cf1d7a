//! A server process on real sockets: a tool opens a job on both lanes, a task pushes and pulls, and the server ends
//! when it is stopped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use matrix::{
    Axis, Consistency, ElementType, Initializer, MatrixSpec, OwnedValues, Partitioner, PushRule, Storage,
};
use rpc::message::{Hello, KeyList, Message, OpenJob, PartitionRun, Pull, Push, Role};
use rpc::{Address, Receiver, Sender, Stop};
use server::{Error, ServerConfig};

const LIMIT: Duration = Duration::from_secs(20);

fn spec() -> MatrixSpec {
    MatrixSpec {
        name: "w".into(),
        element: ElementType::F32,
        rows: 1000,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 2 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

fn open(address: &Address, role: Role, lane: u16) -> (Sender, Receiver) {
    let hello = Hello { request: 1, token: b"secret".to_vec(), role, lane };
    let (sender, receiver, welcome) = rpc::open(address, LIMIT, &hello).expect("the server is there");
    assert_eq!((welcome.lanes, welcome.request), (2, 1));
    receiver.set_timeout(Some(LIMIT)).expect("a socket");
    (sender, receiver)
}

/// Opens a job with half a matrix on each lane: partition `lane`, with the keys from 500 * `lane` on.
fn use_lane(address: &Address, lane: u16) {
    let (mut sender, mut receiver) = open(address, Role::Tool, lane);
    let owned_partitions = vec![vec![u32::from(lane)]];
    let matrices = vec![spec()];
    let (request, job) = (2, 1);
    let job = OpenJob {
        request,
        job,
        task_count: 1,
        wait_limit_ms: 1000,
        durability: rpc::message::Durability::Checkpoint,
        standby: None,
        matrices,
        owned_partitions,
        home: lane == 0,
        modules: Vec::new(),
    };
    sender.send(&Message::OpenJob(job)).expect("sent");
    assert!(matches!(receiver.receive(), Ok(Message::Done(done)) if done.request == 2));
    let (mut sender, mut receiver) = open(address, Role::Task { job: 1, task: 0 }, lane);
    let start = 500 * u64::from(lane);
    let runs = vec![PartitionRun { partition: u32::from(lane), count: 500 }];
    let keys = KeyList::Range { start, end: start + 500 };
    let values = OwnedValues::F32((0..500).map(|i| i as f32).collect()).into();
    let (job, task, clock, matrix, table) = (1, 0, 0, 0, 0);
    let push = Push { request: 0, job, task, clock, index: 0, matrix, table, runs, keys, values };
    let (runs, keys, values) = (push.runs.clone(), push.keys.clone(), push.values.clone());
    sender.send(&Message::Push(push)).expect("sent");
    sender
        .send(&Message::Pull(Pull {
            request: 3,
            job,
            task,
            clock,
            matrix,
            table,
            wait_ms: 0,
            runs,
            keys,
            wire: rpc::WireType::F32,
        }))
        .expect("sent");
    match receiver.receive() {
        Ok(Message::Pulled(pulled)) => assert_eq!((pulled.request, pulled.values), (3, values)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_process_serves_until_it_is_stopped() {
    let config = ServerConfig { lanes: 2, token: b"secret".to_vec(), ..ServerConfig::default() };
    let stop = Stop::new();
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn({
        let stop = stop.clone();
        move || {
            server::run(config, stop, |ports| {
                tell.send(ports.addresses()).expect("the test waits");
                Ok::<(), Error>(())
            })
        }
    });
    let (addresses, http) = told.recv_timeout(LIMIT).expect("it says where it listens");
    use_lane(&addresses[0], 0);
    use_lane(&addresses[0], 1);
    let wrong = Hello { request: 1, token: b"wrong".to_vec(), role: Role::Tool, lane: 0 };
    assert!(matches!(rpc::open(&addresses[0], LIMIT, &wrong), Err(rpc::Error::Refused(_))));
    let Address::Tcp(place) = &http[0] else { panic!("tcp by default") };
    let mut page = String::new();
    let mut stream = TcpStream::connect(place).expect("it is there");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    stream.read_to_string(&mut page).expect("an answer");
    for line in
        ["seraphim_pushes_total{lane=\"0\",job=\"1\"} 1", "seraphim_pulls_total{lane=\"1\",job=\"1\"} 1"]
    {
        assert!(page.contains(line), "{line} in\n{page}");
    }
    stop.raise();
    thread.join().expect("no panic").expect("a clean end");
}

#[test]
fn an_address_in_use_is_an_error_and_nobody_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let place = taken.local_addr().expect("bound").to_string();
    let config = ServerConfig { listen: vec![Address::Tcp(place.clone())], ..ServerConfig::default() };
    let refused = server::run(config, Stop::new(), |_| -> Result<(), Error> { panic!("told") });
    let text = refused.expect_err("in use").to_string();
    assert!(text.contains(&place), "{text}");
}
