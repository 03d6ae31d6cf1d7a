//! `cargo xtask spark`: runs a program of `PySpark` as `spark-submit` does, on a cluster of Spark's own processes and on YARN, in
//! client and in cluster mode; YARN is started from Hadoop's jars. The program trains with Estimators and has vectors on servers
//! of the plugin. The Python package, with the jars of `jvm/` and the program, must be installed in its environment (`cargo
//! xtask python`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::command::is_available;
use crate::yarn::Cluster;
use crate::{metadata, python};

/// What the program prints at its end.
const PASSED: &str = "PASSED";

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
    let cluster = Cluster::new(&target.join("spark"))?;
    let (_servers, _) = cluster.start()?;
    let spark = SparkSubmit::new(root, &python, &cluster)?;
    modes.iter().try_for_each(|mode| spark.run(*mode))
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
        Ok(Self { program: root.join("python/spark/tests/cluster/program.py"), python, cluster, home, jars })
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
