//! Topics of documents against tomotopy: perplexity and time with few topics, tokens a second with many.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Benchmark;
use super::train::{against_itself, train};
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "topics_news20",
        title: "20 Newsgroups, 20 topics, 200 sweeps, one core; perplexity: mean of three seeds; time of the sweeps; peer: tomotopy",
        targets: &[Target::at_most("perplexity", "", 3450.0, 3416.0), Target::time_ratio(0.8, 0.5)],
        run: news20,
    },
    Benchmark {
        name: "topics_many",
        title: "the same with 1,000 topics, 100 sweeps: tokens a second",
        targets: &[Target::at_least("speed", "M/s", 5.0, 10.0)],
        run: many,
    },
    Benchmark {
        name: "topics_servers",
        title: "20 topics, 20 sweeps with two servers and two workers; peer: the same in one process",
        targets: &[Target::time_ratio(4.0, 2.0)],
        run: servers,
    },
];

/// Settings that keep all words.
const ALL_WORDS: [&str; 3] = ["min_documents=1", "max_document_share=1", "vocabulary_limit=10000000"];
/// Tokens of the training documents.
const TOKENS: f64 = 1_758_544.0;
const SEEDS: [&str; 3] = ["1", "2", "3"];

/// The command, and the seconds of its sweeps, from its report.
fn sweeps(context: &Context, settings: &[&str], more: &[&str]) -> Result<f64> {
    let data = context.data_set("news20")?.join("train.libsvm.gz");
    let (model, report) = (context.scratch_path("model_topics"), context.scratch_path("topics.json"));
    let mut words = train("lda", &data, &model, 1, &[&ALL_WORDS[..], settings].concat(), more);
    words.extend(["--report".into(), report.clone().into()]);
    context.seraphim(Cores::One, &words)?;
    let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let epochs = report["epochs"].as_array().context("a report has epochs")?;
    // The first epoch also reads the data.
    let later: Vec<f64> = epochs.iter().skip(1).filter_map(|epoch| epoch["seconds"].as_f64()).collect();
    Ok(later.iter().sum::<f64>() / later.len().max(1) as f64 * epochs.len() as f64)
}

fn news20(context: &Context) -> Result<Figures> {
    let folder = context.data_set("news20")?;
    let [data, test] = ["train.libsvm.gz", "test.libsvm.gz"].map(|file| folder.join(file));
    let (files, root) = ([data.as_path(), test.as_path()], &context.options.root);
    let mut peer_perplexity = None;
    let race = Comparison::run(
        context.options.rounds,
        || sweeps(context, &[], &[]).map(Sample::time),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let value = peers.topics(root, "tomotopy", files, &["20", "200"])?;
            peer_perplexity = value["perplexity"].as_f64();
            Ok(value["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let mut figures = Figures::from([("time", race.time())]);
    if let Some(peers) = context.peers() {
        let table = context.scratch_path("topics.csv");
        let table_text = table.to_string_lossy();
        let mut sum = 0.0;
        for seed in SEEDS {
            sweeps(context, &[], &["--seed", seed])?;
            let model = context.scratch_path("model_topics");
            let mut export = arguments(["export"]);
            export.push(model.into());
            export.extend(arguments(["--table", "topics", "--overwrite", "--output", &table_text]));
            context.seraphim_output(&export)?;
            let value = peers.topics(root, "table", files, &[&table_text, "0.01"])?;
            sum += value["perplexity"].as_f64().context("the peer gives a perplexity")?;
        }
        let perplexity = Figure::with_peer(sum / SEEDS.len() as f64, peer_perplexity);
        figures.insert("perplexity", perplexity);
    }
    Ok(figures)
}

fn many(context: &Context) -> Result<Figures> {
    let seconds = sweeps(context, &["topics=1000", "sweeps=100"], &[])?;
    Ok(Figures::from([("speed", Figure::ours(TOKENS * 100.0 / seconds / 1e6))]))
}

fn servers(context: &Context) -> Result<Figures> {
    let data = context.data_set("news20")?.join("train.libsvm.gz");
    let on = |model: &str, more: &[&str]| {
        train("lda", &data, &context.scratch_path(model), 2, &["sweeps=20"], more)
    };
    let spread = on("model_spread", &["--servers", "2", "--workers", "2"]);
    against_itself(context, &spread, &on("model_alone", &[]))
}
