//! Pulls: requests go to all lanes at once, and the values are assembled when all have answered.

use std::time::Duration;

use matrix::{Clock, Consistency, Error, KeyRuns, Keys, MatrixId, OwnedValues, Selection, ValuesMut};
use rpc::Message;
use rpc::message::Pull;

use crate::broken::Broken;
use crate::cache::copy_values;
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
        let Some(mut pending) = self.call.take_completed_pull() else {
            panic!("values are read once, after a pull")
        };
        let spec = &self.layout.matrices[pending.matrix];
        let columns = spec.columns_of_table();
        let (key_count, len) = (pending.full_route().key_count(), out.len());
        assert_eq!(len, key_count * columns, "matrix {:?}: {key_count} keys of {columns} columns", spec.name);
        let (expected, actual) = (spec.element, out.element_type());
        let mut fits = expected == actual;
        if fits && self.matrices[pending.matrix].cache.is_some() {
            fits = self.read_through_cache(&mut pending, columns, out.slice_mut(0..len));
        } else if fits {
            fits = Self::scatter(&pending, columns, &mut out);
        }
        let spec = &self.layout.matrices[pending.matrix];
        let checked = spec.check_overflow(out.as_values(), |i| pending.full_route().key(i));
        let name = &spec.name;
        let of_part = matches!(pending.prefetch, Some(PrefetchPurpose::LongPull(_)));
        self.matrices[pending.matrix].recycle_route(pending.route, of_part);
        if fits { checked } else { Err(Error::ElementType { matrix: name.clone(), expected, actual }) }
    }

    fn scatter(pending: &PendingPull, columns: usize, out: &mut ValuesMut<'_>) -> bool {
        let mut replies = pending.replies.iter().filter_map(|(piece, reply)| Some((piece, reply.as_ref()?)));
        replies.all(|(piece, values)| piece.scatter(&pending.route, columns, values, out))
    }

    /// Assembles the cached and the pulled rows. Caches the pulled rows, unless the task has pushed to the matrix since
    /// the request.
    fn read_through_cache(&mut self, pending: &mut PendingPull, columns: usize, out: ValuesMut<'_>) -> bool {
        let element = out.element_type();
        let asked_len = pending.route.key_count() * columns;
        let mut asked = OwnedValues::zeros(element, asked_len);
        let fits = Self::scatter(pending, columns, &mut asked.slice_mut(0..asked_len));
        let state = &mut self.matrices[pending.matrix];
        if let Some(cache) = &mut state.cache {
            if state.push_count == pending.push_count {
                cache.insert(&pending.route, asked.as_values(), pending.clock, pending.minimum);
            } else {
                cache.invalidate(&pending.route);
            }
        }
        let all = 0..out.len() / columns.max(1);
        match &mut pending.cached_rows {
            Some(filled) => {
                let len = filled.values.len();
                let places = (0u32..).zip(filled.missing_rows.iter().copied());
                copy_values(columns, asked.as_values(), filled.values.slice_mut(0..len), places);
                copy_values(columns, filled.values.as_values(), out, all.map(|i| (i as u32, i as u32)));
            }
            None => copy_values(columns, asked.as_values(), out, all.map(|i| (i as u32, i as u32))),
        }
        fits
    }

    /// Makes the requests of a pull.
    pub(crate) fn request_pull(&mut self, id: MatrixId, part: Selection<'_>) -> Result<PendingPull, Error> {
        let matrix = self.matrix_index(id)?;
        let mut route = std::mem::take(&mut self.matrices[matrix].route);
        if let Err(error) = route.set(&self.layout.matrices[matrix], &self.matrices[matrix].placement, part) {
            self.matrices[matrix].route = route;
            return Err(error);
        }
        self.request_uncached(matrix, route, self.clock)
    }

    /// Makes the requests for the rows of a pull that the cache does not have. `route` is that of the whole pull.
    pub(crate) fn request_uncached(
        &mut self,
        matrix: usize,
        route: KeyRuns,
        clock: Clock,
    ) -> Result<PendingPull, Error> {
        let of_any_age = self.lacks(Broken::CacheIgnoresFreshness);
        let state = &mut self.matrices[matrix];
        let filled = state.cache.as_mut().and_then(|cache| cache.lookup(&route, clock, of_any_age));
        let Some(mut filled) = filled else { return Ok(self.request_route(matrix, route, clock)) };
        let spec = &self.layout.matrices[matrix];
        let missing = spec.selection(route.table(), Keys::Sorted(&filled.missing_keys));
        let mut missing_route = KeyRuns::default();
        missing_route.set(spec, &state.placement, missing)?;
        filled.full_route = route;
        // A pull without keys would wait. Here the cached rows have waited already.
        let mut pending = self.request_keys(matrix, missing_route, clock, false);
        pending.minimum = filled.minimum;
        pending.cached_rows = Some(filled);
        Ok(pending)
    }

    pub(crate) fn request_route(&mut self, matrix: usize, route: KeyRuns, clock: Clock) -> PendingPull {
        let waits = self.layout.matrices[matrix].consistency != Consistency::Asp;
        self.request_keys(matrix, route, clock, waits)
    }

    /// Makes the requests of a route. If `waits`, a pull without keys still makes a request.
    fn request_keys(&mut self, matrix: usize, route: KeyRuns, clock: Clock, waits: bool) -> PendingPull {
        let (spec, state) = (&self.layout.matrices[matrix], &self.matrices[matrix]);
        let mut pieces = split_by_lane(&route, spec, &state.lane_partitions);
        if pieces.is_empty() && waits {
            // A pull without keys still waits, so that a task without data does not run ahead of the others.
            pieces.push(LaneKeys { lane: self.layout.home, slices: Vec::new(), key_count: 0 });
        }
        self.send_count += 1;
        let mut pending = PendingPull {
            id: self.send_count,
            matrix,
            clock,
            route,
            missing_count: pieces.len(),
            cached_rows: None,
            replies: Vec::with_capacity(pieces.len()),
            minimum: Clock::MAX,
            first_send: self.send_count,
            last_send: self.send_count,
            deferred_ns: 0,
            push_count: state.push_count,
            prefetch: None,
        };
        for (i, piece) in pieces.into_iter().enumerate() {
            self.request_lane_keys(&pending, i, &piece);
            pending.replies.push((piece, None));
        }
        pending
    }

    fn request_lane_keys(&mut self, pending: &PendingPull, i: usize, piece: &LaneKeys) {
        let spec = &self.layout.matrices[pending.matrix];
        let lane = &mut self.lanes[usize::from(piece.lane)];
        let (named, keys, source) = piece.encode_keys(&pending.route, &mut lane.key_lists);
        self.last_request_id += 1;
        let pull = Pull {
            request: self.last_request_id,
            job: self.layout.job,
            task: self.task,
            clock: pending.clock,
            matrix: pending.matrix as u32,
            table: pending.route.table(),
            wait_ms: self.layout.wait_ms(),
            runs: named.runs,
            keys,
            wire: self.layout.wire_of(pending.matrix),
        };
        let outgoing = OutgoingRequest::new(Message::Pull(pull), named.digest, source);
        let answer = piece.key_count * spec.columns_of_table() * spec.element.size();
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
            let pending = self.request_route(matrix, pending.into_full_route(), self.clock);
            self.call.open(Call::Pull(pending));
            return self.advance(now);
        }
        self.prefetches.count_used(&pending);
        self.call.add_deferred(pending.deferred_ns);
        self.call.set_staleness(self.clock, pending.minimum);
        let state = &mut self.matrices[pending.matrix];
        state.last_read_send = state.last_read_send.max(pending.last_send);
        state.read_clock = state.read_clock.max(pending.clock);
        self.call.complete_pull(pending);
    }

    pub(crate) fn matrix_index(&self, id: MatrixId) -> Result<usize, Error> {
        let (i, count) = (id.0 as usize, self.matrices.len());
        if i < count { Ok(i) } else { Err(Error::NoSuchMatrix { id: id.0, count }) }
    }
}
