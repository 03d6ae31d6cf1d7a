//! Benchmarks inside one process, each in a new process on one core.

use anyhow::{Context as _, Result};

use crate::comparison::{Comparison, Sample, median};
use crate::context::Context;
use crate::process::{self, Cores, arguments};
use crate::target::{Figure, Figures};

pub(super) fn parse(context: &Context) -> Result<Figures> {
    let file = context.clicks(10)?.join("train.libsvm");
    let mut words = arguments(["parse"]);
    words.push(file.into());
    let mut speeds = Vec::new();
    for _ in 0..context.options.rounds {
        let value = process::run_child(Cores::One, &words)?;
        speeds.push(value["gb_per_s"].as_f64().context("parse gave no speed")?);
    }
    Ok(Figures::from([("speed", Figure::ours(median(&speeds).unwrap_or(f64::NAN)))]))
}

/// Training uses sparse storage when the number of features is not given; dense storage is shown beside it.
pub(super) fn machinery(context: &Context) -> Result<Figures> {
    let file = context.clicks(10)?.join("train.libsvm");
    let run = |kind: &str| {
        let mut words = arguments(["machinery", kind]);
        words.push(file.clone().into());
        let value = process::run_child(Cores::One, &words)?;
        let seconds = value["seconds"].as_f64().context("machinery gave no seconds")?;
        Ok(Sample::time(seconds))
    };
    let mut dense = Vec::new();
    let race = Comparison::run(
        context.options.rounds,
        || run("sparse"),
        || {
            let plain = run("plain")?;
            dense.push(run("dense")?.seconds / plain.seconds);
            Ok(Some(plain))
        },
    )?;
    Ok(Figures::from([
        ("time", race.time()),
        ("dense_ratio", Figure::ours(median(&dense).unwrap_or(f64::NAN))),
    ]))
}

/// Functions at the partitions of one process.
pub(super) fn functions(_context: &Context) -> Result<Figures> {
    let value = process::run_child(Cores::One, &arguments(["functions"]))?;
    let number = |name: &str| value[name].as_f64().with_context(|| format!("functions gave no {name}"));
    Ok(Figures::from([
        ("dot", Figure::ours(number("dot")?)),
        ("axpy", Figure::ours(number("axpy")?)),
        ("fused", beside(&value["fused"])?),
    ]))
}

/// Functions at a server.
pub(super) fn functions_served(_context: &Context) -> Result<Figures> {
    let value = process::run_child(Cores::Two, &arguments(["served"]))?;
    let number = |name: &str| value[name].as_f64().with_context(|| format!("served gave no {name}"));
    Ok(Figures::from([
        ("dot", Figure::ours(number("dot_of_read")?)),
        ("axpy", Figure::ours(number("axpy_of_read")?)),
    ]))
}

/// A function in WebAssembly compared with the built-in function of the same bytes.
#[cfg(feature = "wasm")]
pub(super) fn module(_context: &Context) -> Result<Figures> {
    let value = process::run_child(Cores::One, &arguments(["module"]))?;
    Ok(Figures::from([("twin", beside(&value["twin"])?), ("singles", beside(&value["singles"])?)]))
}

/// Our value, that of the peer, and the median of their ratios.
fn beside(value: &serde_json::Value) -> Result<Figure> {
    let part = |i: usize| value[i].as_f64().context("a figure lacks a number");
    Ok(Figure { ours: part(0)?, peer: Some(part(1)?), ratio: Some(part(2)?) })
}
