//! The servers of a job as its driver reaches them.

use driver::{Error, ParametersRequest, SnapshotPurpose};
use master::JobLink;
use rpc::message::{Durability, Role};
use serde_json::{Map, Value, json};

use crate::cluster::lane_clients::retry_policy;
use crate::cluster::servers::Servers;
use crate::cluster::stats_poller::StatsPoller;
use crate::run_loop::Parameters;

pub(super) struct ServerParameters<'a> {
    pub link: &'a JobLink,
    pub token: &'a [u8],
    pub durability: Durability,
    pub servers: Option<Servers>,
    pub poller: Option<StatsPoller>,
}

/// Carries out what is asked of matrices that the servers have.
pub(super) fn request_of(servers: &mut Servers, request: &ParametersRequest) -> Result<Value, Error> {
    match *request {
        ParametersRequest::Create { .. } => unreachable!("whoever connects the servers creates the matrices"),
        ParametersRequest::TakeSnapshot { purpose: SnapshotPurpose::BestEpoch, .. } => {
            servers.take_snapshot(SnapshotPurpose::BestEpoch)?;
        }
        ParametersRequest::TakeSnapshot { purpose, records_changes } => {
            return Ok(Value::Bool(servers.try_take_snapshot(purpose, records_changes)?));
        }
        ParametersRequest::RestoreBest => servers.restore_snapshot(SnapshotPurpose::BestEpoch)?,
        ParametersRequest::Stats => return Ok(json!(servers.stats()?)),
    }
    Ok(Value::Null)
}

impl Parameters for ServerParameters<'_> {
    fn request(&mut self, request: ParametersRequest) -> Result<Value, Error> {
        if let ParametersRequest::Create { layout, modules, workers } = request {
            let servers = Servers::connect_as(Role::Tool, &layout, self.token, retry_policy(self.link))?
                .with_durability(self.durability);
            self.servers.insert(servers).open_job_with(&modules)?;
            if self.durability == Durability::Replica {
                self.link.set_replicated();
            }
            let poller = StatsPoller::start(&layout, self.token, workers, self.link.lost_servers());
            self.poller = Some(poller);
            return Ok(Value::Null);
        }
        request_of(self.servers.as_mut().expect("the matrices are created first"), &request)
    }

    fn drop_snapshot(&mut self, purpose: SnapshotPurpose) {
        // An error is ignored: the next request finds it again.
        let _ = self.servers.as_mut().map(|servers| servers.drop_snapshot(purpose));
    }

    fn close(&mut self, failure: Option<&str>) {
        self.poller = None;
        if let Some(servers) = &mut self.servers {
            // An error is ignored: a lost server needs no closing.
            let _ = match failure {
                Some(reason) => servers.close_failed_job(reason),
                None => servers.close_job("the job has ended"),
            };
        }
    }

    fn add_status(&self, status: &mut Map<String, Value>) {
        if let Some(Value::Object(latest)) = self.poller.as_ref().map(StatsPoller::latest) {
            status.extend(latest);
        }
    }
}
