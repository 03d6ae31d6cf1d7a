//! What a task pulls, and what it prefetches.

use matrix::{MatrixId, PullTicket};

use crate::cluster::{Cluster, time};
use crate::functions::part;
use crate::schedule::Event;
use crate::task::Task;

impl Cluster {
    /// Pulls, or waits for the last ticket of this pull whose clock has come.
    pub(crate) fn pull(&mut self, at: usize, matrix: usize, partitions: u64) {
        let (now, keys) = (time(self.now), self.cells(matrix, partitions));
        let Task { agent, tickets, .. } = &mut self.tasks[at];
        let is_due = |(of, some, ticket): &(usize, u64, PullTicket)| {
            (*of, *some) == (matrix, partitions) && ticket.clock() <= agent.clock()
        };
        if let Some(due) = tickets.iter().rposition(is_due) {
            return agent.wait(now, &tickets.remove(due).2);
        }
        let keys: Vec<u64> = keys.iter().map(|cell| cell.0).collect();
        agent.pull(now, MatrixId(matrix as u32), part(&self.scenario.counters[matrix].spec, &keys));
    }

    /// Prefetches a pull for the clock that is this many ticks ahead. It is no call: the task goes on at once.
    pub(crate) fn prefetch(&mut self, at: usize, matrix: usize, partitions: u64, ticks: u64) {
        let (now, cells) = (time(self.now), self.cells(matrix, partitions));
        let keys: Vec<u64> = cells.iter().map(|cell| cell.0).collect();
        let selection = part(&self.scenario.counters[matrix].spec, &keys);
        let task = &mut self.tasks[at];
        let clock = task.agent.clock() + ticks;
        let ticket = task.agent.prefetch(now, MatrixId(matrix as u32), selection, clock);
        task.tickets.push((matrix, partitions, ticket));
        task.call = None;
        self.schedule.put(self.now, Event::Think { task: at });
    }
}
