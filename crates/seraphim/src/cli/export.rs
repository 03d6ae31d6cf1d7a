//! `seraphim export out/ --output weights.csv`: writes a table of a model.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Environment, print_text};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::export::{ExportJob, export};

pub(super) fn command() -> Command {
    Command::new("export")
        .about("Write the weights, centres or factors of a model as a table: CSV or Parquet")
        .arg(Arg::new("model").value_name("MODEL").required(true).help("The model directory"))
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("NAME")
                .help("A matrix of the model (see `seraphim inspect`), or coefficients: the weights of a linear model for values as they are in the data [default: the first matrix]"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .default_value("-")
                .help("The table: a file that ends with .parquet, any other file for CSV, or - for CSV on standard output"),
        )
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace the table of an earlier export"),
        )
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let job = ExportJob {
        model: PathBuf::from(text("model").expect("clap asks for it")),
        table: text("table"),
        output: PathBuf::from(text("output").expect("it has a default")),
        overwrite: matches.get_flag("overwrite"),
    };
    let summary = export(&job, environment.families, environment.interrupt)?;
    if job.output.as_os_str() != "-" {
        let others: Vec<&str> =
            summary.tables.iter().map(String::as_str).filter(|name| *name != summary.table).collect();
        let others = match &others[..] {
            [] => String::new(),
            others => format!("; --table writes {} instead", others.join(" or ")),
        };
        print_text(&format!(
            "{} of {} written to {} ({}){others}\n",
            cluster::amounts::counted(summary.rows, "row"),
            summary.table,
            job.output.display(),
            summary.columns.join(", "),
        ))?;
    }
    Ok(Exit::Done)
}
