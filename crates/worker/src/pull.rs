//! Pulls: asked of all lanes at once, put together when all have answered.

use std::time::Duration;

use matrix::{Clock, Consistency, Error, MatrixId, Part, ValuesMut};
use rpc::Message;
use rpc::message::Pull;

use crate::ask::Ask;
use crate::known::Parcel;
use crate::lane::{Owner, Request};
use crate::plan::{Piece, element_size, plan};
use crate::route::Route;
use crate::state::{AgentState, Call, Outcome};

impl AgentState {
    /// Begins a pull.
    pub fn pull(&mut self, now: Duration, matrix: MatrixId, part: Part<'_>) {
        if !self.begin(now, "pull") {
            return;
        }
        let taken = self.take_ahead(matrix, part);
        let ask = match taken {
            Some(ask) => ask,
            None => match self.ask(matrix, part) {
                Ok(ask) => ask,
                Err(error) => return self.end(Err(error)),
            },
        };
        self.call = Some(Call::Pull(ask));
        self.settle(now);
    }

    /// Copies the values of the pull that has just ended to `out`, in the order of its keys.
    ///
    /// # Panics
    /// When the last call was no pull, or `out` has another length than its keys and columns make.
    pub fn read_pulled(&mut self, mut out: ValuesMut<'_>) -> Result<(), Error> {
        let Some(ask) = self.pulled.take() else { panic!("values are read once, after a pull") };
        let (spec, state) = (&self.layout.matrices[ask.matrix], &mut self.matrices[ask.matrix]);
        let columns = spec.columns_of_table();
        let (key_count, len) = (ask.route.key_count(), out.len());
        assert_eq!(len, key_count * columns, "matrix {:?}: {key_count} keys of {columns} columns", spec.name);
        let (expected, actual) = (spec.element, out.element_type());
        let mut fits = expected == actual;
        for (piece, reply) in &ask.pieces {
            let Some(values) = reply else { continue };
            fits = fits && piece.scatter(&ask.route, &state.placement, columns, values, &mut out);
        }
        state.route = ask.route;
        if fits { Ok(()) } else { Err(Error::ElementType { matrix: spec.name.clone(), expected, actual }) }
    }

    /// Makes the requests of a pull.
    pub(crate) fn ask(&mut self, id: MatrixId, part: Part<'_>) -> Result<Ask, Error> {
        let matrix = self.matrix_index(id)?;
        let mut route = std::mem::take(&mut self.matrices[matrix].route);
        if let Err(error) = route.set(&self.layout.matrices[matrix], &self.matrices[matrix].placement, part) {
            self.matrices[matrix].route = route;
            return Err(error);
        }
        Ok(self.ask_route(matrix, route))
    }

    pub(crate) fn ask_route(&mut self, matrix: usize, route: Route) -> Ask {
        let (spec, state) = (&self.layout.matrices[matrix], &self.matrices[matrix]);
        let mut pieces = plan(&route, spec, &state.placement, &state.parts);
        if pieces.is_empty() && spec.consistency != Consistency::Asp {
            // A pull of nothing waits all the same, so that a task without data does not run away from the others.
            pieces.push(Piece { lane: self.layout.home, spans: Vec::new(), key_count: 0 });
        }
        self.sendings += 1;
        let mut ask = Ask {
            id: self.sendings,
            matrix,
            route,
            missing: pieces.len(),
            pieces: Vec::with_capacity(pieces.len()),
            minimum: Clock::MAX,
            first_sent: self.sendings,
            last_sent: self.sendings,
            held_ns: 0,
            push_count: state.push_count,
            is_ahead: false,
        };
        for (i, piece) in pieces.into_iter().enumerate() {
            self.request_piece(&ask, i, &piece);
            ask.pieces.push((piece, None));
        }
        ask
    }

    fn request_piece(&mut self, ask: &Ask, i: usize, piece: &Piece) {
        let (spec, state) = (&self.layout.matrices[ask.matrix], &self.matrices[ask.matrix]);
        let lane = &mut self.lanes[usize::from(piece.lane)];
        let (named, keys, source) = piece.keys(&ask.route, &state.placement, &mut lane.known);
        self.ids += 1;
        let pull = Pull {
            request: self.ids,
            job: self.layout.job,
            task: self.task,
            clock: self.clock,
            matrix: ask.matrix as u32,
            table: ask.route.table(),
            wait_ms: self.layout.wait_ms(),
            runs: named.runs,
            keys,
        };
        let parcel = Parcel::new(Message::Pull(pull), named.digest, source);
        let answer = piece.key_count * spec.columns_of_table() * element_size(spec.element);
        let bytes = parcel.bytes + answer as u64;
        let owner = Owner::Ask { ask: ask.id, piece: i };
        lane.requests
            .insert(self.ids, Request { owner, parcel, bytes, sent: false, not_before: None, due: None });
    }

    /// All pieces are there. What was asked ahead is used when it is still fresh enough, or pulled anew.
    pub(crate) fn end_pull(&mut self, now: Duration) {
        let Some(Call::Pull(ask)) = self.call.take() else { return };
        let needs = self.layout.matrices[ask.matrix].consistency.pull_needs(self.clock);
        if ask.is_ahead && (ask.minimum < needs || !self.is_current(&ask)) {
            let ask = self.ask_route(ask.matrix, ask.route);
            self.call = Some(Call::Pull(ask));
            return self.settle(now);
        }
        self.call_held_ns = self.call_held_ns.max(ask.held_ns);
        self.staleness = Some(self.clock - ask.minimum.min(self.clock));
        let state = &mut self.matrices[ask.matrix];
        state.last_read = state.last_read.max(ask.last_sent);
        self.pulled = Some(ask);
        self.end(Ok(Outcome::Pulled));
    }

    pub(crate) fn matrix_index(&self, id: MatrixId) -> Result<usize, Error> {
        let (i, count) = (id.0 as usize, self.matrices.len());
        if i < count { Ok(i) } else { Err(Error::NoSuchMatrix { id: id.0, count }) }
    }
}
