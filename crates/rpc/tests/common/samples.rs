//! One message of every kind, with different numbers in all fields.
#![allow(dead_code, reason = "each test file uses its part")]

use matrix::{
    Axis, Consistency, ElementType, Initializer, MatrixSpec, OwnedValues, Partitioner, PushRule, Storage,
};
use rpc::Message;
use rpc::message::{
    Barrier, CloseJob, Control, ControlBody, Done, Export, ExportPage, Fault, FaultKind, Hello, Import, Join,
    Joined, KeepRows, KeyList, Leave, Mark, OpenJob, Pull, Pulled, Push, Released, RestoreRows, Role, Run,
    Stats, StatsReply, Tick, Welcome,
};

pub(crate) const RUNS: [Run; 2] = [Run { partition: 3, count: 2 }, Run { partition: 5, count: 1 }];
pub(crate) const KEYS: [u64; 3] = [7, 1 << 40, 9];
const FLOATS: [f32; 3] = [1.5, -2.0, 0.25];
const APPLIED: Mark = Mark { clock: 11, index: 12 };

pub(crate) const FAULT_KINDS: [FaultKind; 14] = [
    FaultKind::BadToken,
    FaultKind::BadVersion,
    FaultKind::BadFrame,
    FaultKind::TooLarge,
    FaultKind::Busy,
    FaultKind::UnknownKeys,
    FaultKind::NoSuchJob,
    FaultKind::NotFound,
    FaultKind::TaskLeft,
    FaultKind::WaitedTooLong,
    FaultKind::NonFinite,
    FaultKind::Invalid,
    FaultKind::Stopped,
    FaultKind::Internal,
];

/// By name, as in the file of frames.
pub(crate) fn samples() -> Vec<(&'static str, Message)> {
    [sessions(), bulk(), clocks(), rows(), others()].concat()
}

fn sessions() -> Vec<(&'static str, Message)> {
    vec![
        (
            "hello_task",
            Message::Hello(Hello {
                request: 1,
                token: b"secret".to_vec(),
                role: Role::Task { job: 2, task: 3 },
                lane: 1,
            }),
        ),
        ("hello_tool", Message::Hello(Hello { request: 1, token: vec![], role: Role::Tool, lane: 0 })),
        ("hello_member", Message::Hello(Hello { request: 1, token: vec![0], role: Role::Member, lane: 0 })),
        (
            "welcome",
            Message::Welcome(Welcome {
                request: 1,
                incarnation: 99,
                lanes: 2,
                window_bytes: 1 << 26,
                applied: APPLIED,
                clock: 11,
                minimum: 10,
            }),
        ),
        (
            "open_job",
            Message::OpenJob(OpenJob {
                request: 5,
                job: 2,
                task_count: 4,
                wait_limit_ms: 60_000,
                matrices: vec![spec()],
                held: vec![vec![0, 2]],
                home: true,
            }),
        ),
        ("close_job", Message::CloseJob(CloseJob { request: 6, job: 2, reason: "done".to_owned() })),
    ]
}

fn bulk() -> Vec<(&'static str, Message)> {
    let listed = KeyList::Listed(KEYS.to_vec());
    let known = KeyList::Known { digest: KeyList::digest(&RUNS, &KEYS), count: 3 };
    let range = KeyList::Range { start: 100, end: 103 };
    let pull = Pull {
        request: 21,
        job: 2,
        task: 3,
        clock: 4,
        matrix: 1,
        table: 6,
        runs: RUNS.to_vec(),
        keys: listed.clone(),
    };
    let floats = OwnedValues::F32(FLOATS.to_vec());
    vec![
        ("pull_listed", Message::Pull(pull.clone())),
        ("pull_range", Message::Pull(Pull { keys: range, ..pull.clone() })),
        ("pull_known", Message::Pull(Pull { keys: known, ..pull })),
        (
            "pulled_f32",
            Message::Pulled(Pulled { request: 21, minimum: 10, applied: APPLIED, values: floats.clone() }),
        ),
        (
            "pulled_f64",
            Message::Pulled(Pulled {
                request: 21,
                minimum: 10,
                applied: APPLIED,
                values: OwnedValues::F64(vec![0.1]),
            }),
        ),
        (
            "pulled_i64",
            Message::Pulled(Pulled {
                request: 21,
                minimum: 10,
                applied: APPLIED,
                values: OwnedValues::I64(vec![-3]),
            }),
        ),
        (
            "push",
            Message::Push(Push {
                request: 0,
                job: 2,
                task: 3,
                clock: 4,
                index: 8,
                matrix: 1,
                table: 0,
                runs: RUNS.to_vec(),
                keys: listed,
                values: floats.clone(),
            }),
        ),
    ]
}

fn clocks() -> Vec<(&'static str, Message)> {
    vec![
        ("tick", Message::Tick(Tick { request: 0, job: 2, task: 3, clock: 5 })),
        ("leave", Message::Leave(Leave { request: 22, job: 2, task: 3 })),
        ("join", Message::Join(Join { request: 23, job: 2, task: 4 })),
        ("joined", Message::Joined(Joined { request: 23, clock: 10 })),
        ("barrier", Message::Barrier(barrier(Some(vec![1.0, 2.0])))),
        ("barrier_without_part", Message::Barrier(barrier(None))),
        ("released", Message::Released(Released { request: 24, clock: 5, sum: vec![3.0] })),
    ]
}

fn rows() -> Vec<(&'static str, Message)> {
    let floats = OwnedValues::F32(FLOATS.to_vec());
    vec![
        ("export", Message::Export(Export { request: 25, job: 2, matrix: 1, offset: 1000 })),
        (
            "export_page",
            Message::ExportPage(ExportPage {
                request: 25,
                row_count: 1003,
                keys: KEYS.to_vec(),
                values: floats.clone(),
            }),
        ),
        (
            "import",
            Message::Import(Import {
                request: 26,
                job: 2,
                matrix: 1,
                first: true,
                with_slots: false,
                keys: KEYS.to_vec(),
                values: floats,
            }),
        ),
        ("keep_rows", Message::KeepRows(KeepRows { request: 27, job: 2 })),
        ("restore_rows", Message::RestoreRows(RestoreRows { request: 28, job: 2 })),
    ]
}

fn others() -> Vec<(&'static str, Message)> {
    vec![
        ("stats", Message::Stats(Stats { request: 29, job: 2 })),
        (
            "stats_reply",
            Message::StatsReply(StatsReply {
                request: 29,
                matrices: vec![(3, 120)],
                clocks: vec![Some(5), None],
                pull_count: 1,
                push_count: 2,
                duplicate_count: 3,
                held_count: 4,
                waits: (5, 6),
                staleness: vec![7, 8],
            }),
        ),
        ("done", Message::Done(Done { request: 30, minimum: u64::MAX, applied: APPLIED })),
        (
            "fault",
            Message::Fault(Fault {
                request: 31,
                kind: FaultKind::Busy,
                text: "come again".to_owned(),
                retry_after_ms: 50,
            }),
        ),
        ("control", Message::Control(Control { request: 32, body: ControlBody::Heard { count: 2 } })),
    ]
}

pub(crate) fn barrier(part: Option<Vec<f64>>) -> Barrier {
    Barrier { request: 24, job: 2, task: 3, clock: 5, generation: 1, part }
}

fn spec() -> MatrixSpec {
    MatrixSpec {
        name: "weights".to_owned(),
        element: ElementType::F32,
        rows: 1 << 20,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 4 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Ssp { staleness: 2 },
        seed: 42,
    }
}
