//! The status for users, and the counters.

use control::{JobState, JobStatus};
use rpc::Metrics;
use rpc::message::{Member, MemberKind};
use serde_json::Value;

use crate::state::MasterState;

impl MasterState {
    /// The alive members, each with its last report.
    pub(crate) fn member_reports(&self) -> Vec<(Member, Value)> {
        self.members.iter().map(|alive| (alive.member.clone(), alive.report.clone())).collect()
    }

    pub(crate) fn job_statuses(&self) -> Vec<JobStatus> {
        self.jobs.iter().map(|job| job.status.clone()).collect()
    }

    pub(crate) fn write_metrics(&self, out: &mut Metrics) {
        self.count_members(out);
        for (state, name) in [
            (JobState::Queued, "queued"),
            (JobState::Running, "running"),
            (JobState::Done, "done"),
            (JobState::Failed, "failed"),
            (JobState::Cancelled, "cancelled"),
        ] {
            let count = self.jobs.count(state) as u64;
            out.gauge("seraphim_master_jobs", "Jobs that the master stores", &[("state", name)], count);
        }
        let help = "Bytes of the reports of jobs that have ended";
        out.gauge("seraphim_master_report_bytes", help, &[], self.jobs.report_bytes());
        let help = "Open sessions of the parameter service";
        out.gauge("seraphim_master_sessions", help, &[], self.sessions.len() as u64);
        let counts = &self.counts;
        for (name, help, value) in [
            ("control_messages", "Messages received", counts.messages),
            ("heartbeats", "Heartbeats received", counts.heartbeats),
            ("refused", "Messages refused", counts.refused),
            ("leases_over", "Members whose lease expired", counts.expired),
            ("members_back", "Members that reconnected over another connection", counts.reconnected),
            ("repeats_dropped", "Duplicate messages dropped", counts.repeated),
            ("late_dropped", "Messages dropped because their job or member had ended", counts.dropped),
        ] {
            out.counter(&format!("seraphim_master_{name}_total"), help, &[], value);
        }
    }

    fn count_members(&self, out: &mut Metrics) {
        let (mut servers, mut workers, mut away) = (0_u64, 0_u64, 0_u64);
        for alive in self.members.iter() {
            match alive.member.kind {
                MemberKind::Server { .. } => servers += 1,
                MemberKind::Worker { .. } => workers += 1,
            }
            away += u64::from(alive.connection.is_none());
        }
        for (kind, count) in [("server", servers), ("worker", workers)] {
            out.gauge("seraphim_master_members", "Members", &[("kind", kind)], count);
        }
        out.gauge("seraphim_master_members_away", "Members without a connection", &[], away);
    }
}
