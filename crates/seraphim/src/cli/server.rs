//! `seraphim server --master ADDRESS`.

use std::sync::mpsc::channel;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use rpc::member::{MemberConfig, MemberEvent, join};
use rpc::message::control::MemberKind;
use rpc::stop::Stop;

use super::places::{
    host, incarnation, listen, listen_arg, log_args, master, master_arg, start_log, token, token_arg,
};
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::check::parse_bytes;

/// Most lanes of one server.
const LANE_LIMIT: i64 = 256;
/// How often the flag of Ctrl-C is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn command() -> Command {
    Command::new("server")
        .about("Own partitions of the matrices of a cluster's jobs")
        .arg(master_arg())
        .arg(listen_arg("127.0.0.1:0"))
        .args(member_args())
        .arg(
            Arg::new("lanes")
                .long("lanes")
                .value_name("N")
                .value_parser(clap::value_parser!(u16).range(1..=LANE_LIMIT))
                .help("Threads, each with partitions of its own [default: all cores]"),
        )
        .arg(
            Arg::new("memory-limit")
                .long("memory-limit")
                .value_name("BYTES")
                .help("Most memory for parameters, as in 2GiB [default: half of the machine's]"),
        )
        .arg(token_arg())
        .args(log_args())
}

/// Flags of servers and workers.
pub(super) fn member_args() -> [Arg; 2] {
    [
        Arg::new("name")
            .long("name")
            .value_name("NAME")
            .help("Unique in the cluster [default: kind, host and process]"),
        Arg::new("lost-limit")
            .long("lost-limit")
            .value_name("SECONDS")
            .default_value("30")
            .value_parser(clap::value_parser!(u64).range(1..=86_400))
            .help("How long a master that is gone is waited for"),
    ]
}

pub(super) fn member(matches: &ArgMatches, what: &str, kind: MemberKind) -> Result<MemberConfig, Error> {
    let host = host();
    let name = matches.get_one::<String>("name").cloned();
    let lost_s = matches.get_one::<u64>("lost-limit").copied().unwrap_or(30);
    Ok(MemberConfig {
        master: master(matches)?,
        token: token(matches)?,
        name: name.unwrap_or_else(|| format!("{what}-{host}")),
        host,
        incarnation: incarnation(),
        kind,
        connect_limit: Duration::from_secs(5),
        lost_limit: Duration::from_secs(lost_s),
    })
}

pub(super) fn run(matches: &ArgMatches, interrupt: &Interrupt) -> Result<Exit, Error> {
    start_log(matches)?;
    let token = token(matches)?;
    let lanes =
        matches.get_one::<u16>("lanes").copied().unwrap_or_else(|| crate::machine::core_count() as u16);
    let memory_limit_bytes = match matches.get_one::<String>("memory-limit") {
        None => crate::machine::memory_share() * 2,
        Some(text) => parse_bytes(text).ok_or_else(|| Error::BadValue {
            place: "--memory-limit".into(),
            actual: text.clone(),
            expected: "a number of bytes, as in 512MiB or 2GiB".into(),
        })?,
    };
    let config = server::ServerConfig {
        listen: listen(matches, &token)?,
        token,
        lanes,
        memory_limit_bytes,
        ..server::ServerConfig::default()
    };
    let stop = Stop::new();
    let (ready, is_ready) = channel();
    let serving = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            server::run(config, stop, move |addresses| {
                // Who waits for it waits until this thread ends.
                let _ = ready.send(addresses.to_vec());
                Ok::<(), server::Error>(())
            })
        })
    };
    let joined = is_ready.recv().map(|addresses| {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        member(matches, "server", MemberKind::Server { addresses, lanes, memory_limit_bytes })
    });
    let ended = match joined {
        // It has not come so far: the thread knows why.
        Err(_) => Ok(()),
        Ok(member) => member.and_then(|member| attend(member, interrupt)),
    };
    stop.raise();
    let served = serving
        .join()
        .map_err(|_| Error::Cluster { text: "the server panicked".into(), exit: Exit::Internal })?;
    served.map_err(Error::process)?;
    ended.map(|()| Exit::Done)
}

/// Belongs to the cluster until it is told to stop, or the master is gone for good.
fn attend(member: MemberConfig, interrupt: &Interrupt) -> Result<(), Error> {
    let master = member.master.clone();
    let (membership, events) = join(member).map_err(Error::server(&master))?;
    tracing::info!(id = membership.id(), master = %master, "server joined");
    while !interrupt.is_raised() {
        match events.recv_timeout(LOOK_EVERY) {
            Ok(MemberEvent::Lost { reason }) => {
                let text = format!("the master at {master} is gone: {reason}");
                return Err(Error::Cluster { text, exit: Exit::Io });
            }
            Ok(MemberEvent::Said(_) | MemberEvent::Back)
            | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    membership.leave();
    Ok(())
}
