//! The Estimators for Spark ML against those of Spark, in one JVM each.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Benchmark;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::{Cores, arguments, pinned_command, tree_output};
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "spark_estimator",
    title: "1M x 10M clicks from libsvm through a DataFrame to a logistic regression, L2 of 10 / n, 20 iterations, local[2]: \
            SeraphimLogisticRegression with 2 GB of heap against LogisticRegression of Spark with 8 GB, which it needs; \
            memory of all processes together",
    targets: &[
        Target::time_ratio(0.25, 0.1),
        Target::ratio("memory", 0.4, 0.2),
        Target::ratio("objective", 1.0, 1.0),
    ],
    run: estimator,
}];

/// The packages that Spark opens on Java 17.
const OPENED: [&str; 9] = [
    "java.lang",
    "java.lang.invoke",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "sun.nio.ch",
    "sun.security.action",
];

fn estimator(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let columns = context.click_dimensions(10).to_string();
    let class_path = class_path(context)?;
    let (mut objectives, mut spark_objectives) = (Vec::new(), Vec::new());
    let run = |who: &str, heap: &str| -> Result<(Sample, f64)> {
        let mut words: Vec<String> = vec![heap.to_owned(), "-cp".to_owned(), class_path.clone()];
        words.extend(OPENED.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
        words.push("org.seraphim.spark.ml.EstimatorBenchmark".to_owned());
        words.push(folder.join("train.libsvm").display().to_string());
        words.extend([columns.clone(), who.to_owned(), "20".to_owned()]);
        let mut command = pinned_command(Cores::Two, "java".as_ref(), &arguments(words));
        command.env("SERAPHIM_BIN", context.seraphim_path()).env("SPARK_LOCAL_IP", "127.0.0.1");
        let (text, peak_mb) = tree_output(&mut command)?;
        let line =
            text.lines().rev().find(|line| line.starts_with('{')).context("it prints a line of JSON")?;
        eprintln!("{who}: {line}, {peak_mb:.0} MB");
        let value: Value = serde_json::from_str(line)?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("{name} in {line}"));
        let seconds = number("load_s")? + number("train_s")?;
        Ok((Sample { seconds, cpu_s: f64::NAN, peak_mb }, number("objective")?))
    };
    let ours = || {
        let (sample, objective) = run("seraphim", "-Xmx2g")?;
        objectives.push(objective);
        Ok(sample)
    };
    let peer = || {
        let (sample, objective) = run("spark", "-Xmx8g")?;
        spark_objectives.push(objective);
        Ok(Some(sample))
    };
    let race = Comparison::run(context.options.rounds, ours, peer)?;
    let (ours, peer) = (objectives.last().copied(), spark_objectives.last().copied());
    let (ours, peer) = (ours.context("a round was run")?, peer.context("a round was run")?);
    let objective = Figure { ours, peer: Some(peer), ratio: Some(ours / peer) };
    Ok(Figures::from([("time", race.time()), ("memory", race.peaks()), ("objective", objective)]))
}

/// Compiles the Maven project, and returns the class path of its tests.
fn class_path(context: &Context) -> Result<String> {
    let project = context.options.root.join("jvm");
    let words = [
        "-q",
        "-B",
        "-pl",
        "spark",
        "-am",
        "-DskipTests",
        "-Dmdep.outputFile=target/class-path",
        "-DincludeScope=test",
    ];
    let goals = ["package", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"];
    let status = Command::new("mvn").current_dir(&project).args(words).args(goals).status();
    ensure!(status.context("cannot start mvn")?.success(), "mvn failed in {}", project.display());
    let target = project.join("spark/target");
    let others = fs::read_to_string(target.join("class-path")).context("the class path that mvn writes")?;
    Ok(format!("{0}/test-classes:{0}/classes:{1}", target.display(), others.trim()))
}
