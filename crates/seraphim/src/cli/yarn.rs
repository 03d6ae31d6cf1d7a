//! `seraphim submit --yarn URL`: a cluster for one job, as an application of YARN.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches};
use engine::cluster::{Announcement, JobSubmission};
use engine::interrupt::Interrupt;
use engine::machine::MEMORY_VARIABLE;
use engine::yarn::application::{MASTER, RESULT, STATE, TOKEN};
use engine::yarn::stage::Uploads;
use engine::yarn::{Application, ApplicationReport, ResourceManager, Resources, Role, Stage};
use engine::{Error, Exit};

use super::cluster_args::MasterPlace;
use super::print_notice;
use super::supervised::{POLL_INTERVAL, Purpose, Sizes, SupervisedCluster, random_digits};

/// Time between two questions to the ResourceManager.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The flags for YARN.
pub(super) fn args() -> Vec<Arg> {
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let of_yarn = |arg: Arg| arg.requires("yarn");
    vec![
        arg(
            "yarn",
            "URL",
            "Start a cluster for this job on YARN: the web address of the ResourceManager, as in http://rm:8088; several are separated by commas",
        )
        .conflicts_with_all(["master", "http", "token-file", "worker-group"]),
        of_yarn(arg("queue", "NAME", "Queue of YARN [default: default]")),
        of_yarn(arg("priority", "N", "Priority in the queue, larger numbers first [default: 0]"))
            .value_parser(clap::value_parser!(i32)),
        of_yarn(arg("hosts", "NAMES", "Hosts that are preferred for workers, such as those that have the data, separated by commas"))
            .value_delimiter(','),
        of_yarn(arg("yarn-jar", "FILE", "The Application Master [default: seraphim-yarn.jar beside the program]")),
    ]
}

/// A cluster that YARN has started for a job.
pub(super) struct YarnCluster {
    place: MasterPlace,
    manager: ResourceManager,
    stage: Stage,
}

impl SupervisedCluster for YarnCluster {
    fn place(&self) -> &MasterPlace {
        &self.place
    }

    fn end(&self) -> Option<Error> {
        let report = self.manager.report(&self.stage.application).ok()?;
        report.is_over().then(|| ended(&report, &self.stage))
    }
}

/// Submits the application of a job and waits for its master.
pub(super) fn start(
    matches: &ArgMatches,
    purpose: Purpose<'_>,
    interrupt: &Interrupt,
) -> Result<YarnCluster, Error> {
    let urls = matches.get_one::<String>("yarn").expect("the caller has looked");
    let manager = ResourceManager::new(urls, &user());
    let application = application(matches, purpose.order, manager.user())?;
    let program = std::env::current_exe().map_err(Error::io("find", "the program"))?;
    let jar = matches.get_one::<String>("yarn-jar").map(PathBuf::from);
    let jar = jar.unwrap_or_else(|| program.with_file_name("seraphim-yarn.jar"));
    let token = random_digits(32)?;
    let new = manager.new_application().map_err(|failure| error(&failure))?;
    application.check_sizes(&new).map_err(|failure| error(&failure))?;
    let folder = matches.get_one::<String>("stage").map(String::as_str);
    let uploads = Uploads { program: &program, jar: &jar, token: token.as_bytes(), folder };
    let stage = Stage::submit(&manager, &application, &new, uploads).map_err(|failure| error(&failure))?;
    print_notice(&format!("{} is submitted to {urls}", new.id));
    wait_for_master(&manager, &stage, interrupt)?;
    let (master, token_file) = (stage.master(), format!("{}/{TOKEN}", stage.location));
    let flags = format!(" --master {master} --token-file {token_file}");
    print_notice(&format!("`seraphim status{flags}` shows its processes"));
    let place = MasterPlace { master, http: None, token_file: Some(token_file), flags };
    Ok(YarnCluster { place, manager, stage })
}

/// The name of the user as HDFS and YARN without Kerberos take it.
fn user() -> String {
    let names = ["HADOOP_USER_NAME", "USER", "LOGNAME"];
    let named = names.iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    named.unwrap_or_else(|| "root".into())
}

fn application(matches: &ArgMatches, order: &JobSubmission, user: &str) -> Result<Application, Error> {
    let sizes = Sizes::of(matches)?;
    let (vcores, limit) = (sizes.vcores, sizes.parameters_mib());
    // YARN sets the name of the machine in each container.
    let place = format!("--master $SERAPHIM_STAGE/{MASTER} --token-file {TOKEN}");
    // A node has more memory than the container, and YARN kills what takes more.
    let role = |name, count, memory_mib: u64, vcores, words: String| Role {
        name,
        count,
        resources: Resources { memory_mib, vcores },
        command: format!("env {MEMORY_VARIABLE}={} ./seraphim {name} {words}", memory_mib << 20),
        hosts: Vec::new(),
    };
    let hosts = matches.get_many::<String>("hosts").into_iter().flatten().cloned().collect();
    let roles = vec![
        role(
            "master",
            1,
            sizes.master_mib,
            1,
            format!(
                "--listen $NM_HOST:0 --http $NM_HOST:0 --token-file {TOKEN} --announce $SERAPHIM_STAGE/{MASTER} \
                 --state $SERAPHIM_STAGE/{STATE} --single-job $SERAPHIM_STAGE/{RESULT}"
            ),
        ),
        role(
            "server",
            order.servers,
            sizes.server_mib,
            vcores,
            format!(
                "{place} --listen $NM_HOST:0 --http $NM_HOST:0 --name server-$SERAPHIM_RANK --lanes {vcores} \
                 --memory-limit {limit}MiB"
            ),
        ),
        Role {
            hosts,
            ..role(
                "worker",
                order.workers,
                sizes.worker_mib,
                vcores,
                format!("{place} --http $NM_HOST:0 --name worker-$SERAPHIM_RANK"),
            )
        },
    ];
    Ok(Application {
        title: order.title.clone(),
        queue: matches.get_one::<String>("queue").cloned(),
        priority: matches.get_one::<i32>("priority").copied(),
        node_label: matches.get_one::<String>("node-label").cloned(),
        roles,
        environment: vec![("HADOOP_USER_NAME".into(), user.to_owned())],
    })
}

/// Waits until the master has written its addresses. An interrupt ends the application.
fn wait_for_master(manager: &ResourceManager, stage: &Stage, interrupt: &Interrupt) -> Result<(), Error> {
    let (mut state, mut asked_at) = (String::new(), None::<Instant>);
    loop {
        if Announcement::read(&stage.master()).is_ok() {
            return Ok(());
        }
        if interrupt.is_raised() {
            manager.kill(&stage.application).map_err(|failure| error(&failure))?;
            let text = format!("{} was ended before its master had begun", stage.application);
            return Err(Error::Cluster { text, exit: Exit::Interrupted });
        }
        if asked_at.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
            asked_at = Some(Instant::now());
            let report = manager.report(&stage.application).map_err(|failure| error(&failure))?;
            if report.is_over() {
                return Err(ended(&report, stage));
            }
            if report.state != state {
                print_notice(&format!("{} is {}", stage.application, report.state));
                state = report.state;
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The error of an application that has ended. An Application Master that was killed has left its stage.
fn ended(report: &ApplicationReport, stage: &Stage) -> Error {
    // What is left costs only space.
    let _ = stage.remove();
    error(&report.ended(&stage.application))
}

fn error(error: &engine::yarn::Error) -> Error {
    use engine::yarn::Error as E;
    let exit = match error {
        E::TooLarge { .. } => Exit::Usage,
        E::Store(error) if error.is_bad_address() => Exit::Usage,
        _ => Exit::Io,
    };
    Error::Cluster { text: error.to_string(), exit }
}
