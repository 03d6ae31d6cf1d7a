//! `seraphim algorithms [lr]`: the table of algorithms, or all parameters of one algorithm. With `--set` it checks the
//! given parameters, as `train` does before it reads data.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::algo::{AlgorithmRow, Families, ParamSpec};
use engine::{Error, Exit};

use super::{print_json, print_text};

pub(super) fn command() -> Command {
    let switch = |name, help| Arg::new(name).long(name).help(help).action(ArgAction::SetTrue);
    Command::new("algorithms")
        .about("List the algorithms, or every parameter of one")
        .arg(Arg::new("name").value_name("ALGORITHM"))
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("NAME=VALUE")
                .help("Check a parameter of the algorithm; may be repeated")
                .action(ArgAction::Append)
                .requires("name"),
        )
        .arg(switch("json", "Print the result as JSON"))
        .arg(switch("markdown", "Print the tables as Markdown, as docs/parameters.md has them"))
}

pub(super) fn run(matches: &ArgMatches, families: &Families) -> Result<Exit, Error> {
    let chosen = matches.get_one::<String>("name").map(|name| families.algorithm(name)).transpose()?;
    if let (Some(row), Some(pairs)) = (chosen, matches.get_many::<String>("set")) {
        (row.configure)(&settings(pairs)?.into_iter().collect())?;
    }
    if matches.get_flag("json") {
        match chosen {
            Some(row) => print_json(&engine::algorithms::row_as_json(row))?,
            None => print_json(&engine::algorithms::as_json(families))?,
        }
    } else if matches.get_flag("markdown") {
        let rows = chosen.map_or_else(|| families.algorithms().collect(), |row| vec![row]);
        print_text(&rows.into_iter().map(markdown).collect::<Vec<_>>().join("\n"))?;
    } else {
        print_text(&chosen.map_or_else(|| table(families), parameters))?;
    }
    Ok(Exit::Done)
}

fn settings<'a>(pairs: impl Iterator<Item = &'a String>) -> Result<BTreeMap<String, String>, Error> {
    pairs
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| Error::request(format!("--set {pair} has no value"), "write NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

fn table(families: &Families) -> String {
    let rows = families.algorithms().map(|row| format!("{:<10} {}\n", row.name, row.title));
    rows.collect::<String>()
        + "\n`seraphim algorithms NAME` lists the parameters of one; give them as --set name=value.\n"
}

fn parameters(row: &AlgorithmRow) -> String {
    let mut text = format!("{}: {}\n", row.name, row.title);
    for p in row.parameters {
        text += &format!(
            "\n  {} = {}{}\n      {}\n      {}\n",
            p.name,
            shown(p),
            unit(p),
            p.kind.describe(),
            row.help_text(p)
        );
    }
    text
}

fn shown(p: &ParamSpec) -> &str {
    if p.default.is_empty() { "(none)" } else { p.default }
}

fn unit(p: &ParamSpec) -> String {
    if p.unit.is_empty() { String::new() } else { format!(" {}", p.unit) }
}

fn markdown(row: &AlgorithmRow) -> String {
    let mut text = format!(
        "## {}\n{}\n\n| name | type and range | default | unit | meaning |\n|---|---|---|---|---|\n",
        row.name, row.title
    );
    let cell = |text: &str| text.replace('|', "\\|");
    for p in row.parameters {
        text += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            p.name,
            cell(&p.kind.describe()),
            cell(shown(p)),
            cell(p.unit),
            cell(&row.help_text(p))
        );
    }
    text
}
