//! The calls of the API over HTTPS, with the client of Kubernetes: it knows the configuration of `kubectl` and its ways to log in.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::Pod;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::error::Error;
use crate::pods;

/// Longest wait for an answer of the API.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A namespace of a cluster, and what reaches it.
pub(crate) struct Api {
    runtime: Runtime,
    client: Client,
    /// For messages.
    url: String,
    namespace: String,
}

impl Api {
    /// The cluster of a context, or of the present one, or that of the pod in which this process runs.
    pub(crate) fn new(context: Option<&str>, namespace: Option<&str>) -> Result<Self, Error> {
        let failed = |error: &dyn std::error::Error| Error::Configuration { reason: sources(error) };
        // Another part of the process may have chosen.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build()?;
        let (client, url) = runtime.block_on(async {
            let config = match context {
                None => Config::infer().await.map_err(|error| failed(&error))?,
                Some(name) => {
                    let options = KubeConfigOptions { context: Some(name.to_owned()), ..Default::default() };
                    Config::from_kubeconfig(&options).await.map_err(|error| failed(&error))?
                }
            };
            let url = config.cluster_url.to_string();
            Ok::<_, Error>((Client::try_from(config).map_err(|error| failed(&error))?, url))
        })?;
        let namespace = namespace.unwrap_or_else(|| client.default_namespace()).to_owned();
        Ok(Self { runtime, client, url, namespace })
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Calls the API. A body has its type of content.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        action: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, Error> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some((kind, _)) = body {
            request = request.header(CONTENT_TYPE, kind);
        }
        let bytes = body.map(|(_, value)| value.to_string().into_bytes()).unwrap_or_default();
        let unreachable =
            |reason: String| Error::Unreachable { url: self.url.clone(), action: action.to_owned(), reason };
        let request = request.body(bytes).map_err(|error| unreachable(error.to_string()))?;
        let asked = self.runtime.block_on(async {
            tokio::time::timeout(ANSWER_LIMIT, self.client.request::<Value>(request)).await
        });
        match asked {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) => Err(Error::Refused {
                action: action.to_owned(),
                code: status.code,
                reason: status.message.clone(),
                advice: advice(status.code),
            }),
            Ok(Err(error)) => Err(unreachable(sources(&error))),
            Err(_) => Err(unreachable(format!("no answer within {} s", ANSWER_LIMIT.as_secs()))),
        }
    }

    /// Listens on a port of this machine as long as this value lives, and passes on each connection to a port of the pod with these labels
    /// that is ready then. Returns the address.
    pub(crate) fn forward(&self, labels: String, port: u16) -> Result<String, Error> {
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?.to_string();
        let pods: kube::Api<Pod> = kube::Api::namespaced(self.client.clone(), &self.namespace);
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (pods, labels) = (pods.clone(), labels.clone());
                // A connection that fails ends, and its client opens another one.
                tokio::spawn(async move { forward_connection(stream, &pods, &labels, port).await.ok() });
            }
        });
        Ok(address)
    }
}

fn advice(code: u16) -> &'static str {
    match code {
        401 => {
            ". The credentials are wrong or have expired: `kubectl get pods` must work with the same configuration"
        }
        403 => ". docs/kubernetes.md lists the permissions that are needed",
        409 => ". Choose another name with --k8s=NAME, or delete the earlier job",
        _ => "",
    }
}

/// An error with what lies below it, which says why.
fn sources(error: &dyn std::error::Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(below) = source {
        let text = below.to_string();
        if !texts.iter().any(|told| told.contains(&text)) {
            texts.push(text);
        }
        source = below.source();
    }
    texts.join(": ")
}

async fn forward_connection(
    mut stream: TcpStream,
    pods: &kube::Api<Pod>,
    labels: &str,
    port: u16,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let list = pods.list(&kube::api::ListParams::default().labels(labels)).await?;
    let mut present = list.items.into_iter();
    let ready = present.find(|pod| serde_json::to_value(pod).is_ok_and(|pod| pods::is_ready(&pod)));
    let name = ready.and_then(|pod| pod.metadata.name).ok_or("no pod is ready")?;
    let mut forwarder = pods.portforward(&name, &[port]).await?;
    let mut far = forwarder.take_stream(port).ok_or("no stream")?;
    tokio::io::copy_bidirectional(&mut stream, &mut far).await?;
    Ok(())
}
