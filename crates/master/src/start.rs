//! Decides when a job starts, and on which members.

use control::JobState;
use rpc::message::{JobId, Member, MemberKind};
use serde_json::{Value, json};

use crate::injected_fault::InjectedFault;
use crate::members::AliveMember;
use crate::runner::{JobEvent, JobStart, RunnerCommand};
use crate::state::MasterState;

impl MasterState {
    /// Starts the jobs that have their members, in the order of submission; reports for the others what they wait for.
    /// A job that waits for members does not block later ones.
    pub(crate) fn start_ready_jobs(&mut self) {
        self.replace_members();
        let mut queued = self.jobs.ids(|job| job.status.state == JobState::Queued);
        if self.settings.injects(InjectedFault::QueueReversed) {
            queued.reverse();
        }
        for id in queued {
            let Some(job) = self.jobs.all.get(&id) else { continue };
            let (wanted_servers, wanted_workers) = (job.submission.servers, job.submission.workers);
            let running_count = self.jobs.working_count();
            let servers = self.least_loaded(is_server, wanted_servers);
            let group = &job.submission.worker_group;
            let workers = self.least_loaded(|member| is_worker_of(member, group), wanted_workers);
            let waits_for = match (&servers, &workers) {
                (Ok(_), Ok(_)) if running_count >= self.settings.running_job_limit => {
                    format!("one of {running_count} running jobs to end (running_job_limit)")
                }
                (Ok(servers), Ok(workers)) => {
                    self.start(id, servers.clone(), workers.clone());
                    continue;
                }
                (servers, workers) => {
                    let here = |chosen: &Result<Vec<Member>, usize>, wanted: u32| {
                        chosen.as_ref().map_or_else(|count| *count, |_| wanted as usize)
                    };
                    let of_group =
                        if group.is_empty() { String::new() } else { format!(" of group \"{group}\"") };
                    format!(
                        "members: {} of {wanted_servers} servers and {} of {wanted_workers} workers{of_group} are connected",
                        here(servers, wanted_servers),
                        here(workers, wanted_workers)
                    )
                }
            };
            self.set_progress(id, json!({ "waits_for": waits_for }));
        }
    }

    /// Gives members to the jobs that have lost one, before queued jobs get any.
    fn replace_members(&mut self) {
        for id in self.jobs.ids(|job| job.waits_for_members) {
            let Some(job) = self.jobs.all.get(&id) else { continue };
            let (server_count, worker_count) = (job.submission.servers, job.submission.workers);
            let servers = self.least_loaded(is_server, server_count);
            let group = &job.submission.worker_group;
            let workers = self.least_loaded(|member| is_worker_of(member, group), worker_count);
            let (Ok(servers), Ok(workers)) = (servers, workers) else { continue };
            let run = self.jobs.next_id();
            let Some(job) = self.jobs.all.get_mut(&id) else { continue };
            job.waits_for_members = false;
            job.run = run;
            job.members = servers.iter().chain(&workers).map(|member| member.id).collect();
            self.record(id);
            self.send_to_runner(id, JobEvent::Members { run, servers, workers });
        }
    }

    /// The `count` connected members with the fewest running jobs; how many there are when there are not enough. They are
    /// in the order of their names: with the same names, the same worker has the same tasks in each run.
    pub(crate) fn least_loaded(
        &self,
        is_wanted: impl Fn(&AliveMember) -> bool,
        count: u32,
    ) -> Result<Vec<Member>, usize> {
        let connected = self.members.iter().filter(|alive| alive.connection.is_some() && is_wanted(alive));
        let mut members: Vec<&Member> = connected.map(|alive| &alive.member).collect();
        if members.len() < count as usize {
            return Err(members.len());
        }
        members.sort_by_key(|member| (self.jobs.running_with(member.id).len(), member.id));
        members.truncate(count as usize);
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(members.into_iter().cloned().collect())
    }

    pub(crate) fn start(&mut self, id: JobId, servers: Vec<Member>, workers: Vec<Member>) {
        let Some(job) = self.jobs.all.get_mut(&id) else { return };
        job.status.state = JobState::Running;
        job.status.progress = Value::Null;
        job.members = servers.iter().chain(&workers).map(|member| member.id).collect();
        let title = job.submission.title.clone();
        // From here on only the runner needs the spec.
        let spec = job.submission.spec.take();
        let is_session = job.is_session();
        job.notify_watchers(&mut self.responses);
        let (run, recorded) = (job.run, job.recorded.clone());
        let start = JobStart { job: id, run, title, spec, servers, workers, recorded, is_session };
        self.record(id);
        self.commands.push(RunnerCommand::StartJob(start));
    }
}

pub(crate) fn is_server(alive: &AliveMember) -> bool {
    matches!(alive.member.kind, MemberKind::Server { .. })
}

fn is_worker_of(alive: &AliveMember, wanted: &str) -> bool {
    matches!(&alive.member.kind, MemberKind::Worker { group, .. } if group == wanted)
}
