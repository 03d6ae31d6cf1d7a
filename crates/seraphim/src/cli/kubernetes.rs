//! `seraphim submit --k8s`: a cluster for one job, as pods of Kubernetes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches};
use engine::cluster::JobSubmission;
use engine::interrupt::Interrupt;
use engine::job::RawJob;
use engine::kubernetes::objects::{
    FRAMES_PORT, HTTP_PORT, RESULT_FILE, ROLE_LABEL, TEMPORARY, TOKEN_FILE, end_of_job,
};
use engine::kubernetes::pods::{is_ready, problem};
use engine::kubernetes::{Claim, Cluster, ClusterSpec, Pods, Resources};
use engine::{Error, Exit};

use super::cluster_args::{MasterPlace, address as address_of};
use super::print_notice;
use super::supervised::{POLL_INTERVAL, Purpose, ReachedMaster, Sizes, SupervisedCluster, random_digits};

/// Time between two looks at the pods of a job that runs.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// How long no pod may come before it is asked why.
const POD_LIMIT: Duration = Duration::from_secs(3);
/// How long the master of a job that has ended may take to end.
const END_LIMIT: Duration = Duration::from_secs(10);
/// How long members try to reach a lost master: as long as a new pod may need to get a node.
const LOST_SECONDS: &str = "300";
const MASTER: &str = "master";

/// The flags for Kubernetes.
pub(super) fn args() -> Vec<Arg> {
    let name = name_arg("Start a cluster for this job on Kubernetes; its objects have this name [default: seraphim- and some digits]")
        .num_args(0..=1)
        .default_missing_value("")
        .conflicts_with("worker-group");
    let mut args = vec![
        arg("image", "IMAGE", "Image with the program, as docs/kubernetes.md builds it"),
        arg("claim", "NAME=PATH", "PersistentVolumeClaim that each pod sees at this path, for data, models and checkpoints; may be repeated")
            .action(ArgAction::Append),
        arg("secret", "NAME", "Secret whose entries are variables of each process, such as AWS_ACCESS_KEY_ID; may be repeated")
            .action(ArgAction::Append),
        arg("service-account", "NAME", "Service account of the pods, for clouds that tie access to stores to it"),
        arg("priority-class", "NAME", "Priority class of the pods"),
    ];
    args.extend(place_args());
    args.push(name);
    args
}

/// The flags with which a command reaches a cluster that was started with `submit --k8s`.
pub(super) fn reach_args() -> Vec<Arg> {
    let name =
        name_arg("Name of the objects of a cluster that `submit --k8s` has started, in place of --master");
    place_args().into_iter().chain([name]).collect()
}

fn name_arg(help: &'static str) -> Arg {
    let name = Arg::new("k8s").long("k8s").value_name("NAME").help(help).require_equals(true);
    name.conflicts_with_all(["master", "http", "token-file"])
}

fn place_args() -> [Arg; 2] {
    [
        arg("namespace", "NAME", "Namespace of Kubernetes [default: that of the context]"),
        arg("context", "NAME", "Context of the configuration of kubectl [default: the present one]"),
    ]
}

fn arg(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).requires("k8s")
}

fn cluster(matches: &ArgMatches) -> Result<Cluster, Error> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    Cluster::new(text("context"), text("namespace")).map_err(|failure| error(&failure))
}

/// Opens a way to the master of a cluster that was started earlier.
pub(super) fn reach(matches: &ArgMatches, name: &str) -> Result<ReachedMaster, Error> {
    let cluster = cluster(matches)?;
    let token = cluster.token(name).map_err(|failure| error(&failure))?;
    let address = cluster.forward(name, MASTER).map_err(|failure| error(&failure))?;
    Ok(ReachedMaster { address: address_of("k8s", &address)?, token, forwarding: Some(cluster) })
}

/// A cluster that Kubernetes has started for a job.
pub(super) struct KubernetesCluster {
    place: MasterPlace,
    cluster: Arc<Cluster>,
    spec: ClusterSpec,
    /// Why the job was given up.
    failure: Arc<Mutex<Option<String>>>,
}

impl SupervisedCluster for KubernetesCluster {
    fn place(&self) -> &MasterPlace {
        &self.place
    }

    fn token(&self) -> Result<Vec<u8>, Error> {
        Ok(self.spec.token.clone().into_bytes())
    }

    fn end(&self) -> Option<Error> {
        if let Some(text) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Some(ended(text));
        }
        let name = &self.spec.name;
        let Some(job) = self.cluster.job(name).ok()? else {
            return Some(ended(format!("the job {name} was deleted from Kubernetes")));
        };
        let why = end_of_job(&job)?;
        Some(ended(format!("the job {name} of Kubernetes has ended: {why}")))
    }

    /// Lets the master remove its records first.
    fn remove(&self) {
        let begun = Instant::now();
        let goes_on = |job: &Option<_>| job.as_ref().is_some_and(|job| end_of_job(job).is_none());
        while begun.elapsed() < END_LIMIT && self.cluster.job(&self.spec.name).is_ok_and(|job| goes_on(&job))
        {
            std::thread::sleep(POLL_INTERVAL);
        }
        if let Err(error) = self.cluster.remove(&self.spec.name) {
            print_notice(&format!("the objects of the job stay for some minutes: {error}"));
        }
    }
}

/// Creates the objects of a job and waits for its master.
pub(super) fn start(
    matches: &ArgMatches,
    purpose: Purpose<'_>,
    interrupt: &Interrupt,
) -> Result<KubernetesCluster, Error> {
    let spec = spec(matches, purpose)?;
    let cluster = Arc::new(cluster(matches)?);
    cluster.create(&spec).map_err(|failure| error(&failure))?;
    let (name, namespace) = (&spec.name, cluster.namespace());
    print_notice(&format!(
        "the job {name} is created in the namespace {namespace}: `kubectl -n {namespace} get pods` shows its pods"
    ));
    let mut told = BTreeMap::new();
    if let Err(error) = wait_for_master(&cluster, name, &mut told, interrupt) {
        // What is left ends by itself: it has no job.
        let _ = cluster.remove(name);
        return Err(error);
    }
    let http = cluster.forward(name, MASTER).map_err(|failure| error(&failure))?;
    let context = matches.get_one::<String>("context").map(|context| format!(" --context {context}"));
    let flags = format!(" --k8s={name} --namespace {namespace}{}", context.unwrap_or_default());
    let place = MasterPlace { master: http.clone(), http: Some(http), token_file: None, flags };
    let failure = Arc::default();
    let started = KubernetesCluster { place, cluster, spec, failure };
    started.watch(told);
    Ok(started)
}

impl KubernetesCluster {
    /// Tells what is wrong with pods as long as this process lives, and removes a cluster that cannot go on.
    fn watch(&self, mut told: BTreeMap<String, String>) {
        let (cluster, name, failure) =
            (Arc::clone(&self.cluster), self.spec.name.clone(), Arc::clone(&self.failure));
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(WATCH_INTERVAL);
                // The API may be away for a while.
                let Ok(Some(text)) = tell_problems(&cluster, &name, &mut told) else { continue };
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
                let _ = cluster.remove(&name);
                return;
            }
        });
    }
}

/// The cluster of a job.
fn spec(matches: &ArgMatches, purpose: Purpose<'_>) -> Result<ClusterSpec, Error> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten();
    let name = match text("k8s").filter(|name| !name.is_empty()) {
        Some(name) => name,
        None => format!("seraphim-{}", random_digits(3)?),
    };
    ClusterSpec::check_name(&name).map_err(|failure| error(&failure))?;
    let image = text("image").ok_or_else(|| {
        Error::request(
            "--k8s needs an image with the program",
            "name one with --image; docs/kubernetes.md builds it",
        )
    })?;
    let claims = texts("claim").map(|text| claim(text)).collect::<Result<Vec<_>, _>>()?;
    check_paths(purpose.job, &claims)?;
    let node_label = text("node-label").map(|text| pair("--node-label", &text, "NAME=VALUE")).transpose()?;
    let records = match (text("stage"), purpose.output) {
        (Some(folder), _) => format!("{}/{name}", folder.trim_end_matches('/')),
        (None, Some(output)) => format!("{}.{name}", output.trim_end_matches('/')),
        (None, None) => format!("{TEMPORARY}/records"),
    };
    let sizes = Sizes::of(matches)?;
    let title = purpose.order.title.clone();
    let [master, servers, workers] = pods(&name, &records, sizes, purpose.order);
    Ok(ClusterSpec {
        name,
        title,
        image,
        token: random_digits(32)?,
        master,
        members: vec![servers, workers],
        claims,
        secrets: texts("secret").cloned().collect(),
        service_account: text("service-account"),
        node_label,
        priority_class: text("priority-class"),
    })
}

/// The master, servers and workers of a cluster.
fn pods(name: &str, records: &str, sizes: Sizes, order: &JobSubmission) -> [Pods; 3] {
    let frames = format!("$(POD_IP):{FRAMES_PORT}");
    let http = format!("$(POD_IP):{HTTP_PORT}");
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let pods = |role, count, memory_mib, millicores, more: &[&str]| Pods {
        role,
        count,
        resources: Resources { memory_mib, millicores },
        arguments: [words(&[role, "--http", &http, "--token-file", TOKEN_FILE]), words(more)].concat(),
    };
    let member =
        ["--master", &format!("{name}:{FRAMES_PORT}"), "--name", "$(POD_NAME)", "--lost-limit", LOST_SECONDS];
    // A forwarded port leads to the loopback address of the pod.
    let own = format!("127.0.0.1:{HTTP_PORT}");
    let of_master = ["--listen", &frames, "--http", &own, "--state", records, "--single-job", RESULT_FILE];
    let (lanes, limit) = (sizes.vcores.to_string(), format!("{}MiB", sizes.parameters_mib()));
    let millicores = sizes.vcores * 1000;
    let of_server = ["--listen", &frames, "--lanes", &lanes, "--memory-limit", &limit];
    [
        pods(MASTER, 1, sizes.master_mib, 500, &of_master),
        pods("server", order.servers, sizes.server_mib, millicores, &[&member[..], &of_server].concat()),
        pods("worker", order.workers, sizes.worker_mib, millicores, &member),
    ]
}

/// Parses `NAME=VALUE`.
fn pair(flag: &str, text: &str, expected: &'static str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.into(), value.into())),
        _ => Err(Error::bad_value(flag, text, expected)),
    }
}

fn claim(text: &str) -> Result<Claim, Error> {
    const EXPECTED: &str = "NAME=PATH with an absolute path, as in --claim data=/data";
    let (name, path) = pair("--claim", text, EXPECTED)?;
    if path.starts_with('/') && path.len() > 1 {
        return Ok(Claim { name, path: path.trim_end_matches('/').to_owned() });
    }
    Err(Error::bad_value("--claim", text, EXPECTED))
}

/// Refuses paths that no pod sees.
fn check_paths(job: &RawJob, claims: &[Claim]) -> Result<(), Error> {
    let unseen = RefCell::new(None);
    let is_seen = |path: &str| {
        claims.iter().any(|claim| path.strip_prefix(&claim.path).is_some_and(|rest| rest.starts_with('/')))
    };
    let _ = job.clone().with_paths(|path| {
        if !is_seen(path) {
            unseen.replace(Some(path.to_owned()));
        }
        path.to_owned()
    });
    unseen.into_inner().map_or(Ok(()), |path| {
        Err(Error::request(
            format!("{path} is a path of this machine, which no pod sees"),
            "name an address, as in s3://BUCKET/PATH, or a path of a volume, with --claim NAME=PATH",
        ))
    })
}

/// Waits until the master answers.
fn wait_for_master(
    cluster: &Cluster,
    name: &str,
    told: &mut BTreeMap<String, String>,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        if let Some(text) = tell_problems(cluster, name, told)? {
            return Err(ended(text));
        }
        let pods = cluster.pods(name).map_err(|failure| error(&failure))?;
        if pods.iter().any(|pod| pod["metadata"]["labels"][ROLE_LABEL] == MASTER && is_ready(pod)) {
            return Ok(());
        }
        if interrupt.is_raised() {
            let text = format!("the job {name} was ended before its master had begun");
            return Err(Error::Cluster { text, exit: Exit::Interrupted });
        }
        // Without the permission to list events nobody says why.
        if pods.is_empty()
            && begun.elapsed() >= POD_LIMIT
            && let Ok(Some(reason)) = cluster.refused_pods(name)
        {
            return Err(ended(format!("Kubernetes creates no pods for the job {name}: {reason}")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Tells new problems of pods. Returns one that will not pass.
fn tell_problems(
    cluster: &Cluster,
    name: &str,
    told: &mut BTreeMap<String, String>,
) -> Result<Option<String>, Error> {
    let pods = cluster.pods(name).map_err(|failure| error(&failure))?;
    for pod in &pods {
        let Some(problem) = problem(pod) else { continue };
        if problem.is_lasting {
            return Ok(Some(problem.text));
        }
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if told.insert(pod, problem.text.clone()).as_ref() != Some(&problem.text) {
            print_notice(&problem.text);
        }
    }
    Ok(None)
}

fn ended(text: String) -> Error {
    Error::Cluster { text, exit: Exit::Io }
}

fn error(error: &engine::kubernetes::Error) -> Error {
    use engine::kubernetes::Error as E;
    let exit = match error {
        E::Name { .. } | E::NotBuilt | E::Configuration { .. } => Exit::Usage,
        _ => Exit::Io,
    };
    Error::Cluster { text: error.to_string(), exit }
}
