//! What travels between members and the runners of their jobs.

use control::{JobState, limits::ERROR_BYTES, text};
use rpc::kept::Arrival;
use rpc::message::{ControlBody, FaultKind, JobId, RequestId};
use rpc::service::{ConnectionId, Effect};
use rpc::trace::log_control;
use serde_json::Value;

use crate::broken::Broken;
use crate::runner::{Event, Finished, RunnerOrder, RunnerWord};
use crate::state::{MasterState, say};

impl MasterState {
    pub(crate) fn on_heard(&mut self, from: ConnectionId, count: u64) {
        if self.settings.lacks(Broken::HeardIgnored) {
            return;
        }
        if let Some(living) = self.members.of_connection(from) {
            living.kept.confirm(count);
        }
    }

    /// Says something that is kept until it is confirmed. Nothing to do when the member is gone: whoever has to know was
    /// told.
    pub(crate) fn tell_member(&mut self, id: u32, body: ControlBody, out: &mut Vec<Effect>) {
        let limit = self.settings.unconfirmed_limit;
        let Some(living) = self.members.living.get_mut(&id) else {
            self.counts.dropped += 1;
            return;
        };
        if living.deaf || living.kept.unconfirmed_count() >= limit {
            // It has missed something, so that it hears nothing more, even if it confirms now. Buried by the next call of `on_time`, which is due at once: not from here, where others may be told of a burial.
            living.deaf = true;
            return;
        }
        let control = living.kept.say(body);
        log_control("said to a member", id, control.request, &control.body);
        out.extend(living.connection.map(|to| say(to, control.request, control.body)));
    }

    pub(crate) fn on_from_task(
        &mut self,
        from: ConnectionId,
        request: RequestId,
        job: JobId,
        body: Value,
        out: &mut Vec<Effect>,
    ) {
        let Some(living) = self.members.of_connection(from) else {
            let text = format!("who speaks of a task of job {job} has to register first");
            return self.refuse(from, request, FaultKind::Invalid, text, out);
        };
        let worker = living.member.id;
        let arrival = living.kept.hear(request);
        if living.kept.owes_confirmation() {
            out.extend(living.kept.confirmation().map(|body| say(from, 0, body)));
        }
        if arrival == Arrival::New {
            tracing::debug!(member = worker, request, job, kind = "FromTask", "heard of a member");
        }
        match arrival {
            Arrival::Repeat if self.settings.lacks(Broken::RepeatsTaken) => {
                self.tell_runner(job, Event::FromTask { worker, body });
            }
            Arrival::New if self.jobs.runs_with(job, worker) => {
                self.tell_runner(job, Event::FromTask { worker, body });
            }
            Arrival::New => self.counts.dropped += 1,
            Arrival::Repeat => self.counts.repeated += 1,
            Arrival::Gap => {
                let text = format!("message {request} came before one that is missing: connect again");
                self.refuse(from, 0, FaultKind::BadFrame, text, out);
                self.members.disconnect(from);
                out.push(Effect::Close { connection: from });
            }
        }
    }

    pub(crate) fn tell_runner(&mut self, job: JobId, event: Event) {
        self.orders.push(RunnerOrder::ToRunner { job, event });
    }

    /// What the runner of a job says. After its last word nothing is heard of it.
    pub fn on_runner(&mut self, id: JobId, word: RunnerWord, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.all.get_mut(&id).filter(|job| job.status.state == JobState::Running) else {
            self.counts.dropped += 1;
            return;
        };
        match word {
            RunnerWord::ToTask { worker, body } if job.members.contains(&worker) => {
                self.tell_member(worker, ControlBody::ToTask { job: id, body }, out);
            }
            RunnerWord::ToTask { .. } => self.counts.dropped += 1,
            RunnerWord::Progress(progress) => self.set_progress(id, progress),
            RunnerWord::Answered { call, result } => self.on_session_answer(id, call, &result, out),
            RunnerWord::Ended(Ok(Finished { report, is_complete })) => {
                let was_cut = job.cancelled && !is_complete;
                let state = if was_cut { JobState::Cancelled } else { JobState::Done };
                self.end(id, state, Some(report));
                self.session_ended(id, out);
            }
            RunnerWord::Ended(Err(error)) => {
                let state = if job.cancelled { JobState::Cancelled } else { JobState::Failed };
                job.status.error = Some(text::plain_lines(&error, ERROR_BYTES));
                self.end(id, state, None);
                self.session_ended(id, out);
            }
        }
    }
}
