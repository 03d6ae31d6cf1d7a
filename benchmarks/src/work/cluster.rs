//! Works across processes: what the wire costs, and a whole job on servers and workers.

use anyhow::{Context as _, Result};

use super::train;
use crate::bar::{Figure, Figures};
use crate::context::Context;
use crate::process::{self, Cores, arguments};
use crate::race::Race;

/// Pulls and pushes against a raw stream and a raw round trip.
pub(super) fn wire(_context: &Context) -> Result<Figures> {
    let value = process::inner(Cores::Two, &arguments(["wire"]))?;
    let number = |name: &str| value[name].as_f64().with_context(|| format!("wire gave no {name}"));
    let beside = |name: &str| {
        let part = |i: usize| value[name][i].as_f64().with_context(|| format!("wire gave no {name}"));
        anyhow::Ok(Figure { ours: part(0)?, peer: Some(part(1)?), ratio: Some(part(2)?) })
    };
    let mut figures = Figures::new();
    for name in ["dense_pull", "dense_push", "pull_p50", "pull_p99", "bsp_step"] {
        figures.insert(name, beside(name)?);
    }
    for name in ["cpu_s_per_gb", "sparse_pull_ms", "sparse_push_ms", "bytes_again", "small_pushes_per_s"] {
        figures.insert(name, Figure::ours(number(name)?));
    }
    let bound = number("sparse_bound_ms")?;
    let pull = number("sparse_pull_ms")?;
    figures.insert("sparse_pull", Figure { ours: pull, peer: Some(bound), ratio: Some(pull / bound) });
    Ok(figures)
}

/// Clicks with two servers and two workers as processes; peer: the same job in one process.
pub(super) fn whole_job(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let (spread, alone) = (context.place("model_spread"), context.place("model_alone"));
    let data = folder.join("train.libsvm");
    let on = |model: &std::path::Path, more: &[&str]| train("lr", &data, model, 2, &["epochs=1"], more);
    let (spread, alone) = (on(&spread, &["--servers", "2", "--workers", "2"]), on(&alone, &[]));
    let race = Race::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, &spread)?.into()),
        || Ok(Some(context.seraphim(Cores::Two, &alone)?.into())),
    )?;
    Ok(Figures::from([("time", race.time())]))
}
