//! One job, or two on the same lanes. Each has its own tasks, network and history. The lanes move between the two, to
//! the job whose event comes next.

use rpc::Message;
use rpc::message::CloseJob;
use server::InjectedFault;

use crate::cluster::Cluster;
use crate::history::History;
use crate::scenario::Scenario;

/// Runs until no events are left. Returns the scenario and the history of each job.
pub(crate) fn run(
    scenario: &Scenario,
    injected_fault: Option<InjectedFault>,
    agent_fault: Option<worker::InjectedFault>,
) -> Vec<(Scenario, History)> {
    let mut first = Cluster::new(scenario.clone(), Vec::new(), injected_fault, agent_fault);
    let mut second = scenario.second().map(|scenario| {
        let lanes = std::mem::take(&mut first.lanes);
        Cluster::new(scenario, lanes, injected_fault, agent_fault)
    });
    while step(&mut first, second.as_mut()) {}
    let is_stuck = |job: &Cluster| job.history.stuck.is_some();
    let is_stuck = is_stuck(&first) || second.as_ref().is_some_and(is_stuck);
    if !is_stuck {
        if let Some(second) = &mut second {
            lend(&mut first, second);
            second.end();
            second.close_job();
            second.history.facts.second_jobs += 1;
            lend(second, &mut first);
        }
        first.end();
    }
    let jobs = std::iter::once(first).chain(second);
    jobs.map(|job| (job.scenario, job.history)).collect()
}

/// Handles the event that comes first in either job. Returns false when there is none, or when a job is stuck.
fn step(first: &mut Cluster, second: Option<&mut Cluster>) -> bool {
    let Some(second) = second else { return first.schedule.next_time().is_some() && first.step() };
    let (one, other) = match (first.schedule.next_time(), second.schedule.next_time()) {
        (None, None) => return false,
        (None, Some(_)) => (second, first),
        (Some(_), None) => (first, second),
        (Some(a), Some(b)) => {
            if b < a {
                (second, first)
            } else {
                (first, second)
            }
        }
    };
    lend(other, one);
    let goes_on = one.step();
    for (time, lane) in std::mem::take(&mut one.resumes) {
        other.schedule.put(time, crate::schedule::Event::ResumeLane { lane });
    }
    for (lane, effects) in std::mem::take(&mut one.of_others) {
        lend(one, other);
        other.now = one.now;
        other.lane_does(lane, effects);
    }
    goes_on
}

fn lend(from: &mut Cluster, to: &mut Cluster) {
    if to.lanes.is_empty() {
        std::mem::swap(&mut from.lanes, &mut to.lanes);
    }
}

impl Cluster {
    /// Closes the job. The lanes must keep nothing of it, only state of the other job.
    fn close_job(&mut self) {
        let (request, job) = (9, self.scenario.job);
        for lane in 0..self.lanes.len() {
            let close = Message::CloseJob(CloseJob { request, job, reason: "all is done".into() });
            for close in [close.clone(), close] {
                let answers = self.tool_says(lane, close);
                if !matches!(answers[..], [Message::Done(_)]) {
                    self.history
                        .seen
                        .push(format!("lane {lane} answers {answers:?} to the end of job {job}"));
                }
            }
        }
    }
}
