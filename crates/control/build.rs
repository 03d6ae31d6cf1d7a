//! Makes the types and services of `proto/`. The compiler of the descriptions is a Rust crate: no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FILES: [&str; 2] = ["proto/seraphim/v1/jobs.proto", "proto/grpc/health/v1/health.proto"];
    println!("cargo:rerun-if-changed=proto");
    let descriptions = protox::compile(FILES, ["proto"])?;
    tonic_prost_build::configure().build_transport(false).compile_fds(descriptions)?;
    Ok(())
}
