//! The features of a task's share, and the columns that they have in the vectors of all tasks.
//!
//! Task t numbers the features of its share in the order of their keys; its numbers follow those of the tasks before
//! it. Each task offers a number for each of its features, and the smallest offer wins: a feature of several tasks gets
//! the number of the first of them. So the numbers are the same in every run. The columns of the other numbers are not
//! used and stay zero.

use data::{Batch, BatchStream, KeySet};
use matrix::{Agent, MatrixId, Values, ValuesMut};

use algo::error::Error;
use algo::rows::rows_of;

/// Subtracted from a number, so that every offer is below 0, the initial value of a row.
const OFFER_OFFSET: i64 = 1 << 62;

/// The features of a share. The local index of a feature is its position in the order of their numbers.
#[derive(Debug)]
pub(super) struct LocalFeatures {
    keys: KeySet,
    /// Local index of each rank; empty if it equals the rank.
    indices: Vec<u32>,
    /// Number of each local index.
    global_numbers: Vec<u64>,
    /// The numbers that this task offers.
    own_numbers: std::ops::Range<u64>,
    /// Whether the columns of batches are ranks.
    has_ranked_columns: bool,
}

impl LocalFeatures {
    /// Assigns numbers together with the other tasks; `counts` has the number of features of each task.
    pub(super) fn assign_numbers(
        agent: &mut dyn Agent,
        matrix: MatrixId,
        keys: KeySet,
        counts: &[f64],
    ) -> Result<Self, Error> {
        let task = agent.task() as usize;
        let start = counts[..task].iter().map(|count| *count as u64).sum::<u64>();
        let own = start..start + keys.len() as u64;
        if counts.len() == 1 {
            return Ok(Self {
                keys,
                indices: Vec::new(),
                global_numbers: own.clone().collect(),
                own_numbers: own,
                has_ranked_columns: false,
            });
        }
        let all: Vec<u64> = keys.iter().collect();
        let part = rows_of(&all);
        if !all.is_empty() {
            let offers: Vec<i64> = own.clone().map(|number| number as i64 - OFFER_OFFSET).collect();
            agent.push(matrix, part, Values::I64(&offers))?;
        }
        agent.barrier()?;
        let mut taken = vec![0i64; all.len()];
        if !all.is_empty() {
            agent.pull(matrix, part, ValuesMut::I64(&mut taken))?;
        }
        let by_rank: Vec<u64> = taken.into_iter().map(|number| (number + OFFER_OFFSET) as u64).collect();
        let mut order: Vec<u32> = (0..by_rank.len() as u32).collect();
        order.sort_unstable_by_key(|rank| by_rank[*rank as usize]);
        let mut places = vec![0u32; order.len()];
        (0u32..).zip(&order).for_each(|(place, rank)| places[*rank as usize] = place);
        let numbers = order.iter().map(|rank| by_rank[*rank as usize]).collect();
        Ok(Self {
            keys,
            indices: places,
            global_numbers: numbers,
            own_numbers: own,
            has_ranked_columns: false,
        })
    }

    /// All keys, ascending.
    pub(super) fn keys(&self) -> Vec<u64> {
        self.keys.iter().collect()
    }

    /// The local index of the feature with this rank.
    pub(super) fn local_index(&self, rank: usize) -> usize {
        self.indices.get(rank).map_or(rank, |place| *place as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.global_numbers.len()
    }

    /// Has a stream rank its columns once, rather than this share in every pass.
    pub(super) fn rank_columns(&mut self, data: &mut dyn BatchStream) -> Result<(), Error> {
        self.has_ranked_columns = data.rank_columns(&self.keys)?;
        Ok(())
    }

    /// Sets `out` to the local indices of the columns of a batch.
    pub(super) fn local_indices(&self, batch: &Batch, out: &mut Vec<u32>) {
        if self.has_ranked_columns {
            out.clear();
            out.extend(batch.columns.iter().map(|&rank| rank as u32));
        } else {
            self.keys.ranks(&batch.columns, out);
        }
        if !self.indices.is_empty() {
            for rank in out.iter_mut() {
                *rank = self.indices[*rank as usize];
            }
        }
    }

    /// The columns of all local indices, `width` each; then those of the intercept, from `intercept` on, if there are
    /// any.
    pub(super) fn columns(&self, width: usize, intercept: Option<u64>) -> Vec<u64> {
        let width = width as u64;
        let of = |first: u64| first..first + width;
        let features = self.global_numbers.iter().flat_map(|number| of(number * width));
        features.chain(intercept.into_iter().flat_map(of)).collect()
    }

    /// Local indices and keys of the features that have this task's numbers, both ascending. Each feature of the data
    /// belongs to one task.
    pub(super) fn owned_features(&self) -> (std::ops::Range<usize>, Vec<u64>) {
        let first = self.global_numbers.partition_point(|number| *number < self.own_numbers.start);
        let end = self.global_numbers.partition_point(|number| *number < self.own_numbers.end);
        let mut ranks =
            self.global_numbers[first..end].iter().map(|number| number - self.own_numbers.start).peekable();
        let keys = (0u64..).zip(self.keys.iter()).filter(|(rank, _)| ranks.next_if_eq(rank).is_some());
        let keys = keys.map(|(_, key)| key).collect();
        (first..end, keys)
    }
}
