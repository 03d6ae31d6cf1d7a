//! Runs the processes of a cluster for one job as pods of Kubernetes.
//!
//! A client creates the objects of the job through the API: a Job with the master, whose end is the end of the job, and
//! Deployments with the servers and workers, which start again what dies. All objects belong to the Job: whoever deletes
//! it, also Kubernetes after the job has ended, removes all of them. Members find the master by the name of a service, which they look up at each
//! attempt; the client reaches it through a forwarded port.
//!
//! | module | contents |
//! |---|---|
//! | [`objects`] | what a cluster is, and its objects as JSON |
//! | [`pods`] | what is wrong with a pod, in words |
//! | [`cluster`] | the objects in a namespace |
//! | `api` | the calls of the API (feature `client`) |

#[cfg(feature = "client")]
mod api;
pub mod cluster;
pub mod error;
#[cfg(not(feature = "client"))]
mod no_api;
pub mod objects;
pub mod pods;

pub use cluster::Cluster;
pub use error::Error;
pub use objects::{Claim, ClusterSpec, Pods, Resources};
