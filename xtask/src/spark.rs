//! `cargo xtask spark`: runs a program of `PySpark` as `spark-submit` does, on a cluster of Spark's own processes and on YARN, in
//! client and in cluster mode; YARN is started from Hadoop's jars. The program trains with Estimators and has vectors on servers
//! of the plugin. The Python package, with the jars of `jvm/` and the program, must be installed in its environment (`cargo
//! xtask python`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::command::is_available;
use crate::hadoop::{Server, fetch_jars, free_port, http, java, write_settings};
use crate::{metadata, python};

const PARTS: [&str; 5] = [
    "hadoop-common",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",
    "hadoop-yarn-client",
];
/// What the program prints at its end.
const PASSED: &str = "PASSED";

const LOGGING: &str = "log4j.rootLogger=WARN,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
";

/// Runs the program in each mode.
pub(crate) fn run(root: &Path) -> Result<()> {
    run_in(root, &[Mode::LocalCluster, Mode::YarnClient, Mode::YarnCluster])
}

/// Runs it where the driver is beside executors, and where it is in a container; the client mode of YARN is between the two.
pub(crate) fn run_shortly(root: &Path) -> Result<()> {
    run_in(root, &[Mode::LocalCluster, Mode::YarnCluster])
}

fn run_in(root: &Path, modes: &[Mode]) -> Result<()> {
    let target = metadata::target_folder(root)?;
    let python = python::interpreter(&target);
    for (program, argument) in [("java", "-version"), ("mvn", "-version")] {
        if !is_available(program, &[argument]) {
            println!("SKIPPED: the tests on clusters of Spark, because there is no {program} here");
            return Ok(());
        }
    }
    if !is_available(&python.to_string_lossy(), &["-c", "import seraphim_spark"]) {
        println!(
            "SKIPPED: the test on YARN, because the Python package is not installed: run `cargo xtask python`"
        );
        return Ok(());
    }
    let folder = target.join("spark");
    fs::create_dir_all(&folder)?;
    let jars = fetch_jars(&folder, "yarn", &PARTS)?;
    let cluster = Cluster { folder: folder.join("cluster"), jars };
    let _servers = cluster.start()?;
    let spark = SparkSubmit::new(root, &python, &cluster)?;
    modes.iter().try_for_each(|mode| spark.run(*mode))
}

/// A resource manager and a node manager in a folder of their own.
struct Cluster {
    folder: PathBuf,
    jars: PathBuf,
}

impl Cluster {
    fn configuration(&self) -> PathBuf {
        self.folder.join("configuration")
    }

    fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    fn start(&self) -> Result<[Server; 2]> {
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
        Ok([manager, node])
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

/// Where the driver and the executors run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Executors are processes beside the driver.
    LocalCluster,
    YarnClient,
    /// The driver runs in a container, too.
    YarnCluster,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::LocalCluster => "local-cluster",
            Self::YarnClient => "yarn-client",
            Self::YarnCluster => "yarn-cluster",
        }
    }

    fn words(self) -> [&'static str; 4] {
        match self {
            Self::LocalCluster => ["--master", "local-cluster[2,1,1024]", "--deploy-mode", "client"],
            Self::YarnClient => ["--master", "yarn", "--deploy-mode", "client"],
            Self::YarnCluster => ["--master", "yarn", "--deploy-mode", "cluster"],
        }
    }
}

/// `spark-submit` of the environment.
struct SparkSubmit<'a> {
    program: PathBuf,
    python: &'a Path,
    cluster: &'a Cluster,
    /// The folder of `PySpark`.
    home: PathBuf,
    /// The jars of the Python package, separated by commas.
    jars: String,
}

impl<'a> SparkSubmit<'a> {
    fn new(root: &Path, python: &'a Path, cluster: &'a Cluster) -> Result<Self> {
        let ask = |code: &str| -> Result<String> {
            let output = Command::new(python).args(["-c", code]).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(String::from_utf8(output.stdout)?.trim().to_owned())
        };
        let home = PathBuf::from(ask("import os, pyspark; print(os.path.dirname(pyspark.__file__))")?);
        let jars = ask("import seraphim_spark; print(','.join(seraphim_spark.jars()))")?;
        Ok(Self { program: root.join("python/tests/cluster/program.py"), python, cluster, home, jars })
    }

    /// Runs the program. In cluster mode its output is among the logs of the containers.
    fn run(&self, mode: Mode) -> Result<()> {
        let log = self.cluster.folder.join(format!("{}.log", mode.name()));
        let file = fs::File::create(&log)?;
        println!("$ spark-submit {} {}", mode.words().join(" "), self.program.display());
        let mut command = self.command(mode);
        let status =
            command.stdout(file.try_clone()?).stderr(file).status().context("cannot start spark-submit")?;
        ensure!(status.success(), "the program failed with {status}: see {}", log.display());
        let places =
            if mode == Mode::YarnCluster { files_below(&self.cluster.logs())? } else { vec![log.clone()] };
        let has_passed = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains(PASSED));
        ensure!(places.iter().any(has_passed), "the program did not print {PASSED}: see {}", log.display());
        Ok(())
    }

    fn command(&self, mode: Mode) -> Command {
        let mut settings = vec![
            ("spark.plugins", "org.seraphim.spark.SeraphimPlugin".to_owned()),
            ("spark.seraphim.servers", "2".to_owned()),
            ("spark.seraphim.memory", "100m".to_owned()),
            ("spark.ui.enabled", "false".to_owned()),
        ];
        let python = self.python.display().to_string();
        if mode == Mode::LocalCluster {
            // The plugin must be there when executors start.
            settings.push(("spark.executor.extraClassPath", self.jars.replace(',', ":")));
        } else {
            let staging = self.cluster.folder.join("staging");
            settings.extend([
                ("spark.yarn.jars", format!("local:{}/jars/*", self.home.display())),
                ("spark.yarn.stagingDir", format!("file://{}", staging.display())),
                ("spark.yarn.appMasterEnv.PYSPARK_PYTHON", python.clone()),
                ("spark.yarn.appMasterEnv.SPARK_LOCAL_IP", "127.0.0.1".to_owned()),
                ("spark.executorEnv.PYSPARK_PYTHON", python.clone()),
                ("spark.executorEnv.SPARK_LOCAL_IP", "127.0.0.1".to_owned()),
                ("spark.executor.instances", "2".to_owned()),
            ]);
        }
        if mode != Mode::YarnCluster {
            settings.push(("spark.driver.host", "127.0.0.1".to_owned()));
        }
        let mut command = Command::new(self.home.join("bin/spark-submit"));
        command.args(mode.words()).args(["--jars", &self.jars]);
        command.args(["--executor-memory", "512m", "--driver-memory", "512m"]);
        for (name, value) in settings {
            command.arg("--conf").arg(format!("{name}={value}"));
        }
        command.arg(&self.program).current_dir(&self.cluster.folder);
        command.env("SPARK_HOME", &self.home).env("HADOOP_CONF_DIR", self.cluster.configuration());
        command.env("PYSPARK_PYTHON", python).env("SPARK_LOCAL_IP", "127.0.0.1");
        command
    }
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    Ok(files)
}
