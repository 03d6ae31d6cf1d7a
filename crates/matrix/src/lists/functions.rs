//! The functions of list matrices: appends, the seal and the reads are calls of PS functions, so that they have what these
//! have: push ids, answers to every lane's part, logs, replicas, sessions.

use crate::element::{Element, with_values};
use crate::function::{FunctionCall, FunctionFault, FunctionTable, FunctionValue, pack, unpack};
use crate::lists::store::{ListCursor, ListSelection, ListStore};
use crate::partitioner::Placement;
use crate::row_block::{ListBytes, RowBlock, pack_lists};
use crate::spec::MatrixSpec;
use crate::staged::PushId;

/// A push function of list matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListWrite {
    /// Argument: a [`RowBlock`].
    Append,
    /// Argument: none.
    Seal,
}

/// A pull function of list matrices. The argument of each is a [`ListRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListRead {
    /// The lists. [`list_pages`] reads the answer.
    Lists,
    /// For each row its number of entries.
    Lengths,
    /// For each row the sum of its values.
    Sums,
    /// For each row the number of its entries that are among those of the request.
    Overlaps,
}

impl ListWrite {
    pub(crate) const ALL: [Self; 2] = [Self::Append, Self::Seal];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Append => "append_lists",
            Self::Seal => "seal_lists",
        }
    }
}

impl ListRead {
    pub(crate) const ALL: [Self; 4] = [Self::Lists, Self::Lengths, Self::Sums, Self::Overlaps];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lists => "lists",
            Self::Lengths => "list_lengths",
            Self::Sums => "list_sums",
            Self::Overlaps => "list_overlaps",
        }
    }
}

/// What a read of lists asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListRequest {
    /// [`ListSelection`]: its kind, and its numbers or rows.
    pub(crate) kind: u8,
    pub(crate) numbers: (u64, u64),
    pub(crate) rows: Vec<u64>,
    /// Only these partitions answer, each from this row and this entry on; empty: all from their beginning.
    pub(crate) cursors: Vec<(u32, u64, u64)>,
    /// The entries with the largest values only, so many of each row; 0: all.
    pub(crate) best: u64,
    /// [`ListRead::Overlaps`]: the other list, ascending.
    pub(crate) others: Vec<u64>,
}

impl ListRequest {
    pub(crate) fn new(selection: &ListSelection<'_>) -> Self {
        match selection {
            ListSelection::Rows(rows) => Self { rows: rows.to_vec(), ..Self::default() },
            ListSelection::Range(start, end) => Self { kind: 1, numbers: (*start, *end), ..Self::default() },
            ListSelection::Owned { task, task_count } => {
                let numbers = (u64::from(*task), u64::from(*task_count));
                Self { kind: 2, numbers, ..Self::default() }
            }
        }
    }

    fn selection(&self) -> Result<ListSelection<'_>, FunctionFault> {
        let (a, b) = self.numbers;
        match self.kind {
            0 if self.rows.is_sorted_by(|a, b| a < b) => Ok(ListSelection::Rows(&self.rows)),
            0 => Err(FunctionFault::argument("rows", "keys that do not ascend", "ascending keys, each once")),
            1 => Ok(ListSelection::Range(a, b)),
            2 if a < b => Ok(ListSelection::Owned { task: a as u32, task_count: b as u32 }),
            kind => Err(FunctionFault::argument(
                "selection of rows",
                format!("{kind} {a} {b}"),
                "rows, a range or a task",
            )),
        }
    }
}

impl FunctionValue for ListRequest {
    fn pack(&self, out: &mut Vec<u8>) {
        self.kind.pack(out);
        self.numbers.pack(out);
        self.rows.pack(out);
        self.cursors.pack(out);
        self.best.pack(out);
        self.others.pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        Ok(Self {
            kind: u8::unpack(bytes)?,
            numbers: FunctionValue::unpack(bytes)?,
            rows: FunctionValue::unpack(bytes)?,
            cursors: FunctionValue::unpack(bytes)?,
            best: u64::unpack(bytes)?,
            others: FunctionValue::unpack(bytes)?,
        })
    }

    fn is_finite(&self) -> bool {
        true
    }
}

/// The lists of a partition: its number, where a further request goes on (`None`: these are all), and its rows.
pub(crate) type ListPage<'a> = (u32, Option<(u64, u64)>, ListBytes<'a>);

/// The pages in the answer of [`ListRead::Lists`]. An entry has a value of so many bytes.
pub(crate) fn list_pages(mut answer: &[u8], value_bytes: usize) -> Result<Vec<ListPage<'_>>, FunctionFault> {
    let bytes = &mut answer;
    let count = u64::unpack(bytes)?;
    let page =
        |_| Ok((u32::unpack(bytes)?, FunctionValue::unpack(bytes)?, ListBytes::take(bytes, value_bytes)?));
    (0..count).map(page).collect()
}

/// Most bytes of the lists that the partitions of a matrix answer at once. A further request gets the rest.
const PAGE_BYTES: usize = 48 << 20;
/// But each partition answers so many.
const SMALLEST_PAGE_BYTES: usize = 64 << 10;
/// Bytes of an entry with its value, at most.
const ENTRY_BYTES: usize = 16;

/// A read of lists, for one matrix.
pub(crate) struct BoundListRead {
    read: ListRead,
    request: ListRequest,
    /// The listed rows of each partition, if the request lists rows.
    listed: Vec<Vec<u64>>,
    page_bytes: usize,
}

impl BoundListRead {
    pub(crate) fn new(
        read: ListRead,
        table: &FunctionTable,
        spec: &MatrixSpec,
        call: &FunctionCall,
    ) -> Result<Self, FunctionFault> {
        check_matrix(spec, call)?;
        let request: ListRequest = unpack(&call.argument)?;
        request.selection()?;
        if read == ListRead::Sums && spec.columns == 0 {
            let actual = "entries without values".to_owned();
            return Err(FunctionFault::Matrix { actual, expected: "entries with values" });
        }
        let partitions = spec.partitioner.partition_count() as usize;
        let page_bytes = (PAGE_BYTES / partitions).max(SMALLEST_PAGE_BYTES);
        let mut listed = Vec::new();
        if let ListSelection::Rows(rows) = request.selection()? {
            let placement = spec.placement(table).map_err(|error| FunctionFault::user(error.to_string()))?;
            listed.resize_with(partitions, Vec::new);
            for row in rows {
                listed[placement.partition_of(*row)].push(*row);
            }
        }
        Ok(Self { read, request, listed, page_bytes })
    }

    /// What a partition answers, packed; `None` if it is not asked.
    pub(crate) fn answer<E: Element>(
        &self,
        partition: u32,
        store: &ListStore<E>,
    ) -> Result<Option<Vec<u8>>, crate::Error> {
        let lists = store.sealed()?;
        let request = &self.request;
        let cursor = match request.cursors.iter().find(|(asked, ..)| *asked == partition) {
            Some(&(_, row, skip)) => ListCursor { row, skip },
            None if request.cursors.is_empty() => ListCursor::default(),
            None => return Ok(None),
        };
        let rows = match self.listed.get(partition as usize) {
            Some(rows) => ListSelection::Rows(rows),
            None => request.selection().expect("the request was checked"),
        };
        if self.read == ListRead::Lists {
            return Ok(Some(lists.page(&rows, cursor, self.page_bytes, request.best as usize)));
        }
        let mut numbers: Vec<(u64, f64)> = Vec::new();
        lists.visit(&rows, cursor.row, |key, i| {
            let (entries, values) = lists.list(i);
            let number = match self.read {
                ListRead::Sums => values.iter().map(|value| value.to_f64()).sum(),
                ListRead::Overlaps => common_count(entries, &request.others) as f64,
                ListRead::Lists | ListRead::Lengths => entries.len() as f64,
            };
            numbers.push((key, number));
            true
        });
        Ok(Some(pack(&numbers)))
    }

    /// The answer of all partitions, in their order.
    pub(crate) fn merge(&self, parts: Vec<(u32, Vec<u8>)>) -> Result<Vec<u8>, FunctionFault> {
        if self.read == ListRead::Lists {
            // These are the bytes that `list_pages` reads: what each partition has answered, behind its number.
            let mut pages =
                Vec::with_capacity(parts.iter().map(|(_, bytes)| bytes.len() + 4).sum::<usize>() + 8);
            (parts.len() as u64).pack(&mut pages);
            for (partition, bytes) in parts {
                partition.pack(&mut pages);
                pages.extend_from_slice(&bytes);
            }
            return Ok(pages);
        }
        let mut numbers: Vec<(u64, f64)> = Vec::new();
        for (_, bytes) in parts {
            numbers.extend(unpack::<Vec<(u64, f64)>>(&bytes)?);
        }
        numbers.sort_unstable_by_key(|(key, _)| *key);
        Ok(pack(&numbers))
    }
}

/// The number of keys that are in both of two ascending lists.
fn common_count(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        count += usize::from(a[i] == b[j]);
        let (next_i, next_j) = (i + usize::from(a[i] <= b[j]), j + usize::from(b[j] <= a[i]));
        (i, j) = (next_i, next_j);
    }
    count
}

impl<E: Element> crate::lists::store::SealedLists<E> {
    /// The packed page of a partition: where the rest begins, and the lists of a selection from a cursor on, of about so many
    /// bytes. With `best`, of each list the entries with the largest values; of equal ones, the smaller keys.
    fn page(&self, rows: &ListSelection<'_>, from: ListCursor, bytes: usize, best: usize) -> Vec<u8> {
        let mut chosen = Vec::new();
        let mut room = bytes / ENTRY_BYTES;
        let mut next = None;
        self.visit(rows, from.row, |key, i| {
            if room == 0 {
                next = Some((key, 0));
                return false;
            }
            let (entries, values) = self.list(i);
            if best > 0 && !values.is_empty() {
                room = room.saturating_sub(entries.len().min(best) + 1);
                chosen.push((key, entries, values));
                return true;
            }
            let start = if key == from.row { from.skip as usize } else { 0 };
            let end = entries.len().min(start + room);
            chosen.push((
                key,
                &entries[start..end],
                if values.is_empty() { values } else { &values[start..end] },
            ));
            room = room.saturating_sub(end - start + 1);
            if end < entries.len() {
                next = Some((key, end as u64));
            }
            next.is_none()
        });
        let mut page = pack(&next);
        if best > 0 {
            let largest: Vec<_> = chosen
                .iter()
                .map(|&(key, entries, values)| match values {
                    [] => (key, entries.to_vec(), Vec::new()),
                    values => {
                        let (entries, values) = largest(entries, values, best);
                        (key, entries, values)
                    }
                })
                .collect();
            let rows: Vec<_> =
                largest.iter().map(|(key, entries, values)| (*key, &entries[..], &values[..])).collect();
            pack_lists(&rows, &mut page);
        } else {
            pack_lists(&chosen, &mut page);
        }
        page
    }
}

/// The entries with the n largest values, the largest first; of equal ones, the smaller keys.
fn largest<E: Element>(entries: &[u64], values: &[E], n: usize) -> (Vec<u64>, Vec<E>) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let before = |a: &usize, b: &usize| {
        let by_value = values[*b].partial_cmp(&values[*a]).unwrap_or(std::cmp::Ordering::Equal);
        by_value.then(a.cmp(b))
    };
    if n < order.len() {
        order.select_nth_unstable_by(n, before);
        order.truncate(n);
    }
    order.sort_unstable_by(before);
    order.into_iter().map(|at| (entries[at], values[at])).unzip()
}

/// A write of lists, for one matrix.
pub(crate) struct BoundListWrite {
    pub(crate) write: ListWrite,
    /// The push id of an append. It orders the entries with equal keys.
    pub(crate) id: PushId,
    block: RowBlock,
    /// For each partition, the rows of the block with the positions of their first entries.
    positions: Vec<Vec<(u32, usize)>>,
}

impl BoundListWrite {
    pub(crate) fn new(
        write: ListWrite,
        table: &FunctionTable,
        spec: &MatrixSpec,
        call: &FunctionCall,
    ) -> Result<Self, FunctionFault> {
        check_matrix(spec, call)?;
        if write == ListWrite::Seal {
            unpack::<()>(&call.argument)?;
            let block = RowBlock::no_lists(spec.element);
            return Ok(Self { write, id: PushId::default(), block, positions: Vec::new() });
        }
        let block: RowBlock = unpack(&call.argument)?;
        check_block(spec, &block)?;
        let placement = spec.placement(table).map_err(|error| FunctionFault::user(error.to_string()))?;
        let positions = positions(&placement, &block);
        Ok(Self { write, id: PushId::default(), block, positions })
    }

    pub(crate) fn run<E: Element>(
        &self,
        partition: u32,
        store: &mut ListStore<E>,
    ) -> Result<(), crate::Error> {
        match self.write {
            ListWrite::Append => store.append(self.id, &self.block, &self.positions[partition as usize]),
            ListWrite::Seal => store.seal(),
        }
    }
}

/// For each partition, the rows of the block with the positions of their first entries.
pub(crate) fn positions(placement: &Placement, block: &RowBlock) -> Vec<Vec<(u32, usize)>> {
    let mut positions = vec![Vec::new(); placement.partition_count()];
    for (at, (key, range)) in (0..).zip(block.rows()) {
        positions[placement.partition_of(key)].push((at, range.start));
    }
    positions
}

fn check_matrix(spec: &MatrixSpec, call: &FunctionCall) -> Result<(), FunctionFault> {
    if !spec.storage.has_lists() {
        let actual = "rows of one length".to_owned();
        return Err(FunctionFault::Matrix { actual, expected: "lists, for this function" });
    }
    let rows = call.from.len() + call.into.len();
    if rows > 0 {
        let expected = "none: a function of lists has its rows in the argument";
        return Err(FunctionFault::argument("rows", rows.to_string(), expected));
    }
    Ok(())
}

/// Refuses a block that does not fit the matrix.
pub(crate) fn check_block(spec: &MatrixSpec, block: &RowBlock) -> Result<(), FunctionFault> {
    let expected = "lists that fit the matrix";
    let fault = |actual: String| FunctionFault::argument("appended lists", actual, expected);
    if block.values.element_type() != spec.element {
        let (actual, expected) = (block.values.element_type().name(), spec.element.name());
        return Err(FunctionFault::argument("element type of the values", actual, expected));
    }
    block.check_lists(spec.columns as usize).map_err(fault)?;
    let bound = spec.key_bound();
    if let Some(key) = block.keys.iter().find(|key| **key >= bound) {
        return Err(fault(format!("row {key}, and rows are below {bound}")));
    }
    if let Some((at, value)) = block.values.as_values().first_non_finite() {
        let row = block.rows().find(|(_, range)| range.contains(&at)).map_or(0, |(key, _)| key);
        return Err(fault(format!("{value} as the value of entry {} of row {row}", block.entries()[at])));
    }
    Ok(())
}

impl FunctionCall {
    /// Whether it appends entries to lists.
    pub fn is_append(&self) -> bool {
        self.name == ListWrite::Append.name()
    }

    /// Creates a call of a function of lists.
    pub(crate) fn of_lists(name: &str, argument: &impl FunctionValue) -> Self {
        Self {
            name: name.to_owned(),
            version: 1,
            from: Vec::new(),
            into: Vec::new(),
            argument: pack(argument),
        }
    }
}

/// What each lane needs of an append: the rows of its partitions. `lane_of` gives the lane of a partition.
pub(crate) fn split_append(
    argument: &[u8],
    placement: &Placement,
    lane_count: usize,
    lane_of: impl Fn(usize) -> usize,
) -> Result<Vec<Vec<u8>>, FunctionFault> {
    let block: RowBlock = unpack(argument)?;
    let mut lanes = vec![RowBlock::no_lists(block.values.element_type()); lane_count];
    let width = block.values.len() / block.entries().len().max(1);
    with_values!(block.values.as_values(), values => {
        for (key, range) in block.rows() {
            let own = &mut lanes[lane_of(placement.partition_of(key))];
            own.push_list(key, &block.entries()[range.clone()], &values[range.start * width..range.end * width]);
        }
    });
    Ok(lanes.iter().map(pack).collect())
}

/// What the partitions of one lane need of a read: of listed rows, those that lie in them.
pub(crate) fn split_request(
    argument: &[u8],
    placement: &Placement,
    partitions: &[u32],
) -> Result<Vec<u8>, FunctionFault> {
    let mut request: ListRequest = unpack(argument)?;
    request.rows.retain(|key| partitions.binary_search(&(placement.partition_of(*key) as u32)).is_ok());
    Ok(pack(&request))
}
