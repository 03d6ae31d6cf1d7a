//! Messages between members and the runners of their jobs.

use control::{JobState, limits::ERROR_BYTES, text};
use std::time::Duration;

use rpc::message::{Base64Bytes, ControlBody, FaultKind, JobId, RequestId};
use rpc::reliable_queue::SequenceCheck;
use rpc::service::{ConnectionId, Effect};
use rpc::trace::log_control;

use crate::injected_fault::InjectedFault;
use crate::runner::{JobEvent, JobResult, RunnerCommand, RunnerReport};
use crate::state::{MasterState, control_effect};

impl MasterState {
    pub(crate) fn on_acknowledged(&mut self, from: ConnectionId, count: u64) {
        if self.settings.injects(InjectedFault::AcknowledgementsIgnored) {
            return;
        }
        if let Some(alive) = self.members.get_by_connection(from) {
            alive.queue.acknowledge_up_to(count);
        }
    }

    /// Sends a message that is kept until it is acknowledged. Does nothing when the member is gone: its loss was
    /// reported when it was removed.
    pub(crate) fn send_to_member(&mut self, id: u32, body: ControlBody, out: &mut Vec<Effect>) {
        let limit = self.settings.unconfirmed_limit;
        let Some(alive) = self.members.alive.get_mut(&id) else {
            self.counts.dropped += 1;
            return;
        };
        if alive.is_unresponsive || alive.queue.unacknowledged_count() >= limit {
            // The member has missed a message, so it gets no further ones, even if it acknowledges now. The next call
            // of `on_time`, which is due at once, removes it. It is not removed here, because the caller may be sending
            // the notifications of another removal.
            alive.is_unresponsive = true;
            return;
        }
        let control = alive.queue.enqueue(body);
        log_control("sent to a member", id, control.request, &control.body);
        out.extend(alive.connection.map(|to| control_effect(to, control.request, control.body)));
    }

    pub(crate) fn on_from_task(
        &mut self,
        now: Duration,
        from: ConnectionId,
        request: RequestId,
        run: JobId,
        body: Base64Bytes,
        out: &mut Vec<Effect>,
    ) {
        let Some(alive) = self.members.get_by_connection(from) else {
            let text = format!(
                "a message of a task of job {run} came over a connection without a member: register first"
            );
            return self.refuse(from, request, FaultKind::Invalid, text, out);
        };
        let worker = alive.member.id;
        let arrival = alive.queue.receive(request);
        if alive.queue.is_acknowledgement_due() {
            out.extend(alive.queue.take_acknowledgement().map(|body| control_effect(from, 0, body)));
        }
        if arrival == SequenceCheck::New {
            tracing::debug!(member = worker, request, job = run, kind = "FromTask", "received from a member");
        }
        match arrival {
            SequenceCheck::Duplicate if self.settings.injects(InjectedFault::DuplicatesDelivered) => {
                self.send_to_runner(run, JobEvent::FromTask { worker, body });
            }
            SequenceCheck::New => match self.jobs.of_run(run, worker) {
                Some(job) => self.send_to_runner(job, JobEvent::FromTask { worker, body }),
                None => self.counts.dropped += 1,
            },
            SequenceCheck::Duplicate => self.counts.repeated += 1,
            SequenceCheck::Gap => {
                let text = format!("a message before message {request} is missing: connect again");
                self.refuse(from, 0, FaultKind::BadFrame, text, out);
                self.members.disconnect(from, now);
                out.push(Effect::Close { connection: from });
            }
        }
    }

    pub(crate) fn send_to_runner(&mut self, job: JobId, event: JobEvent) {
        self.commands.push(RunnerCommand::ToRunner { job, event });
    }

    /// Handles a report of the runner of a job. Reports after `Ended` are dropped.
    pub fn on_runner(&mut self, id: JobId, report: RunnerReport, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.all.get_mut(&id).filter(|job| job.status.state == JobState::Running) else {
            self.counts.dropped += 1;
            return;
        };
        match report {
            RunnerReport::ToTask { worker, body } if job.members.contains(&worker) => {
                let run = job.run;
                self.send_to_member(worker, ControlBody::ToTask { job: run, body }, out);
            }
            RunnerReport::ToTask { .. } => self.counts.dropped += 1,
            RunnerReport::Progress(progress) => self.set_progress(id, progress),
            RunnerReport::Record(value) => {
                job.recorded = value;
                self.record(id);
            }
            RunnerReport::ReplaceMembers => {
                job.members.clear();
                job.waits_for_members = true;
                self.start_ready_jobs();
            }
            RunnerReport::SessionRestored(specs) => self.on_session_restored(id, specs),
            RunnerReport::SessionReply { call, result } => self.on_session_answer(id, call, &result, out),
            RunnerReport::Ended(Ok(JobResult { report, is_complete })) => {
                let was_cut = job.cancelled && !is_complete;
                let state = if was_cut { JobState::Cancelled } else { JobState::Done };
                self.end(id, state, Some(report));
                self.session_ended(id, out);
            }
            RunnerReport::Ended(Err(error)) => {
                let state = if job.cancelled { JobState::Cancelled } else { JobState::Failed };
                job.status.error = Some(text::plain_lines(&error, ERROR_BYTES));
                self.end(id, state, None);
                self.session_ended(id, out);
            }
        }
    }
}
