//! Faults in a cluster whose processes are started one by one: what it gains that the tasks of a slow worker go to others,
//! and how soon a job continues when its master is killed and another one is started.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::Benchmark;
use super::train::train;
use crate::comparison::{Comparison, Sample, median};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "slow_worker",
        title: "1M x 10M clicks, fifteen epochs on a server and four workers, one of which stands still nine tenths of the \
            time: its tasks move to others, against --slow-worker off",
        targets: &[Target::ratio("time", 0.6, 0.45)],
        run: slow_worker,
    },
    Benchmark {
        name: "master_loss",
        title: "the master of a cluster is killed in the middle of a job and another one is started at once with its state: \
            seconds until the job continues from its checkpoint",
        targets: &[Target::at_most("continued", "s", 5.0, 2.0)],
        run: master_loss,
    },
];

/// The signals with which a worker stands still and goes on, each with the milliseconds until the next one.
const SLOW_CYCLE: &str = "while kill -STOP $0; do sleep 0.027; kill -CONT $0; sleep 0.003; done";

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
    /// Kills the process that was started first.
    fn kill_first(&mut self) -> Result<()> {
        let first = self.0.first_mut().context("none was started")?;
        first.kill()?;
        first.wait().context("it was killed").map(drop)
    }

    /// Lets the process that was started last stand still most of the time.
    fn slow_last(&mut self) -> Result<()> {
        let last = self.0.last().context("none was started")?.id().to_string();
        let cycle = Command::new("sh").args(["-c", SLOW_CYCLE, &last]).stderr(Stdio::null()).spawn();
        self.0.push(cycle.context("sh")?);
        Ok(())
    }

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
    let address = address_in(&line)?;
    let member = ["--master", &address];
    let server = [&["server", "--listen", "127.0.0.1:0", "--lanes", "1"], &member[..]].concat();
    processes.start(context, &server, "joined")?;
    for name in ["worker-0", "worker-1", "worker-2", "worker-3"] {
        processes.start(context, &[&["worker", "--name", name], &member[..]].concat(), "joined")?;
    }
    processes.slow_last()?;
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

/// The address in the line that a master writes when it listens.
fn address_in(line: &str) -> Result<String> {
    let at = line.find("127.0.0.1:").context("the master has an address")?;
    let is_address = |c: &char| c.is_ascii_digit() || ".:".contains(*c);
    Ok(line[at..].chars().take_while(is_address).collect())
}

fn master_loss(context: &Context) -> Result<Figures> {
    let data = context.clicks(10)?.join("train.libsvm");
    let (model, folder) = (context.scratch_path("model_master"), context.scratch_path("checkpoints_master"));
    let state = context.scratch_path("state_master");
    let text = |path: &std::path::Path| path.to_str().map(str::to_owned).context("a name of text");
    let (folder_text, state_text) = (text(&folder)?, text(&state)?);
    let mut seconds = Vec::new();
    for _ in 0..context.options.rounds {
        for place in [&folder, &state] {
            let _ = std::fs::remove_dir_all(place);
        }
        let mut processes = Processes(Vec::new());
        let master = ["master", "--state", &state_text, "--listen"];
        let line = processes.start(context, &[&master[..], &["127.0.0.1:0"]].concat(), "master is ready")?;
        let address = address_in(&line)?;
        let member = ["--master", &address];
        for name in ["server-0", "server-1"] {
            let server = ["server", "--name", name, "--listen", "127.0.0.1:0", "--lanes", "1"];
            processes.start(context, &[&server[..], &member].concat(), "joined")?;
        }
        for name in ["worker-0", "worker-1"] {
            processes.start(context, &[&["worker", "--name", name], &member[..]].concat(), "joined")?;
        }
        let place = ["--servers", "2", "--workers", "2", "--master", &address];
        let more = [&place[..], &["--checkpoints", &folder_text, "--checkpoint-every", "500ms"]].concat();
        let mut words = train("lr", &data, &model, 2, &["epochs=10"], &more);
        words[0] = "submit".into();
        // The lines say when the job continues.
        let words: Vec<_> = words.into_iter().filter(|word| word != "--quiet").collect();
        let mut command = context.command(Cores::Two, &words);
        let mut client = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("taskset")?;
        while !folder.join("00000001/manifest").exists() {
            ensure!(client.try_wait()?.is_none(), "the job ended before its first checkpoint");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        processes.kill_first()?;
        let start = Instant::now();
        processes.start(context, &[&master[..], &[&address]].concat(), "master is ready")?;
        let lines = BufReader::new(client.stderr.take().context("it is piped")?).lines();
        let mut continued = None;
        // Its lines are read to the end, so that it does not wait for a reader.
        for line in lines.map_while(Result::ok) {
            if line.contains("continuing from checkpoint") {
                continued.get_or_insert(start.elapsed().as_secs_f64());
            }
        }
        ensure!(client.wait()?.success(), "the job failed");
        seconds.push(continued.context("the job did not continue from a checkpoint")?);
    }
    let middle = Figure::ours(median(&seconds).unwrap_or(f64::NAN));
    Ok(Figures::from([("continued", middle)]))
}
