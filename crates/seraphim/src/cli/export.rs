//! `seraphim export out/ --output weights.csv`: writes a table of a model.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::algo::TextFormat;
use engine::export::{ExportJob, TextJob, export, export_text};
use engine::{Error, Exit};

use super::{Environment, print_text};

pub(super) fn command() -> Command {
    Command::new("export")
        .about("Write the weights, centres or factors of a model as a table, or trees as a text")
        .arg(Arg::new("model").value_name("MODEL").required(true).help("The model directory"))
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("NAME")
                .help("A matrix of the model (see `seraphim inspect`), or coefficients: the weights of a linear model for values as they are in the data [default: the first matrix]"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("NAME")
                .value_parser(["table", "lightgbm", "text", "graphviz"])
                .default_value("table")
                .help("A table, or trees of gbdt: as the text model of LightGBM, as text for people, or as graphs for Graphviz; topics of lda: as text"),
        )
        .arg(
            Arg::new("tree")
                .long("tree")
                .value_name("N")
                .value_parser(clap::value_parser!(u64))
                .help("The tree to write with --format text or graphviz, from 0 [default: all]"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .default_value("-")
                .help("A file, or - for standard output; a table is Parquet if the name ends with .parquet, else CSV"),
        )
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace the file of an earlier export"),
        )
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    if let Some(format) = text_format(matches)? {
        let job = TextJob {
            model: PathBuf::from(text("model").expect("clap asks for it")),
            format,
            output: PathBuf::from(text("output").expect("it has a default")),
            overwrite: matches.get_flag("overwrite"),
        };
        export_text(&job, environment)?;
        if job.output.as_os_str() != "-" {
            print_text(&format!("written to {}\n", job.output.display()))?;
        }
        return Ok(Exit::Done);
    }
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
            engine::amounts::counted(summary.rows, "row"),
            summary.table,
            job.output.display(),
            summary.columns.join(", "),
        ))?;
    }
    Ok(Exit::Done)
}

/// The format of a whole model; none for a table.
fn text_format(matches: &ArgMatches) -> Result<Option<TextFormat>, Error> {
    let format = matches.get_one::<String>("format").map(String::as_str);
    let (tree, has_table) = (matches.get_one::<u64>("tree").copied(), matches.contains_id("table"));
    let refuse = |what: &str| Err(Error::request(what, "leave one of the two out"));
    match format {
        Some("text" | "graphviz" | "lightgbm") if has_table => refuse("--table is for --format table only"),
        Some("table" | "lightgbm") if tree.is_some() => {
            refuse("--tree is for --format text and graphviz only")
        }
        Some("lightgbm") => Ok(Some(TextFormat::LightGbm)),
        Some("text") => Ok(Some(TextFormat::Text { tree })),
        Some("graphviz") => Ok(Some(TextFormat::Graphviz { tree })),
        _ => Ok(None),
    }
}
