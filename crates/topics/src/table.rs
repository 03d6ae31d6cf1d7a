//! The rows of words of a task: how many tokens of the word, in all documents, each topic has.

use math::exact_sum::ExactSum;
use matrix::{Agent, Values, ValuesMut};

use super::documents::{Documents, WordTokens};
use super::functions::Fold;
use super::model::Model;
use algo::error::Error;
use algo::rows::rows_of;

/// Values that are pushed at once.
const PUSH_SIZE: usize = 1 << 23;

/// Which rows a task has in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredRows {
    /// Those of all words, from the first sweep to the last: of a task alone.
    All,
    /// That of one word, counted from the topics of its tokens: of a task alone whose groups have all tokens of their words.
    Counted,
    /// Those of a group: one task of several pulls them before it samples the group, and pushes the differences after it.
    Group,
}

/// The rows that the task has.
pub(super) struct WordRows {
    stored: StoredRows,
    topics: usize,
    /// Numbers of a row: at least the topics.
    width: usize,
    rows: Vec<i32>,
    /// The keys of the rows of a group, and the rows as they were pulled.
    keys: Vec<u64>,
    pulled: Vec<i32>,
}

impl WordRows {
    pub(super) fn new(topics: usize, width: usize, stored: StoredRows, documents: &Documents) -> Self {
        let count = match stored {
            StoredRows::All => documents.keys.len(),
            StoredRows::Counted => 1,
            StoredRows::Group => 0,
        };
        Self { stored, topics, width, rows: vec![0; count * width], keys: Vec::new(), pulled: Vec::new() }
    }

    /// Whether the tokens must be added to the rows before the first sweep. In a training that goes on from a save, the
    /// servers have them.
    pub(super) fn begins_empty(&self, is_new: bool) -> bool {
        match self.stored {
            StoredRows::All => true,
            StoredRows::Counted => false,
            StoredRows::Group => is_new,
        }
    }

    /// Gets the rows of a group; of a training that begins they are 0.
    pub(super) fn load(
        &mut self,
        agent: &mut dyn Agent,
        documents: &Documents,
        group: usize,
        is_new: bool,
    ) -> Result<(), Error> {
        if self.stored != StoredRows::Group {
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

    /// The row of the `at`-th word of the group. `token_topics`: the topic of each token of the task.
    #[inline]
    pub(super) fn row(&mut self, at: usize, word: &WordTokens, token_topics: &[u16]) -> &mut [i32] {
        let place = match self.stored {
            StoredRows::All => word.word as usize,
            StoredRows::Group => at,
            StoredRows::Counted => {
                self.rows.fill(0);
                for topic in &token_topics[word.start..word.end] {
                    self.rows[usize::from(*topic)] += 1;
                }
                0
            }
        };
        &mut self.rows[place * self.width..][..self.width]
    }

    /// Sends what has changed in the rows of a group.
    pub(super) fn store(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        if self.stored != StoredRows::Group {
            return Ok(());
        }
        // The keys are those that were pulled, also of rows without a change: a list of keys that a server has seen costs
        // less than one of the changed rows, and rows of zeros cost next to nothing.
        let rows = self.rows.chunks_exact(self.width);
        for (pulled, row) in self.pulled.chunks_exact_mut(self.topics).zip(rows) {
            pulled.iter_mut().zip(row).for_each(|(pulled, count)| *pulled = count - *pulled);
        }
        if !self.keys.is_empty() {
            agent.push(Model::TOPICS, rows_of(&self.keys), Values::I32(&self.pulled))?;
        }
        Ok(agent.tick()?)
    }

    /// Writes the rows of a task alone to the model.
    pub(super) fn write(
        &mut self,
        agent: &mut dyn Agent,
        documents: &Documents,
        token_topics: &[u16],
    ) -> Result<(), Error> {
        let (mut keys, mut values): (Vec<u64>, Vec<i32>) = (Vec::new(), Vec::new());
        let mut push = |keys: &mut Vec<u64>, values: &mut Vec<i32>| {
            if !keys.is_empty() {
                agent.push(Model::TOPICS, rows_of(keys), Values::I32(values))?;
            }
            keys.clear();
            values.clear();
            Ok::<_, Error>(())
        };
        self.visit_own(documents, token_topics, |key, row| {
            // The keys of a slice ascend.
            if values.len() >= PUSH_SIZE || keys.last().is_some_and(|last| *last > key) {
                push(&mut keys, &mut values)?;
            }
            keys.push(key);
            values.extend_from_slice(row);
            Ok(())
        })?;
        push(&mut keys, &mut values)
    }

    /// Calls `visit` with the key and the row of each word of a task alone; of several tasks there are none.
    fn visit_own(
        &mut self,
        documents: &Documents,
        token_topics: &[u16],
        mut visit: impl FnMut(u64, &[i32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let topics = self.topics;
        match self.stored {
            StoredRows::All => {
                let rows = self.rows.chunks_exact(self.width);
                documents.keys.iter().zip(rows).try_for_each(|(key, row)| visit(*key, &row[..topics]))
            }
            StoredRows::Counted => documents.groups.iter().flatten().try_for_each(|word| {
                visit(documents.keys[word.word as usize], &self.row(0, word, token_topics)[..topics])
            }),
            StoredRows::Group => Ok(()),
        }
    }

    /// Calls `visit` with the key and the row of each word of the task; with several tasks, once for each group that has it.
    pub(super) fn for_each(
        &mut self,
        agent: &mut dyn Agent,
        documents: &Documents,
        token_topics: &[u16],
        mut visit: impl FnMut(u64, &[i32]),
    ) -> Result<(), Error> {
        if self.stored != StoredRows::Group {
            return self.visit_own(documents, token_topics, |key, row| {
                visit(key, row);
                Ok(())
            });
        }
        for group in 0..documents.groups.len() {
            self.load(agent, documents, group, false)?;
            self.keys
                .iter()
                .zip(self.pulled.chunks_exact(self.topics))
                .for_each(|(key, row)| visit(*key, row));
        }
        Ok(())
    }

    /// Sums over all rows of words: those of a task alone, or at the servers by the fold of this name.
    pub(super) fn fold<const N: usize>(
        &mut self,
        agent: &mut dyn Agent,
        documents: &Documents,
        token_topics: &[u16],
        (name, terms): Fold<N>,
        argument: &[f64],
    ) -> Result<[f64; N], Error> {
        if self.stored == StoredRows::Group {
            return super::functions::call(agent, Model::TOPICS, name, argument);
        }
        let (mut sums, mut numbers) = (std::array::from_fn::<_, N, _>(|_| ExactSum::default()), Vec::new());
        self.visit_own(documents, token_topics, |_, row| {
            numbers.clear();
            numbers.extend(row.iter().map(|count| f64::from(*count)));
            for (sum, term) in sums.iter_mut().zip(terms(argument, 0, &numbers)) {
                sum.add(term);
            }
            Ok(())
        })?;
        Ok(sums.map(ExactSum::value))
    }
}
