//! What it gains that the tasks of a slow worker go to others.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::Benchmark;
use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "slow_worker",
    title: "1M x 10M clicks, fifteen epochs on a server and four workers, one of which pauses five times as long before a \
            batch (20 ms): its tasks move to others, against --slow-worker off",
    targets: &[Target::ratio("time", 0.6, 0.45)],
    run: slow_worker,
}];

/// Pauses of the workers before a batch, in milliseconds.
const PAUSES_MS: [&str; 4] = ["4", "4", "4", "20"];

/// Processes that end with this value.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Processes {
    /// Starts a process and waits for a line with `text`.
    fn start(&mut self, context: &Context, words: &[&str], text: &str) -> Result<String> {
        let mut command = context.command(Cores::Two, &arguments(words.iter().copied()));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("taskset")?;
        let lines = BufReader::new(child.stderr.take().context("it is piped")?);
        self.0.push(child);
        let (sender, receiver) = std::sync::mpsc::channel();
        // The lines are read to the end, so that the process does not wait for a reader.
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                // Only the first lines are waited for.
                let _ = sender.send(line);
            }
        });
        receiver.iter().find(|line| line.contains(text)).with_context(|| format!("it ended without {text:?}"))
    }
}

fn slow_worker(context: &Context) -> Result<Figures> {
    let mut processes = Processes(Vec::new());
    let line = processes.start(context, &["master", "--listen", "127.0.0.1:0"], "master is ready")?;
    let at = line.find("127.0.0.1:").context("the master has an address")?;
    let is_address = |c: &char| c.is_ascii_digit() || ".:".contains(*c);
    let address: String = line[at..].chars().take_while(is_address).collect();
    let member = ["--master", &address];
    let server = [&["server", "--listen", "127.0.0.1:0", "--lanes", "1"], &member[..]].concat();
    processes.start(context, &server, "joined")?;
    for (number, pause) in PAUSES_MS.iter().enumerate() {
        let name = format!("worker-{number}");
        let worker = [&["worker", "--name", &name, "--pause-ms", pause], &member[..]].concat();
        processes.start(context, &worker, "joined")?;
    }
    let data = context.clicks(10)?.join("train.libsvm");
    let model = context.scratch_path("model_slow_worker");
    let time = |policy: &str| -> Result<Sample> {
        let more = ["--servers", "1", "--workers", "4", "--slow-worker", policy, "--master", &address];
        let mut words = train("lr", &data, &model, 8, &["epochs=15", "batch_size=1024"], &more);
        words[0] = "submit".into();
        let start = Instant::now();
        context.seraphim(Cores::Two, &words)?;
        let seconds = start.elapsed().as_secs_f64();
        ensure!(model.exists(), "the job has no model");
        Ok(Sample::time(seconds))
    };
    let race = Comparison::run(context.options.rounds, || time("move"), || time("off").map(Some))?;
    Ok(Figures::from([("time", race.time())]))
}
