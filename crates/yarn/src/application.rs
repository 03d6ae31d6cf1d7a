//! What an application is, and the texts that YARN and the Application Master get. Nothing here reads or sends anything.

use serde_json::{Value, json};

use crate::error::Error;
use crate::resource_manager::NewApplication;

/// Names of files in the stage and in the folders of the containers.
pub const PROGRAM: &str = "seraphim";
pub const TOKEN: &str = "token";
/// Files of the stage that the master writes: its addresses, how the job ended, and its records.
pub const MASTER: &str = "master";
pub const RESULT: &str = "result";
pub const STATE: &str = "state";
pub(crate) const JAR: &str = "seraphim-yarn.jar";
pub(crate) const PROPERTIES: &str = "application.properties";

/// Memory of the Application Master, and of its heap.
const MANAGER_MIB: u64 = 256;
const MANAGER_HEAP_MIB: u64 = 128;
/// Attempts of the Application Master within [`ATTEMPT_WINDOW_MS`]; the cluster may allow fewer.
const MANAGER_ATTEMPTS: u32 = 4;
const ATTEMPT_WINDOW_MS: u64 = 60_000;

/// What a container has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    pub memory_mib: u64,
    pub vcores: u64,
}

/// Processes of one kind.
#[derive(Clone, Debug)]
pub struct Role {
    /// `master`, `server` or `worker`.
    pub name: &'static str,
    pub count: u32,
    pub resources: Resources,
    /// A line of bash, in a folder with the files of the application.
    pub command: String,
    /// Hosts that are preferred, such as those that have the data.
    pub hosts: Vec<String>,
}

/// An application.
#[derive(Clone, Debug)]
pub struct Application {
    /// What YARN shows.
    pub title: String,
    pub queue: Option<String>,
    pub priority: Option<i32>,
    /// Only nodes with this label.
    pub node_label: Option<String>,
    pub roles: Vec<Role>,
    /// Variables of all containers.
    pub environment: Vec<(String, String)>,
}

/// A file of the stage as YARN wants to know it.
#[derive(Clone, Debug)]
pub struct StagedFile {
    pub name: &'static str,
    pub address: String,
    pub size_bytes: u64,
    pub modified_ms: u64,
}

impl Application {
    /// Checks that YARN gives containers of these sizes.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn check_sizes(&self, new: &NewApplication) -> Result<(), Error> {
        for role in &self.roles {
            let Resources { memory_mib, vcores } = role.resources;
            let parts = [
                (memory_mib, new.largest_memory_mib, "MiB", format!("--{}-memory", role.name)),
                (vcores, new.largest_vcores, "vcores", "--vcores".to_owned()),
            ];
            for (asked, largest, unit, flag) in parts {
                if asked > largest {
                    let (asked, largest) = (format!("{asked} {unit}"), format!("{largest} {unit}"));
                    return Err(Error::TooLarge { role: role.name.to_owned(), asked, largest, flag });
                }
            }
        }
        Ok(())
    }

    /// The settings for the Application Master.
    pub(crate) fn properties(&self, stage: &str, files: &[StagedFile]) -> String {
        let names: Vec<&str> = self.roles.iter().map(|role| role.name).collect();
        let links: Vec<String> = files.iter().map(|file| format!("{}={}", file.name, file.address)).collect();
        let mut pairs = vec![
            ("stage".to_owned(), stage.to_owned()),
            ("roles".to_owned(), names.join(",")),
            ("deciding_role".to_owned(), "master".to_owned()),
            ("files".to_owned(), links.join(";")),
        ];
        for role in &self.roles {
            let mut add = |key: &str, value: String| pairs.push((format!("role.{}.{key}", role.name), value));
            add("count", role.count.to_string());
            add("memory_mib", role.resources.memory_mib.to_string());
            add("vcores", role.resources.vcores.to_string());
            add("command", role.command.clone());
            match &self.node_label {
                Some(label) => add("node_label", label.clone()),
                None if !role.hosts.is_empty() => add("hosts", role.hosts.join(",")),
                None => {}
            }
        }
        pairs.extend(
            self.environment.iter().map(|(name, value)| (format!("environment.{name}"), value.clone())),
        );
        let lines = pairs.into_iter().map(|(key, value)| format!("{key} = {}", value.replace('\\', "\\\\")));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }

    /// The request to the ResourceManager. `classpath` is that of the cluster, separated by commas.
    pub(crate) fn submission(&self, id: &str, classpath: &str, files: &[StagedFile]) -> Value {
        let resource = |file: &StagedFile| {
            json!({"key": file.name, "value": {
                "resource": file.address,
                "type": "FILE",
                "visibility": "APPLICATION",
                "size": file.size_bytes,
                "timestamp": file.modified_ms,
            }})
        };
        let command = format!(
            "exec $JAVA_HOME/bin/java -Xmx{MANAGER_HEAP_MIB}m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp $CLASSPATH \
             org.seraphim.yarn.ApplicationMaster 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
        );
        let classpath = format!("{JAR}:{}", classpath.replace(',', ":"));
        let mut submission = json!({
            "application-id": id,
            "application-name": self.title,
            "application-type": "SERAPHIM",
            "queue": self.queue.as_deref().unwrap_or("default"),
            "priority": self.priority.unwrap_or(0),
            "max-app-attempts": MANAGER_ATTEMPTS,
            "attempt-failures-validity-interval": ATTEMPT_WINDOW_MS,
            "keep-containers-across-application-attempts": true,
            "unmanaged-AM": false,
            "resource": {"memory": MANAGER_MIB, "vCores": 1},
            "am-container-spec": {
                "local-resources": {"entry": files.iter().map(resource).collect::<Vec<_>>()},
                "commands": {"command": command},
                "environment": {"entry": [{"key": "CLASSPATH", "value": classpath}]},
            },
        });
        if let Some(label) = &self.node_label {
            submission["am-container-node-label-expression"] = json!(label);
        }
        submission
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application() -> Application {
        let role = |name, count, memory_mib| Role {
            name,
            count,
            resources: Resources { memory_mib, vcores: 1 },
            command: format!("./seraphim {name} --name '{name}\\1'"),
            hosts: vec!["h1".into(), "h2".into()],
        };
        Application {
            title: "m of lr".into(),
            queue: None,
            priority: Some(2),
            node_label: None,
            roles: vec![role("master", 1, 512), role("worker", 3, 2048)],
            environment: vec![("HADOOP_USER_NAME".into(), "me".into())],
        }
    }

    fn file(name: &'static str) -> StagedFile {
        StagedFile { name, address: format!("hdfs://h/s/{name}"), size_bytes: 7, modified_ms: 9 }
    }

    #[test]
    fn the_application_master_learns_of_every_role_and_file() {
        let text = application().properties("hdfs://h/s", &[file(PROGRAM), file(TOKEN)]);
        for line in [
            "stage = hdfs://h/s",
            "roles = master,worker",
            "files = seraphim=hdfs://h/s/seraphim;token=hdfs://h/s/token",
            "role.worker.count = 3",
            "role.worker.memory_mib = 2048",
            "role.worker.hosts = h1,h2",
            "role.master.command = ./seraphim master --name 'master\\\\1'",
            "environment.HADOOP_USER_NAME = me",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
        let labelled = Application { node_label: Some("gpu".into()), ..application() };
        let text = labelled.properties("s", &[]);
        assert!(text.contains("role.master.node_label = gpu") && !text.contains("hosts"), "{text}");
    }

    #[test]
    fn yarn_learns_of_the_files_of_the_application_master_and_of_the_queue() {
        let body = application().submission("application_1_2", "/etc/hadoop,/jars/*", &[file(JAR)]);
        assert_eq!((&body["queue"], &body["priority"]), (&json!("default"), &json!(2)));
        let entry = &body["am-container-spec"]["environment"]["entry"][0];
        assert_eq!(entry["value"], "seraphim-yarn.jar:/etc/hadoop:/jars/*");
        let resource = &body["am-container-spec"]["local-resources"]["entry"][0]["value"];
        assert_eq!((&resource["size"], &resource["timestamp"]), (&json!(7), &json!(9)));
    }

    #[test]
    fn a_container_that_is_too_large_names_its_flag() {
        let new = NewApplication { id: "a".into(), largest_memory_mib: 1024, largest_vcores: 4 };
        let text = application().check_sizes(&new).unwrap_err().to_string();
        assert!(text.contains("worker would have 2048 MiB") && text.contains("--worker-memory"), "{text}");
        let new = NewApplication { largest_memory_mib: 4096, largest_vcores: 0, ..new };
        assert!(application().check_sizes(&new).unwrap_err().to_string().contains("--vcores"));
    }
}
