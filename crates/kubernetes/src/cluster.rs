//! The objects of jobs in a namespace: created, looked at, removed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

#[cfg(feature = "client")]
use crate::api::Api;
use crate::error::Error;
#[cfg(not(feature = "client"))]
use crate::no_api::Api;
use crate::objects::{ClusterSpec, HTTP_PORT, INSTANCE_LABEL, ROLE_LABEL};

const JOBS: &str = "apis/batch/v1/jobs";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A namespace of Kubernetes.
pub struct Cluster {
    api: Api,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("namespace", &self.namespace()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// The cluster of a context of the configuration of `kubectl`, or of the present one, or that of the pod in which this
    /// process runs. Without a namespace it is that of the context.
    ///
    /// # Errors
    /// If there is no configuration, or it cannot be read, or the program has no client of Kubernetes.
    pub fn new(context: Option<&str>, namespace: Option<&str>) -> Result<Self, Error> {
        Ok(Self { api: Api::new(context, namespace)? })
    }

    pub fn namespace(&self) -> &str {
        self.api.namespace()
    }

    /// Creates all objects of a cluster, or none.
    ///
    /// # Errors
    /// If there is a job of this name, or the API refuses an object.
    pub fn create(&self, spec: &ClusterSpec) -> Result<(), Error> {
        let job = self.post(JOBS, &spec.job())?;
        let id = job["metadata"]["uid"].as_str().unwrap_or_default();
        let others = spec.owned_objects(id);
        let created = others.iter().try_for_each(|(kind, object)| self.post(kind, object).map(drop));
        let started = created.and_then(|()| {
            let action = format!("start the job {}", spec.name);
            let start = json!({"spec": {"suspend": false}});
            self.api
                .call("PATCH", &self.path(JOBS, &spec.name), &action, Some((MERGE_PATCH, &start)))
                .map(drop)
        });
        if started.is_err() {
            // What is left has no pod.
            let _ = self.remove(&spec.name);
        }
        started
    }

    /// Removes a cluster, if it is there.
    ///
    /// # Errors
    /// If the API refuses it.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let options = json!({"propagationPolicy": "Background"});
        let action = format!("delete the job {name}");
        match self.api.call("DELETE", &self.path(JOBS, name), &action, Some((JSON, &options))) {
            Err(error) if !error.is_absent() => Err(error),
            _ => Ok(()),
        }
    }

    /// The pods of a cluster, as the API has them.
    ///
    /// # Errors
    /// If the API does not answer.
    pub fn pods(&self, name: &str) -> Result<Vec<Value>, Error> {
        let path = format!("{}?labelSelector={INSTANCE_LABEL}%3D{name}", self.path("api/v1/pods", ""));
        let list = self.api.call("GET", &path, "list the pods of a job", None)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The Job of a cluster; none if it was removed.
    ///
    /// # Errors
    /// If the API does not answer.
    pub fn job(&self, name: &str) -> Result<Option<Value>, Error> {
        match self.api.call("GET", &self.path(JOBS, name), &format!("look at the job {name}"), None) {
            Ok(job) => Ok(Some(job)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Why pods of a cluster cannot be created, such as a quota.
    ///
    /// # Errors
    /// If the API does not answer.
    pub fn refused_pods(&self, name: &str) -> Result<Option<String>, Error> {
        let list = self.api.call("GET", &self.path("api/v1/events", ""), "list events", None)?;
        let is_meant = |event: &&Value| {
            let object = event["involvedObject"]["name"].as_str().unwrap_or_default();
            let is_own =
                object == name || object.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
            event["reason"] == "FailedCreate" && is_own
        };
        let mut events = list["items"].as_array().into_iter().flatten().filter(is_meant);
        Ok(events.find_map(|event| event["message"].as_str()).map(str::to_owned))
    }

    /// Opens a port of this machine, as long as this value lives. Each connection to it is one to the HTTP port of the pod of a
    /// role, which is looked up anew: it may have been replaced.
    ///
    /// # Errors
    /// If no port is free.
    pub fn forward(&self, name: &str, role: &str) -> Result<String, Error> {
        self.api.forward(format!("{INSTANCE_LABEL}={name},{ROLE_LABEL}={role}"), HTTP_PORT)
    }

    /// The token of a cluster.
    ///
    /// # Errors
    /// If there is no such cluster, or its secret may not be read.
    pub fn token(&self, name: &str) -> Result<Vec<u8>, Error> {
        let action = format!("read the secret {name} in the namespace {}", self.namespace());
        let secret = self.api.call("GET", &self.path("api/v1/secrets", name), &action, None)?;
        // Another object of this name has none, and its master refuses the empty one.
        Ok(BASE64_STANDARD.decode(secret["data"]["token"].as_str().unwrap_or_default()).unwrap_or_default())
    }

    /// The path of an object, or of all of a kind.
    fn path(&self, kind: &str, name: &str) -> String {
        let (version, kind) = kind.rsplit_once('/').expect("it is a path");
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/{version}/namespaces/{}/{kind}{slash}{name}", self.namespace())
    }

    fn post(&self, kind: &str, object: &Value) -> Result<Value, Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let what = object["kind"].as_str().unwrap_or_default();
        let action = format!("create the {what} {name} in the namespace {}", self.namespace());
        self.api.call("POST", &self.path(kind, ""), &action, Some((JSON, object)))
    }
}
