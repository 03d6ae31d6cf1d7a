//! `seraphim generate ctr --rows N --dimensions D ... --output DIR`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::interrupt::Interrupt;
use engine::{Error, Exit, store};

use super::{print_json, print_text};
use crate::generate::{CtrConfig, Format, generate};
use crate::progress::decimal;

/// Minimum number of features per slot: the ranges of ids start at this size.
const DIMENSIONS_A_SLOT: u64 = 4;

pub(super) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .default_value(default)
            .help(help)
            .allow_hyphen_values(true)
    };
    let ctr = Command::new("ctr")
        .about("Sparse click data: power-law features, a known true model and its best AUC")
        .arg(option("rows", "N", "1000000", "Number of training records"))
        .arg(option("test-rows", "N", "100000", "Number of test records"))
        .arg(option("dimensions", "D", "10000000", "Number of possible features"))
        .arg(option("nonzeros", "K", "40", "Number of features per record"))
        .arg(option("zipf", "X", "1.1", "Exponent of the power law, above 0 and not 1"))
        .arg(option("sigma", "X", "0.22", "Deviation of the true weights"))
        .arg(option("bias", "X", "-1.5", "True intercept"))
        .arg(option("seed", "N", "1", "Seed"))
        .arg(Arg::new("output").long("output").value_name("DIR").required(true).help("Folder for the files"))
        .arg(
            Arg::new("format")
                .long("format")
                .help("Format of the files; may be repeated; feature ids are 1-based in libsvm, 0-based in Parquet")
                .default_value("libsvm")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(["libsvm", "parquet"])),
        )
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace the files of an earlier `generate`"),
        )
        .arg(Arg::new("threads").long("threads").value_name("N").help("Number of threads [default: all cores]"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON"));
    Command::new("generate")
        .about("Generate deterministic synthetic data")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(ctr)
}

pub(super) fn run(matches: &ArgMatches, interrupt: &Interrupt) -> Result<Exit, Error> {
    let (_, matches) = matches.subcommand().expect("clap asks for a subcommand");
    let config = config(matches)?;
    let formats: Vec<Format> = matches
        .get_many::<String>("format")
        .into_iter()
        .flatten()
        .map(|name| if name == "parquet" { Format::Parquet } else { Format::Libsvm })
        .collect();
    let folder: PathBuf = matches.get_one::<String>("output").expect("clap asks for it").into();
    if let Some(address) = store::address(&folder) {
        let what = format!("--output {address}: generated data are written to a folder of this machine");
        return Err(Error::request(what, "name a folder, and copy it"));
    }
    let any = |_: &u64| true;
    let rows = number(matches, "rows", "a whole number", any)?;
    let test_rows = number(matches, "test-rows", "a whole number", any)?;
    let threads = match matches.get_one::<String>("threads") {
        None => engine::machine::core_count(),
        Some(_) => number(matches, "threads", "a whole number from 1 to 1024", |n| (1..=1024).contains(n))?,
    };
    let overwrite = matches.get_flag("overwrite");
    let generated = generate(config, rows, test_rows, &formats, &folder, threads, overwrite, interrupt)?;
    if matches.get_flag("json") {
        print_json(&generated)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for file in &generated.files {
        text += &format!("wrote {}\n", file.display());
    }
    for (name, bayes) in [("train", generated.train_bayes), ("test", generated.test_bayes)] {
        if let Some(b) = bayes {
            text += &format!(
                "{name}: {:.2} % positive; the true model has AUC {}, log loss {}\n",
                b.positives * 100.0,
                decimal(b.auc, 5),
                decimal(b.log_loss, 5)
            );
        }
    }
    print_text(&text)?;
    Ok(Exit::Done)
}

fn config(matches: &ArgMatches) -> Result<CtrConfig, Error> {
    let nonzeros: usize =
        number(matches, "nonzeros", "a whole number from 1 to 10000", |n| (1..=10_000).contains(n))?;
    let least = nonzeros as u64 * DIMENSIONS_A_SLOT;
    let expected = format!("a whole number from {least} (4 times --nonzeros) to 2^53");
    Ok(CtrConfig {
        dimensions: number(matches, "dimensions", &expected, |n| (least..=1 << 53).contains(n))?,
        nonzeros,
        zipf: number(matches, "zipf", "a number above 0, not 1, up to 10", |&x| {
            x > 0.0 && x != 1.0 && x <= 10.0
        })?,
        sigma: number(matches, "sigma", "a number from 0 to 100", |x| (0.0..=100.0).contains(x))?,
        bias: number(matches, "bias", "a number from -100 to 100", |x| (-100.0..=100.0).contains(x))?,
        seed: number(matches, "seed", "a whole number below 2^24", |n| *n < 1 << 24)?,
    })
}

fn number<T: FromStr>(
    matches: &ArgMatches,
    name: &str,
    expected: &str,
    allowed: impl Fn(&T) -> bool,
) -> Result<T, Error> {
    let text = matches.get_one::<String>(name).expect("it has a default");
    let parsed = text.parse().ok().filter(allowed);
    parsed.ok_or_else(|| Error::bad_value(format!("--{name}"), text.clone(), expected))
}
