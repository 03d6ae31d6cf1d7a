//! What people see: the status of everything, and counts as Prometheus text.

use std::fmt::Write;

use control::{JobState, JobStatus};
use rpc::message::{Member, MemberKind};
use serde_json::Value;

use crate::state::MasterState;

/// What was counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) heartbeats: u64,
    pub(crate) refused: u64,
    /// Members whose lease was over.
    pub(crate) expired: u64,
    pub(crate) came_back: u64,
    /// Messages that came twice.
    pub(crate) repeated: u64,
    /// Messages between a runner and a member of which one was not there any more.
    pub(crate) dropped: u64,
}

impl MasterState {
    /// The living, each with what it last said of itself.
    pub(crate) fn members_seen(&self) -> Vec<(Member, Value)> {
        self.members.iter().map(|living| (living.member.clone(), living.report.clone())).collect()
    }

    pub(crate) fn jobs_seen(&self) -> Vec<JobStatus> {
        self.jobs.iter().map(|job| job.status.clone()).collect()
    }

    pub(crate) fn write_metrics(&self, out: &mut String) {
        self.write_members(out);
        head(out, "seraphim_master_jobs", "gauge", "Jobs that are remembered, by state.");
        for (state, name) in [
            (JobState::Queued, "queued"),
            (JobState::Running, "running"),
            (JobState::Done, "done"),
            (JobState::Failed, "failed"),
            (JobState::Cancelled, "cancelled"),
        ] {
            line(out, &format!("seraphim_master_jobs{{state=\"{name}\"}}"), self.jobs.count(state) as u64);
        }
        head(out, "seraphim_master_sessions", "gauge", "Sessions of the parameter service that are open.");
        line(out, "seraphim_master_sessions", self.sessions.len() as u64);
        let counts = &self.counts;
        for (name, help, value) in [
            ("control_messages", "Messages that came.", counts.messages),
            ("heartbeats", "Heartbeats that came.", counts.heartbeats),
            ("refused", "Messages that were refused.", counts.refused),
            ("leases_over", "Members that were silent for their lease.", counts.expired),
            ("members_back", "Members that came back on another connection.", counts.came_back),
            ("repeats_dropped", "Messages that came twice, the second dropped.", counts.repeated),
            ("late_dropped", "Messages for a job or member that had ended.", counts.dropped),
        ] {
            let name = format!("seraphim_master_{name}_total");
            head(out, &name, "counter", help);
            line(out, &name, value);
        }
    }

    fn write_members(&self, out: &mut String) {
        let (mut servers, mut workers, mut away) = (0, 0, 0);
        for living in self.members.iter() {
            match living.member.kind {
                MemberKind::Server { .. } => servers += 1,
                MemberKind::Worker { .. } => workers += 1,
            }
            away += u64::from(living.connection.is_none());
        }
        head(out, "seraphim_master_members", "gauge", "Members that live.");
        line(out, "seraphim_master_members{kind=\"server\"}", servers);
        line(out, "seraphim_master_members{kind=\"worker\"}", workers);
        head(out, "seraphim_master_members_away", "gauge", "Members that live and are not connected.");
        line(out, "seraphim_master_members_away", away);
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes all that is written");
}

fn line(out: &mut String, series: &str, value: u64) {
    writeln!(out, "{series} {value}").expect("a string takes all that is written");
}
