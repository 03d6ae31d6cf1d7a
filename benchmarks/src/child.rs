//! Measurements inside one process. The benchmarks start their own program with `inner NAME ARGUMENTS`; each
//! measurement prints one line of JSON.

mod durability;
mod functions;
mod functions_served;
mod lists;
mod parse;
mod prefetch;
mod relay;
mod snapshots;
mod store_cost;
mod wire;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use data::{FormatOptions, LabelRule, SourceConfig};

/// Runs the measurement that the arguments name.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["wire-server"] => return wire::serve(None),
        ["wire-server", folder] => return wire::serve(Some((folder, false))),
        ["wire-server", folder, "synced"] => return wire::serve(Some((folder, true))),
        ["wire-raw"] => return wire::raw(),
        _ => {}
    }
    let value = match words.as_slice() {
        ["parse", file] => parse::run(Path::new(file))?,
        ["machinery", kind, file] => store_cost::run(kind, Path::new(file))?,
        ["functions"] => functions::run()?,
        #[cfg(feature = "wasm")]
        ["module"] => functions::module()?,
        ["wire"] => wire::run()?,
        ["lists"] => lists::run()?,
        ["durability", folder] => durability::run(Path::new(folder))?,
        ["snapshots"] => snapshots::run()?,
        ["served"] => functions_served::run()?,
        ["ahead", consistency, prefetch, delay_ms, file] => {
            prefetch::run(consistency, prefetch, delay_ms, Path::new(file))?
        }
        ["traffic"] => crate::traffic::all()?,
        _ => bail!("unknown inner measurement {words:?}"),
    };
    println!("{value}");
    Ok(())
}

/// Number of records of a step, as in training.
const BATCH_SIZE: usize = data::BatchSize::LARGEST;

/// Opens a whole libsvm file of clicks.
fn reader(file: &Path) -> Result<data::Reader> {
    let source = source(file)?;
    let splits = source.splits(1).pop().context("one task has one share")?;
    Ok(source.reader(splits)?)
}

/// A libsvm file of clicks.
fn source(file: &Path) -> Result<data::Source> {
    let config = SourceConfig {
        inputs: vec![file.display().to_string()],
        format: Some("libsvm".to_owned()),
        options: FormatOptions {
            label_rule: LabelRule::Binary { positive: None },
            ..FormatOptions::default()
        },
        ..SourceConfig::default()
    };
    Ok(data::Source::open(&config, &data::FormatTable::builtin())?)
}
