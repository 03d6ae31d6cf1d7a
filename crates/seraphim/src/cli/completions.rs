//! `seraphim completions bash|zsh|fish`.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use engine::{Error, Exit};

use super::print_text;

pub(super) fn command() -> Command {
    let shell =
        Arg::new("shell").required(true).value_parser(PossibleValuesParser::new(["bash", "zsh", "fish"]));
    Command::new("completions").about("Print the completion script of a shell").arg(shell)
}

pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Error> {
    let shell = match matches.get_one::<String>("shell").map(String::as_str) {
        Some("zsh") => Shell::Zsh,
        Some("fish") => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut super::command(), "seraphim", &mut text);
    print_text(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
