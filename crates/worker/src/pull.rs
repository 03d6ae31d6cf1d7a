//! Pulls: requests go to all lanes at once, and the values are assembled when all have answered.

use std::time::Duration;

use matrix::{Clock, Consistency, Error, KeyRuns, MatrixId, PullTicket, Selection, ValuesMut};
use rpc::Message;
use rpc::message::Pull;

use crate::agent::RemoteAgent;
use crate::cached_key_lists::OutgoingRequest;
use crate::call::Call;
use crate::lane::{PendingRequest, RequestOwner};
use crate::lane_keys::{LaneKeys, split_by_lane};
use crate::pending_pull::{PendingPull, PrefetchPurpose};
use crate::state::AgentState;

impl AgentState {
    /// Begins a pull.
    pub fn pull(&mut self, now: Duration, matrix: MatrixId, part: Selection<'_>) {
        if !self.begin(now, "pull") {
            return;
        }
        self.open_pull(now, matrix, part, None);
    }

    /// Opens a pull: the prefetched one, or a new one.
    pub(crate) fn open_pull(
        &mut self,
        now: Duration,
        matrix: MatrixId,
        part: Selection<'_>,
        prefetched: Option<PendingPull>,
    ) {
        let pending = match prefetched {
            Some(pending) => pending,
            None => match self.request_pull(matrix, part) {
                Ok(pending) => pending,
                Err(error) => return self.call.end(Err(error)),
            },
        };
        self.call.open(Call::Pull(pending));
        self.advance(now);
    }

    /// Copies the values of the pull that has just ended to `out`, in the order of its keys.
    ///
    /// # Panics
    /// When the last call was not a pull, or the length of `out` is not keys times columns.
    pub fn read_pulled(&mut self, mut out: ValuesMut<'_>) -> Result<(), Error> {
        let Some(pending) = self.call.take_completed_pull() else {
            panic!("values are read once, after a pull")
        };
        let spec = &self.layout.matrices[pending.matrix];
        let columns = spec.columns_of_table();
        let (key_count, len) = (pending.key_runs.key_count(), out.len());
        assert_eq!(len, key_count * columns, "matrix {:?}: {key_count} keys of {columns} columns", spec.name);
        let (expected, actual) = (spec.element, out.element_type());
        let fits = expected == actual && Self::scatter(&pending, columns, &mut out);
        let checked = spec.check_overflow(out.as_values(), |i| pending.key_runs.key(i));
        let name = &spec.name;
        let of_part = matches!(pending.prefetch, Some(PrefetchPurpose::LongPull(_)));
        self.matrices[pending.matrix].recycle_key_runs(pending.key_runs, of_part);
        if fits { checked } else { Err(Error::ElementType { matrix: name.clone(), expected, actual }) }
    }

    fn scatter(pending: &PendingPull, columns: usize, out: &mut ValuesMut<'_>) -> bool {
        let mut replies =
            pending.replies.iter().filter_map(|(lane_keys, reply)| Some((lane_keys, reply.as_ref()?)));
        replies.all(|(lane_keys, values)| lane_keys.scatter(&pending.key_runs, columns, values, out))
    }

    /// Makes the requests of a pull.
    pub(crate) fn request_pull(&mut self, id: MatrixId, part: Selection<'_>) -> Result<PendingPull, Error> {
        let matrix = self.matrix_index(id)?;
        let mut key_runs = std::mem::take(&mut self.matrices[matrix].key_runs);
        if let Err(error) =
            key_runs.set(&self.layout.matrices[matrix], &self.matrices[matrix].placement, part)
        {
            self.matrices[matrix].key_runs = key_runs;
            return Err(error);
        }
        Ok(self.request_key_runs(matrix, key_runs))
    }

    /// Makes the requests of key runs.
    pub(crate) fn request_key_runs(&mut self, matrix: usize, key_runs: KeyRuns) -> PendingPull {
        let (spec, state) = (&self.layout.matrices[matrix], &self.matrices[matrix]);
        let mut all_lane_keys = split_by_lane(&key_runs, spec, &state.lane_partitions);
        if all_lane_keys.is_empty() && spec.consistency != Consistency::Asp {
            // A pull without keys still waits, so that a task without data does not run ahead of the others.
            all_lane_keys.push(LaneKeys { lane: self.layout.home, slices: Vec::new(), key_count: 0 });
        }
        self.send_count += 1;
        let mut pending = PendingPull {
            id: self.send_count,
            matrix,
            clock: self.clock,
            key_runs,
            missing_count: all_lane_keys.len(),
            replies: Vec::with_capacity(all_lane_keys.len()),
            minimum: Clock::MAX,
            first_send: self.send_count,
            last_send: self.send_count,
            deferred_ns: 0,
            push_count: state.push_count,
            prefetch: None,
        };
        for (i, lane_keys) in all_lane_keys.into_iter().enumerate() {
            self.request_lane_keys(&pending, i, &lane_keys);
            pending.replies.push((lane_keys, None));
        }
        pending
    }

    fn request_lane_keys(&mut self, pending: &PendingPull, i: usize, lane_keys: &LaneKeys) {
        let spec = &self.layout.matrices[pending.matrix];
        let lane = &mut self.lanes[usize::from(lane_keys.lane)];
        let (named, keys, source) = lane_keys.encode_keys(&pending.key_runs, &mut lane.key_lists);
        self.last_request_id += 1;
        let pull = Pull {
            request: self.last_request_id,
            job: self.layout.job,
            task: self.task,
            clock: pending.clock,
            matrix: pending.matrix as u32,
            table: pending.key_runs.table(),
            wait_ms: self.layout.wait_ms(),
            runs: named.runs,
            keys,
            wire: self.layout.wire_of(pending.matrix),
        };
        let outgoing = OutgoingRequest::new(Message::Pull(pull), named.digest, source);
        let answer = lane_keys.key_count * spec.columns_of_table() * spec.element.size();
        let bytes = outgoing.bytes + answer as u64;
        let owner = RequestOwner::Pull { pull_id: pending.id, reply_index: i };
        lane.requests.insert(
            self.last_request_id,
            PendingRequest { owner, outgoing, bytes, is_sent: false, retry_at: None, deadline: None },
        );
    }

    /// Ends a pull when all lanes have answered. If the answer of a prefetch may not be used, the pull is sent again.
    pub(crate) fn end_pull(&mut self, now: Duration) {
        let Some(Call::Pull(pending)) = self.call.take() else { return };
        if pending.prefetch.is_some() && !self.may_use(&pending) {
            self.prefetches.count_dropped(&pending);
            let matrix = pending.matrix;
            let pending = self.request_key_runs(matrix, pending.key_runs);
            self.call.open(Call::Pull(pending));
            return self.advance(now);
        }
        self.prefetches.count_used(&pending);
        self.call.add_deferred(pending.deferred_ns);
        self.call.set_staleness(self.clock, pending.minimum);
        let state = &mut self.matrices[pending.matrix];
        state.last_read_send = state.last_read_send.max(pending.last_send);
        self.call.complete_pull(pending);
    }

    pub(crate) fn matrix_index(&self, id: MatrixId) -> Result<usize, Error> {
        let (i, count) = (id.0 as usize, self.matrices.len());
        if i < count { Ok(i) } else { Err(Error::NoSuchMatrix { id: id.0, count }) }
    }
}

impl RemoteAgent {
    /// Pulls a selection: by its ticket, if there is one. A long list is pulled in parts, unless it was prefetched.
    pub(crate) fn pull_selection(
        &mut self,
        matrix: MatrixId,
        selection: Selection<'_>,
        ticket: Option<&PullTicket>,
        out: ValuesMut<'_>,
    ) -> Result<(), Error> {
        let specs = &self.state.layout().matrices;
        if let Some(spec) = specs.get(matrix.0 as usize)
            && spec.element != out.element_type()
        {
            let (expected, actual) = (spec.element, out.element_type());
            return Err(Error::ElementType { matrix: spec.name.clone(), expected, actual });
        }
        if let Some(list) = self.state.long_key_list(matrix, selection)
            && !ticket.is_some_and(|ticket| self.state.is_prefetched(ticket))
        {
            return self.pull_in_parts(matrix, selection, list, out);
        }
        match ticket {
            Some(ticket) => self.state.wait(self.now(), ticket),
            None => self.state.pull(self.now(), matrix, selection),
        }
        self.run()?;
        self.state.read_pulled(out)
    }
}
