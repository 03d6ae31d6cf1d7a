//! `seraphim apply MODEL --function NAME`: applies a PS function to a table of a model.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::apply::{ApplyJob, ApplyResult, apply};
use engine::{Environment, Error, Exit};
use serde_json::Value;

use super::functions::{modules, modules_arg};
use super::{print_json, print_text};

pub(super) fn command() -> Command {
    let value = |name: &'static str, value_name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value_name).help(help)
    };
    let rows =
        |name, help| value(name, "ROWS", help).value_delimiter(',').value_parser(clap::value_parser!(u32));
    Command::new("apply")
        .about("Apply a PS function to a table of a model and print its result or write the changed model")
        .arg(Arg::new("model").value_name("MODEL").required(true).help("The model directory"))
        .arg(value("function", "NAME", "PS function to apply (see `seraphim functions`)").required(true))
        .arg(
            value(
                "argument",
                "JSON",
                "Argument of the function as JSON: a number, a string or a list [default: none]",
            )
            .allow_hyphen_values(true),
        )
        .arg(value(
            "table",
            "NAME",
            "The table of the model [default: its first one, as of `seraphim export`]",
        ))
        .arg(rows(
            "from",
            "Rows to read, separated by commas [default: each row in turn, for a function of one row]",
        ))
        .arg(rows("into", "Rows to write, separated by commas"))
        .arg(modules_arg())
        .arg(value("output", "MODEL", "Directory for the changed model"))
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace an existing model"),
        )
        .arg(
            value(
                "servers",
                "N",
                "Number of servers to start on this machine for it; 0: apply it in this process",
            )
            .default_value("0")
            .value_parser(clap::value_parser!(u32).range(0..=256)),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON"))
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let rows = |name: &str| matches.get_many::<u32>(name).map(|rows| rows.copied().collect::<Vec<u32>>());
    let argument = text("argument").map_or(Ok(Value::Null), |text| {
        serde_json::from_str(&text).map_err(|_| {
            Error::bad_value(
                "--argument",
                text,
                "JSON: a number as 0.5, a text in double quotes, a list in brackets",
            )
        })
    })?;
    let application = ApplyJob {
        model: PathBuf::from(text("model").expect("clap asks for it")),
        table: text("table"),
        function: text("function").expect("clap asks for it"),
        argument,
        from: rows("from"),
        into: rows("into"),
        output: text("output").map(PathBuf::from),
        overwrite: matches.get_flag("overwrite"),
        servers: matches.get_one::<u32>("servers").copied().unwrap_or(0),
        modules: modules(matches),
    };
    let applied = apply(&application, environment)?;
    if matches.get_flag("json") {
        print_json(&applied.to_json())?;
    } else {
        print_text(&summary(&application, &applied))?;
    }
    Ok(Exit::Done)
}

fn summary(application: &ApplyJob, applied: &ApplyResult) -> String {
    let mut text = String::new();
    if applied.columns_are_positions {
        text += &format!(
            "note: keys of table {:?} are too far apart for a row over all of them: column i is the i-th stored key\n",
            applied.table
        );
    }
    for (row, answer) in &applied.answers {
        let rows = row.as_ref().map_or(String::new(), |row| format!("row {row}: "));
        text += &format!("{rows}{answer}\n");
    }
    if let Some(output) = &application.output {
        let changed = applied.changed_count;
        text += &format!(
            "{} has changed {changed} of {} values of {}; the model is saved in {}\n",
            application.function,
            applied.value_count,
            applied.table,
            output.display()
        );
    }
    text
}
