//! `cargo xtask stores`: the tests of data, models, outputs and checkpoints in S3 and HDFS, against a server of S3 from `PyPI` and Hadoop's own name
//! node and data nodes from Maven Central. What is missing here (Python, Java, Maven) is said, and left out.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::command::{Cmd, is_available};
use crate::hadoop::{Server, fetch_jars, free_port, http, java, write_settings};
use crate::metadata;

const MOTO: &str = "moto[server]==5.2.5";
const TESTS: [&str; 4] = [
    "--lib -- object::tests",
    "--test every_store",
    "--test program -- checkpoints_in_other_stores places_in_stores a_name_node_that_is_away",
    "--test program -- --include-ignored a_full_volume",
];
/// Tests of the rights in HDFS, and of its safe mode.
const RIGHTS: &str = "--test program -- --include-ignored faults_of_hdfs::what_another_user";
const SAFE_MODE: &str = "--test program -- --include-ignored faults_of_hdfs::in_safe_mode";
const DATA_NODES: usize = 2;
/// Starts the servers that can run here and runs the tests with them.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = metadata::target_folder(root)?.join("stores");
    fs::create_dir_all(&folder)?;
    let (mut locations, mut servers, mut variables) = (Vec::new(), Vec::new(), Vec::new());
    if is_available("python3", &["-c", "import venv, ensurepip"]) {
        let port = free_port()?;
        servers.push(start_s3(&folder, port)?);
        locations.push("s3://seraphim/tests".to_owned());
        let endpoint = format!("http://127.0.0.1:{port}");
        variables.extend([
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ]);
    } else {
        println!("stores: S3 is not tested, python3 with venv is missing");
    }
    let mut hdfs = None;
    if is_available("java", &["-version"]) && is_available("mvn", &["-version"]) {
        let (started, port, nodes) = start_hdfs(&folder)?;
        servers.extend(nodes);
        let location = format!("hdfs://127.0.0.1:{port}/tests");
        variables.push(("SERAPHIM_HDFS", location.clone()));
        locations.push(location);
        hdfs = Some(started);
    } else {
        println!("stores: HDFS is not tested, java or mvn is missing");
    }
    variables.push(("SERAPHIM_STORES", locations.join(" ")));
    let run_tests = |tests: &str| {
        let words = format!("test -p store -p seraphim --features cloud,hdfs {tests}");
        let test =
            variables.iter().fold(Cmd::cargo(root, &words), |test, (name, value)| test.env(name, value));
        test.run()
    };
    TESTS.iter().try_for_each(|tests| run_tests(tests))?;
    if let Some(hdfs) = hdfs {
        run_tests(RIGHTS)?;
        hdfs.set_safe_mode("enter")?;
        run_tests(SAFE_MODE)?;
        hdfs.set_safe_mode("leave")?;
    }
    Ok(())
}

fn start_s3(folder: &Path, port: u16) -> Result<Server> {
    let environment = folder.join("python");
    let server = environment.join("bin/moto_server");
    if !server.exists() {
        Cmd::new("python3", folder).args(["-m", "venv", "python"]).run()?;
        Cmd::new(environment.join("bin/pip"), folder).args(["install", "-q", MOTO]).run()?;
    }
    let log = folder.join("s3.log");
    let port_text = port.to_string();
    let mut started = Server::start(Command::new(server).args(["-H", "127.0.0.1", "-p", &port_text]), &log)?;
    started.wait_for(&log, || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
    let answer = http(port, "PUT", "/seraphim")?;
    ensure!(answer.contains("200 OK"), "the bucket cannot be created: {answer}");
    Ok(started)
}

/// A name node and its data nodes in a folder of their own.
struct Hdfs {
    /// Configuration, data and logs.
    folder: PathBuf,
    jars: PathBuf,
}

fn start_hdfs(folder: &Path) -> Result<(Hdfs, u16, Vec<Server>)> {
    let jars = fetch_jars(folder, "hdfs", &["hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client"])?;
    let hdfs = Hdfs { folder: folder.join("hdfs"), jars };
    if hdfs.folder.exists() {
        fs::remove_dir_all(&hdfs.folder)?;
    }
    // The jars lack the web pages without which the nodes do not start; empty folders do.
    for web in ["hdfs", "datanode", "static"] {
        fs::create_dir_all(hdfs.folder.join("web/webapps").join(web))?;
    }
    let (port, http_port) = (free_port()?, free_port()?);
    hdfs.configure(0, (port, http_port))?;
    let formatted =
        hdfs.java(0, "server.namenode.NameNode").args(["-format", "-nonInteractive", "-force"]).output()?;
    if !formatted.status.success() {
        bail!("the name node cannot be formatted: {}", String::from_utf8_lossy(&formatted.stderr));
    }
    let log = hdfs.folder.join("name-node.log");
    let mut servers = vec![Server::start(&mut hdfs.java(0, "server.namenode.NameNode"), &log)?];
    for node in 1..=DATA_NODES {
        hdfs.configure(node, (port, http_port))?;
        let log = hdfs.folder.join(format!("data-node-{node}.log"));
        servers.push(Server::start(&mut hdfs.java(node, "server.datanode.DataNode"), &log)?);
    }
    let state = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState";
    let all = format!("\"NumLiveDataNodes\" : {DATA_NODES}");
    servers[0].wait_for(&log, || http(http_port, "GET", state).is_ok_and(|text| text.contains(&all)))?;
    Ok((hdfs, port, servers))
}

impl Hdfs {
    fn place(&self, node: usize) -> PathBuf {
        self.folder.join(format!("node-{node}"))
    }

    /// Writes the configuration of the name node (0) or of a data node. `ports`: of the name node, for frames and HTTP.
    fn configure(&self, node: usize, ports: (u16, u16)) -> Result<()> {
        let place = self.place(node);
        fs::create_dir_all(&place)?;
        let address = |port: u16| format!("127.0.0.1:{port}");
        let own = |what: &str| format!("file://{}", place.join(what).display());
        write_settings(
            &place.join("core-site.xml"),
            &[("fs.defaultFS", format!("hdfs://{}", address(ports.0)))],
        )?;
        let settings = [
            ("dfs.replication", DATA_NODES.to_string()),
            ("dfs.namenode.name.dir", own("names")),
            ("dfs.datanode.data.dir", own("data")),
            ("dfs.namenode.rpc-address", address(ports.0)),
            ("dfs.namenode.http-address", address(ports.1)),
            ("dfs.datanode.address", address(free_port()?)),
            ("dfs.datanode.http.address", address(free_port()?)),
            ("dfs.datanode.ipc.address", address(free_port()?)),
            ("dfs.datanode.hostname", "127.0.0.1".to_owned()),
            ("dfs.namenode.datanode.registration.ip-hostname-check", "false".to_owned()),
            ("dfs.namenode.safemode.extension", "0".to_owned()),
            ("dfs.heartbeat.interval", "1".to_owned()),
        ];
        write_settings(&place.join("hdfs-site.xml"), &settings)
    }

    /// Lets the name node enter or leave its safe mode, in which nothing is written.
    fn set_safe_mode(&self, change: &str) -> Result<()> {
        let output = self.java(0, "tools.DFSAdmin").args(["-safemode", change]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The command of a program of HDFS with the configuration of a node.
    fn java(&self, node: usize, class: &str) -> Command {
        let folders = [self.place(node), self.folder.join("web")];
        java(&format!("hdfs.{class}"), &folders.each_ref().map(PathBuf::as_path), &self.jars)
    }
}
