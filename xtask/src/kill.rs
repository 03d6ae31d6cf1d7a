//! `cargo xtask kill`: trains with real processes that are killed at random moments, and compares what comes out with
//! undisturbed trainings.

mod cluster;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::Cmd;
use crate::metadata;
use cluster::Cluster;

/// Longest time of one training with all its losses.
const ROUND_LIMIT: Duration = Duration::from_mins(5);
const RECORDS: u64 = 60_000;

/// A training: its algorithm, its settings and its consistency.
type Job = (&'static str, &'static [&'static str], &'static str);

/// Trainings of every loop, under every consistency.
const JOBS: &[Job] = &[
    ("lr", &["epochs=6"], "bsp"),
    ("fm", &["epochs=3", "k=4"], "bsp"),
    ("kmeans", &["k=8", "method=mini_batch", "epochs=4"], "bsp"),
    ("kmeans", &["k=8", "max_iterations=12", "tolerance=0"], "bsp"),
    ("lr", &["optimizer=lbfgs", "l2=1", "max_iterations=25"], "bsp"),
    ("lr", &["epochs=6", "optimizer=adagrad"], "ssp:2"),
    ("lr", &["epochs=6", "optimizer=sgd"], "asp"),
];

/// Who is killed in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victims {
    Server,
    Worker,
    /// A server and a worker.
    Two,
    /// The command and with it all processes, as when the power fails.
    Everything,
    /// The master of a cluster, which is started again with its state.
    Master,
    /// The master and a member.
    MasterAndMember,
}

const VICTIMS: [Victims; 6] = [
    Victims::Server,
    Victims::Worker,
    Victims::Two,
    Victims::Everything,
    Victims::Master,
    Victims::MasterAndMember,
];

/// What there is of a training when a server has died.
const DURABILITIES: [&str; 4] = ["checkpoint", "log", "synced-log", "replica"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KillOptions {
    rounds: u64,
    seed: u64,
}

impl KillOptions {
    /// Parses the words after `kill`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { rounds: 10, seed: 1 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let field = match *word {
                "--rounds" => &mut options.rounds,
                "--seed" => &mut options.seed,
                other => bail!("unknown word {other:?}: kill takes --rounds N and --seed S"),
            };
            let value = words.next().with_context(|| format!("{word} needs a number"))?;
            *field = value.parse().with_context(|| format!("{word} {value:?} is no number"))?;
        }
        ensure!(options.rounds > 0, "--rounds 0 would try nothing: give 1 or more");
        Ok(options)
    }

    #[cfg(test)]
    fn of(rounds: u64, seed: u64) -> Self {
        Self { rounds, seed }
    }
}

/// Numbers that a seed determines: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}

/// What an undisturbed training gives.
struct Undisturbed {
    files: BTreeMap<PathBuf, Vec<u8>>,
    duration: Duration,
}

struct Rounds {
    program: PathBuf,
    folder: PathBuf,
    random: Random,
    undisturbed: BTreeMap<usize, Undisturbed>,
}

/// Runs the rounds; the first difference ends them with an error that says how to repeat it.
pub(crate) fn run(root: &Path, options: &KillOptions) -> Result<()> {
    Cmd::cargo(root, "build -p seraphim").run()?;
    let target = metadata::target_folder(root)?;
    let (program, folder) = (target.join("debug/seraphim"), target.join("kill"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let seed = options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut rounds = Rounds { program, folder, random: Random(seed), undisturbed: BTreeMap::new() };
    rounds.generate()?;
    for round in 0..options.rounds {
        rounds.round(round).with_context(|| {
            format!(
                "round {round}; repeat it with `cargo xtask kill --rounds {} --seed {}`",
                options.rounds, options.seed
            )
        })?;
    }
    println!("kill: {} rounds, nothing lost, nothing counted twice, no byte changed", options.rounds);
    Ok(())
}

/// Trains with an example program in one process, and on two servers and two workers of which a server is killed as soon as
/// it works. Both must give the same model.
pub(crate) fn run_example(root: &Path, program: &Path, words: &str) -> Result<()> {
    let folder = metadata::target_folder(root)?.join("killed_example");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let start = |name: &str, more: Vec<String>| -> Result<Child> {
        let mut command = Command::new(program);
        command.current_dir(root).args(words.split_whitespace()).arg("--model").arg(folder.join(name));
        command.args(["--tasks", "2", "--quiet"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().context("cannot start the example")
    };
    let deadline = Instant::now() + ROUND_LIMIT;
    ensure_success(start("whole", Vec::new())?, deadline)?;
    let saved = folder.join("saved").display().to_string();
    let saving = ["--checkpoint-every", "20ms", "--checkpoints", &saved];
    let child = start("killed", on_servers(&saving))?;
    while !has_checkpoint(&saved) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid =
        children(child.id()).get("server-1").copied().context("the training had ended before the kill")?;
    Cmd::new("kill", root).args(["-KILL", &pid.to_string()]).run()?;
    ensure_success(child, deadline)?;
    let same = files_of(&folder.join("whole"))? == files_of(&folder.join("killed"))?;
    ensure!(same, "{words}: the model has other bytes after the loss of a server");
    Ok(())
}

impl Rounds {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn generate(&self) -> Result<()> {
        let (rows, output) = (RECORDS.to_string(), self.path("clicks"));
        let words = ["generate", "ctr", "--rows", &rows, "--test-rows", "1000", "--dimensions", "20000"];
        Cmd::new(&self.program, &self.folder).args(words).args(["--output", &output]).output().map(drop)
    }

    fn words(&self, job: Job, model: &str) -> Vec<String> {
        let (algorithm, settings, consistency) = job;
        let (data, model) = (self.path("clicks/train.libsvm"), self.path(model));
        let report = format!("{model}.json");
        let fixed =
            ["train", algorithm, "--data", &data, "--model", &model, "--report", &report, "--overwrite"];
        let more = ["--tasks", "4", "--consistency", consistency, "--quiet"];
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        fixed.into_iter().chain(more).chain(settings).map(str::to_owned).collect()
    }

    fn start(&self, words: &[String]) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().context("cannot start the program")
    }

    /// Trains without a disturbance, once for each job.
    fn undisturbed(&mut self, index: usize) -> Result<()> {
        if self.undisturbed.contains_key(&index) {
            return Ok(());
        }
        let (name, start) = (format!("whole-{index}"), Instant::now());
        let words = [self.words(JOBS[index], &name), on_servers(&["--checkpoint-every", "off"])].concat();
        ensure_success(self.start(&words)?, Instant::now() + ROUND_LIMIT)?;
        let duration = start.elapsed();
        let files = files_of(&self.folder.join(&name))?;
        self.undisturbed.insert(index, Undisturbed { files, duration });
        Ok(())
    }

    fn round(&mut self, round: u64) -> Result<()> {
        let index = round as usize % JOBS.len();
        let victims = VICTIMS[self.random.below(VICTIMS.len() as u64) as usize];
        self.undisturbed(index)?;
        let duration = self.undisturbed[&index].duration;
        let delay = duration.mul_f64(self.random.below(1000) as f64 / 1000.0);
        let job = JOBS[index];
        let checkpoints = self.path("killed.saved");
        let _ = fs::remove_dir_all(&checkpoints);
        let _ = fs::remove_dir_all(self.path("killed"));
        // The command may be killed between its model and its report.
        let _ = fs::remove_file(self.path("killed.json"));
        let durability = DURABILITIES[self.random.below(DURABILITIES.len() as u64) as usize];
        let increments = self.random.below(4).to_string();
        let saving =
            ["--checkpoints", &checkpoints, "--checkpoint-every", "40ms", "--durability", durability];
        let saving = [&saving[..], &["--checkpoint-increments", &increments]].concat();
        println!(
            "round {round}: {} {:?} {} {durability}, {increments} increments, {victims:?} after {delay:?}",
            job.0, job.1, job.2
        );
        let mut words = [self.words(job, "killed"), on_servers(&saving)].concat();
        if matches!(victims, Victims::Master | Victims::MasterAndMember) {
            "submit".clone_into(&mut words[0]);
            self.cluster_round(words, victims, delay, durability)?;
            return self.compare(index);
        }
        let mut child = self.start(&words)?;
        std::thread::sleep(delay);
        self.kill(&mut child, victims);
        let deadline = Instant::now() + ROUND_LIMIT;
        if victims == Victims::Everything && !self.folder.join("killed/model.json").exists() {
            child.wait()?;
            let resume = if has_checkpoint(&checkpoints) { &["--resume", "latest"][..] } else { &[] };
            let resume = resume.iter().map(|word| (*word).to_owned());
            child = self.start(&words.iter().cloned().chain(resume).collect::<Vec<_>>())?;
        } else if victims == Victims::Everything {
            // The model was complete before the command was killed.
            child.wait()?;
            return self.compare(index);
        }
        ensure_success(child, deadline)?;
        self.compare(index)
    }

    /// Runs a job on a cluster whose master is killed.
    fn cluster_round(
        &mut self,
        mut words: Vec<String>,
        victims: Victims,
        delay: Duration,
        durability: &str,
    ) -> Result<()> {
        let state = self.folder.join("state");
        let _ = fs::remove_dir_all(&state);
        let mut cluster = Cluster::start(&self.program, &state, durability)?;
        words.extend(["--master", cluster.address(), "--lost-limit", "60"].map(str::to_owned));
        let client = self.start(&words)?;
        std::thread::sleep(delay);
        let kind = ["server", "worker"][self.random.below(2) as usize];
        let member = format!("{kind}-{}", self.random.below(2));
        cluster.kill((victims == Victims::MasterAndMember).then_some(member.as_str()))?;
        ensure_success(client, Instant::now() + ROUND_LIMIT)
    }

    fn kill(&mut self, child: &mut Child, victims: Victims) {
        let kinds: &[&str] = match victims {
            Victims::Server => &["server"],
            Victims::Worker => &["worker"],
            Victims::Two => &["server", "worker"],
            // Their rounds have a cluster of their own.
            Victims::Master | Victims::MasterAndMember => &[],
            Victims::Everything => {
                // It may have ended already.
                let _ = child.kill();
                return;
            }
        };
        for kind in kinds {
            let name = format!("{kind}-{}", self.random.below(2));
            if let Some(pid) = children(child.id()).get(&name) {
                // It may have ended between the two lines.
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            }
        }
    }

    /// Compares with the undisturbed training: the bytes under bsp, and otherwise the number of records that count.
    fn compare(&self, index: usize) -> Result<()> {
        if JOBS[index].2 == "bsp" {
            let files = files_of(&self.folder.join("killed"))?;
            ensure!(files == self.undisturbed[&index].files, "the model has other bytes");
        }
        let records = |name: &str| -> Result<Vec<u64>> {
            let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(self.path(name))?)?;
            let epochs = report["epochs"].as_array().context("a report has epochs")?;
            Ok(epochs.iter().filter_map(|epoch| epoch["records"].as_u64()).collect())
        };
        if let Ok(counted) = records("killed.json") {
            let expected = records(&format!("whole-{index}.json"))?;
            ensure!(counted == expected, "{counted:?} records counted, expected {expected:?}");
        }
        Ok(())
    }
}

fn on_servers(more: &[&str]) -> Vec<String> {
    let size = ["--servers", "2", "--workers", "2", "--restarts", "20"];
    size.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn has_checkpoint(folder: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("manifest")).any(|manifest| manifest.exists())
}

/// The files of a model.
fn files_of(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no model in {}", folder.display()))? {
        let path = entry?.path();
        files.insert(path.file_name().unwrap_or_default().into(), fs::read(&path)?);
    }
    Ok(files)
}

/// Waits for the end of a process, which must succeed.
fn ensure_success(mut child: Child, deadline: Instant) -> Result<()> {
    loop {
        if let Some(status) = child.try_wait()? {
            let mut said = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                std::io::Read::read_to_string(&mut stderr, &mut said)?;
            }
            ensure!(status.success(), "it ended with {status}: {said}");
            return Ok(());
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            bail!("it did not end within {} s", ROUND_LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The servers and workers that a process has started, by name.
fn children(of: u32) -> BTreeMap<String, u32> {
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let text: String = lists.collect();
    let named = text.split_whitespace().filter_map(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<String> =
            words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let at = words.iter().position(|word| word == "--name")?;
        Some((words.get(at + 1)?.clone(), pid.parse().ok()?))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_other_words_refused() {
        assert_eq!(KillOptions::parse(&[]).unwrap(), KillOptions::of(10, 1));
        assert_eq!(KillOptions::parse(&["--seed", "7", "--rounds", "2"]).unwrap(), KillOptions::of(2, 7));
        assert!(KillOptions::parse(&["--rounds"]).is_err());
        assert!(KillOptions::parse(&["--rounds", "0"]).is_err());
        assert!(KillOptions::parse(&["--round", "1"]).is_err());
    }
}
