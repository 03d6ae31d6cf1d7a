//! Clusters: the processes of their members, and the clients of a master.

pub use control::limits::WORKER_GROUP_BYTES;
pub use control::request::Status;
pub use control::text::{is_worker_group, plain, plain_lines};
pub use control::{Client, JobState, JobStatus, JobSubmission, SubmissionId};
pub use master::MasterConfig;
pub use member::{MasterLocator, MemberConfig};
pub use rpc::message::JobId;
pub use rpc::message::control::{Member, MemberKind};
pub use rpc::transport::Address;
pub use runtime::cluster::announcement::{Announcement, master_locator};
pub use runtime::cluster::launch::{self, LocalMaster};
pub use runtime::cluster::master_process::{MasterFiles, manage};
pub use runtime::cluster::parameter_service::{ParameterServiceConfig, serve as serve_parameters};
pub use runtime::cluster::server_log::LogConfig;
pub use runtime::cluster::server_process::{ServerProcessConfig, serve};
pub use runtime::cluster::single_job::ResultFile;
pub use runtime::cluster::worker::{WorkerConfig, run as work};
pub use runtime::cluster::{ParameterSession, PushIdentity};
pub use runtime::errors::master_error;
pub use runtime::local_data::LocalData;
