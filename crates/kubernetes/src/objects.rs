//! The objects of a cluster for one job, as the API takes them.

use serde_json::{Value, json};

use crate::error::Error;

/// The port of frames and that of HTTP in each pod.
pub const FRAMES_PORT: u16 = 7070;
pub const HTTP_PORT: u16 = 7071;
/// The file of the token in each pod.
pub const TOKEN_FILE: &str = "/etc/seraphim/token";
/// The file that Kubernetes shows when a container has ended.
pub const RESULT_FILE: &str = "/dev/termination-log";
/// A folder of the pod, which ends with it.
pub const TEMPORARY: &str = "/tmp";
/// Labels of all objects.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
pub const ROLE_LABEL: &str = "app.kubernetes.io/component";

/// Maximum number of bytes of a name: it gets suffixes, and labels have at most 63.
const NAME_LIMIT: usize = 40;
/// How long the objects of a job stay when it has ended and no client removes them, in seconds.
const TIME_TO_LIVE: u32 = 300;
/// How often the master may end before its job has: as often as nodes go away in a long training.
const MASTER_RESTART_LIMIT: u32 = 100;
/// How long a process may take to leave, in seconds.
const GRACE: u32 = 30;
/// How long a node may be away before its pods are replaced, in seconds.
const NODE_GRACE: u32 = 5;
/// The user and group of the processes: that of images without a system, which has no name and no rights.
const USER: u32 = 65532;

/// What is taken of a node for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    pub memory_mib: u64,
    /// Thousandths of a core. Half of them are requested: servers and workers wait for each other, and few need all of
    /// theirs at once.
    pub millicores: u64,
}

/// The pods of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    pub role: &'static str,
    pub count: u32,
    pub resources: Resources,
    /// Of the program. `$(POD_IP)` and `$(POD_NAME)` are the address and the name of the pod.
    pub arguments: Vec<String>,
}

/// A volume that exists, by the name of its `PersistentVolumeClaim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    /// Where each pod sees it.
    pub path: String,
}

/// The cluster of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Of its objects.
    pub name: String,
    /// Of the job, for people.
    pub title: String,
    pub image: String,
    pub token: String,
    /// One master, whose end ends the cluster.
    pub master: Pods,
    /// Servers and workers.
    pub members: Vec<Pods>,
    pub claims: Vec<Claim>,
    /// Secrets whose entries are variables of each process, such as the credentials of a store.
    pub secrets: Vec<String>,
    pub service_account: Option<String>,
    /// A label that the nodes must have.
    pub node_label: Option<(String, String)>,
    pub priority_class: Option<String>,
}

impl ClusterSpec {
    /// Checks a name of objects.
    ///
    /// # Errors
    /// If Kubernetes takes no such name.
    pub fn check_name(name: &str) -> Result<(), Error> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = name.bytes().all(is_plain)
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.len() <= NAME_LIMIT;
        if is_name { Ok(()) } else { Err(Error::Name { name: name.to_owned(), limit: NAME_LIMIT }) }
    }

    /// The Job with the master. It does not begin before its other objects are there.
    pub fn job(&self) -> Value {
        let mut pod = self.pod(&self.master);
        pod["spec"]["restartPolicy"] = json!("OnFailure");
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.name,
                "labels": self.labels(self.master.role),
                "annotations": {"seraphim/job": self.title},
            },
            "spec": {
                "suspend": true,
                "completions": 1,
                "parallelism": 1,
                "backoffLimit": MASTER_RESTART_LIMIT,
                "ttlSecondsAfterFinished": TIME_TO_LIVE,
                "template": pod,
            },
        })
    }

    /// The other objects, with their paths in the API. They belong to the Job of this id.
    pub fn owned_objects(&self, job_id: &str) -> Vec<(&'static str, Value)> {
        let metadata = |name: &str, role: &str| {
            json!({
                "name": name,
                "labels": self.labels(role),
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": job_id}],
            })
        };
        let mut objects = vec![
            (
                "api/v1/secrets",
                json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": metadata(&self.name, self.master.role),
                    "stringData": {"token": self.token},
                }),
            ),
            (
                "api/v1/services",
                json!({
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": metadata(&self.name, self.master.role),
                    "spec": {
                        "clusterIP": "None",
                        // A member that finds the name before the master is ready tries again.
                        "publishNotReadyAddresses": true,
                        "selector": self.selector(self.master.role),
                        "ports": [
                            {"name": "frames", "port": FRAMES_PORT},
                            {"name": "http", "port": HTTP_PORT},
                        ],
                    },
                }),
            ),
        ];
        for pods in self.members.iter().filter(|pods| pods.count > 0) {
            let deployment = json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata(&format!("{}-{}", self.name, pods.role), pods.role),
                "spec": {
                    "replicas": pods.count,
                    "selector": {"matchLabels": self.selector(pods.role)},
                    "template": self.pod(pods),
                },
            });
            objects.push(("apis/apps/v1/deployments", deployment));
        }
        objects
    }

    /// What chooses the pods of a role.
    fn selector(&self, role: &str) -> Value {
        json!({INSTANCE_LABEL: self.name, ROLE_LABEL: role})
    }

    fn labels(&self, role: &str) -> Value {
        let mut labels = self.selector(role);
        labels["app.kubernetes.io/name"] = json!("seraphim");
        labels["app.kubernetes.io/managed-by"] = json!("seraphim-submit");
        labels
    }

    /// The template of the pods of a role, on the level "restricted" of the Pod Security Standards.
    fn pod(&self, pods: &Pods) -> Value {
        let (volumes, mounts) = self.volumes();
        let tolerations = ["not-ready", "unreachable"].map(|taint| {
            let key = format!("node.kubernetes.io/{taint}");
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": NODE_GRACE})
        });
        let mut spec = json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": GRACE,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [self.container(pods, &mounts)],
            // A pod of a node that is away is replaced soon, and not after the usual five minutes.
            "tolerations": tolerations,
            "volumes": volumes,
        });
        if let Some(name) = &self.service_account {
            // Its token is mounted by the cloud's own means, where there are any.
            spec["serviceAccountName"] = json!(name);
        }
        if let Some((name, value)) = &self.node_label {
            spec["nodeSelector"] = json!({name: value});
        }
        if let Some(name) = &self.priority_class {
            spec["priorityClassName"] = json!(name);
        }
        let annotations = json!({
            "prometheus.io/scrape": "true",
            "prometheus.io/port": HTTP_PORT.to_string(),
            "prometheus.io/path": "/metrics",
        });
        json!({"metadata": {"labels": self.labels(pods.role), "annotations": annotations}, "spec": spec})
    }

    /// The volumes of a pod, and where its container sees them.
    fn volumes(&self) -> (Vec<Value>, Vec<Value>) {
        let mut volumes = vec![
            json!({"name": "token", "secret": {"secretName": self.name, "defaultMode": 0o440}}),
            json!({"name": "temporary", "emptyDir": {}}),
        ];
        let (folder, _) = TOKEN_FILE.rsplit_once('/').expect("it is a path");
        let mut mounts = vec![
            json!({"name": "token", "mountPath": folder, "readOnly": true}),
            json!({"name": "temporary", "mountPath": TEMPORARY}),
        ];
        for (index, Claim { name, path }) in self.claims.iter().enumerate() {
            let volume = format!("claim-{index}");
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": name}}));
            mounts.push(json!({"name": volume, "mountPath": path}));
        }
        (volumes, mounts)
    }

    fn container(&self, pods: &Pods, mounts: &[Value]) -> Value {
        let Resources { memory_mib, millicores } = pods.resources;
        let resources =
            |millicores: u64| json!({"memory": format!("{memory_mib}Mi"), "cpu": format!("{millicores}m")});
        let of_field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let secrets: Vec<Value> =
            self.secrets.iter().map(|name| json!({"secretRef": {"name": name}})).collect();
        json!({
            "name": "seraphim",
            "image": self.image,
            "args": pods.arguments,
            "env": [
                of_field("POD_IP", "status.podIP"),
                of_field("POD_NAME", "metadata.name"),
                {"name": "HOME", "value": TEMPORARY},
            ],
            "envFrom": secrets,
            "ports": [
                {"name": "frames", "containerPort": FRAMES_PORT},
                {"name": "http", "containerPort": HTTP_PORT},
            ],
            "resources": {"requests": resources(millicores / 2), "limits": resources(millicores)},
            "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1},
            "livenessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 10, "failureThreshold": 6},
            "terminationMessagePath": RESULT_FILE,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": mounts,
        })
    }
}

/// Why a Job has ended; none if it has not.
pub fn end_of_job(job: &Value) -> Option<&str> {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let is_over = |condition: &&Value| {
        condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
    };
    let end = conditions.find(is_over)?;
    Some(end["message"].as_str().unwrap_or("its master has ended"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn pods(role: &'static str, count: u32) -> Pods {
        let arguments = vec![role.to_owned(), "--http".into(), "$(POD_IP):7071".into()];
        Pods { role, count, resources: Resources { memory_mib: 512, millicores: 1000 }, arguments }
    }

    fn spec() -> ClusterSpec {
        ClusterSpec {
            name: "clicks".into(),
            title: "lr on s3://bucket/data".into(),
            image: "seraphim:0.1.0".into(),
            token: "secret".into(),
            master: pods("master", 1),
            members: vec![pods("server", 2), pods("worker", 3)],
            claims: vec![Claim { name: "data".into(), path: "/data".into() }],
            secrets: vec!["s3".into()],
            service_account: Some("trainer".into()),
            node_label: Some(("disk".into(), "fast".into())),
            priority_class: Some("batch".into()),
        }
    }

    /// All objects, as documents of YAML.
    fn documents(spec: &ClusterSpec) -> String {
        let others = spec.owned_objects("the-id").into_iter().map(|(_, object)| object);
        let all = std::iter::once(spec.job()).chain(others);
        let texts = all.map(|object| serde_json::to_string_pretty(&object).unwrap());
        texts.fold(String::new(), |all, text| all + "---\n" + &text + "\n")
    }

    /// The file that `cargo xtask kubernetes` checks against the schemas of Kubernetes, and its API.
    #[test]
    fn the_objects_of_a_job_are_those_that_were_checked() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/job.yaml");
        let present = documents(&spec());
        if std::env::var_os("SERAPHIM_WRITE_GOLDENS").is_some() {
            std::fs::write(&path, &present).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        assert!(
            present == golden,
            "other objects than in {}: write it anew with SERAPHIM_WRITE_GOLDENS=1, and run `cargo xtask kubernetes`",
            path.display()
        );
    }

    #[test]
    fn what_is_not_asked_for_is_not_there() {
        let plain = ClusterSpec {
            members: vec![pods("server", 0), pods("worker", 1)],
            claims: Vec::new(),
            secrets: Vec::new(),
            service_account: None,
            node_label: None,
            priority_class: None,
            ..spec()
        };
        let documents = documents(&plain);
        for absent in
            ["clicks-server", "claim", "nodeSelector", "serviceAccountName", "priorityClassName", "secretRef"]
        {
            assert!(!documents.contains(absent), "{absent}");
        }
        assert!(documents.contains("clicks-worker"));
    }

    #[test]
    fn the_token_is_in_the_secret_alone() {
        let spec = ClusterSpec { token: "0123456789".into(), ..spec() };
        let documents = documents(&spec);
        assert_eq!(documents.matches("0123456789").count(), 1);
    }

    #[test]
    fn names_are_those_that_kubernetes_takes() {
        for name in ["a", "seraphim-0af", "lr-2"] {
            ClusterSpec::check_name(name).unwrap();
        }
        for name in ["", "Clicks", "1a", "a-", "a_b", "a.b", &"x".repeat(NAME_LIMIT + 1)] {
            let error = ClusterSpec::check_name(name).unwrap_err().to_string();
            assert!(error.contains("--k8s") && error.contains("lower-case"), "{error}");
        }
    }
}
