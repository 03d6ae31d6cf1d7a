//! Servers that tests need, among them those of Hadoop, whose jars come from Maven Central.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::command::Cmd;

const HADOOP: &str = "3.4.2";
/// Longest wait for a server to be ready.
const START_LIMIT: Duration = Duration::from_mins(2);
/// Hadoop reaches into these packages of Java 17.
const OPENED_PACKAGES: [&str; 9] = [
    "java.lang",
    "java.util",
    "java.util.concurrent",
    "java.net",
    "java.io",
    "java.nio",
    "java.math",
    "java.text",
    "sun.security.x509",
];

/// A process that ends with this value.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts a program whose output goes to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let started = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
        Ok(Self(started.with_context(|| format!("cannot start {}", command.get_program().display()))?))
    }

    /// Waits until `is_ready`; the error names the log.
    pub(crate) fn wait_for(&mut self, log: &Path, is_ready: impl Fn() -> bool) -> Result<()> {
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
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The answer to an HTTP request without a body.
pub(crate) fn http(port: u16, method: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The jars of parts of Hadoop and of what they need, in a folder that `name` names.
pub(crate) fn fetch_jars(folder: &Path, name: &str, parts: &[&str]) -> Result<PathBuf> {
    let jars = folder.join(format!("{name}-{HADOOP}"));
    if jars.join("complete").exists() {
        return Ok(jars);
    }
    let mut dependencies = String::new();
    for part in parts {
        write!(
            dependencies,
            "<dependency><groupId>org.apache.hadoop</groupId><artifactId>{part}</artifactId><version>{HADOOP}</version>\
             </dependency>"
        )?;
    }
    let pom = folder.join(format!("{name}.xml"));
    fs::write(
        &pom,
        format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>{name}</artifactId>\
             <version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
        ),
    )?;
    let copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
    let (file, to) = (pom.display().to_string(), format!("-DoutputDirectory={}", jars.display()));
    Cmd::new("mvn", folder).args(["-B", "-q", "-f", &file, copy, "-DincludeScope=runtime", &to]).run()?;
    fs::write(jars.join("complete"), "")?;
    Ok(jars)
}

/// Writes a file of settings as Hadoop reads it.
pub(crate) fn write_settings(file: &Path, settings: &[(&str, String)]) -> Result<()> {
    let mut text = String::from("<?xml version=\"1.0\"?>\n<configuration>\n");
    for (name, value) in settings {
        writeln!(text, "<property><name>{name}</name><value>{value}</value></property>")?;
    }
    Ok(fs::write(file, text + "</configuration>\n")?)
}

/// The command of a process of Hadoop; `folders` are those of its configuration and pages.
pub(crate) fn java(class: &str, folders: &[&Path], jars: &Path) -> Command {
    let mut java = Command::new("java");
    java.args(["-Xmx256m", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]);
    java.args(OPENED_PACKAGES.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
    let places = folders.iter().map(|folder| folder.display().to_string());
    let path: Vec<String> = places.chain([format!("{}/*", jars.display())]).collect();
    java.args(["-cp", &path.join(":"), &format!("org.apache.hadoop.{class}")]);
    java
}
