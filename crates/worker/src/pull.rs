//! Pulls: requests go to all lanes at once, and the values are assembled when all have answered.

use std::time::Duration;

use matrix::{Clock, Consistency, Error, KeyRuns, Keys, MatrixId, OwnedValues, Selection, ValuesMut};
use rpc::Message;
use rpc::message::Pull;

use crate::broken::Broken;
use crate::cache::copy_values;
use crate::cached_key_lists::OutgoingRequest;
use crate::lane::{PendingRequest, RequestOwner};
use crate::lane_keys::{LaneKeys, element_size, split_by_lane};
use crate::pending_pull::{PendingPull, PrefetchPurpose};
use crate::state::{AgentState, Call, CallOutput};

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
        let ask = match prefetched {
            Some(ask) => ask,
            None => match self.request_pull(matrix, part) {
                Ok(ask) => ask,
                Err(error) => return self.end(Err(error)),
            },
        };
        self.call = Some(Call::Pull(ask));
        self.advance(now);
    }

    /// Copies the values of the pull that has just ended to `out`, in the order of its keys.
    ///
    /// # Panics
    /// When the last call was not a pull, or the length of `out` is not keys times columns.
    pub fn read_pulled(&mut self, mut out: ValuesMut<'_>) -> Result<(), Error> {
        let Some(mut ask) = self.completed_pull.take() else { panic!("values are read once, after a pull") };
        let spec = &self.layout.matrices[ask.matrix];
        let columns = spec.columns_of_table();
        let (key_count, len) = (ask.full_route().key_count(), out.len());
        assert_eq!(len, key_count * columns, "matrix {:?}: {key_count} keys of {columns} columns", spec.name);
        let (expected, actual) = (spec.element, out.element_type());
        let mut fits = expected == actual;
        if fits && self.matrices[ask.matrix].cache.is_some() {
            fits = self.read_through_cache(&mut ask, columns, out);
        } else if fits {
            fits = Self::scatter(&ask, columns, &mut out);
        }
        let name = &self.layout.matrices[ask.matrix].name;
        let of_part = matches!(ask.prefetch, Some(PrefetchPurpose::LongPull(_)));
        self.matrices[ask.matrix].recycle_route(ask.route, of_part);
        if fits { Ok(()) } else { Err(Error::ElementType { matrix: name.clone(), expected, actual }) }
    }

    fn scatter(ask: &PendingPull, columns: usize, out: &mut ValuesMut<'_>) -> bool {
        let mut replies = ask.replies.iter().filter_map(|(piece, reply)| Some((piece, reply.as_ref()?)));
        replies.all(|(piece, values)| piece.scatter(&ask.route, columns, values, out))
    }

    /// Assembles the cached and the pulled rows. Caches the pulled rows, unless the task has pushed to the matrix since
    /// the request.
    fn read_through_cache(&mut self, ask: &mut PendingPull, columns: usize, out: ValuesMut<'_>) -> bool {
        let element = out.element_type();
        let asked_len = ask.route.key_count() * columns;
        let mut asked = OwnedValues::zeros(element, asked_len);
        let fits = Self::scatter(ask, columns, &mut asked.slice_mut(0..asked_len));
        let state = &mut self.matrices[ask.matrix];
        if let Some(cache) = &mut state.cache {
            if state.push_count == ask.push_count {
                cache.insert(&ask.route, asked.as_values(), ask.clock, ask.minimum);
            } else {
                cache.invalidate(&ask.route);
            }
        }
        let all = 0..out.len() / columns.max(1);
        match ask.cached_rows.take() {
            Some(mut filled) => {
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
        let mut ask = self.request_keys(matrix, missing_route, clock, false);
        ask.minimum = filled.minimum;
        ask.cached_rows = Some(filled);
        Ok(ask)
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
        let mut ask = PendingPull {
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
            self.request_lane_keys(&ask, i, &piece);
            ask.replies.push((piece, None));
        }
        ask
    }

    fn request_lane_keys(&mut self, ask: &PendingPull, i: usize, piece: &LaneKeys) {
        let spec = &self.layout.matrices[ask.matrix];
        let lane = &mut self.lanes[usize::from(piece.lane)];
        let (named, keys, source) = piece.encode_keys(&ask.route, &mut lane.key_lists);
        self.last_request_id += 1;
        let pull = Pull {
            request: self.last_request_id,
            job: self.layout.job,
            task: self.task,
            clock: ask.clock,
            matrix: ask.matrix as u32,
            table: ask.route.table(),
            wait_ms: self.layout.wait_ms(),
            runs: named.runs,
            keys,
            wire: self.layout.wire_of(ask.matrix),
        };
        let outgoing = OutgoingRequest::new(Message::Pull(pull), named.digest, source);
        let answer = piece.key_count * spec.columns_of_table() * element_size(spec.element);
        let bytes = outgoing.bytes + answer as u64;
        let owner = RequestOwner::Pull { pull_id: ask.id, reply_index: i };
        lane.requests.insert(
            self.last_request_id,
            PendingRequest { owner, outgoing, bytes, is_sent: false, retry_at: None, deadline: None },
        );
    }

    /// Ends a pull when all lanes have answered. If the answer of a prefetch may not be used, the pull is sent again.
    pub(crate) fn end_pull(&mut self, now: Duration) {
        let Some(Call::Pull(ask)) = self.call.take() else { return };
        let was_counted = u64::from(ask.has_ticket());
        if ask.prefetch.is_some() && !self.may_use(&ask) {
            self.prefetch_counts.dropped += was_counted;
            let matrix = ask.matrix;
            let ask = self.request_route(matrix, ask.into_full_route(), self.clock);
            self.call = Some(Call::Pull(ask));
            return self.advance(now);
        }
        self.prefetch_counts.used += was_counted;
        self.call_deferred_ns = self.call_deferred_ns.max(ask.deferred_ns);
        self.staleness = Some(self.clock - ask.minimum.min(self.clock));
        let state = &mut self.matrices[ask.matrix];
        state.last_read_send = state.last_read_send.max(ask.last_send);
        state.read_clock = state.read_clock.max(ask.clock);
        self.completed_pull = Some(ask);
        self.end(Ok(CallOutput::ValuesReady));
    }

    pub(crate) fn matrix_index(&self, id: MatrixId) -> Result<usize, Error> {
        let (i, count) = (id.0 as usize, self.matrices.len());
        if i < count { Ok(i) } else { Err(Error::NoSuchMatrix { id: id.0, count }) }
    }
}
