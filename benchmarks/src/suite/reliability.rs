//! What checkpoints cost, how fast they are written and read, and how soon a job goes on after a loss.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Benchmark;
use super::memory::write_features;
use super::train::train;
use crate::comparison::{Comparison, Sample, median};
use crate::context::Context;
use crate::process::{Cores, arguments, run_child};
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "checkpoint_cost",
        title: "1M x 10M clicks, thirty epochs on two servers and two workers: a checkpoint every 5 s against none",
        targets: &[Target::ratio("time", 1.10, 1.03)],
        run: cost,
    },
    Benchmark {
        name: "checkpoint_rate",
        title: "10M sparse rows with the state of FTRL in one process: bytes a second of a checkpoint that is written while \
                training goes on, against a file with the same bytes and sync; and of verifying it and reading it into the \
                matrix, against reading the file from the disk",
        targets: &[Target::at_least("write", "x", 0.5, 0.85), Target::at_least("restore", "x", 0.5, 0.8)],
        run: rate,
    },
    Benchmark {
        name: "checkpoint_wait",
        title: "10M sparse rows with the state of FTRL: the longest pull or push of 10,000 keys while a snapshot is taken \
                and read, in one process and on two servers; and the share of its bytes that an incremental checkpoint has \
                after one bucket in a hundred has changed",
        targets: &[
            Target::at_most("process", "ms", 50.0, 10.0),
            Target::at_most("servers", "ms", 50.0, 10.0),
            Target::at_most("increment", "x", 0.03, 0.015),
        ],
        run: wait,
    },
    Benchmark {
        name: "durability",
        title: "pushes of 100 keys from two tasks to two servers: pushes a second with a write-ahead log against none, with \
                one that is synced to the disk, and with replicas",
        targets: &[
            Target::at_least("log", "x", 0.6, 0.9),
            Target::at_least("synced_log", "x", 0.4, 0.6),
            Target::at_least("replica", "x", 0.5, 0.7),
        ],
        run: durability,
    },
    Benchmark {
        name: "loss",
        title: "a server of two is killed in the middle of a job: seconds until the loss is told, and until the job \
                continues from its checkpoint",
        targets: &[Target::at_most("noticed", "s", 3.0, 1.0), Target::at_most("continued", "s", 5.0, 1.0)],
        run: loss,
    },
    Benchmark {
        name: "takeover",
        title: "the same with replicas: seconds until the takeover is told, and until a checkpoint that began after it is \
                complete (they begin every 100 ms)",
        targets: &[Target::at_most("noticed", "s", 3.0, 1.0), Target::at_most("goes_on", "s", 3.0, 1.0)],
        run: takeover,
    },
];

const ON_SERVERS: [&str; 4] = ["--servers", "2", "--workers", "2"];

fn cost(context: &Context) -> Result<Figures> {
    let data = context.clicks(10)?.join("train.libsvm");
    let model = context.scratch_path("model_checkpoints");
    let time = |every: &str| -> Result<Sample> {
        let more = [&ON_SERVERS[..], &["--checkpoint-every", every]].concat();
        let words = train("lr", &data, &model, 2, &["epochs=30"], &more);
        Ok(Sample::time(context.seraphim(Cores::Two, &words)?.wall_s))
    };
    let race = Comparison::run(context.options.rounds, || time("5s"), || time("off").map(Some))?;
    Ok(Figures::from([("time", race.time())]))
}

fn wait(context: &Context) -> Result<Figures> {
    let names = [("process", "process_ms"), ("servers", "servers_ms"), ("increment", "changed_share")];
    let mut waits = names.map(|_| Vec::new());
    for _ in 0..context.options.rounds {
        let value = run_child(Cores::Two, &arguments(["snapshots"]))?;
        eprintln!("{value}");
        for ((_, key), waits) in names.iter().zip(&mut waits) {
            waits.push(value[key].as_f64().context("the figure is there")?);
        }
    }
    let middle = |values: &Vec<f64>| Figure::ours(median(values).unwrap_or(f64::NAN));
    Ok(names.into_iter().map(|(name, _)| name).zip(waits.iter().map(middle)).collect())
}

fn durability(context: &Context) -> Result<Figures> {
    let folder = context.scratch_path("write_ahead");
    let value = run_child(Cores::Two, &arguments(["durability", path_text(&folder)?]))?;
    eprintln!("{value}");
    let figure = |name: &'static str| {
        let ratio = value[name].as_f64().context("the figure is there")?;
        Ok((name, Figure::ours(ratio)))
    };
    ["log", "synced_log", "replica"].into_iter().map(figure).collect()
}

fn rate(context: &Context) -> Result<Figures> {
    let data = context.scratch_path("ten_million_rows.libsvm");
    write_features(&data)?;
    let model = context.scratch_path("model_rate");
    let (folder, report) = (context.scratch_path("checkpoint_rate"), context.scratch_path("rate.json"));
    let place = [path_text(&folder)?, path_text(&report)?];
    let (mut writes, mut restores) = (Vec::new(), Vec::new());
    for _ in 0..context.options.rounds {
        let _ = std::fs::remove_dir_all(&folder);
        // One checkpoint, between the two epochs.
        let more = ["--checkpoints", place[0], "--checkpoint-every", "100000ticks", "--report", place[1]];
        let words = train("lr", &data, &model, 2, &["epochs=2", "batch_size=2"], &more);
        context.seraphim(Cores::Two, &words)?;
        let seconds = timing(&report, "checkpoint_s")?;
        let part = part_of(&folder)?;
        let size = std::fs::metadata(&part).context("the part")?.len() as f64;
        let plain_s = plain_write(&part, &context.scratch_path("plain"))?;
        eprintln!("written in {seconds:.3} s, a plain file in {plain_s:.3} s");
        writes.push(plain_s / seconds);
        forget(&part)?;
        let start = Instant::now();
        context.seraphim(Cores::Two, &arguments(["checkpoints", "verify", place[0]]))?;
        let verify_s = start.elapsed().as_secs_f64();
        let resume = ["--resume", place[0], "--checkpoint-every", "off", "--report", place[1]];
        context
            .seraphim(Cores::Two, &train("lr", &data, &model, 2, &["epochs=2", "batch_size=2"], &resume))?;
        let seconds = timing(&report, "restore_s")?;
        forget(&part)?;
        let plain_s = plain_read(&part)?;
        restores.push(plain_s / (verify_s + seconds));
        eprintln!(
            "checkpoint of {:.0} MB: read from the disk in {plain_s:.3} s, verified in {verify_s:.3} s, restored in \
             {seconds:.3} s",
            size / 1e6
        );
    }
    std::fs::remove_file(&data).context("the data")?;
    std::fs::remove_dir_all(&folder).context("the checkpoints")?;
    let middle = |values: &[f64]| Figure::ours(median(values).unwrap_or(f64::NAN));
    Ok(Figures::from([("write", middle(&writes)), ("restore", middle(&restores))]))
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("the scratch folder has a name of text")
}

fn timing(report: &Path, name: &str) -> Result<f64> {
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report)?)?;
    let seconds = report["timings"][name].as_f64().context("the report has timings")?;
    ensure!(seconds > 0.0, "there was no checkpoint: {name} is 0");
    Ok(seconds)
}

/// The largest file of the checkpoints in a folder.
fn part_of(folder: &Path) -> Result<std::path::PathBuf> {
    let mut files = Vec::new();
    for number in std::fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir()) {
        for file in std::fs::read_dir(number.path())?.flatten() {
            files.push((file.metadata()?.len(), file.path()));
        }
    }
    files.into_iter().max().map(|(_, path)| path).context("there is a checkpoint")
}

/// Seconds in which a file with the same bytes is written and synced.
fn plain_write(part: &Path, to: &Path) -> Result<f64> {
    let bytes = std::fs::read(part)?;
    let start = Instant::now();
    let mut file = File::create(to)?;
    for block in bytes.chunks(1 << 20) {
        file.write_all(block)?;
    }
    file.sync_all()?;
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_file(to)?;
    Ok(seconds)
}

/// Removes a file from the memory of the system, so that it is read from the disk.
fn forget(file: &Path) -> Result<()> {
    let input = format!("if={}", file.display());
    let status =
        Command::new("dd").args([&input, "of=/dev/null", "iflag=nocache", "count=0", "status=none"]).status();
    ensure!(status.context("dd")?.success(), "dd failed");
    Ok(())
}

/// Seconds in which the file is read.
fn plain_read(part: &Path) -> Result<f64> {
    let start = Instant::now();
    let mut file = File::open(part)?;
    let mut block = vec![0; 1 << 20];
    while file.read(&mut block)? > 0 {}
    Ok(start.elapsed().as_secs_f64())
}

/// Starts a training whose checkpoints are in `folder`. Its lines say what happens to it.
fn start_job(context: &Context, words: &[std::ffi::OsString], folder: &Path) -> Result<Child> {
    let _ = std::fs::remove_dir_all(folder);
    let words: Vec<_> = words.iter().filter(|word| *word != "--quiet").cloned().collect();
    let mut command = context.command(Cores::Two, &words);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("taskset")
}

fn loss(context: &Context) -> Result<Figures> {
    let data = context.clicks(10)?.join("train.libsvm");
    let model = context.scratch_path("model_loss");
    let folder = context.scratch_path("checkpoints_loss");
    let more =
        [&ON_SERVERS[..], &["--checkpoints", path_text(&folder)?, "--checkpoint-every", "500ms"]].concat();
    let words = train("lr", &data, &model, 2, &["epochs=10"], &more);
    let (mut noticed, mut continued) = (Vec::new(), Vec::new());
    for _ in 0..context.options.rounds {
        let mut child = start_job(context, &words, &folder)?;
        let times = lose_server(&mut child, &folder);
        ensure!(child.wait()?.success(), "the job failed");
        let [told, goes_on] = times?;
        noticed.push(told);
        continued.push(goes_on);
    }
    let middle = |values: &[f64]| Figure::ours(median(values).unwrap_or(f64::NAN));
    Ok(Figures::from([("noticed", middle(&noticed)), ("continued", middle(&continued))]))
}

fn takeover(context: &Context) -> Result<Figures> {
    let data = context.clicks(10)?.join("train.libsvm");
    let model = context.scratch_path("model_takeover");
    let folder = context.scratch_path("checkpoints_takeover");
    let saved =
        ["--checkpoints", path_text(&folder)?, "--checkpoint-every", "100ms", "--durability", "replica"];
    let words = train("lr", &data, &model, 2, &["epochs=10"], &[&ON_SERVERS[..], &saved].concat());
    let (mut noticed, mut continued) = (Vec::new(), Vec::new());
    for _ in 0..context.options.rounds {
        let mut child = start_job(context, &words, &folder)?;
        let start = kill_server(&mut child, &folder)?;
        let lines = BufReader::new(child.stderr.take().context("it is piped")?).lines();
        let mut told = lines.map_while(Result::ok).filter(|line| line.contains("takes over"));
        told.next().context("no replica has taken over")?;
        noticed.push(start.elapsed().as_secs_f64());
        // The one that is being written may have begun before.
        let enough = newest_checkpoint(&folder) + 2;
        while newest_checkpoint(&folder) < enough {
            ensure!(child.try_wait()?.is_none(), "the job ended too early");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        continued.push(start.elapsed().as_secs_f64());
        // Its lines are read to the end, so that it does not wait for a reader.
        told.for_each(drop);
        ensure!(child.wait()?.success(), "the job failed");
    }
    let middle = |values: &[f64]| Figure::ours(median(values).unwrap_or(f64::NAN));
    Ok(Figures::from([("noticed", middle(&noticed)), ("goes_on", middle(&continued))]))
}

/// The number of the newest complete checkpoint in a folder; 0: there is none.
fn newest_checkpoint(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let complete = entries.filter(|entry| entry.path().join("manifest").exists());
    complete.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max().unwrap_or(0)
}

/// Kills a server when there is a checkpoint. Returns the seconds until the loss is told, and until the job continues.
fn lose_server(child: &mut Child, folder: &Path) -> Result<[f64; 2]> {
    let start = kill_server(child, folder)?;
    let mut told = None;
    for line in BufReader::new(child.stderr.take().context("it is piped")?).lines() {
        let line = line?;
        let seconds = start.elapsed().as_secs_f64();
        if line.contains("was lost") {
            told.get_or_insert(seconds);
        }
        if let (Some(told), true) = (told, line.contains("continuing from checkpoint")) {
            // Its lines are read to the end, so that it does not wait for a reader.
            return Ok([told, seconds]);
        }
    }
    anyhow::bail!("the job did not continue")
}

/// Kills a server when there is a checkpoint. Returns when.
fn kill_server(child: &mut Child, folder: &Path) -> Result<Instant> {
    while !folder.join("00000001/manifest").exists() {
        ensure!(child.try_wait()?.is_none(), "the job ended before its first checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = Command::new("pkill").args(["-KILL", "-f", "--", "--name server-1"]).status();
    ensure!(kill.context("pkill")?.success(), "no server was killed");
    Ok(Instant::now())
}
