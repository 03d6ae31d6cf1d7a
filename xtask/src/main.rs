//! Project automation: `cargo xtask ci`, `tidy`, `docs`, `bits`, `fuzz`, `simulate`, `jvm`, `python`, `wheel`, `spark`, `yarn`, `kill`, `mutants`.
//!
//! Rules of the project are steps here; a rule that no step checks does not hold for long.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks on its streams")]

mod bits;
mod ci;
mod command;
mod docs;
mod fuzz;
mod hadoop;
mod jvm;
mod kill;
mod kubernetes;
mod manifests;
mod metadata;
mod mutants;
mod python;
mod simulate;
mod skipped;
mod spark;
mod stores;
mod tidy;
mod tree;
mod wheel;
mod yarn;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [--slow] [--no-skips]          every check, in order; stops at the first that fails. With --no-skips a test that
                                    something is missing for (data, a target of the compiler) is a failure
  tidy                              crate arrows, licences, sources, file and function lengths, words, links
  docs                              checks the pages made from the code, and runs the code blocks of the pages that are
                                    marked `run`
  docs --bless                      writes the pages made from the code
  examples                          runs the examples, some on servers of which one is killed
  fuzz [--seconds N] [TARGET ...]   fuzzes each target for N seconds (default 5), from its kept corpus
  simulate [--seeds N] [--start S]  runs the simulation of all members over N seeds (default 1000) from S (default 0) on
  jvm                               builds jvm/ with Maven and runs its tests, where there are Java and Maven
  python                            builds the package for PySpark with these jars and runs its tests, where there are Java and pip
  wheel                             builds the Python package, installs it into an empty environment and runs its tests there
  spark                             runs a program of PySpark with this package on clusters of Spark and on YARN, which it
                                    starts (after `python`)
  kill [--rounds N] [--seed S]      trains N times (default 10) with processes that are killed at random moments, and
                                    compares with undisturbed trainings
  yarn                              runs a job on YARN, which it starts, and kills a container of each role (needs Java and
                                    Maven, and `cargo xtask jvm` before)
  manifests [--bless]               checks the chart and the objects of Kubernetes without a cluster, or writes those of the
                                    chart anew (needs Python)
  kubernetes                        runs jobs on a cluster of two nodes, which it starts, and takes pods and a node away
                                    (needs root, Go, containerd and the folder of SERAPHIM_KUBERNETES_KIT)
  stores                            tests data, models and checkpoints in S3 and HDFS, which it starts (needs Python, Java and
                                    Maven)
  bits                              runs the tests of the elementary functions on the instructions of other machines (needs QEMU)
  mutants [CRATE ...] [--sample N] [--seed S] [--in-place]
                                    puts N faults (default 20, drawn by S) into each crate, one at a time, and looks
                                    whether its tests notice
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let root = tree::root();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci", rest @ ..] => ci::run(&root, ci::CiOptions::parse(rest)?),
        ["tidy"] => tidy::run(&root),
        ["docs"] => docs::run(&root, docs::PageMode::Check),
        ["docs", "--bless"] => docs::run(&root, docs::PageMode::Bless),
        ["examples"] => ci::build_and_run_examples(&root),
        ["fuzz", rest @ ..] => fuzz::run(&root, &fuzz::FuzzOptions::parse(rest)?),
        ["simulate", rest @ ..] => simulate::run(&root, &simulate::SimulateOptions::parse(rest)?),
        ["jvm"] => jvm::build_and_run(&root),
        ["python"] => python::run(&root),
        ["wheel"] => wheel::run(&root),
        ["spark"] => spark::run(&root),
        ["kill", rest @ ..] => kill::run(&root, &kill::KillOptions::parse(rest)?),
        ["yarn"] => yarn::run(&root),
        ["manifests"] => manifests::run(&root, false),
        ["manifests", "--bless"] => manifests::run(&root, true),
        ["kubernetes"] => kubernetes::run(&root),
        ["stores"] => stores::run(&root),
        ["bits"] => bits::run(&root),
        ["mutants", rest @ ..] => mutants::run(&root, &mutants::MutantsOptions::parse(rest)?),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => bail!("unknown command {arguments:?}\n\n{USAGE}"),
    }
}
