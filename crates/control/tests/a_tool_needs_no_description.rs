//! Tools without the gRPC definitions find by reflection which calls a port has and what a call takes. The tests make
//! the calls of such a tool, at the port of a master and of a member.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{Served, TestAction};
use prost::Message as _;
use rpc::limits::Limits;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

const AUTHORIZED: (&str, &str) = ("authorization", "Bearer secret");
/// Both versions of the service take the same bytes.
const VERSIONS: [&str; 2] = ["grpc.reflection.v1", "grpc.reflection.v1alpha"];
/// The flag and the length before each message.
const HEAD_BYTES: usize = 5;
const NOT_FOUND: u32 = 5;
const UNAUTHENTICATED: u32 = 16;

fn framed(question: MessageRequest) -> Vec<u8> {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let message = request.encode_to_vec();
    let mut bytes = vec![0];
    bytes.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    bytes.extend(message);
    bytes
}

fn ask(served: &Served, version: &str, question: MessageRequest) -> MessageResponse {
    let path = format!("/{version}.ServerReflection/ServerReflectionInfo");
    let (code, text, bytes) = served.answer(&path, &[AUTHORIZED], framed(question));
    assert_eq!(code, 0, "{text}");
    ServerReflectionResponse::decode(&bytes[HEAD_BYTES..]).unwrap().message_response.unwrap()
}

fn services(served: &Served, version: &str) -> Vec<String> {
    match ask(served, version, MessageRequest::ListServices("*".into())) {
        MessageResponse::ListServicesResponse(list) => list.service.into_iter().map(|one| one.name).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn services_are_listed_where_they_are() {
    let master = Served::master(Limits::default(), |_| TestAction::Defer);
    let member = Served::member();
    for version in VERSIONS {
        let everywhere = [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ];
        assert_eq!(services(&master, version), [&["seraphim.v1.Jobs"], &everywhere[..]].concat());
        assert_eq!(services(&member, version), everywhere);
    }
}

#[test]
fn every_service_that_is_listed_is_described() {
    let master = Served::master(Limits::default(), |_| TestAction::Defer);
    for version in VERSIONS {
        for service in services(&master, version) {
            let question = MessageRequest::FileContainingSymbol(service.clone());
            let MessageResponse::FileDescriptorResponse(found) = ask(&master, version, question) else {
                panic!("{service}");
            };
            let file = String::from_utf8_lossy(&found.file_descriptor_proto[0]).into_owned();
            assert!(file.contains(service.rsplit('.').next().unwrap()), "{service}: {file}");
        }
    }
    let question = MessageRequest::FileContainingSymbol("seraphim.v1.Jobs.Watch".into());
    let MessageResponse::FileDescriptorResponse(found) = ask(&master, VERSIONS[0], question) else {
        panic!()
    };
    let file = String::from_utf8_lossy(&found.file_descriptor_proto[0]).into_owned();
    for word in ["WatchRequest", "JobStatus", "progress_json"] {
        assert!(file.contains(word), "{word} is told of {file}");
    }
    assert!(file.contains("Who reads slowly misses what lies between"), "with the comments: {file}");
}

#[test]
fn reflection_asks_for_the_token_and_says_what_it_does_not_know() {
    let master = Served::master(Limits::default(), |_| TestAction::Defer);
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let list = framed(MessageRequest::ListServices("*".into()));
    assert_eq!(master.call(path, &[], list).0, UNAUTHENTICATED);
    let unknown = framed(MessageRequest::FileContainingSymbol("seraphim.v1.Nothing".into()));
    let (code, text) = master.call(path, &[AUTHORIZED], unknown);
    assert_eq!(code, NOT_FOUND, "{text}");
    assert!(text.contains("seraphim.v1.Nothing"), "{text}");
}
