//! Arguments that the commands of a cluster share: addresses, tokens, logs.

use std::io::IsTerminal;
use std::net::ToSocketAddrs;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use engine::cluster::{
    Address, Announcement, MasterLocator, WORKER_GROUP_BYTES, is_worker_group, master_locator,
};
use engine::job::check::parse_bytes;
use engine::{Error, checkpoint, math, model, store};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Default address of the master.
pub(super) const DEFAULT_MASTER: &str = "127.0.0.1:7070";
/// Maximum number of bytes that are read of a token file.
const TOKEN_LIMIT: usize = 4096;

pub(super) fn master_arg() -> Arg {
    Arg::new("master")
        .long("master")
        .value_name("ADDRESS")
        .default_value(DEFAULT_MASTER)
        .help("Address of the master: HOST:PORT, or unix:PATH; or the file of its --announce, such as hdfs://HOST:PORT/FILE")
}

/// For those that wait for a master to come back.
pub(super) fn lost_limit_arg() -> Arg {
    Arg::new("lost-limit")
        .long("lost-limit")
        .value_name("SECONDS")
        .default_value("30")
        .value_parser(clap::value_parser!(u64).range(1..=86_400))
        .help("How long to try to reach a lost master again; if it is given, also how long to try at first")
}

pub(super) fn lost_limit(matches: &ArgMatches) -> Duration {
    Duration::from_secs(matches.get_one::<u64>("lost-limit").copied().unwrap_or(30))
}

/// The number of a job of the cluster.
pub(super) fn job_arg() -> Arg {
    Arg::new("job")
        .value_name("JOB")
        .required(true)
        .value_parser(clap::value_parser!(u32))
        .help("Number of the job, as `submit` and `status` show it")
}

/// For commands that call the master over HTTP.
pub(super) fn master_http_arg() -> Arg {
    Arg::new("http").long("http").value_name("ADDRESS").help(
        "Address of the master's HTTP server [default: the port after that of --master, or unix:PATH.http]",
    )
}

/// For processes that have a port of frames.
pub(super) fn http_arg() -> Arg {
    Arg::new("http")
        .long("http")
        .value_name("ADDRESS")
        .help(
            "Address to serve HTTP on (gRPC, /metrics, /health) [default: the port after that of --listen, or \
             unix:PATH.http]; may be repeated",
        )
        .action(clap::ArgAction::Append)
}

pub(super) fn listen_arg(default: &'static str) -> Arg {
    Arg::new("listen")
        .long("listen")
        .value_name("ADDRESS")
        .default_value(default)
        .help("Address to listen on: HOST:PORT (port 0: any free one), or unix:PATH; may be repeated")
        .action(clap::ArgAction::Append)
}

/// For processes that serve sessions.
pub(super) fn session_checkpoints_arg() -> Arg {
    Arg::new("session-checkpoints").long("session-checkpoints").value_name("DIR").help(
        "Folder for the checkpoints of sessions, each name a folder of its own; with the features cloud and hdfs also \
         s3://BUCKET/PATH, gs://, az:// or hdfs://HOST:PORT/PATH [default: sessions have no checkpoints]",
    )
}

/// The place for the checkpoints of sessions; an error if a store cannot be there.
pub(super) fn session_checkpoints(matches: &ArgMatches) -> Result<Option<String>, Error> {
    let location = matches.get_one::<String>("session-checkpoints").cloned();
    location.as_deref().map(checkpoint::Folder::open).transpose()?;
    Ok(location)
}

pub(super) fn token_arg() -> Arg {
    Arg::new("token-file").long("token-file").value_name("FILE").help(
        "File with the secret that all members and clients share; required unless listening on loopback only",
    )
}

pub(super) fn log_args() -> [Arg; 2] {
    [
        Arg::new("log")
            .long("log")
            .value_name("LEVEL")
            .default_value("info")
            .help("Log level on standard error: error, warn, info, debug, trace, or module=level,..."),
        Arg::new("log-format")
            .long("log-format")
            .value_name("text|json")
            .default_value("text")
            .value_parser(["text", "json"])
            .help("Format of log lines: text for people, json for programs"),
    ]
}

/// Starts the log.
pub(super) fn start_log(matches: &ArgMatches) -> Result<(), Error> {
    let text = matches.get_one::<String>("log").map_or("info", String::as_str);
    let filter = log_filter(text)?;
    // A file gets no colours.
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry();
    // If a log exists already, because one process runs several commands, it stays in use.
    let _ = if matches.get_one::<String>("log-format").is_some_and(|format| format == "json") {
        registry.with(layer.json().with_filter(filter)).try_init()
    } else {
        registry.with(layer.with_filter(filter)).try_init()
    };
    Ok(())
}

/// Parses the value of `--log`. A word alone must be a level: as the name of a module it would silence all others.
fn log_filter(text: &str) -> Result<Targets, Error> {
    let is_known =
        |part: &str| !part.is_empty() && (part.contains('=') || part.parse::<LevelFilter>().is_ok());
    match text.parse() {
        Ok(filter) if text.split(',').all(is_known) => Ok(filter),
        _ => Err(Error::bad_value(
            "--log",
            text,
            "error, warn, info, debug or trace, or module=level, separated by commas",
        )),
    }
}

pub(super) fn address(flag: &str, text: &str) -> Result<Address, Error> {
    text.parse()
        .map_err(|_| Error::bad_value(format!("--{flag}"), text, "an address: HOST:PORT, or unix:PATH"))
}

/// Where a client or a member finds the master, and the secret that they share.
#[derive(Clone, Debug)]
pub(super) struct MasterPlace {
    /// An address, or the location of the file that the master writes.
    pub(super) master: String,
    pub(super) http: Option<String>,
    pub(super) token_file: Option<String>,
    /// The flags with which another command reaches the same master.
    pub(super) flags: String,
}

impl MasterPlace {
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
        let flag =
            |name: &&str| text(name).filter(|_| matches.value_source(name) == Some(ValueSource::CommandLine));
        let names = ["master", "http", "token-file"];
        let flags = names.iter().filter_map(|name| Some(format!(" --{name} {}", flag(name)?)));
        Self {
            master: text("master").unwrap_or_else(|| DEFAULT_MASTER.into()),
            http: text("http"),
            token_file: text("token-file"),
            flags: flags.collect(),
        }
    }

    /// Whether the master is found by the file that it writes. It may come later than those that look for it.
    pub(super) fn is_announced(&self) -> bool {
        self.master.contains("://")
    }

    /// The address at which the master serves HTTP now.
    pub(super) fn http(&self) -> Result<Address, Error> {
        match &self.http {
            Some(text) => address("http", text),
            None if self.is_announced() => Ok(Announcement::read(&self.master)?.http),
            None => address("master", &self.master)?.http().map_err(Error::process),
        }
    }

    /// The token; empty if there is none.
    pub(super) fn token(&self) -> Result<Vec<u8>, Error> {
        let Some(path) = &self.token_file else { return Ok(Vec::new()) };
        let text = if path.contains("://") {
            let read = store::open_folder_of(path).and_then(|(store, name)| store.read(name));
            read.map_err(model::Error::Store)?
        } else {
            std::fs::read(path).map_err(Error::io("read", path))?
        };
        let token = text.trim_ascii().to_vec();
        if token.is_empty() || token.len() > TOKEN_LIMIT {
            return Err(Error::request(
                format!("{path} contains {} bytes", token.len()),
                format!("a token has 1 to {TOKEN_LIMIT} bytes; generate one with `openssl rand -hex 32`"),
            ));
        }
        Ok(token)
    }
}

/// Where a member finds the master.
pub(super) fn master(matches: &ArgMatches) -> Result<MasterLocator, Error> {
    let place = MasterPlace::of(matches);
    let text = &place.master;
    if place.is_announced() { master_locator(text) } else { Ok(address("master", text)?.into()) }
}

/// Returns the limit of the memory for parameters, in bytes.
pub(super) fn memory_limit(matches: &ArgMatches) -> Result<u64, Error> {
    match matches.get_one::<String>("memory-limit") {
        None => Ok(engine::machine::memory_share() * 2),
        Some(text) => parse_bytes(text).ok_or_else(|| {
            Error::bad_value("--memory-limit", text.clone(), "a number of bytes, as in 512MiB or 2GiB")
        }),
    }
}

/// Returns the token; empty if there is none.
pub(super) fn token(matches: &ArgMatches) -> Result<Vec<u8>, Error> {
    MasterPlace::of(matches).token()
}

/// Returns the addresses of `--listen` or `--http`. Without a token they must be addresses of this machine.
pub(super) fn listen(flag: &str, matches: &ArgMatches, token: &[u8]) -> Result<Vec<Address>, Error> {
    let texts = matches.get_many::<String>(flag).into_iter().flatten();
    let addresses = texts.map(|text| address(flag, text)).collect::<Result<Vec<_>, _>>()?;
    for address in &addresses {
        if let Address::Tcp(place) = address
            && token.is_empty()
            && !is_loopback(place)
        {
            return Err(Error::request(
                format!("{place} can be reached from other machines, and there is no token"),
                "give --token-file FILE here and to all members and clients, or listen on 127.0.0.1",
            ));
        }
    }
    Ok(addresses)
}

fn is_loopback(place: &str) -> bool {
    place.to_socket_addrs().is_ok_and(|mut all| all.all(|address| address.ip().is_loopback()))
}

/// Returns host and process number, for people.
pub(super) fn host() -> String {
    format!("{}:{}", store::machine::host(), std::process::id())
}

/// Returns a number that differs at each start of a process.
pub(super) fn incarnation() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    math::hash::mix64(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32)
}

/// The worker group of a worker or of a job.
pub(super) fn worker_group_arg(help: &'static str) -> Arg {
    Arg::new("worker-group").long("worker-group").value_name("NAME").value_parser(worker_group).help(help)
}

fn worker_group(name: &str) -> Result<String, String> {
    if name.is_empty() || !is_worker_group(name) {
        return Err(format!("expected 1 to {WORKER_GROUP_BYTES} bytes without control characters"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn the_log_takes_levels_and_levels_of_modules_only() {
        for text in ["warn", "DEBUG", "info,rpc=debug", "worker::agent=trace"] {
            assert!(log_filter(text).is_ok(), "{text}");
        }
        for text in ["verbose", "rpc=loud", "info,rpc", "", "info,,rpc=debug"] {
            let error = log_filter(text).map(drop).unwrap_err().to_string();
            assert!(error.contains("--log") && error.contains("module=level"), "{text}: {error}");
        }
    }

    /// Parses the arguments that the processes of a cluster share.
    fn parsed(arguments: &[&str]) -> Result<ArgMatches, clap::Error> {
        let own = [master_arg(), lost_limit_arg(), listen_arg("127.0.0.1:0"), http_arg(), token_arg()];
        let group = worker_group_arg("A group");
        let limit = Arg::new("memory-limit").long("memory-limit");
        let command = Command::new("x").no_binary_name(true).args(own).arg(group).arg(limit);
        command.args(log_args()).try_get_matches_from(arguments)
    }

    fn matches(arguments: &[&str]) -> ArgMatches {
        parsed(arguments).unwrap()
    }

    #[test]
    fn what_is_not_given_has_the_default_of_the_help() {
        let none = matches(&[]);
        assert_eq!(master(&none).unwrap().to_string(), "tcp:127.0.0.1:7070");
        assert_eq!(MasterPlace::of(&none).http().unwrap().to_string(), "tcp:127.0.0.1:7071");
        assert_eq!(lost_limit(&none), Duration::from_secs(30));
        assert_eq!(token(&none).unwrap(), b"");
        assert_eq!(memory_limit(&none).unwrap(), engine::machine::memory_share() * 2);
        assert!(memory_limit(&none).unwrap() > 1 << 20);
        assert!(listen("http", &none, b"").unwrap().is_empty());
    }

    #[test]
    fn what_is_given_is_taken() {
        let given = matches(&["--master", "10.0.0.1:1", "--lost-limit", "7", "--memory-limit", "2KiB"]);
        assert_eq!(master(&given).unwrap().to_string(), "tcp:10.0.0.1:1");
        assert_eq!(lost_limit(&given), Duration::from_secs(7));
        assert_eq!(memory_limit(&given).unwrap(), 2048);
        assert_eq!(MasterPlace::of(&matches(&["--http", "unix:/x"])).http().unwrap().to_string(), "unix:/x");
        for (flag, value) in [("--memory-limit", "many"), ("--master", "nowhere"), ("--http", ":")] {
            let given = matches(&[flag, value]);
            let error =
                memory_limit(&given).map(drop).and(MasterPlace::of(&given).http().map(drop)).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(flag) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn without_a_token_a_process_listens_on_its_own_machine_only() {
        let listening = |places: &[&str], token: &[u8]| {
            let flags: Vec<&str> = places.iter().flat_map(|place| ["--listen", place]).collect();
            listen("listen", &matches(&flags), token).map(|addresses| addresses.len())
        };
        assert_eq!(listening(&["127.0.0.1:1", "localhost:2", "unix:/x"], b"").unwrap(), 3);
        let error = listening(&["127.0.0.1:1", "0.0.0.0:2"], b"").unwrap_err().to_string();
        assert!(error.contains("0.0.0.0:2") && error.contains("--token-file"), "{error}");
        assert_eq!(listening(&["0.0.0.0:2"], b"secret").unwrap(), 1);
        assert!(listening(&["no.such.name.invalid:2"], b"").is_err(), "it may be any machine's");
    }

    #[test]
    fn a_token_is_what_is_in_its_file_without_blanks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            token(&matches(&["--token-file", path.to_str().unwrap()])).map_err(|error| error.to_string())
        };
        assert_eq!(read(b" secret\n").unwrap(), b"secret");
        assert_eq!(read(&[b'a'; TOKEN_LIMIT]).unwrap().len(), TOKEN_LIMIT);
        for (content, bytes) in [(vec![b' '; 9], 0), (vec![b'a'; TOKEN_LIMIT + 1], TOKEN_LIMIT + 1)] {
            let error = read(&content).unwrap_err();
            assert!(error.contains(&format!("contains {bytes} bytes")), "{error}");
        }
        let absent = matches(&["--token-file", folder.path().join("no").to_str().unwrap()]);
        assert!(token(&absent).unwrap_err().to_string().contains("no"));
    }

    #[test]
    fn a_worker_group_has_a_name() {
        let group = |name: &str| {
            parsed(&["--worker-group", name]).map(|given| given.get_one::<String>("worker-group").cloned())
        };
        assert_eq!(group("spark-1").unwrap().as_deref(), Some("spark-1"));
        for name in ["", "a\tb", &"x".repeat(WORKER_GROUP_BYTES + 1)] {
            let error = group(name).unwrap_err().to_string();
            assert!(error.contains("without control characters"), "{error}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_host_and_each_start_by_a_number() {
        assert_eq!(host().rsplit_once(':').unwrap().1, std::process::id().to_string());
        assert_ne!(incarnation(), incarnation());
    }
}
