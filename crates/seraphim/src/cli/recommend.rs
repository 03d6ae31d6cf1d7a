//! `seraphim recommend out/ --users all --top 20 --output items.csv`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::job::input::scoring_input;
use engine::job::{Input, keys};
use engine::recommend::{RecommendJob, RecommendSummary, Subjects, recommend};
use engine::{Error, Exit, machine};

use super::flags::{key_flag, raw_job_of};
use super::{Environment, print_json, print_text};
use crate::progress::counted;

/// Keys of `train` that say how data are read.
const DATA_KEYS: [&str; 6] = ["format", "label", "rating", "header", "delimiter", "bad_lines"];

pub(super) fn command() -> Command {
    let file =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("FILE").help(help);
    let files = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILES").action(ArgAction::Append).num_args(1..).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let command = Command::new("recommend")
        .about("Find the best items for users, or items similar to others, and measure how good they are")
        .arg(Arg::new("model").value_name("MODEL").required(true).help("The model directory of a recommender"))
        .arg(file("users", "A file with the name of a user per line, or all [default: all, or with --test its users]"))
        .arg(file("similar-to", "A file with the name of an item per line: find items similar to them").conflicts_with("users"))
        .arg(
            Arg::new("top")
                .long("top")
                .value_name("N")
                .default_value("20")
                .value_parser(clap::value_parser!(u64).range(1..=1_000_000))
                .help("Number of items of a list"),
        )
        .arg(file("items", "A file with the name of an item per line: recommend only these"))
        .arg(files("seen", "Data with what users have besides the training data, which is left out too; rows of users that are not in the model are computed from it; may be repeated"))
        .arg(switch("keep-seen", "Recommend also what users have"))
        .arg(files("test", "Data with what users have chosen later: print precision, recall, NDCG and MAP, and those of the most popular items; may be repeated"))
        .arg(file("output", "File for the items: .parquet, CSV with any other ending, or - for standard output"))
        .arg(switch("overwrite", "Replace the file of an earlier run"))
        .arg(
            Arg::new("threads")
                .long("threads")
                .value_name("N")
                .value_parser(clap::value_parser!(u64).range(1..=keys::TASK_LIMIT))
                .help("Number of threads; does not change the result [default: all cores]"),
        )
        .arg(switch("json", "Print the result as JSON"))
        .arg(switch("quiet", "Print no notes"));
    DATA_KEYS
        .iter()
        .filter_map(|name| keys::find(keys::JobCommand::Train, name))
        .fold(command, |command, key| command.arg(key_flag(key)))
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let path = |name: &str| matches.get_one::<String>(name).map(PathBuf::from);
    let input = |name: &str| -> Result<Option<Input>, Error> {
        let Some(files) = matches.get_many::<String>(name) else { return Ok(None) };
        Ok(Some(scoring_input(&raw_job_of(matches, &DATA_KEYS), files.cloned().collect())?))
    };
    let subjects = match (path("users"), path("similar-to")) {
        (_, Some(items)) => Subjects::SimilarTo(items),
        (Some(users), None) if users.as_os_str() != "all" => Subjects::Users(users),
        _ => Subjects::All,
    };
    let job = RecommendJob {
        model: path("model").expect("clap asks for it"),
        subjects,
        top: *matches.get_one::<u64>("top").expect("it has a default") as usize,
        items: path("items"),
        keeps_seen: matches.get_flag("keep-seen"),
        seen: input("seen")?,
        test: input("test")?,
        output: path("output"),
        overwrite: matches.get_flag("overwrite"),
        threads: matches.get_one::<u64>("threads").map_or_else(machine::core_count, |count| *count as usize),
    };
    let summary = recommend(&job, environment)?;
    if matches.get_flag("json") {
        print_json(&summary)?;
    } else {
        print(&summary, matches.get_flag("quiet"))?;
    }
    Ok(Exit::Done)
}

/// Prints what was found for people. What is no metric goes to standard error, as standard output may be the items.
fn print(summary: &RecommendSummary, is_quiet: bool) -> Result<(), Error> {
    if !is_quiet {
        summary.notices.iter().for_each(|notice| eprintln!("note: {notice}"));
        if summary.folded_in > 0 {
            eprintln!(
                "{} computed from what they have (--seen)",
                counted(summary.folded_in, "row of a user")
            );
        }
        if let Some(output) = summary.output.as_ref().filter(|output| *output != "-") {
            eprintln!("{} written to {output}", counted(summary.lists, "list"));
        }
    }
    let (Some(quality), Some(popular)) = (&summary.quality, &summary.most_popular) else { return Ok(()) };
    let mut text = format!("users      {}\n{:<12}{:>10}{:>14}\n", quality.users, "", "model", "most popular");
    for (name, own, popular) in [
        ("precision", quality.precision, popular.precision),
        ("recall", quality.recall, popular.recall),
        ("ndcg", quality.ndcg, popular.ndcg),
        ("map", quality.map, popular.map),
        ("hit_rate", quality.hit_rate, popular.hit_rate),
    ] {
        text += &format!("{name:<12}{own:>10.5}{popular:>14.5}\n");
    }
    if let Some(definitions) = summary.definitions.as_ref().filter(|_| !is_quiet) {
        text += &format!("{definitions}\n");
    }
    print_text(&text)
}
