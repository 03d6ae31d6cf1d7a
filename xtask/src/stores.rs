//! `cargo xtask stores`: the tests of checkpoints in S3 and HDFS, against a server of S3 from `PyPI` and Hadoop's own name
//! node and data nodes from Maven Central. What is missing here (Python, Java, Maven) is said, and left out.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::{Cmd, is_available};
use crate::metadata;

const MOTO: &str = "moto[server]==5.2.5";
const HADOOP: &str = "3.4.2";
const TESTS: &str =
    "test -p store -p seraphim --features cloud,hdfs --test every_store --test checkpoints_in_other_stores";
/// Longest wait for a server to be ready.
const START_LIMIT: Duration = Duration::from_mins(2);
const DATA_NODES: usize = 2;
/// Hadoop reaches into these packages of Java 17.
const OPENED_PACKAGES: [&str; 4] = ["java.lang", "java.util", "java.util.concurrent", "java.net"];

/// A process that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts a program whose output goes to a file.
    fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let started = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
        Ok(Self(started.with_context(|| format!("cannot start {}", command.get_program().display()))?))
    }

    /// Waits until `is_ready`; the error names the log.
    fn wait_for(&mut self, log: &Path, is_ready: impl Fn() -> bool) -> Result<()> {
        let start = Instant::now();
        while !is_ready() {
            ensure!(self.0.try_wait()?.is_none(), "a server has ended: see {}", log.display());
            ensure!(start.elapsed() < START_LIMIT, "a server is not ready: see {}", log.display());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// A port that is free now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The answer to an HTTP request without a body.
fn http(port: u16, method: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Starts the servers that can run here and runs the tests with them.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = metadata::target_folder(root)?.join("stores");
    fs::create_dir_all(&folder)?;
    let (mut locations, mut servers, mut test) = (Vec::new(), Vec::new(), Cmd::cargo(root, TESTS));
    if is_available("python3", &["-c", "import venv, ensurepip"]) {
        let port = free_port()?;
        servers.push(start_s3(&folder, port)?);
        locations.push("s3://seraphim/tests".to_owned());
        let endpoint = format!("http://127.0.0.1:{port}");
        for (name, value) in [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ] {
            test = test.env(name, value);
        }
    } else {
        println!("stores: S3 is not tested, python3 with venv is missing");
    }
    if is_available("java", &["-version"]) && is_available("mvn", &["-version"]) {
        let (port, started) = start_hdfs(&folder)?;
        servers.extend(started);
        locations.push(format!("hdfs://127.0.0.1:{port}/tests"));
    } else {
        println!("stores: HDFS is not tested, java or mvn is missing");
    }
    test.env("SERAPHIM_STORES", locations.join(" ")).run()
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

fn start_hdfs(folder: &Path) -> Result<(u16, Vec<Server>)> {
    let jars = fetch_jars(folder)?;
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
        hdfs.java(0, "namenode.NameNode").args(["-format", "-nonInteractive", "-force"]).output()?;
    if !formatted.status.success() {
        bail!("the name node cannot be formatted: {}", String::from_utf8_lossy(&formatted.stderr));
    }
    let log = hdfs.folder.join("name-node.log");
    let mut servers = vec![Server::start(&mut hdfs.java(0, "namenode.NameNode"), &log)?];
    for node in 1..=DATA_NODES {
        hdfs.configure(node, (port, http_port))?;
        let log = hdfs.folder.join(format!("data-node-{node}.log"));
        servers.push(Server::start(&mut hdfs.java(node, "datanode.DataNode"), &log)?);
    }
    let state = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState";
    let all = format!("\"NumLiveDataNodes\" : {DATA_NODES}");
    servers[0].wait_for(&log, || http(http_port, "GET", state).is_ok_and(|text| text.contains(&all)))?;
    Ok((port, servers))
}

/// The jars of Hadoop and of what it needs.
fn fetch_jars(folder: &Path) -> Result<PathBuf> {
    let jars = folder.join(format!("hadoop-{HADOOP}"));
    if jars.join("complete").exists() {
        return Ok(jars);
    }
    let mut dependencies = String::new();
    for name in ["hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client"] {
        write!(
            dependencies,
            "<dependency><groupId>org.apache.hadoop</groupId><artifactId>{name}</artifactId><version>{HADOOP}</version>\
             </dependency>"
        )?;
    }
    let pom = folder.join("pom.xml");
    fs::write(
        &pom,
        format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>hdfs</artifactId>\
             <version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
        ),
    )?;
    let copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
    let (file, to) = (pom.display().to_string(), format!("-DoutputDirectory={}", jars.display()));
    Cmd::new("mvn", folder).args(["-B", "-q", "-f", &file, copy, "-DincludeScope=runtime", &to]).run()?;
    fs::write(jars.join("complete"), "")?;
    Ok(jars)
}

impl Hdfs {
    fn place(&self, node: usize) -> PathBuf {
        self.folder.join(format!("node-{node}"))
    }

    /// Writes the configuration of the name node (0) or of a data node. `ports`: of the name node, for frames and HTTP.
    fn configure(&self, node: usize, ports: (u16, u16)) -> Result<()> {
        let place = self.place(node);
        fs::create_dir_all(&place)?;
        let write = |name: &str, settings: &[(&str, String)]| {
            let mut text = String::from("<?xml version=\"1.0\"?>\n<configuration>\n");
            for (name, value) in settings {
                let _ = writeln!(text, "<property><name>{name}</name><value>{value}</value></property>");
            }
            fs::write(place.join(name), text + "</configuration>\n")
        };
        let address = |port: u16| format!("127.0.0.1:{port}");
        let own = |what: &str| format!("file://{}", place.join(what).display());
        write("core-site.xml", &[("fs.defaultFS", format!("hdfs://{}", address(ports.0)))])?;
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
        write("hdfs-site.xml", &settings)?;
        Ok(())
    }

    /// The command of a node.
    fn java(&self, node: usize, class: &str) -> Command {
        let mut java = Command::new("java");
        java.args(["-Xmx192m", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]);
        java.args(OPENED_PACKAGES.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
        let (configuration, web) = (self.place(node), self.folder.join("web"));
        let path = format!("{}:{}:{}/*", configuration.display(), web.display(), self.jars.display());
        java.args(["-cp", &path, &format!("org.apache.hadoop.hdfs.server.{class}")]);
        java
    }
}
