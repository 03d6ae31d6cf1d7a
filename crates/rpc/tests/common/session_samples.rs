//! The messages of sessions.

use matrix::{Consistency, MatrixSpec};
use rpc::Message;
use rpc::message::{
    AddMatrix, AskMap, CheckpointSession, CloseSession, CreateMatrix, DropMatrix, Durability, Hello,
    OpenSession, RenewSession, Role, SessionLane, SessionMap, SessionMatrix, Standby,
};

use super::spec;

fn open_session(durability: Durability, checkpoint: &str) -> Message {
    Message::OpenSession(OpenSession {
        request: 33,
        name: "fit".to_owned(),
        lease_ms: 60_000,
        servers: 2,
        durability,
        checkpoint: checkpoint.to_owned(),
    })
}

pub(crate) fn parameters() -> Vec<(&'static str, Message)> {
    let spec = MatrixSpec { consistency: Consistency::Asp, ..spec() };
    let lane = SessionLane { addresses: vec!["tcp:127.0.0.1:9".to_owned()], lane: 1, standby: None };
    let addresses = vec!["tcp:127.0.0.1:8".to_owned()];
    let standby =
        Standby { primary: "server-0".to_owned(), server: "server-1".to_owned(), addresses, lane: 3 };
    let replicated = vec![SessionLane { standby: Some(standby), ..lane.clone() }];
    let lanes = vec![lane];
    let matrices = vec![SessionMatrix { matrix: 1, spec: spec.clone(), owners: vec![0; 4] }];
    let hello = Hello { request: 1, token: vec![], role: Role::Session { job: 2 }, lane: 1 };
    vec![
        ("hello_session", Message::Hello(hello)),
        ("open_session", open_session(Durability::Checkpoint, "")),
        ("open_session_with_replicas", open_session(Durability::Replica, "")),
        ("open_session_from_a_checkpoint", open_session(Durability::Checkpoint, "model-1")),
        (
            "session_map",
            Message::SessionMap(SessionMap { request: 33, job: 2, lease_ms: 60_000, lanes, matrices }),
        ),
        (
            "session_map_with_replicas",
            Message::SessionMap(SessionMap {
                request: 33,
                job: 2,
                lease_ms: 60_000,
                lanes: replicated,
                matrices: Vec::new(),
            }),
        ),
        (
            "create_matrix",
            Message::CreateMatrix(CreateMatrix { request: 34, job: 2, spec: Box::new(spec.clone()) }),
        ),
        ("drop_matrix", Message::DropMatrix(DropMatrix { request: 35, job: 2, matrix: 1 })),
        ("ask_map", Message::AskMap(AskMap { request: 36, job: 2 })),
        ("renew_session", Message::RenewSession(RenewSession { request: 37, job: 2 })),
        ("close_session", Message::CloseSession(CloseSession { request: 38, job: 2 })),
        (
            "checkpoint_session",
            Message::CheckpointSession(CheckpointSession { request: 43, job: 2, name: "model-1".into() }),
        ),
        (
            "add_matrix",
            Message::AddMatrix(AddMatrix {
                request: 39,
                job: 2,
                matrix: 1,
                spec: Box::new(spec),
                owned_partitions: vec![0, 3],
            }),
        ),
    ]
}
