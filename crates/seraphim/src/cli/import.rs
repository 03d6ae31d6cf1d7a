//! `seraphim import lightgbm model.txt --model out/`: makes a model directory of another program's model.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::import::{ImportJob, import};
use engine::{Error, Exit};

use super::{Environment, print_text};
use crate::progress::counted;

pub(super) fn command() -> Command {
    Command::new("import")
        .about("Make a model of the text model of LightGBM (Booster.save_model)")
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .required(true)
                .value_parser(["lightgbm"])
                .help("The program that has written the file"),
        )
        .arg(Arg::new("file").value_name("FILE").required(true).help("The text model"))
        .arg(
            Arg::new("model")
                .long("model")
                .value_name("DIR")
                .required(true)
                .help("The model directory to write"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("NAME")
                .default_value("csv")
                .help("The format of the data to score: a table, whose columns have the names of the features, or libsvm, whose left out features are 0"),
        )
        .arg(
            Arg::new("label")
                .long("label")
                .value_name("COLUMN")
                .help("The label column of the data to score, by name or number from 0"),
        )
        .arg(
            Arg::new("classes")
                .long("classes")
                .value_name("NAMES")
                .value_delimiter(',')
                .help("The names of the classes in the label column, separated by commas, in the order of their numbers in the file"),
        )
        .arg(
            Arg::new("first-feature")
                .long("first-feature")
                .value_name("N")
                .value_parser(clap::value_parser!(u64).range(..=1 << 32))
                .help("The number of the first feature in data of libsvm: 1 if the model was trained on them without a column 0 [default: 0]"),
        )
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace an earlier model"),
        )
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let job = ImportJob {
        file: PathBuf::from(text("file").expect("clap asks for it")),
        model: PathBuf::from(text("model").expect("clap asks for it")),
        overwrite: matches.get_flag("overwrite"),
        format: text("format").expect("it has a default"),
        first_feature: matches.get_one::<u64>("first-feature").copied(),
        label: text("label"),
        classes: matches.get_many::<String>("classes").into_iter().flatten().cloned().collect(),
    };
    let summary = import(&job, environment)?;
    print_text(&format!(
        "{} over {} read from {}; model saved in {}\n",
        counted(summary.iterations, "iteration"),
        counted(summary.features as u64, "feature"),
        job.file.display(),
        job.model.display()
    ))?;
    Ok(Exit::Done)
}
