//! `cargo xtask yarn`: a job of the program on YARN, of which a container of each role is killed. YARN is started from Hadoop's
//! jars, with the file system of the machine in place of HDFS. `cargo xtask jvm` makes the Application Master.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::ci::PACKAGES;
use crate::command::{Cmd, is_available};
use crate::hadoop::{Server, fetch_jars, free_port, http, java, write_settings};
use crate::metadata;

const PARTS: [&str; 5] = [
    "hadoop-common",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",
    "hadoop-yarn-client",
];
const LOGGING: &str = "log4j.rootLogger=WARN,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
";

/// Runs the tests on YARN.
pub(crate) fn run(root: &Path) -> Result<()> {
    for program in ["java", "mvn"] {
        if !is_available(program, &["-version"]) {
            println!("SKIPPED: the tests on YARN, because there is no {program} here");
            return Ok(());
        }
    }
    let cluster = Cluster::new(&metadata::target_folder(root)?.join("yarn"))?;
    let (_servers, address) = cluster.start()?;
    Cmd::cargo(root, &format!("test {PACKAGES} --test program -- --include-ignored runs_on_yarn"))
        .env("SERAPHIM_YARN", address)
        .env("SERAPHIM_YARN_JAR", manager_jar(root)?)
        .run()
}

/// The jar of the Application Master.
fn manager_jar(root: &Path) -> Result<PathBuf> {
    let folder = root.join("jvm/yarn/target");
    let is_meant = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let is_jar = path.extension().is_some_and(|extension| extension == "jar");
        is_jar && name.starts_with("seraphim-yarn-") && !name.contains("sources")
    };
    let mut paths =
        fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    paths
        .find(is_meant)
        .with_context(|| format!("there is no jar in {}: run `cargo xtask jvm`", folder.display()))
}

/// A resource manager and a node manager in a folder of their own.
pub(crate) struct Cluster {
    pub(crate) folder: PathBuf,
    jars: PathBuf,
}

impl Cluster {
    /// A cluster in a folder, into which its jars are fetched.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.join("cluster"), jars: fetch_jars(folder, "yarn", &PARTS)? })
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder.join("configuration")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// Starts its two servers; returns also the web address of the resource manager.
    pub(crate) fn start(&self) -> Result<([Server; 2], String)> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(self.configuration())?;
        let web_port = free_port()?;
        self.configure(web_port)?;
        let [manager_log, node_log] =
            ["resource-manager.log", "node-manager.log"].map(|log| self.folder.join(log));
        let command = |class: &str| {
            let mut command = java(&format!("yarn.server.{class}"), &[&self.configuration()], &self.jars);
            command.current_dir(&self.folder).env("HADOOP_CONF_DIR", self.configuration());
            command
        };
        let mut manager = Server::start(&mut command("resourcemanager.ResourceManager"), &manager_log)?;
        let metrics = |wanted: &str| {
            http(web_port, "GET", "/ws/v1/cluster/metrics").is_ok_and(|text| text.contains(wanted))
        };
        manager.wait_for(&manager_log, || metrics("activeNodes"))?;
        let mut node = Server::start(&mut command("nodemanager.NodeManager"), &node_log)?;
        node.wait_for(&node_log, || metrics("\"activeNodes\":1"))?;
        Ok(([manager, node], format!("http://127.0.0.1:{web_port}")))
    }

    fn configure(&self, web_port: u16) -> Result<()> {
        let place = self.configuration();
        write_settings(&place.join("core-site.xml"), &[("fs.defaultFS", "file:///".to_owned())])?;
        fs::write(place.join("log4j.properties"), LOGGING)?;
        let address = |port: u16| format!("127.0.0.1:{port}");
        let own = |what: &str| self.folder.join(what).display().to_string();
        let free = || Ok::<_, anyhow::Error>(address(free_port()?));
        let yes_or_no = |value: bool| value.to_string();
        let settings = [
            (
                "yarn.application.classpath",
                format!("{},{}/*", self.configuration().display(), self.jars.display()),
            ),
            ("yarn.resourcemanager.hostname", "127.0.0.1".to_owned()),
            ("yarn.resourcemanager.address", free()?),
            ("yarn.resourcemanager.scheduler.address", free()?),
            ("yarn.resourcemanager.resource-tracker.address", free()?),
            ("yarn.resourcemanager.admin.address", free()?),
            ("yarn.resourcemanager.webapp.address", address(web_port)),
            ("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", "250".to_owned()),
            ("yarn.scheduler.minimum-allocation-mb", "64".to_owned()),
            ("yarn.nodemanager.hostname", "127.0.0.1".to_owned()),
            ("yarn.nodemanager.address", free()?),
            ("yarn.nodemanager.localizer.address", free()?),
            ("yarn.nodemanager.webapp.address", free()?),
            ("yarn.nodemanager.collector-service.address", free()?),
            ("yarn.nodemanager.amrmproxy.address", free()?),
            ("yarn.nodemanager.local-dirs", own("local")),
            ("yarn.nodemanager.log-dirs", self.logs().display().to_string()),
            // Logs of containers stay until the next start.
            ("yarn.nodemanager.log.retain-seconds", "86400".to_owned()),
            ("yarn.nodemanager.resource.memory-mb", "4096".to_owned()),
            ("yarn.nodemanager.resource.cpu-vcores", "16".to_owned()),
            ("yarn.nodemanager.vmem-check-enabled", yes_or_no(false)),
            ("yarn.nodemanager.pmem-check-enabled", yes_or_no(false)),
            (
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
                "100".to_owned(),
            ),
            ("yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb", "0".to_owned()),
            ("yarn.node-attribute.fs-store.root-dir", format!("file://{}", own("attributes"))),
            ("yarn.timeline-service.enabled", yes_or_no(false)),
            ("yarn.log-aggregation-enable", yes_or_no(false)),
        ];
        write_settings(&place.join("yarn-site.xml"), &settings)?;
        let queues = [
            ("yarn.scheduler.capacity.root.queues", "default".to_owned()),
            ("yarn.scheduler.capacity.root.default.capacity", "100".to_owned()),
            ("yarn.scheduler.capacity.root.default.state", "RUNNING".to_owned()),
            ("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0".to_owned()),
        ];
        write_settings(&place.join("capacity-scheduler.xml"), &queues)
    }
}
