//! Benchmarks across processes: what the wire costs, and a whole job on servers and workers.

use anyhow::{Context as _, Result};

use super::train::{against_itself, train};
use crate::comparison::median;
use crate::context::Context;
use crate::process::{self, Cores, arguments};
use crate::target::{Figure, Figures};
use crate::traffic;

/// Pulls and pushes against a raw stream and a raw round trip.
pub(super) fn wire(_context: &Context) -> Result<Figures> {
    let value = process::run_child(Cores::Two, &arguments(["wire"]))?;
    let number = |name: &str| value[name].as_f64().with_context(|| format!("wire gave no {name}"));
    let beside = |name: &str| {
        let part = |i: usize| value[name][i].as_f64().with_context(|| format!("wire gave no {name}"));
        anyhow::Ok(Figure { ours: part(0)?, peer: Some(part(1)?), ratio: Some(part(2)?) })
    };
    let mut figures = Figures::new();
    for name in ["dense_pull", "dense_push", "pull_p50", "pull_p99", "bsp_step", "bsp_step_socket"] {
        figures.insert(name, beside(name)?);
    }
    for name in ["bytes_again", "small_pushes_per_s"] {
        figures.insert(name, Figure::ours(number(name)?));
    }
    for name in [
        "cpu_s_per_gb",
        "cpu_s_per_gb_socket",
        "raw_cpu_s_per_gb",
        "sparse_pull_ms",
        "sparse_pull_ms_socket",
        "sparse_push_ms",
        "sparse_push_ms_socket",
    ] {
        figures.insert(name, Figure::ours(number(name)?));
    }
    let bound = number("sparse_bound_ms")?;
    let pull = number("sparse_pull_ms")?;
    figures.insert("sparse_pull", Figure { ours: pull, peer: Some(bound), ratio: Some(pull / bound) });
    Ok(figures)
}

/// Lists of any length against dense rows of as many bytes: rates as shares of theirs, and memory against plain compressed
/// sparse rows.
pub(super) fn lists(_context: &Context) -> Result<Figures> {
    let value = process::run_child(Cores::Two, &arguments(["lists"]))?;
    let part =
        |name: &str, i: usize| value[name][i].as_f64().with_context(|| format!("lists gave no {name}"));
    let mut figures = Figures::new();
    for (name, rate) in [("append", "append_rate"), ("pull", "pull_rate")] {
        figures.insert(name, Figure { ours: part(name, 0)?, peer: Some(part(name, 1)?), ratio: None });
        figures.insert(rate, Figure::ours(part(name, 2)?));
    }
    let (ours, peer, ratio) = (part("memory", 0)?, part("memory", 1)?, part("memory", 2)?);
    figures.insert("memory", Figure { ours, peer: Some(peer), ratio: Some(ratio) });
    Ok(figures)
}

/// Milliseconds that are added in each direction between the tasks and the servers.
const DELAY_MS: &str = "5";

/// An epoch on servers that are far away, with and without prefetching, in turns.
pub(super) fn ahead(context: &Context) -> Result<Figures> {
    let file = context.clicks(10)?.join("train.libsvm");
    let run = |consistency: &str, prefetch: &str| {
        let mut words = arguments(["ahead", consistency, prefetch, DELAY_MS]);
        words.push(file.clone().into());
        let value = process::run_child(Cores::Two, &words)?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("ahead gave no {name}"));
        anyhow::Ok((number("seconds")?, number("wait_share")?))
    };
    let mut figures = Figures::new();
    for (consistency, speedup, waits, waits_off) in [
        ("bsp", "bsp_speedup", "bsp_waits", "bsp_waits_off"),
        ("ssp", "ssp_speedup", "ssp_waits", "ssp_waits_off"),
    ] {
        let (mut speedups, mut on, mut off) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..context.options.rounds {
            let (slow, slow_waits) = run(consistency, "off")?;
            let (fast, fast_waits) = run(consistency, "exact")?;
            speedups.push(slow / fast);
            on.push(fast_waits);
            off.push(slow_waits);
        }
        for (name, values) in [(speedup, speedups), (waits, on), (waits_off, off)] {
            figures.insert(name, Figure::ours(median(&values).unwrap_or(f64::NAN)));
        }
    }
    Ok(figures)
}

/// What a step sends with different numbers of servers.
pub(super) fn traffic(_context: &Context) -> Result<Figures> {
    const NAMES: [(&str, &str, &str); 5] = [
        ("bytes_a_key_1", "requests_1", "answers_1"),
        ("bytes_a_key_2", "requests_2", "answers_2"),
        ("bytes_a_key_4", "requests_4", "answers_4"),
        ("bytes_a_key_8", "requests_8", "answers_8"),
        ("bytes_a_key_16", "requests_16", "answers_16"),
    ];
    let mut figures = Figures::new();
    for (servers, (bytes, requests, answers)) in traffic::SERVERS.into_iter().zip(NAMES) {
        let counted = traffic::count(servers)?;
        figures.insert(bytes, Figure::ours(counted.bytes_a_key));
        figures.insert(requests, Figure::ours(counted.requests));
        figures.insert(answers, Figure::ours(counted.answers));
    }
    Ok(figures)
}

/// Clicks with two servers and two workers as processes; the peer is the same job in one process.
pub(super) fn whole_job(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let (spread, alone) = (context.scratch_path("model_spread"), context.scratch_path("model_alone"));
    let data = folder.join("train.libsvm");
    let on = |model: &std::path::Path, more: &[&str]| train("lr", &data, model, 2, &["epochs=1"], more);
    let (spread, alone) = (on(&spread, &["--servers", "2", "--workers", "2"]), on(&alone, &[]));
    against_itself(context, &spread, &alone)
}
