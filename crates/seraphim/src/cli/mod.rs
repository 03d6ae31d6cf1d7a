//! The command line: one file per subcommand. Only this module prints results.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is where results and errors are printed")]

mod algorithms;
mod apply;
mod cancel;
mod checkpoint;
mod checkpoints;
mod cluster_args;
mod completions;
mod evaluate;
mod export;
mod flags;
mod functions;
mod generate;
mod import;
mod inspect;
mod kubernetes;
mod master;
mod predict;
mod recommend;
mod reproduce;
mod serve_parameters;
mod server;
mod status;
mod submit;
mod supervised;
mod supervisors;
mod train;
mod worker;
mod yarn;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use engine::algo::Algorithm;
use engine::interrupt::Interrupt;
use engine::job::exit::TABLE;
use engine::program::{Program, THIS_PROGRAM};
use engine::{Environment, Error, Exit, Tables, machine};

/// Runs the program on the arguments of the process.
pub fn run() -> ExitCode {
    run_with(&Tables::default())
}

/// Like [`run`], with a further algorithm.
///
/// # Panics
/// If an algorithm of this name exists already.
pub fn run_algorithm<A: Algorithm>() -> ExitCode {
    run_with(&Tables::default().with_family(&A::FAMILY).expect("the name is free"))
}

/// Like [`run`], with tables that have further rows.
pub fn run_with(tables: &Tables) -> ExitCode {
    run_arguments(std::env::args_os(), tables, &THIS_PROGRAM).into()
}

/// Like [`run_with`], on these arguments, the name of the program first. Servers and workers that it starts are processes of
/// `program`.
pub fn run_arguments(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    tables: &Tables,
    program: &Program,
) -> Exit {
    let Tables { formats, families, functions } = tables;
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are not errors. A failed print is ignored, since the terminal may be closed.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    machine::raise_file_limit();
    let interrupt = Interrupt::install();
    match dispatch(&matches, Environment { formats, families, functions, interrupt: &interrupt, program }) {
        Ok(exit) => exit,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            print_error(&error);
            error.exit()
        }
    }
}

/// Returns the definition of the whole command line.
fn command() -> Command {
    let codes: Vec<String> =
        TABLE.iter().map(|(exit, meaning)| format!("  {:3}  {meaning}", *exit as u8)).collect();
    Command::new("seraphim")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Trains, evaluates and predicts with models too large or too hot for one machine")
        .after_help(format!("Exit codes:\n{}", codes.join("\n")))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(train::command())
        .subcommand(predict::command())
        .subcommand(evaluate::command())
        .subcommand(recommend::command())
        .subcommand(reproduce::command())
        .subcommand(inspect::command())
        .subcommand(export::command())
        .subcommand(import::command())
        .subcommand(checkpoints::command())
        .subcommand(algorithms::command())
        .subcommand(functions::command())
        .subcommand(apply::command())
        .subcommand(generate::command())
        .subcommand(master::command())
        .subcommand(server::command())
        .subcommand(worker::command())
        .subcommand(serve_parameters::command())
        .subcommand(submit::command())
        .subcommand(status::command())
        .subcommand(cancel::command())
        .subcommand(checkpoint::command())
        .subcommand(completions::command())
}

fn dispatch(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    match matches.subcommand() {
        Some(("train", matches)) => train::run(matches, environment),
        Some(("predict", matches)) => predict::run(matches, environment),
        Some(("evaluate", matches)) => evaluate::run(matches, environment),
        Some(("recommend", matches)) => recommend::run(matches, environment),
        Some(("reproduce", matches)) => reproduce::run(matches, environment),
        Some(("inspect", matches)) => inspect::run(matches, environment.families),
        Some(("export", matches)) => export::run(matches, environment),
        Some(("import", matches)) => import::run(matches, environment),
        Some(("checkpoints", matches)) => checkpoints::run(matches),
        Some(("algorithms", matches)) => algorithms::run(matches, environment.families),
        Some(("functions", matches)) => functions::run(matches, environment.functions),
        Some(("apply", matches)) => apply::run(matches, environment),
        Some(("generate", matches)) => generate::run(matches, environment.interrupt),
        Some(("master", matches)) => master::run(matches, environment),
        Some(("server", matches)) => server::run(matches, environment),
        Some(("worker", matches)) => worker::run(matches, environment),
        Some(("serve-parameters", matches)) => serve_parameters::run(matches, environment),
        Some(("submit", matches)) => submit::run(matches, environment),
        Some(("status", matches)) => status::run(matches),
        Some(("cancel", matches)) => cancel::run(matches),
        Some(("checkpoint", matches)) => checkpoint::run(matches, environment.interrupt),
        Some(("completions", matches)) => completions::run(matches),
        _ => unreachable!("clap knows the subcommands above only"),
    }
}

/// Prints `error: ...` with the chain of its sources.
fn print_error(error: &Error) {
    let mut text = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(cause) = below {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!("\n  because: {cause_text}");
        }
        below = cause.source();
    }
    eprintln!("error: {text}");
}

/// Prints a result as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).expect("strings, numbers and lists are always JSON");
    print_text(&(text + "\n"))
}

#[allow(clippy::print_stderr, reason = "progress goes to standard error")]
pub(super) fn print_notice(text: &str) {
    eprintln!("{text}");
}

/// Prints a result; a closed standard output is an error of the kind `Io`, not a panic.
fn print_text(text: &str) -> Result<(), Error> {
    use std::io::Write;
    std::io::stdout().write_all(text.as_bytes()).map_err(Error::io("write", "standard output"))
}
