//! `seraphim serve-parameters`: a parameter service for external programs.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::cluster::{Address, LocalMaster, ParameterServiceConfig, serve_parameters};
use engine::{Environment, Error, Exit};
use serde_json::{Value, json};

use super::cluster_args::{
    DEFAULT_MASTER, http_arg, listen, listen_arg, log_args, memory_limit, session_checkpoints,
    session_checkpoints_arg, start_log, token, token_arg,
};
use super::server::log_folder_args;
use super::{print_json, print_text};
use crate::progress::{bytes, counted};

/// Maximum number of servers on one machine, and of threads of each server.
const SERVER_LIMIT: i64 = 256;
const LANE_LIMIT: i64 = 256;

pub(super) fn command() -> Command {
    Command::new("serve-parameters")
        .about("Serve parameters to external programs: start a master and servers on this machine")
        .after_help(
            "See docs/parameter-service.md; examples/foreign_client.py is an example client. Ctrl-C stops the service.",
        )
        .arg(listen_arg(DEFAULT_MASTER).action(ArgAction::Set))
        .arg(http_arg())
        .arg(
            Arg::new("servers")
                .long("servers")
                .value_name("N")
                .default_value("1")
                .value_parser(clap::value_parser!(u32).range(1..=SERVER_LIMIT))
                .help("Number of server processes"),
        )
        .arg(
            Arg::new("lanes")
                .long("lanes")
                .value_name("N")
                .default_value("1")
                .value_parser(clap::value_parser!(u16).range(1..=LANE_LIMIT))
                .help("Number of lanes (threads) of each server, each with its own partitions"),
        )
        .arg(
            Arg::new("memory-limit")
                .long("memory-limit")
                .value_name("BYTES")
                .help("Memory limit of all servers together, as in 2GiB [default: half of the machine's or container's]"),
        )
        .arg(
            Arg::new("max-sessions")
                .long("max-sessions")
                .value_name("N")
                .value_parser(clap::value_parser!(u32).range(1..=1024))
                .help("Maximum number of sessions; further ones are refused and may retry [default: 64]"),
        )
        .args(log_folder_args())
        .arg(session_checkpoints_arg())
        .arg(token_arg())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the address as JSON"))
        .args(log_args())
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    start_log(matches)?;
    environment
        .interrupt
        .set_stop_message("stopping: sessions are closed; press Ctrl-C again to end at once");
    let token = token(matches)?;
    let service = ParameterServiceConfig {
        listen: host_and_port(listen("listen", matches, &token)?)?,
        http: listen("http", matches, &token)?,
        token,
        token_file: matches.get_one::<String>("token-file").cloned(),
        servers: matches.get_one::<u32>("servers").copied().unwrap_or(1),
        lanes: matches.get_one::<u16>("lanes").copied().unwrap_or(1),
        memory_limit_bytes: 0,
        write_ahead_log: matches.get_one::<PathBuf>("write-ahead-log").cloned(),
        sync_log: matches.get_flag("sync-log"),
        session_checkpoints: session_checkpoints(matches)?,
        session_limit: matches.get_one::<u32>("max-sessions").map(|count| *count as usize),
    };
    let all = memory_limit(matches)?;
    let service =
        ParameterServiceConfig { memory_limit_bytes: (all / u64::from(service.servers)).max(1), ..service };
    let is_json = matches.get_flag("json");
    serve_parameters(&service, environment, |master| print_address(&service, master, is_json))?;
    Ok(Exit::Done)
}

/// Returns host and port that clients can reach; the master tells them the addresses of the servers.
fn host_and_port(addresses: Vec<Address>) -> Result<String, Error> {
    let bad = |actual: &str, expected: &str| Error::bad_value("--listen", actual, expected);
    match addresses.into_iter().next() {
        Some(Address::Tcp(place)) => {
            let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            if host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified()) {
                return Err(bad(&place, "an address that clients can reach, such as this machine's own"));
            }
            Ok(place)
        }
        Some(other) => Err(bad(&other.to_string(), "HOST:PORT: clients connect over TCP")),
        None => Err(bad("empty", "HOST:PORT")),
    }
}

fn print_address(service: &ParameterServiceConfig, master: &LocalMaster, is_json: bool) -> Result<(), Error> {
    let (address, http) = (master.address.to_string(), master.http.to_string());
    let places = (address.trim_start_matches("tcp:"), http.trim_start_matches("tcp:"));
    if is_json { print_json(&value(service, places)) } else { print_text(&text(service, places)) }
}

/// Number of lanes and memory limit in bytes of all servers together.
fn totals(service: &ParameterServiceConfig) -> (u64, u64) {
    let servers = u64::from(service.servers);
    (servers * u64::from(service.lanes), servers * service.memory_limit_bytes)
}

fn value(service: &ParameterServiceConfig, (address, http): (&str, &str)) -> Value {
    let (lanes, memory_limit_bytes) = totals(service);
    json!({
        "address": address,
        "http": http,
        "servers": service.servers,
        "lanes": lanes,
        "memory_limit_bytes": memory_limit_bytes,
        "needs_token": !service.token.is_empty(),
    })
}

fn text(service: &ParameterServiceConfig, (address, http): (&str, &str)) -> String {
    let (lanes, memory_limit_bytes) = totals(service);
    let secret = match &service.token_file {
        Some(file) => format!(", with the token in {file}"),
        None => ", from this machine, without a token".to_owned(),
    };
    format!(
        "parameter service at {address}: {}, {}, at most {}\n\
         clients open their sessions at {address}{secret}\n\
         its status: seraphim status --http {http}, or http://{http}/metrics; Ctrl-C stops the service\n",
        counted(u64::from(service.servers), "server"),
        counted(lanes, "lane"),
        bytes(memory_limit_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(servers: u32, lanes: u16, token_file: Option<&str>) -> ParameterServiceConfig {
        ParameterServiceConfig {
            listen: "127.0.0.1:7070".into(),
            http: Vec::new(),
            token: token_file.map_or_else(Vec::new, |_| b"secret".to_vec()),
            token_file: token_file.map(str::to_owned),
            servers,
            lanes,
            memory_limit_bytes: 1 << 20,
            write_ahead_log: None,
            sync_log: false,
            session_checkpoints: None,
            session_limit: None,
        }
    }

    #[test]
    fn a_service_says_where_it_is_and_how_much_it_takes() {
        let places = ("127.0.0.1:7070", "127.0.0.1:7071");
        assert_eq!(
            text(&service(1, 1, None), places),
            "parameter service at 127.0.0.1:7070: 1 server, 1 lane, at most 1.0 MiB\n\
             clients open their sessions at 127.0.0.1:7070, from this machine, without a token\n\
             its status: seraphim status --http 127.0.0.1:7071, or http://127.0.0.1:7071/metrics; Ctrl-C stops the service\n"
        );
        let told = text(&service(3, 2, Some("t")), places);
        assert!(
            told.contains("3 servers, 6 lanes, at most 3.0 MiB\n") && told.contains("token in t\n"),
            "{told}"
        );
        let told = value(&service(3, 2, Some("t")), places);
        let expected = json!({"address": places.0, "http": places.1, "servers": 3, "lanes": 6,
            "memory_limit_bytes": 3 << 20, "needs_token": true});
        assert_eq!(told, expected);
        assert_eq!(value(&service(1, 1, None), places)["needs_token"], false);
    }

    #[test]
    fn clients_must_be_able_to_reach_the_address() {
        let taken =
            |text: &str| host_and_port(vec![text.parse().unwrap()]).map_err(|error| error.to_string());
        assert_eq!(taken("127.0.0.1:7070").unwrap(), "127.0.0.1:7070");
        assert_eq!(taken("host.example:0").unwrap(), "host.example:0");
        assert_eq!(taken("[::1]:7").unwrap(), "[::1]:7");
        for place in ["0.0.0.0:7070", "[::]:7070"] {
            assert!(taken(place).unwrap_err().contains("an address that clients can reach"), "{place}");
        }
        assert!(taken("unix:/x").unwrap_err().contains("clients connect over TCP"));
        assert!(host_and_port(Vec::new()).is_err());
    }
}
