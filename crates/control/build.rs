//! Generates the types and services of `proto/`, and writes the compiled definitions for the reflection service. The
//! compiler of the definitions is a Rust crate: no `protoc` is needed.

use std::path::PathBuf;

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FILES: [&str; 2] = ["proto/seraphim/v1/jobs.proto", "proto/grpc/health/v1/health.proto"];
    println!("cargo:rerun-if-changed=proto");
    let descriptions = protox::compile(FILES, ["proto"])?;
    let out: PathBuf = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?.into();
    std::fs::write(out.join("descriptions.bin"), descriptions.encode_to_vec())?;
    tonic_prost_build::configure().build_transport(false).compile_fds(descriptions)?;
    Ok(())
}
