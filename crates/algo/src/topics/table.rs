//! The rows of words of a task: how many tokens of the word, in all documents, each topic has.

use math::exact_sum::ExactSum;
use matrix::{Agent, Values, ValuesMut};

use super::documents::{Documents, WordTokens};
use super::functions::Fold;
use super::model::Model;
use crate::error::Error;
use crate::rows::rows_of;

/// Values that are pushed at once.
const PUSH_SIZE: usize = 1 << 23;

/// The rows that the task has. A task alone has those of all words from the first sweep to the last; one of several pulls
/// those of a group before it samples the group, and pushes the differences after it.
pub(super) struct WordRows {
    is_alone: bool,
    topics: usize,
    /// Numbers of a row: at least the topics.
    width: usize,
    rows: Vec<i32>,
    /// The keys of the rows of a group, and the rows as they were pulled.
    keys: Vec<u64>,
    pulled: Vec<i32>,
}

impl WordRows {
    pub(super) fn new(topics: usize, width: usize, is_alone: bool, documents: &Documents) -> Self {
        let rows = if is_alone { vec![0; documents.keys.len() * width] } else { Vec::new() };
        Self { is_alone, topics, width, rows, keys: Vec::new(), pulled: Vec::new() }
    }

    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Gets the rows of a group; of a training that begins they are 0.
    pub(super) fn load(
        &mut self,
        agent: &mut dyn Agent,
        documents: &Documents,
        group: usize,
        is_new: bool,
    ) -> Result<(), Error> {
        if self.is_alone {
            return Ok(());
        }
        self.keys = documents.group_keys(group);
        self.pulled.clear();
        self.pulled.resize(self.keys.len() * self.topics, 0);
        if !is_new && !self.keys.is_empty() {
            agent.pull(Model::TOPICS, rows_of(&self.keys), ValuesMut::I32(&mut self.pulled))?;
        }
        self.rows.clear();
        self.rows.resize(self.keys.len() * self.width, 0);
        for (row, pulled) in self.rows.chunks_exact_mut(self.width).zip(self.pulled.chunks_exact(self.topics))
        {
            row[..self.topics].copy_from_slice(pulled);
        }
        Ok(())
    }

    /// The row of the `at`-th word of the group.
    #[inline]
    pub(super) fn row(&mut self, at: usize, word: &WordTokens) -> &mut [i32] {
        let place = if self.is_alone { word.word as usize } else { at };
        &mut self.rows[place * self.width..][..self.width]
    }

    /// Sends what has changed in the rows of a group.
    pub(super) fn store(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        if self.is_alone {
            return Ok(());
        }
        let (mut keys, mut changes) = (Vec::new(), Vec::new());
        let rows = self.rows.chunks_exact(self.width).zip(self.pulled.chunks_exact(self.topics));
        for (&key, (row, pulled)) in self.keys.iter().zip(rows) {
            if row[..self.topics] != *pulled {
                keys.push(key);
                changes.extend(row.iter().zip(pulled).map(|(count, pulled)| count - pulled));
            }
        }
        if !keys.is_empty() {
            agent.push(Model::TOPICS, rows_of(&keys), Values::I32(&changes))?;
        }
        Ok(agent.tick()?)
    }

    /// Writes the rows of a task alone to the model.
    pub(super) fn write(&self, agent: &mut dyn Agent, documents: &Documents) -> Result<(), Error> {
        if !self.is_alone {
            return Ok(());
        }
        let mut rows: Vec<(u64, &[i32])> =
            documents.keys.iter().copied().zip(self.rows.chunks_exact(self.width)).collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        for rows in rows.chunks((PUSH_SIZE / self.topics).max(1)) {
            let keys: Vec<u64> = rows.iter().map(|(key, _)| *key).collect();
            let values: Vec<i32> = rows.iter().flat_map(|(_, row)| &row[..self.topics]).copied().collect();
            agent.push(Model::TOPICS, rows_of(&keys), Values::I32(&values))?;
        }
        Ok(())
    }

    /// Calls `visit` with the key and the row of each word of the task; with several tasks, once for each group that has it.
    pub(super) fn for_each(
        &mut self,
        agent: &mut dyn Agent,
        documents: &Documents,
        mut visit: impl FnMut(u64, &[i32]),
    ) -> Result<(), Error> {
        let topics = self.topics;
        if self.is_alone {
            let rows = self.rows.chunks_exact(self.width);
            documents.keys.iter().zip(rows).for_each(|(key, row)| visit(*key, &row[..topics]));
            return Ok(());
        }
        for group in 0..documents.groups.len() {
            self.load(agent, documents, group, false)?;
            let rows = self.rows.chunks_exact(self.width);
            self.keys.iter().zip(rows).for_each(|(key, row)| visit(*key, &row[..topics]));
        }
        Ok(())
    }
}

/// Sums over all rows of words: those of a task alone, or at the servers by the fold of this name.
pub(super) fn fold<const N: usize>(
    rows: &WordRows,
    agent: &mut dyn Agent,
    (name, terms): Fold<N>,
    argument: &[f64],
) -> Result<[f64; N], Error> {
    if !rows.is_alone {
        return super::functions::call(agent, Model::TOPICS, name, argument);
    }
    let (mut sums, mut numbers) = (std::array::from_fn::<_, N, _>(|_| ExactSum::default()), Vec::new());
    for row in rows.rows.chunks_exact(rows.width) {
        numbers.clear();
        numbers.extend(row[..rows.topics].iter().map(|count| f64::from(*count)));
        for (sum, term) in sums.iter_mut().zip(terms(argument, 0, &numbers)) {
            sum.add(term);
        }
    }
    Ok(sums.map(ExactSum::value))
}
