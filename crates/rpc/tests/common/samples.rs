//! One message of every kind, with different numbers in all fields.
#![allow(dead_code, reason = "each test file uses its part")]

use matrix::{
    Axis, Consistency, ElementType, FunctionCall, Initializer, MatrixSpec, OwnedValues, PartialAnswer,
    Partitioner, PushRule, Storage,
};
use rpc::Message;
use rpc::message::{
    Barrier, Base64Bytes, Batch, CloseJob, CloseToken, Commit, CommitFunction, Committed, Control,
    ControlBody, Done, DropRows, Durability, Export, ExportPage, Fault, FaultKind, Hello, Import, Join,
    Joined, KeepRows, KeyList, Leave, OpenJob, PartitionRun, Pull, PullFunction, Pulled, PulledFunction,
    Push, PushFunction, PushPosition, PushStaged, Released, RenewSession, RestoreRows, Role, ScanRows,
    Standby, Stats, StatsReply, TaskStats, TaskStatus, TaskWait, Tick, TryFunction, WaitKind, Welcome,
};
use rpc::wire::int8;
use rpc::{WireType, WireValues};

#[path = "session_samples.rs"]
mod session_samples;

use session_samples::parameters;

pub(crate) const RUNS: [PartitionRun; 2] =
    [PartitionRun { partition: 3, count: 2 }, PartitionRun { partition: 5, count: 1 }];
pub(crate) const KEYS: [u64; 3] = [7, 1 << 40, 9];
const FLOATS: [f32; 3] = [1.5, -2.0, 0.25];
const APPLIED: PushPosition = PushPosition { clock: 11, index: 12 };

pub(crate) const FAULT_KINDS: [FaultKind; 16] = [
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
    FaultKind::TokenClosed,
    FaultKind::Function,
    FaultKind::Internal,
];

/// By name, as in the file of frames.
pub(crate) fn samples() -> Vec<(&'static str, Message)> {
    [
        sessions(),
        bulk(),
        rounded(),
        packed(),
        clocks(),
        rows(),
        others(),
        parameters(),
        staged(),
        functions(),
        tried_and_committed(),
        replicas(),
    ]
    .concat()
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
                durability: Durability::Checkpoint,
                standby: None,
                matrices: vec![spec()],
                owned_partitions: vec![vec![0, 2]],
                home: true,
                modules: Vec::new(),
            }),
        ),
        (
            "open_job_with_modules",
            Message::OpenJob(OpenJob {
                request: 5,
                job: 2,
                task_count: 1,
                wait_limit_ms: 60_000,
                durability: Durability::Checkpoint,
                standby: None,
                matrices: Vec::new(),
                owned_partitions: Vec::new(),
                home: false,
                modules: vec![Base64Bytes(b"\0asm".to_vec())],
            }),
        ),
        ("close_job", Message::CloseJob(CloseJob { request: 6, job: 2, reason: "done".to_owned() })),
    ]
}

fn replicas() -> Vec<(&'static str, Message)> {
    vec![
        ("hello_job_tool", hello_with(Role::JobTool { job: 2 })),
        ("hello_primary", hello_with(Role::Primary { job: 2, incarnation: 99 })),
        (
            "open_job_with_standby",
            Message::OpenJob(OpenJob {
                request: 5,
                job: 2,
                task_count: 1,
                wait_limit_ms: 60_000,
                durability: Durability::Replica,
                standby: Some(Standby {
                    primary: "server-0".to_owned(),
                    server: "server-1".to_owned(),
                    addresses: vec!["tcp:127.0.0.1:9".to_owned()],
                    lane: 3,
                }),
                matrices: Vec::new(),
                owned_partitions: Vec::new(),
                home: false,
                modules: Vec::new(),
            }),
        ),
    ]
}

fn hello_with(role: Role) -> Message {
    Message::Hello(Hello { request: 1, token: b"secret".to_vec(), role, lane: 1 })
}

fn listed() -> KeyList {
    KeyList::Listed(KEYS.to_vec())
}

fn pull() -> Pull {
    Pull {
        request: 21,
        job: 2,
        task: 3,
        clock: 4,
        wait_ms: 500,
        matrix: 1,
        table: 6,
        runs: RUNS.to_vec(),
        keys: listed(),
        wire: WireType::F32,
    }
}

fn push(values: impl Into<WireValues>) -> Message {
    Message::Push(Push {
        request: 0,
        job: 2,
        task: 3,
        clock: 4,
        index: 8,
        matrix: 1,
        table: 0,
        runs: RUNS.to_vec(),
        keys: listed(),
        values: values.into(),
    })
}

fn pulled(values: impl Into<WireValues>) -> Message {
    Message::Pulled(Pulled {
        request: 21,
        minimum: 10,
        deferred_ns: 11,
        applied: APPLIED,
        values: values.into(),
    })
}

fn bulk() -> Vec<(&'static str, Message)> {
    let known = KeyList::Cached { digest: KeyList::digest(&RUNS, &KEYS), count: 3 };
    let range = KeyList::Range { start: 100, end: 103 };
    vec![
        ("pull_listed", Message::Pull(pull())),
        ("pull_range", Message::Pull(Pull { keys: range, ..pull() })),
        ("pull_known", Message::Pull(Pull { keys: known, ..pull() })),
        ("pulled_f32", pulled(OwnedValues::F32(FLOATS.to_vec()))),
        ("pulled_f64", pulled(OwnedValues::F64(vec![0.1]))),
        ("pulled_i64", pulled(OwnedValues::I64(vec![-3]))),
        ("pulled_i32", pulled(OwnedValues::I32(vec![-3, 7, 1]))),
        ("pulled_u32", pulled(OwnedValues::U32(vec![3]))),
        ("push", push(OwnedValues::F32(FLOATS.to_vec()))),
    ]
}

/// Samples whose values differ from their rounded values.
fn rounded() -> Vec<(&'static str, Message)> {
    let rounded = |wire| WireValues::encode(OwnedValues::F32(vec![1.1, -0.3, 0.007]), wire);
    // One value more than fits into a block.
    let long = (0..=int8::BLOCK).map(|i| i as f32 * 0.1 - 10.0).collect();
    vec![
        ("pull_bf16", Message::Pull(Pull { wire: WireType::Bf16, ..pull() })),
        ("pull_int8", Message::Pull(Pull { wire: WireType::Int8, ..pull() })),
        ("pulled_bf16", pulled(rounded(WireType::Bf16))),
        ("pulled_int8", pulled(WireValues::encode(OwnedValues::F32(long), WireType::Int8))),
        ("push_bf16", push(rounded(WireType::Bf16))),
        ("push_int8", push(rounded(WireType::Int8))),
    ]
}

/// Samples of counts that are shorter when they are packed.
fn packed() -> Vec<(&'static str, Message)> {
    let counts = |values: &[i32]| WireValues::encode(OwnedValues::I32(values.to_vec()), WireType::Packed);
    vec![
        ("pull_packed", Message::Pull(Pull { wire: WireType::Packed, ..pull() })),
        ("pulled_packed", pulled(counts(&[0, 1, 0, 0, 300, 2, 0, 0]))),
        ("push_packed", push(counts(&[0, -1, 0, 0, -300, 2, 0, 0]))),
    ]
}

fn clocks() -> Vec<(&'static str, Message)> {
    vec![
        ("tick", Message::Tick(Tick { request: 0, job: 2, task: 3, clock: 5 })),
        ("leave", Message::Leave(Leave { request: 22, job: 2, task: 3 })),
        ("join", Message::Join(Join { request: 23, job: 2, task: 4, generation: 0 })),
        ("join_behind_barriers", Message::Join(Join { request: 23, job: 2, task: 4, generation: 3 })),
        ("joined", Message::Joined(Joined { request: 23, clock: 10, generation: 0 })),
        ("joined_behind_barriers", Message::Joined(Joined { request: 23, clock: 10, generation: 3 })),
        ("barrier", Message::Barrier(barrier(Some(vec![1.0, 2.0])))),
        ("barrier_without_part", Message::Barrier(barrier(None))),
        ("released", Message::Released(Released { request: 24, clock: 5, deferred_ns: 6, sum: vec![3.0] })),
    ]
}

fn rows() -> Vec<(&'static str, Message)> {
    let floats = OwnedValues::F32(FLOATS.to_vec());
    let scan = ScanRows { request: 29, job: 2, matrix: 1, snapshot: 1, block: 77, only_changed: false };
    vec![
        ("export", Message::Export(Export { request: 25, job: 2, matrix: 1, from: 1000, skip: 0 })),
        (
            "export_page",
            Message::ExportPage(ExportPage {
                request: 25,
                row_count: 1003,
                nonzero_count: 1001,
                next: Some(77),
                next_skip: 0,
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
                row_count: 0,
                with_slots: false,
                keys: KEYS.to_vec(),
                values: floats.clone(),
            }),
        ),
        (
            "import_with_row_count",
            Message::Import(Import {
                request: 26,
                job: 2,
                matrix: 1,
                first: true,
                row_count: 1003,
                with_slots: false,
                keys: KEYS.to_vec(),
                values: floats,
            }),
        ),
        (
            "keep_rows",
            Message::KeepRows(KeepRows { request: 27, job: 2, snapshot: 0, records_changes: false }),
        ),
        (
            "keep_rows_with_changes",
            Message::KeepRows(KeepRows { request: 27, job: 2, snapshot: 1, records_changes: true }),
        ),
        ("restore_rows", Message::RestoreRows(RestoreRows { request: 28, job: 2, snapshot: 0 })),
        ("drop_rows", Message::DropRows(DropRows { request: 29, job: 2, snapshot: 1 })),
        ("scan_rows", Message::ScanRows(scan)),
        ("scan_changed_rows", Message::ScanRows(ScanRows { block: 7, only_changed: true, ..scan })),
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
                pull_function_count: 9,
                push_function_count: 10,
                duplicate_count: 3,
                held_count: 4,
                waits: (5, 6),
                tasks: vec![TaskStats {
                    clock: 5,
                    state: TaskStatus::Live,
                    connected: true,
                    wait: Some(TaskWait { call: WaitKind::Pull, waited_ms: 9, waits_for: Some(1) }),
                }],
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

fn staged() -> Vec<(&'static str, Message)> {
    let push = PushStaged {
        request: 0,
        job: 2,
        token: 51,
        part: 52,
        attempt: 53,
        chunk: 1,
        matrix: 1,
        table: 0,
        runs: RUNS.to_vec(),
        keys: KeyList::Listed(KEYS.to_vec()),
        values: OwnedValues::F32(FLOATS.to_vec()),
    };
    let commit = Commit { request: 40, job: 2, matrix: 1, token: 51, part: 52, attempt: 53, chunks: 2 };
    let closed = CloseToken { request: 41, job: 2, matrix: 1, token: 51 };
    let requests = vec![
        Message::PushStaged(push.clone()),
        Message::Commit(commit),
        Message::RenewSession(RenewSession { request: 37, job: 2 }),
    ];
    vec![
        ("push_staged", Message::PushStaged(push)),
        ("commit", Message::Commit(commit)),
        ("committed", Message::Committed(Committed { request: 40, attempt: 53 })),
        ("close_token", Message::CloseToken(closed)),
        ("batch", Message::Batch(Batch { request: 42, messages: requests })),
        ("batch_of_nothing", Message::Batch(Batch { request: 43, messages: vec![] })),
    ]
}

fn axpy() -> FunctionCall {
    FunctionCall {
        name: "axpy".to_owned(),
        version: 2,
        from: vec![4, 2],
        into: vec![2],
        argument: 0.5f64.to_le_bytes().to_vec(),
    }
}

fn functions() -> Vec<(&'static str, Message)> {
    let dot = FunctionCall {
        name: "dot".to_owned(),
        version: 1,
        from: vec![4, 2],
        into: Vec::new(),
        argument: Vec::new(),
    };
    let part = |partition, bytes: &[u8]| PartialAnswer { partition, bytes: bytes.to_vec() };
    vec![
        (
            "pull_function",
            Message::PullFunction(PullFunction {
                request: 44,
                job: 2,
                task: 3,
                clock: 4,
                matrix: 1,
                wait_ms: 500,
                call: dot.clone(),
            }),
        ),
        (
            "pulled_function",
            Message::PulledFunction(PulledFunction {
                request: 44,
                minimum: 10,
                deferred_ns: 11,
                applied: APPLIED,
                parts: vec![part(3, &[1, 2, 3]), part(5, &[])],
            }),
        ),
        (
            "push_function",
            Message::PushFunction(PushFunction {
                request: 45,
                job: 2,
                task: 3,
                clock: 4,
                index: 8,
                matrix: 1,
                calls: vec![axpy(), FunctionCall { into: vec![4], ..dot }],
            }),
        ),
    ]
}

fn tried_and_committed() -> Vec<(&'static str, Message)> {
    vec![
        (
            "try_function",
            Message::TryFunction(TryFunction {
                request: 46,
                job: 2,
                task: 3,
                clock: 4,
                index: 9,
                matrix: 1,
                wait_ms: 700,
                calls: vec![axpy()],
            }),
        ),
        (
            "commit_function",
            Message::CommitFunction(CommitFunction {
                request: 47,
                job: 2,
                matrix: 1,
                token: 50,
                part: 51,
                attempt: 54,
                calls: vec![axpy()],
            }),
        ),
    ]
}

pub(crate) fn barrier(part: Option<Vec<f64>>) -> Barrier {
    Barrier { request: 24, job: 2, task: 3, clock: 5, wait_ms: 600, generation: 1, part }
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
