//! Long key lists. They are pulled and pushed in parts, one after the other, so that servers work on the first part
//! while the next is routed and sent. Each part is a prefetch or a push of its own.

use std::ops::Range;
use std::time::Duration;

use matrix::{Error, Keys, MatrixId, Placement, Selection, Values, ValuesMut};

use crate::agent::RemoteAgent;
use crate::pending_pull::PrefetchPurpose;
use crate::state::AgentState;

/// Most keys of a part. With two servers each still gets half a frame.
pub(crate) const PART_KEYS: usize = 1 << 17;
/// Number of parts that are prefetched before the first is read. Lanes have work while the task reads one part and
/// the key runs of another.
pub(crate) const PREFETCHED_PARTS: usize = 8;

/// A key list that is split into parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongKeyList {
    key_count: usize,
    /// Values of a key.
    columns: usize,
}

impl LongKeyList {
    /// The index ranges of its parts.
    fn part_ranges(self) -> impl Iterator<Item = Range<usize>> {
        let end = self.key_count;
        (0..end).step_by(PART_KEYS).map(move |start| start..end.min(start + PART_KEYS))
    }
}

/// The keys of a selection at the indices `places`.
fn subset(part: Selection<'_>, places: Range<usize>) -> Selection<'_> {
    match part {
        Selection::Rows(keys) => Selection::Rows(keys.slice(places)),
        Selection::Columns { row, keys } => Selection::Columns { row, keys: keys.slice(places) },
    }
}

impl AgentState {
    /// The list of a call that is split into parts: it is long, and each part of it has keys of all lanes. `None` if
    /// the call is not split.
    pub(crate) fn long_key_list(&self, matrix: MatrixId, part: Selection<'_>) -> Option<LongKeyList> {
        let (Selection::Rows(Keys::Sorted(keys)) | Selection::Columns { keys: Keys::Sorted(keys), .. }) =
            part
        else {
            return None;
        };
        let state = self.matrices.get(matrix.0 as usize)?;
        let is_spread = matches!(state.placement, Placement::Hash { .. } | Placement::Own { .. })
            && state.placement.partition_count() > 1;
        let columns = self.layout.matrices[matrix.0 as usize].columns_of_table();
        let list = LongKeyList { key_count: keys.len(), columns };
        (is_spread && keys.len() > PART_KEYS).then_some(list)
    }

    /// Prefetches the part of a pull at the indices `places`.
    fn prefetch_part(
        &mut self,
        now: Duration,
        id: MatrixId,
        part: Selection<'_>,
        places: Range<usize>,
    ) -> Result<(), Error> {
        if places.start > 0 {
            // Each part is checked by itself. This checks the order at the boundary to the part before.
            let seam = subset(part, places.start - 1..places.start + 1);
            matrix::check_selection(&self.layout.matrices[self.matrix_index(id)?], seam)?;
        }
        let purpose = PrefetchPurpose::LongPull(places.start);
        self.request_prefetch(id, subset(part, places), purpose)?;
        self.send_ready(now);
        Ok(())
    }

    /// Begins the pull of a part that was prefetched.
    fn pull_part(&mut self, now: Duration, id: MatrixId, part: Selection<'_>, places: Range<usize>) {
        if !self.begin(now, "pull") {
            return;
        }
        let purpose = Some(PrefetchPurpose::LongPull(places.start));
        let at = self.prefetches.position(|pull| pull.prefetch == purpose);
        let prefetched = at.and_then(|at| self.take_prefetch(at));
        self.open_pull(now, id, subset(part, places), prefetched);
    }

    /// Ends a long pull: drops parts that were not pulled, and frees the key runs that only parts use.
    fn end_parts(&mut self, id: MatrixId) {
        self.matrices[id.0 as usize].spare_key_runs = Vec::new();
        while let Some(at) = self.prefetches.position(|pull| !pull.has_ticket()) {
            self.drop_prefetch(at);
        }
    }

    /// Makes the checks of all parts of a push before the first part is sent.
    fn check_long_push(&self, id: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        let spec = &self.layout.matrices[self.matrix_index(id)?];
        let Keys::Sorted(keys) = matrix::check_selection(spec, part)? else { return Ok(()) };
        spec.check_finite(values, |i| keys[i])
    }
}

impl RemoteAgent {
    /// Pulls a long list. Some parts are prefetched before the first is read, and one more after each part that was
    /// read.
    pub(crate) fn pull_in_parts(
        &mut self,
        matrix: MatrixId,
        part: Selection<'_>,
        list: LongKeyList,
        mut out: ValuesMut<'_>,
    ) -> Result<(), Error> {
        let mut to_ask = list.part_ranges();
        let mut ask = |agent: &mut Self, count: usize| {
            to_ask.by_ref().take(count).try_for_each(|places| {
                agent.state.prefetch_part(agent.now(), matrix, part, places)?;
                agent.run_effects();
                Ok(())
            })
        };
        let pulled = ask(self, PREFETCHED_PARTS).and_then(|()| {
            list.part_ranges().try_for_each(|places| {
                let values = places.start * list.columns..places.end * list.columns;
                self.state.pull_part(self.now(), matrix, part, places);
                self.run()?;
                self.state.read_pulled(out.slice_mut(values))?;
                ask(self, 1)
            })
        });
        self.state.end_parts(matrix);
        pulled
    }

    pub(crate) fn push_in_parts(
        &mut self,
        matrix: MatrixId,
        part: Selection<'_>,
        list: LongKeyList,
        values: Values<'_>,
    ) -> Result<(), Error> {
        self.state.check_long_push(matrix, part, values)?;
        let push = |places: Range<usize>| {
            let values = values.slice(places.start * list.columns..places.end * list.columns);
            self.state.push_values(self.now(), matrix, subset(part, places), values, true);
            self.run().map(drop)
        };
        list.part_ranges().try_for_each(push)
    }
}
