//! `cargo xtask bits`: runs the tests of the elementary functions and of the losses on the instructions of other
//! machines, under QEMU in user mode. Each test compares the bits of its results with those that are written in it.

use std::path::Path;

use anyhow::Result;

use crate::command::{Cmd, is_available};

const X86: &str = "x86_64-unknown-linux-gnu";
const ARM: &str = "aarch64-unknown-linux-gnu";

/// What is emulated: the target, the program and its arguments. The first machine has neither AVX nor FMA.
const MACHINES: [(&str, &str, &str); 3] = [
    (X86, "qemu-x86_64-static", "-cpu Nehalem"),
    (X86, "qemu-x86_64-static", "-cpu Haswell"),
    (ARM, "qemu-aarch64-static", "-L /usr/aarch64-linux-gnu"),
];

/// Runs the tests on this machine and on each that can be emulated here.
pub(crate) fn run(root: &Path) -> Result<()> {
    tests(root).run()?;
    for (target, emulator, arguments) in MACHINES {
        let has_linker = target != ARM || is_available("aarch64-linux-gnu-gcc", &["--version"]);
        let is_missing = !is_available(emulator, &["--version"]) || !has_linker;
        if is_missing {
            println!("SKIPPED: {target} {arguments}: needs {emulator}, and for {ARM} aarch64-linux-gnu-gcc");
            continue;
        }
        let name = target.replace('-', "_").to_uppercase();
        let mut command = tests(root)
            .args(["--target", target])
            .env(&format!("CARGO_TARGET_{name}_RUNNER"), format!("{emulator} {arguments}"));
        if target == ARM {
            command = command
                .env(&format!("CARGO_TARGET_{name}_LINKER"), "aarch64-linux-gnu-gcc")
                .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc");
        }
        println!("on {target} with {arguments}");
        command.run()?;
    }
    Ok(())
}

fn tests(root: &Path) -> Cmd {
    Cmd::cargo(root, "test --release -p math -p algo --test elementary --test losses_have_the_same_bits")
}
