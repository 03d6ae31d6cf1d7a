//! The services `grpc.reflection.v1` and its predecessor `v1alpha`: tools without the gRPC definitions can read them
//! from the port.

use tonic_reflection::pb;
use tonic_reflection::server::Builder;
use tonic_reflection::server::{v1, v1alpha};

pub(crate) use pb::v1::server_reflection_server::SERVICE_NAME as V1;
pub(crate) use pb::v1alpha::server_reflection_server::SERVICE_NAME as V1ALPHA;

/// The compiled definitions of `proto/` with their comments, written by `build.rs`.
const DESCRIPTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.bin"));
/// Why building the service does not fail.
const MADE: &str = "a compiler has written the descriptions";

/// The reflection service for these services.
pub(crate) fn of_v1(services: &[&str]) -> v1::ServerReflectionServer<impl v1::ServerReflection> {
    describe(services).build_v1().expect(MADE)
}

/// The same service for tools that use the older protocol.
pub(crate) fn of_v1alpha(
    services: &[&str],
) -> v1alpha::ServerReflectionServer<impl v1alpha::ServerReflection> {
    describe(services).build_v1alpha().expect(MADE)
}

fn describe(services: &[&str]) -> Builder<'static> {
    let known = Builder::configure()
        .include_reflection_service(false)
        .register_encoded_file_descriptor_set(DESCRIPTIONS)
        .register_encoded_file_descriptor_set(pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(pb::v1alpha::FILE_DESCRIPTOR_SET);
    services.iter().fold(known, |known, name| known.with_service_name(*name))
}
