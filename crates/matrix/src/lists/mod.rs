//! List matrices: each row is a sorted list of entries, with a key and a value each, or a key alone. Ratings of a user,
//! neighbours of a node, words of a document.
//!
//! A list matrix is filled once and then only read. Many tasks **append** at once, each append counts exactly once; all tasks
//! **seal** it: its lists are sorted by the keys of their entries, and of equal keys in a row the push rule makes one (`Add`
//! sums, `Assign` keeps the last, `Min` and `Max` the smallest and largest; with [`Storage::UniqueList`] they are an error). From then on it
//! does not change, so readers need no clock, and wait for nobody.
//!
//! "The last" and the order of sums are those of the tasks, and in a task those of its appends: they do not depend on servers,
//! workers or time.

pub(crate) mod export;
pub(crate) mod functions;
pub(crate) mod store;

use math::sort::sort_pairs;

use crate::agent::{Agent, MatrixId};
use crate::clock::Consistency;
use crate::element::{ElementType, OwnedValues};
use crate::error::Error;
use crate::function::{FunctionCall, FunctionFault, unpack};
use crate::initializer::Initializer;
use crate::partitioner::Partitioner;
use crate::row_block::{ListBytes, Lists, RowBlock};
use crate::rule::PushRule;
use crate::spec::{Axis, KEY_BOUND, MatrixSpec, Storage};
use functions::{ListRead, ListRequest, ListWrite, check_block, list_pages};
pub use store::{ListSelection, owner_of};

/// Bytes of the key of an entry.
const KEY_BYTES: usize = size_of::<u64>();
/// Most entries of one append on the wire.
const APPENDED_ENTRIES: usize = 1 << 17;

/// A list matrix as a task reaches it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListMatrix {
    matrix: MatrixId,
    spec: MatrixSpec,
}

impl ListMatrix {
    /// The spec of a list matrix for rows with any keys. `columns` is 1, or 0 for entries without values.
    pub fn spec(
        name: &str,
        element: ElementType,
        columns: u64,
        rule: PushRule,
        partition_count: u32,
    ) -> MatrixSpec {
        MatrixSpec {
            name: name.to_owned(),
            element,
            rows: KEY_BOUND,
            columns,
            axis: Axis::Row,
            storage: Storage::List,
            partitioner: Partitioner::Hash { partition_count },
            initializer: Initializer::Zero,
            rule,
            consistency: Consistency::Asp,
            seed: 0,
        }
    }

    /// Wraps a matrix that was created with `spec`.
    ///
    /// # Errors
    /// If it has no lists.
    pub fn new(matrix: MatrixId, spec: &MatrixSpec) -> Result<Self, Error> {
        if !spec.storage.has_lists() {
            let fault = FunctionFault::Matrix { actual: "rows of one length".to_owned(), expected: "lists" };
            return Err(Error::function(&spec.name, ListRead::Lists.name(), fault));
        }
        Ok(Self { matrix, spec: spec.clone() })
    }

    /// An empty block, to be filled with rows for this matrix.
    pub fn block(&self) -> RowBlock {
        RowBlock::no_lists(self.spec.element)
    }

    /// Appends entries to rows. A row may be named several times. It counts exactly once.
    ///
    /// # Errors
    /// If the block does not fit the matrix, a value is not finite, or the lists are sealed.
    pub fn append(&self, agent: &mut (impl Agent + ?Sized), block: &RowBlock) -> Result<(), Error> {
        let name = ListWrite::Append.name();
        check_block(&self.spec, block).map_err(|fault| Error::function(&self.spec.name, name, fault))?;
        if block.entries().len() <= APPENDED_ENTRIES {
            return agent.push_function(self.matrix, &[FunctionCall::of_lists(name, block)]);
        }
        let parts = block.split_lists(APPENDED_ENTRIES);
        parts
            .iter()
            .try_for_each(|part| agent.push_function(self.matrix, &[FunctionCall::of_lists(name, part)]))
    }

    /// Seals the lists: all tasks call it, and wait for each other. Then they can be read.
    ///
    /// # Errors
    /// If equal keys are an error and there are some, or a sum leaves the range of the elements.
    pub fn seal(&self, agent: &mut (impl Agent + ?Sized)) -> Result<(), Error> {
        agent.barrier()?;
        if agent.task() == 0 {
            agent.push_function(self.matrix, &[FunctionCall::of_lists(ListWrite::Seal.name(), &())])?;
        }
        agent.barrier()
    }

    /// The lists of a selection, rows ascending. Of listed rows, all are there: those without entries are empty.
    ///
    /// # Errors
    /// If the lists are not sealed, or the rows of the selection do not ascend.
    pub fn pull(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &ListSelection<'_>,
    ) -> Result<RowBlock, Error> {
        self.request(agent, rows, 0)
    }

    /// Like [`Self::pull`], of each row the `n` entries with the largest values, the largest first; of equal ones, the smaller
    /// keys first.
    ///
    /// # Errors
    /// Those of [`Self::pull`].
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn best(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &ListSelection<'_>,
        n: u64,
    ) -> Result<RowBlock, Error> {
        assert!(n > 0, "at least one entry of a row");
        self.request(agent, rows, n)
    }

    /// The rows that exist and belong to this task: each row belongs to one task.
    ///
    /// # Errors
    /// Those of [`Self::pull`].
    pub fn owned(&self, agent: &mut (impl Agent + ?Sized)) -> Result<RowBlock, Error> {
        let rows = ListSelection::Owned { task: agent.task(), task_count: agent.task_count() };
        self.pull(agent, &rows)
    }

    /// The number of entries of each row of a selection that exists.
    ///
    /// # Errors
    /// Those of [`Self::pull`].
    pub fn lengths(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &ListSelection<'_>,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let lengths = self.numbers(agent, ListRead::Lengths, &ListRequest::new(rows))?;
        Ok(lengths.into_iter().map(|(key, length)| (key, length as u64)).collect())
    }

    /// The sum of the values of each row of a selection that exists.
    ///
    /// # Errors
    /// Those of [`Self::pull`], and if the entries have no values.
    pub fn sums(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &ListSelection<'_>,
    ) -> Result<Vec<(u64, f64)>, Error> {
        self.numbers(agent, ListRead::Sums, &ListRequest::new(rows))
    }

    /// For each row of a selection that exists, the number of its entries that are among `others`, which ascend: with the list
    /// of another row, the size of their intersection.
    ///
    /// # Errors
    /// Those of [`Self::pull`].
    pub fn overlaps(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &ListSelection<'_>,
        others: &[u64],
    ) -> Result<Vec<(u64, u64)>, Error> {
        let request = ListRequest { others: others.to_vec(), ..ListRequest::new(rows) };
        let counts = self.numbers(agent, ListRead::Overlaps, &request)?;
        Ok(counts.into_iter().map(|(key, count)| (key, count as u64)).collect())
    }

    fn numbers(
        &self,
        agent: &mut (impl Agent + ?Sized),
        read: ListRead,
        request: &ListRequest,
    ) -> Result<Vec<(u64, f64)>, Error> {
        let answer = agent.pull_function(self.matrix, &FunctionCall::of_lists(read.name(), request))?;
        unpack(&answer).map_err(|fault| Error::function(&self.spec.name, read.name(), fault))
    }

    /// Reads pages until there are no more, and puts their rows in order.
    fn request(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &ListSelection<'_>,
        best: u64,
    ) -> Result<RowBlock, Error> {
        let name = ListRead::Lists.name();
        let mut request = ListRequest { best, ..ListRequest::new(rows) };
        let value_bytes = self.spec.columns as usize * self.spec.element.size();
        let mut answers = Vec::new();
        loop {
            let answer = agent.pull_function(self.matrix, &FunctionCall::of_lists(name, &request))?;
            request.cursors.clear();
            let pages = list_pages(&answer, value_bytes)
                .map_err(|fault| Error::function(&self.spec.name, name, fault))?;
            for (partition, next, _) in pages {
                request.cursors.extend(next.map(|(row, skip)| (partition, row, skip)));
            }
            answers.push(answer);
            if request.cursors.is_empty() {
                break;
            }
        }
        let mut blocks = Vec::new();
        for answer in &answers {
            let pages = list_pages(answer, value_bytes)
                .map_err(|fault| Error::function(&self.spec.name, name, fault))?;
            blocks.extend(pages.into_iter().map(|(_, _, block)| block));
        }
        let listed = if let ListSelection::Rows(rows) = rows { rows } else { &[][..] };
        Ok(in_order(&self.spec, &blocks, listed))
    }
}

/// The rows of blocks, of which each ascends, in the order of their keys, together with the listed rows that no block has. The
/// parts of a row are in the order of the blocks.
fn in_order(spec: &MatrixSpec, blocks: &[ListBytes<'_>], listed: &[u64]) -> RowBlock {
    let (mut order, mut places) = (Vec::new(), Vec::new());
    for block in blocks {
        let mut start = 0;
        for (key, length) in block.keys.iter().zip(&block.lengths) {
            order.push((*key, places.len() as u32));
            places.push((block, start..start + *length as usize));
            start += *length as usize;
        }
    }
    // Parts of a row stay in the order of the blocks.
    sort_pairs(&mut order, &mut Vec::new());
    let count: usize = places.iter().map(|(_, range)| range.len()).sum();
    let (columns, value_bytes) = (spec.columns as usize, spec.columns as usize * spec.element.size());
    let mut keys: Vec<u64> = Vec::with_capacity(order.len() + listed.len());
    let mut lists =
        Lists { lengths: Vec::with_capacity(order.len() + listed.len()), entries: vec![0; count] };
    let mut values = OwnedValues::zeros(spec.element, count * columns);
    let (mut entries_left, mut values_left) =
        (bytemuck::cast_slice_mut(&mut lists.entries), values.bytes_mut());
    let mut listed = listed.iter().copied().peekable();
    for (key, place) in order {
        let (block, range) = &places[place as usize];
        while let Some(empty) = listed.next_if(|row| *row < key) {
            keys.push(empty);
            lists.lengths.push(0);
        }
        listed.next_if_eq(&key);
        if keys.last() != Some(&key) {
            keys.push(key);
            lists.lengths.push(0);
        }
        *lists.lengths.last_mut().expect("a row") += range.len() as u64;
        for (left, from, width) in
            [(&mut entries_left, block.entries, KEY_BYTES), (&mut values_left, block.values, value_bytes)]
        {
            let (own, rest) = std::mem::take(left).split_at_mut(range.len() * width);
            own.copy_from_slice(&from[range.start * width..range.end * width]);
            *left = rest;
        }
    }
    for empty in listed {
        keys.push(empty);
        lists.lengths.push(0);
    }
    RowBlock { lists: Some(lists), ..RowBlock::of_values(keys, values) }
}
