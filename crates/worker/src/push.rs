//! Pushes. Each gets a push id, is queued and sent, and waits for an answer only when a window is full.

use std::time::Duration;

use matrix::{Error, KeyRuns, MatrixId, OwnedValues, Selection, Values};
use rpc::message::Push;
use rpc::{Message, WireType, WireValues};

use crate::cached_key_lists::OutgoingRequest;
use crate::call::Call;
use crate::lane_keys::split_by_lane;
use crate::state::AgentState;

impl AgentState {
    /// Begins a push. Values that are not finite are refused before anything is sent.
    ///
    /// # Panics
    /// When the number of values is not keys times columns.
    pub fn push(&mut self, now: Duration, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) {
        self.push_values(now, matrix, part, values, false);
    }

    /// Begins a push. `are_finite` says that all values are known to be finite.
    pub(crate) fn push_values(
        &mut self,
        now: Duration,
        matrix: MatrixId,
        part: Selection<'_>,
        values: Values<'_>,
        are_finite: bool,
    ) {
        if !self.begin(now, "push") {
            return;
        }
        match self.enqueue_push(matrix, part, values, are_finite) {
            Ok(()) => {
                self.call.open(Call::Push);
                self.advance(now);
            }
            Err(error) => self.call.end(Err(error)),
        }
    }

    fn enqueue_push(
        &mut self,
        id: MatrixId,
        part: Selection<'_>,
        values: Values<'_>,
        are_finite: bool,
    ) -> Result<(), Error> {
        let matrix = self.matrix_index(id)?;
        let mut key_runs = std::mem::take(&mut self.matrices[matrix].key_runs);
        let checked = self.check_push(matrix, &mut key_runs, part, values, are_finite);
        let wire = checked.and_then(|()| self.wire_of_push(matrix, key_runs.key_count()));
        let result = wire.map(|wire| self.enqueue_values(matrix, &key_runs, values, wire));
        self.matrices[matrix].key_runs = key_runs;
        result
    }

    fn check_push(
        &self,
        matrix: usize,
        key_runs: &mut KeyRuns,
        part: Selection<'_>,
        values: Values<'_>,
        are_finite: bool,
    ) -> Result<(), Error> {
        let spec = &self.layout.matrices[matrix];
        key_runs.set(spec, &self.matrices[matrix].placement, part)?;
        let columns = spec.columns_of_table();
        let (key_count, len) = (key_runs.key_count(), values.len());
        assert_eq!(len, key_count * columns, "matrix {:?}: {key_count} keys of {columns} columns", spec.name);
        spec.check_element(values.element_type())?;
        if are_finite { Ok(()) } else { spec.check_finite(values, |i| key_runs.key(i)) }
    }

    pub(crate) fn enqueue_values(
        &mut self,
        matrix: usize,
        key_runs: &KeyRuns,
        values: Values<'_>,
        wire: WireType,
    ) {
        let (spec, state) = (&self.layout.matrices[matrix], &mut self.matrices[matrix]);
        let columns = spec.columns_of_table();
        for pending in self.prefetches.sent_mut().filter(|pending| pending.matrix == matrix) {
            // Rows that this push does not touch stay valid.
            if pending.push_count == state.push_count && pending.key_runs.is_disjoint_from(key_runs) {
                pending.push_count += 1;
            }
        }
        state.push_count += 1;
        self.push_count += 1;
        for lane_keys in split_by_lane(key_runs, spec, &state.lane_partitions) {
            let lane = &mut self.lanes[usize::from(lane_keys.lane)];
            let (named, keys, source) = lane_keys.encode_keys(key_runs, &mut lane.key_lists);
            let values = match (wire, lane_keys.gather(key_runs, columns, values)) {
                (WireType::Bf16 | WireType::Int8, OwnedValues::F32(mut rows)) => {
                    let keys = lane_keys.all_keys(key_runs);
                    state.residuals.round(key_runs.table(), &keys, &mut rows, wire)
                }
                (wire, values) => WireValues::encode(values, wire),
            };
            let push = Push {
                request: 0,
                job: self.layout.job,
                task: self.task,
                clock: self.clock,
                index: lane.next_index,
                matrix: matrix as u32,
                table: key_runs.table(),
                runs: named.runs,
                keys,
                values,
            };
            lane.next_index += 1;
            lane.retransmit_queue.push(OutgoingRequest::new(Message::Push(push), named.digest, source));
        }
    }
}
