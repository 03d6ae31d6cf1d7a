//! `seraphim submit JOB.toml --master ADDRESS`, `seraphim submit predict ...`, `seraphim submit evaluate ...`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::cluster::{
    Address, Client, JobId, JobState, JobStatus, JobSubmission, SubmissionId, plain_lines,
};
use engine::interrupt::Interrupt;
use engine::job::checkpoints::CheckpointEvery;
use engine::job::keys::JobCommand;
use engine::job::submission::{CheckedJob, PathBase};
use engine::job::{RawJob, ScoringJob, TrainJob, submission};
use engine::outputs::{self, write_report};
use engine::report::Report;
use engine::{Environment, Error, Exit, model};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cluster_args::{
    MasterPlace, lost_limit, lost_limit_arg, master_arg, master_http_arg, token_arg, worker_group_arg,
};
use super::flags::{raw_job, with_flags};
use super::supervised::{self, Purpose, SupervisedCluster};
use super::supervisors;
use super::{evaluate, predict, print_json, print_notice, print_text, train};

/// Maximum length in bytes of the master's error that is printed.
const ERROR_BYTES: usize = 16 << 10;
/// Maximum wait for an answer of the master, including all attempts.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Time between two looks for an interrupt.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two attempts to reach a lost master.
const RETRY_INTERVAL: Duration = Duration::from_millis(300);

pub(super) fn command() -> Command {
    let what = Arg::new("what")
        .value_name("ALGORITHM|JOB.toml")
        .required(true)
        .help("An algorithm, or a job file with the same keys; flags override the file");
    let command = Command::new("submit")
        .about("Train or score on a running cluster; its workers read the data and write the model or the scores")
        .arg(what)
        .subcommand(scoring_command(JobCommand::Predict, "Score data with a model, in the order of the data"))
        .subcommand(scoring_command(JobCommand::Evaluate, "Compute the metrics of a model on labelled data"))
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true);
    with_flags(with_client_args(command), JobCommand::Train)
}

fn scoring_command(command: JobCommand, about: &'static str) -> Command {
    with_flags(with_client_args(Command::new(command.name()).about(about)), command)
}

/// Adds the flags of a client that may wait for its job.
fn with_client_args(command: Command) -> Command {
    let detach = Arg::new("detach")
        .long("detach")
        .action(ArgAction::SetTrue)
        .help("Print the number of the job and do not wait for its end");
    let group = worker_group_arg(
        "Run on workers that were started with the same --worker-group [default: on workers without one]",
    );
    let cancel = Arg::new("cancel-on-exit")
        .long("cancel-on-exit")
        .action(ArgAction::SetTrue)
        .conflicts_with("detach")
        .help("Cancel the job when this command is interrupted, by Ctrl-C or the signal TERM [default: the job continues]");
    let own = [master_arg(), master_http_arg(), token_arg(), lost_limit_arg(), group, detach, cancel];
    supervisors::with_args(command).args(own)
}

/// The model or the scores that a job writes.
fn output(job: &CheckedJob) -> Option<String> {
    let path = match job {
        CheckedJob::Train(job) => Some(job.model.as_path()),
        CheckedJob::Score(job) => job.output(),
    };
    path.map(|path| path.display().to_string())
}

/// Returns the settings of the job, and the flags of the client.
fn raw(matches: &ArgMatches) -> Result<(RawJob, &ArgMatches), Error> {
    Ok(match matches.subcommand() {
        None => (train::raw(matches)?, matches),
        Some((name, own)) => {
            let is_named = |command: &JobCommand| command.name() == name;
            let command = JobCommand::ALL.into_iter().find(is_named).expect("there are no other subcommands");
            (raw_job(own, command), own)
        }
    })
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let interrupt = environment.interrupt;
    let (raw, matches) = raw(matches)?;
    let raw = with_absolute_paths(raw)?;
    let job = CheckedJob::check(&raw, environment.families)?;
    let (servers, workers) = job.size();
    let order = JobSubmission {
        title: job.title(),
        spec: serde_json::to_value(&raw).expect("texts are always JSON"),
        servers,
        workers,
        worker_group: matches.get_one::<String>("worker-group").cloned().unwrap_or_default(),
    };
    // An invalid job is refused here and not sent to the master.
    submission::check(&order, PathBase::Unknown, environment.families)?;
    if let CheckedJob::Train(job) = &job {
        check_report(job, matches)?;
        // The workers check it again. Where this machine does not see their folder, only they do.
        model::check_absent(&job.model, job.overwrite)?;
    }
    let output = output(&job);
    let purpose = Purpose { order: &order, job: &raw, output: output.as_deref() };
    let started = supervisors::start(matches, purpose, interrupt)?;
    let place = started.as_ref().map_or_else(|| MasterPlace::of(matches), |cluster| cluster.place().clone());
    let token = started.as_ref().map_or_else(|| place.token(), |cluster| cluster.token())?;
    let (address, flags) = (place.http()?, place.flags.clone());
    let client = Client::new(address.clone(), &token);
    let cancels = matches.get_flag("cancel-on-exit");
    if cancels {
        interrupt.set_stop_message("cancelling the job");
    } else {
        interrupt.exit_on_interrupt(format!(
            "unknown whether the master accepted the job: `seraphim status{flags}` lists the accepted jobs"
        ));
    }
    let submitted = client.submit(SubmissionId::random(), &order, ANSWER_LIMIT);
    let number = submitted.map_err(engine::cluster::master_error(&address))?;
    if matches.get_flag("detach") {
        print_text(&format!("{number}\n"))?;
        return Ok(Exit::Done);
    }
    if cancels {
        let client = Client::new(address.clone(), &token);
        let interrupt = interrupt.clone();
        std::thread::spawn(move || cancel_when_interrupted(&client, number, &flags, &interrupt));
    } else {
        interrupt
            .exit_on_interrupt(format!("job {number} continues; `seraphim cancel {number}{flags}` stops it"));
    }
    let limit = lost_limit(matches);
    let limit = if started.is_some() { limit.max(supervised::LOST_LIMIT) } else { limit };
    let mut submitted = SubmittedJob { client, address, number, place, started, limit };
    let exit = finish(submitted.wait_for_end(&job, &token)?, &job);
    submitted.started.iter().for_each(|cluster| cluster.remove());
    exit
}

/// Waits for an interrupt and cancels the job. This command goes on until the job has ended, or until a second interrupt.
fn cancel_when_interrupted(client: &Client, number: JobId, flags: &str, interrupt: &Interrupt) {
    while !interrupt.is_raised() {
        std::thread::sleep(INTERRUPT_INTERVAL);
    }
    interrupt.exit_on_interrupt(match client.cancel(number, ANSWER_LIMIT) {
        Ok(_) => format!("job {number} was asked to stop; `seraphim status {number}{flags}` shows its end"),
        Err(error) => {
            let text = format!("job {number} continues, because the master could not be asked: {error}");
            print_notice(&text);
            text
        }
    });
}

fn check_report(job: &TrainJob, matches: &ArgMatches) -> Result<(), Error> {
    if matches.get_flag("detach") && job.report.is_some() {
        return Err(Error::request(
            "--report is written at the end of the job, and --detach does not wait for it",
            "leave one of them out; `seraphim status JOB --json` gives the report of a job that has ended",
        ));
    }
    outputs::check_report(job)
}

/// A submitted job at its master.
struct SubmittedJob {
    client: Client,
    address: Address,
    number: JobId,
    place: MasterPlace,
    /// The cluster, if it was started for this job.
    started: Option<Box<dyn SupervisedCluster>>,
    /// How long to try to reach a lost master again.
    limit: Duration,
}

impl SubmittedJob {
    /// Watches the job until its end, also through a restart of the master. Returns its last status.
    fn wait_for_end(&mut self, job: &CheckedJob, token: &[u8]) -> Result<Option<JobStatus>, Error> {
        let limit = self.limit;
        let mut last: Option<JobStatus> = None;
        let mut lost_since = None;
        loop {
            let mut is_other = false;
            let watched = self.client.watch(self.number, |status| {
                // A new master without the records of the earlier one gives the same numbers to other jobs.
                is_other = last.as_ref().is_some_and(|last| last.title != status.title);
                if is_other {
                    return false;
                }
                lost_since = None;
                if !job.run_options().quiet {
                    for line in changes(last.as_ref(), status) {
                        print_notice(&line);
                    }
                }
                last = Some(status.clone());
                true
            });
            let problem = match watched {
                Ok(()) if is_other => "a new master does not know the job".to_owned(),
                Ok(()) => return Ok(last),
                // The master stops, is gone, or has too much to do.
                Err(error) if error.may_pass() => error.to_string(),
                Err(error) if lost_since.is_none() => {
                    return Err(engine::cluster::master_error(&self.address)(error));
                }
                Err(error) => return Err(lost_master(&self.address, self.number, job, &error)),
            };
            if let Some(end) = self.started.as_ref().and_then(|cluster| cluster.end()) {
                return Err(end);
            }
            let lost = lost_master(&self.address, self.number, job, &problem);
            if lost_since.is_none() && !job.run_options().quiet {
                print_notice(&format!("{lost}; waiting {} s for the master", limit.as_secs()));
            }
            if is_other || lost_since.get_or_insert_with(Instant::now).elapsed() >= limit {
                return Err(lost);
            }
            std::thread::sleep(RETRY_INTERVAL);
            // A supervisor may have started it elsewhere.
            if let Ok(address) = self.place.http() {
                self.client = Client::new(address.clone(), token);
                self.address = address;
            }
        }
    }
}

fn lost_master(address: &Address, number: JobId, job: &CheckedJob, error: &dyn std::fmt::Display) -> Error {
    let then = match job {
        CheckedJob::Train(job) if job.checkpoints.every != CheckpointEvery::Off => {
            let location = &job.checkpoints.location;
            format!("go on from its last checkpoint with `seraphim train --resume {location}`")
        }
        CheckedJob::Train(_) | CheckedJob::Score(_) => "submit it again".into(),
    };
    let text = format!(
        "the master at {address} is lost, with job {number}: {error}. The job goes on when the master comes back with its \
         --state; if none comes back within the --lost-limit of the workers (default 30 s), {then}"
    );
    Error::Cluster { text, exit: Exit::Io }
}

/// Describes what has changed since the last status, a line each.
fn changes(last: Option<&JobStatus>, status: &JobStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if last.is_none_or(|last| last.state != status.state) {
        lines.push(format!("job {} {}", status.id, state_text(status.state)));
    }
    let waits_for = |status: &JobStatus| status.progress["waits_for"].as_str().map(str::to_owned);
    let waits = waits_for(status).filter(|waits| last.and_then(waits_for).as_ref() != Some(waits));
    lines.extend(
        waits.map(|waits| format!("job {} waits for {}", status.id, plain_lines(&waits, ERROR_BYTES))),
    );
    let told = last.map_or(0, |last| incident_count(&last.progress));
    let new = incident_count(&status.progress).saturating_sub(told) as usize;
    let incidents = super::status::incidents(&status.progress);
    for incident in &incidents[incidents.len().saturating_sub(new)..] {
        lines.push(format!("job {}: {incident}", status.id));
    }
    let reached = super::status::progress_text(&status.progress);
    if status.state == JobState::Running && !reached.is_empty() {
        lines.push(format!("job {}: {}", status.id, reached.trim_start()));
    }
    lines
}

fn incident_count(progress: &Value) -> u64 {
    progress["incidents"]["count"].as_u64().unwrap_or(0)
}

fn state_text(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "is queued",
        JobState::Running => "is running",
        JobState::Done => "is done",
        JobState::Failed => "has failed",
        JobState::Cancelled => "was cancelled",
    }
}

pub(super) fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

fn finish(last: Option<JobStatus>, job: &CheckedJob) -> Result<Exit, Error> {
    let Some(status) = last else {
        let text = "the master sent no status of the job".into();
        return Err(Error::Cluster { text, exit: Exit::Internal });
    };
    if let Some(text) = status.error {
        let exit =
            status.progress["exit"].as_u64().map_or(Exit::Internal, |code| Exit::from_code(code as u8));
        return Err(Error::Cluster { text: plain_lines(&text, ERROR_BYTES), exit });
    }
    if status.state == JobState::Cancelled && status.progress.is_null() {
        let text = format!("job {} was cancelled before it began: there is no result", status.id);
        return Err(Error::Cluster { text, exit: Exit::Interrupted });
    }
    match job {
        CheckedJob::Train(job) => finish_training(status, job),
        CheckedJob::Score(ScoringJob::Predict(job)) => {
            predict::print(&result(status)?, job)?;
            Ok(Exit::Done)
        }
        CheckedJob::Score(ScoringJob::Evaluate(job)) => {
            evaluate::print(&result(status)?, job)?;
            Ok(Exit::Done)
        }
    }
}

/// Returns the result of a scoring job.
fn result<T: DeserializeOwned>(status: JobStatus) -> Result<T, Error> {
    serde_json::from_value(status.progress).map_err(|error| Error::Cluster {
        text: format!("the result of the job cannot be read: {error}; use the same release at both ends"),
        exit: Exit::Internal,
    })
}

fn finish_training(status: JobStatus, job: &TrainJob) -> Result<Exit, Error> {
    let model = status.progress["model"].as_str().map(str::to_owned);
    let Ok(report) = serde_json::from_value::<Report>(status.progress) else {
        let text = match model {
            Some(model) => {
                format!("the model is saved in {model}, but the report of the job is too long to be sent")
            }
            None => "the report of the job cannot be read: use the same release at both ends".into(),
        };
        return Err(Error::Cluster { text, exit: Exit::Internal });
    };
    if let Some(path) = &job.report {
        write_report(&report, path)?;
    }
    if job.run_options.json {
        print_json(&report)?;
    } else {
        print_text(&train::summary(&report))?;
    }
    Ok(if report.ended_by == "interrupted" { Exit::Interrupted } else { Exit::Done })
}

/// Makes paths absolute, since workers run in other folders.
fn with_absolute_paths(raw: RawJob) -> Result<RawJob, Error> {
    let folder = std::env::current_dir().map_err(Error::io("find", PathBuf::from(".")))?;
    let whole = |text: &str| {
        if text == "-" || text.contains("://") {
            text.to_owned()
        } else {
            folder.join(Path::new(text)).display().to_string()
        }
    };
    Ok(raw.with_paths(whole))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(state: JobState, progress: Value) -> JobStatus {
        JobStatus { id: 7, title: "lr on x".into(), state, progress, error: None }
    }

    fn matches(arguments: &[&str]) -> ArgMatches {
        command().no_binary_name(true).try_get_matches_from(arguments).unwrap()
    }

    fn job(arguments: &[&str]) -> CheckedJob {
        let matches = matches(arguments);
        CheckedJob::check(&raw(&matches).unwrap().0, &families::all()).unwrap()
    }

    fn training() -> CheckedJob {
        job(&["lr", "--data", "a.libsvm", "--model", "m"])
    }

    #[test]
    fn what_has_changed_is_told_once() {
        let progress = |count: u64, last: &[&str]| json!({"records": 9, "epochs": 0, "incidents": {"count": count, "last": last}});
        let queued = status(JobState::Queued, Value::Null);
        assert_eq!(changes(None, &queued), ["job 7 is queued"]);
        assert_eq!(changes(Some(&queued), &queued), [] as [&str; 0]);
        let waits = status(JobState::Queued, json!({"waits_for": "members: 0 of 1 servers are connected"}));
        let told = "job 7 waits for members: 0 of 1 servers are connected";
        assert_eq!(changes(None, &waits), ["job 7 is queued", told]);
        assert_eq!(changes(Some(&queued), &waits), [told]);
        assert_eq!(changes(Some(&waits), &waits), [] as [&str; 0]);
        let running = status(JobState::Running, progress(1, &["a was lost"]));
        let reached = "job 7: epoch 1, 9 records";
        assert_eq!(changes(Some(&queued), &running), ["job 7 is running", "job 7: a was lost", reached]);
        assert_eq!(changes(Some(&running), &running), [reached]);
        let later = status(JobState::Running, progress(3, &["a was lost", "b was lost", "c was lost"]));
        assert_eq!(changes(Some(&running), &later), ["job 7: b was lost", "job 7: c was lost", reached]);
        let many = status(JobState::Running, progress(30, &["y was lost", "z was lost"]));
        assert_eq!(changes(Some(&later), &many), ["job 7: y was lost", "job 7: z was lost", reached]);
        for (state, text) in [
            (JobState::Done, "is done"),
            (JobState::Failed, "has failed"),
            (JobState::Cancelled, "was cancelled"),
        ] {
            let ended = status(state, progress(30, &["z was lost"]));
            assert_eq!(changes(Some(&many), &ended), [format!("job 7 {text}")], "no progress after the end");
        }
    }

    #[test]
    fn a_job_that_failed_ends_the_command_with_its_code() {
        let ended = |state, progress, error: Option<&str>| {
            let status = JobStatus { error: error.map(str::to_owned), ..status(state, progress) };
            match finish(Some(status), &training()) {
                Err(Error::Cluster { text, exit }) => (text, exit),
                other => panic!("{other:?}"),
            }
        };
        let (text, exit) = ended(JobState::Failed, json!({"exit": 3}), Some("no\u{7} data\nin x"));
        assert!(exit == Exit::Data && text.starts_with("no") && text.ends_with("\nin x"), "{text}");
        assert!(!text.contains('\u{7}'));
        assert_eq!(ended(JobState::Failed, Value::Null, Some("no")), ("no".into(), Exit::Internal));
        let (text, exit) = ended(JobState::Cancelled, Value::Null, None);
        assert!(exit == Exit::Interrupted && text.contains("before it began"), "{text}");
        let (text, exit) = ended(JobState::Done, json!({"model": "/m"}), None);
        assert!(
            exit == Exit::Internal && text.contains("saved in /m") && text.contains("too long"),
            "{text}"
        );
        let (text, _) = ended(JobState::Done, json!({}), None);
        assert!(text.contains("use the same release at both ends"), "{text}");
        assert!(matches!(finish(None, &training()), Err(Error::Cluster { exit: Exit::Internal, .. })));
        let scoring = job(&["predict", "--model", "m", "--data", "a", "--output", "b"]);
        let unread = finish(Some(status(JobState::Done, json!({}))), &scoring).unwrap_err();
        assert!(unread.to_string().contains("the result of the job cannot be read"), "{unread}");
    }

    #[test]
    fn another_command_reaches_the_same_master_with_the_flags_that_were_given() {
        let flags = |more: &[&str]| {
            let fixed = ["lr", "--data", "a", "--model", "m"];
            MasterPlace::of(&matches(&[&fixed[..], more].concat())).flags
        };
        assert_eq!(flags(&[]), "");
        assert_eq!(flags(&["--token-file", "t", "--master", "h:1"]), " --master h:1 --token-file t");
        assert_eq!(flags(&["--http", "h:2"]), " --http h:2");
    }

    #[test]
    fn paths_are_those_of_the_folder_of_the_client() {
        let here = std::env::current_dir().unwrap();
        let data = ["data/a.libsvm", "s3://bucket/b", "/c"];
        let fixed = ["lr", "--model", "m", "--data", data[0], data[1], data[2]];
        let raw = raw(&matches(&fixed)).unwrap().0;
        let CheckedJob::Train(job) =
            CheckedJob::check(&with_absolute_paths(raw).unwrap(), &families::all()).unwrap()
        else {
            panic!("it trains")
        };
        let first = here.join(data[0]).display().to_string();
        assert_eq!(job.input.data, [&first, data[1], data[2]]);
        assert_eq!(job.model, here.join("m"));
    }

    #[test]
    fn a_lost_master_is_told_with_what_becomes_of_the_job() {
        let address: Address = "127.0.0.1:1".parse().unwrap();
        let told = |job: &CheckedJob| lost_master(&address, 7, job, &"it is gone").to_string();
        let text = told(&training());
        assert!(
            text.contains("127.0.0.1:1 is lost, with job 7: it is gone.")
                && text.contains("--resume m.checkpoints")
        );
        let text = told(&job(&["evaluate", "--model", "m", "--data", "a"]));
        assert!(text.contains("submit it again"), "{text}");
    }
}
