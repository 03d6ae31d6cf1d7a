//! The `seraphim` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    seraphim::cli::run()
}
