//! Tests of flags and job files.

use std::path::Path;

use crate::check::parse_bytes;
use crate::keys::{JobCommand, KEYS, find};
use crate::training::{consistency_name, parse_consistency};
use crate::*;

fn file(text: &str) -> Result<RawJob, Error> {
    RawJob::from_toml(text, Path::new("job.toml"))
}

fn flag(name: &str, value: &str) -> RawJob {
    let mut raw = RawJob::new();
    raw.set_flag(find(JobCommand::Train, name).unwrap(), vec![value.to_owned()]);
    raw
}

const SMALL: &str = "algorithm = 'lr'\ndata = 'a.libsvm'\nmodel = 'out'\n";

#[test]
fn key_names_are_distinct_and_speak_one_style() {
    for (i, key) in KEYS.iter().enumerate() {
        assert!(key.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", key.name);
        assert!(KEYS[..i].iter().all(|other| other.name != key.name), "{} stands twice", key.name);
    }
}

#[test]
fn an_unknown_key_names_the_nearest_one() {
    let error = file("lerning = 1\nvaldate = 'x'").unwrap_err().to_string();
    assert!(error.contains("unknown key"), "{error}");
    let error = file("valdate = 'x'").unwrap_err().to_string();
    assert!(error.contains("\"valdate\"") && error.contains("did you mean \"validate\""), "{error}");
}

#[test]
fn flags_win_over_the_file_and_parameters_merge_one_by_one() {
    let raw = file(&format!("{SMALL}seed = 3\ntasks = 4\n[set]\nl1 = 1\nl2 = 0.5\n")).unwrap();
    let job = TrainJob::check(
        &raw.overridden_by(flag("seed", "9")).overridden_by(flag("set", "l1=7")),
        &families::all(),
    )
    .unwrap();
    assert_eq!((job.seed, job.run_options.tasks), (9, Some(4)));
    assert_eq!(job.params.text("l1"), Some("7"));
    assert_eq!(job.params.text("l2"), Some("0.5"));
}

#[test]
fn values_out_of_their_range_say_the_range() {
    for (name, value, expected) in [
        ("tasks", "0", "auto or a whole number in [1, 1024]"),
        ("tasks", "many", "auto or a whole number in [1, 1024]"),
        ("threads", "0", "in [1, 1024]"),
        ("consistency", "ssp", "ssp:N"),
        ("bad_lines", "skip", "skip=N"),
        ("prefetch", "stale", "off | exact"),
        ("memory_limit", "lots", "2GiB"),
        ("delimiter", "||", "one ASCII character"),
        ("set", "l1", "NAME=VALUE"),
    ] {
        let raw = file(SMALL).unwrap().overridden_by(flag(name, value));
        let error = TrainJob::check(&raw, &families::all()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
}

#[test]
fn a_submitted_job_is_what_submit_sends_or_the_keys_of_a_job_file() {
    let raw = file(SMALL).unwrap();
    let sent = serde_json::to_value(&raw).unwrap();
    let keys: toml::Table = SMALL.parse().unwrap();
    let written = serde_json::to_value(&keys).unwrap();
    let wanted = format!("{:?}", TrainJob::check(&raw, &families::all()).unwrap());
    for submitted in [sent, written] {
        let job = TrainJob::check(&RawJob::from_submitted(&submitted).unwrap(), &families::all()).unwrap();
        // The texts say where they come from.
        let job = TrainJob { given: raw.clone(), ..job };
        assert_eq!(format!("{job:?}"), wanted, "{submitted}");
    }
}

#[test]
fn paths_that_were_made_absolute_are_recorded_as_they_were_written() {
    let raw = file(SMALL).unwrap();
    let written = TrainJob::check(&raw, &families::all()).unwrap();
    let stored = serde_json::to_value(raw.with_absolute_paths()).unwrap();
    let resumed = RawJob::from_submitted(&stored).unwrap().with_absolute_paths();
    let resumed = TrainJob::check(&resumed, &families::all()).unwrap();
    assert!(resumed.input.data.iter().all(|path| Path::new(path).is_absolute()));
    assert_eq!((&resumed.written.data, &written.written.data), (&written.input.data, &written.input.data));
}

#[test]
fn a_submitted_job_that_cannot_be_read_is_refused_with_what_is_wrong() {
    for (submitted, part) in [
        (serde_json::json!(null), "cannot be read"),
        (serde_json::json!([1]), "cannot be read"),
        (serde_json::json!({ "values": 3 }), "cannot be read"),
        (serde_json::json!({ "algorithm": "lr", "dta": "x" }), "dta"),
        (serde_json::json!({ "algorithm": { "a": 1 } }), "algorithm"),
    ] {
        let error = RawJob::from_submitted(&submitted).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
}

#[test]
fn consistency_is_spelled_as_it_is_read() {
    for text in ["bsp", "asp", "ssp:0", "ssp:4"] {
        assert_eq!(consistency_name(parse_consistency(text).unwrap()), text);
    }
}

#[test]
fn bytes_have_decimal_and_binary_units() {
    assert_eq!(parse_bytes("1000"), Some(1000));
    assert_eq!(parse_bytes("2GiB"), Some(2 << 30));
    assert_eq!(parse_bytes("1.5 MB"), Some(1_500_000));
    assert_eq!(parse_bytes("x"), None);
}

#[test]
fn a_submitted_job_that_names_modules_brings_them() {
    let job = serde_json::json!({
        "algorithm": "lr", "data": ["a.csv"], "model": "m", "functions": ["a.wasm"]
    });
    let error =
        TrainJob::check(&RawJob::from_submitted(&job).unwrap(), &families::all()).unwrap_err().to_string();
    assert!(
        error.contains("names 1 files, but contains 0 modules") && error.contains("seraphim submit"),
        "{error}"
    );
    let raw = RawJob::from_submitted(&serde_json::json!({
        "algorithm": "lr",
        "values": {
            "data": [{"flag": "data"}, ["a.csv"]],
            "model": [{"flag": "model"}, ["m"]],
            "functions": [{"flag": "functions"}, ["a.wasm"]],
        },
        "modules": ["AGFzbQ=="],
    }));
    let raw = raw.unwrap();
    assert_eq!(TrainJob::check(&raw, &families::all()).unwrap().modules().list()[0].0, b"\0asm");
    let again = RawJob::from_submitted(&serde_json::to_value(&raw).unwrap()).unwrap();
    assert_eq!(again.modules().unwrap(), raw.modules().unwrap());
}

#[test]
fn the_page_of_commands_has_every_row_of_the_table() {
    let page = include_str!("../../../docs/commands.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `--")).collect();
    let expected: Vec<String> = KEYS.iter().map(page_row).collect();
    assert_eq!(rows, expected, "docs/commands.md (left) and job/keys.rs (right) differ");
}

/// Returns a row of the page of flags.
fn page_row(key: &keys::Key) -> String {
    let value = key.value_name.replace('|', "\\|");
    let flag = format!("--{} {value}", key.flag());
    let commands = match key.commands {
        [JobCommand::Train, JobCommand::Predict, JobCommand::Evaluate] => "all".to_owned(),
        some => {
            some.iter().map(|command| format!("{command:?}").to_lowercase()).collect::<Vec<_>>().join(", ")
        }
    };
    format!("| `{}` | {commands} | {} |", flag.trim_end(), key.help)
}

/// Beginnings of job files, whole and broken ones.
const FILES: [&str; 5] = [
    "algorithm = \"lr\"\ndata = [\"train/*.libsvm.gz\"]\nvalidate = \"test.libsvm.gz\"\nmodel = \"out\"\nseed = 1\n\
     consistency = \"ssp:4\"\n\n[set]\nlearning_rate = 0.1\nl2 = 1e-6\n",
    "data = [\n\"x",
    "modle = \"out\"",
    "data = 1979-05-27\nset = 3\nseed = [[]]\n",
    "command = \"predict\"\nmodel = \"m\"\ndata = \"a\"\noutput = \"o\"\n",
];

#[test]
fn any_text_is_a_job_or_an_error() {
    let mut random = math::random::stream(7, math::random::Purpose::Test, 0, 0);
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let words = ["=", "\n", "[set]", "\"", "{", "}", "[", "1e999", "-0", "\u{0}", "ü", "command", "true"];
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text: Vec<char> = FILES[below(FILES.len())].chars().collect();
        for _ in 0..below(4) {
            let at = below(text.len() + 1);
            let end = (at + below(6)).min(text.len());
            let word = match below(3) {
                0 => words[below(words.len())],
                1 => KEYS[below(KEYS.len())].name,
                _ => "",
            };
            text.splice(at..end, word.chars());
        }
        read += usize::from(file(&text.into_iter().collect::<String>()).is_ok());
    }
    assert!((2000..18_000).contains(&read), "{read} of 20000 are jobs");
}
