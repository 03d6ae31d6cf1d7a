//! Long lists of keys: pulled and pushed in parts one behind the other, so that servers work on the first while the next is
//! put in runs and sent. Each part is a pull asked ahead, or a push, of its own.

use std::ops::Range;
use std::time::Duration;

use matrix::{Error, Keys, MatrixId, Part, Placement, Values, ValuesMut};

use crate::agent::RemoteAgent;
use crate::ask::Ahead;
use crate::push::check_finite;
use crate::state::AgentState;

/// Most keys of a part: with two servers still half a piece for each.
const PART_KEYS: usize = 1 << 17;

/// A list that goes in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongList {
    key_count: usize,
    /// Values of a key.
    columns: usize,
}

impl LongList {
    /// Where its parts stand.
    fn places(self) -> impl Iterator<Item = Range<usize>> {
        let end = self.key_count;
        (0..end).step_by(PART_KEYS).map(move |start| start..end.min(start + PART_KEYS))
    }
}

/// Some keys of a part that lists them.
fn some<'a>(part: Part<'a>, places: Range<usize>) -> Part<'a> {
    let some = |keys: Keys<'a>| match keys {
        Keys::Sorted(keys) => Keys::Sorted(&keys[places.clone()]),
        Keys::Range(start, _) => Keys::Range(start + places.start as u64, start + places.end as u64),
    };
    match part {
        Part::Rows(keys) => Part::Rows(some(keys)),
        Part::Columns { row, keys } => Part::Columns { row, keys: some(keys) },
    }
}

impl AgentState {
    /// The list of a call that goes in parts: it is long, and each part of it has keys of all lanes. `None`: it goes as
    /// one.
    pub(crate) fn in_parts(&self, matrix: MatrixId, part: Part<'_>) -> Option<LongList> {
        let (Part::Rows(Keys::Sorted(keys)) | Part::Columns { keys: Keys::Sorted(keys), .. }) = part else {
            return None;
        };
        let state = self.matrices.get(matrix.0 as usize)?;
        let is_spread = matches!(state.placement, Placement::Hash { partition_count } if partition_count > 1);
        let columns = self.layout.matrices[matrix.0 as usize].columns_of_table();
        let list = LongList { key_count: keys.len(), columns };
        (is_spread && keys.len() > PART_KEYS).then_some(list)
    }

    /// Asks for a part of a pull that is about to be made part by part.
    pub(crate) fn ask_part(&mut self, now: Duration, id: MatrixId, part: Part<'_>) -> Result<(), Error> {
        self.ask_ahead(now, id, part, self.clock, Ahead::Part).map(drop)
    }

    /// Throws parts away that no pull came for.
    pub(crate) fn drop_parts(&mut self) {
        while let Some(at) = self.ahead.iter().position(|ask| ask.ahead == Some(Ahead::Part)) {
            self.drop_ahead(at);
        }
    }

    /// Whether exactly this pull was asked ahead.
    pub(crate) fn is_asked(&self, id: MatrixId, part: Part<'_>) -> bool {
        self.ahead.iter().any(|ask| ask.matrix == id.0 as usize && ask.whole().is_of(part))
    }

    /// Refuses what one of the parts would be refused for, before the first is sent.
    pub(crate) fn check_whole(
        &self,
        id: MatrixId,
        part: Part<'_>,
        values: Option<Values<'_>>,
    ) -> Result<(), Error> {
        let spec = &self.layout.matrices[self.matrix_index(id)?];
        let Keys::Sorted(keys) = matrix::check_part(spec, part)? else { return Ok(()) };
        values.map_or(Ok(()), |values| check_finite(spec, values, |i| keys[i]))
    }
}

impl RemoteAgent {
    /// All parts are asked for before the first is waited for.
    pub(crate) fn pull_in_parts(
        &mut self,
        matrix: MatrixId,
        part: Part<'_>,
        list: LongList,
        mut out: ValuesMut<'_>,
    ) -> Result<(), Error> {
        self.state.check_whole(matrix, part, None)?;
        let asked = list.places().try_for_each(|places| {
            self.state.ask_part(self.now(), matrix, some(part, places))?;
            self.carry_out();
            Ok(())
        });
        let pull = |places: Range<usize>| {
            let values = out.part_mut(places.start * list.columns..places.end * list.columns);
            self.pull_whole(matrix, some(part, places), values)
        };
        let pulled = asked.and_then(|()| list.places().try_for_each(pull));
        self.state.drop_parts();
        pulled
    }

    pub(crate) fn push_in_parts(
        &mut self,
        matrix: MatrixId,
        part: Part<'_>,
        list: LongList,
        values: Values<'_>,
    ) -> Result<(), Error> {
        self.state.check_whole(matrix, part, Some(values))?;
        let push = |places: Range<usize>| {
            let values = values.part(places.start * list.columns..places.end * list.columns);
            self.push_whole(matrix, some(part, places), values)
        };
        list.places().try_for_each(push)
    }
}
