//! Errors of Kubernetes and of the way to it.

/// What can go wrong with the objects of a job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing says where the cluster is.
    #[error(
        "no cluster of Kubernetes is configured: {reason}. Set KUBECONFIG to the file that `kubectl` uses, or name one of its contexts with \
         --context"
    )]
    Configuration { reason: String },
    /// The API does not answer.
    #[error("Kubernetes does not answer at {url} when asked to {action}: {reason}")]
    Unreachable { url: String, action: String, reason: String },
    /// The API refuses a call.
    #[error("Kubernetes refuses to {action}: {reason}{advice}")]
    Refused { action: String, code: u16, reason: String, advice: &'static str },
    #[error("this program has no client of Kubernetes: build it with the feature `kubernetes`")]
    NotBuilt,
    /// The cluster cannot go on.
    #[error("{text}")]
    Ended { text: String },
    /// A name that Kubernetes does not take.
    #[error(
        "--k8s has {name:?}, and the names of objects of Kubernetes have 1 to {limit} lower-case letters, digits and hyphens, beginning with a \
         letter"
    )]
    Name { name: String, limit: usize },
    /// This machine cannot forward a port.
    #[error("no port of this machine can be forwarded to the master: {0}")]
    Forward(#[from] std::io::Error),
}

impl Error {
    /// Whether there is no such object.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }
}
