//! The cached key lists of a connection, with the positions of their rows. Memory is bounded; the least recently used
//! list is removed.
//!
//! A digest is computed at the first lookup by digest: a list that is never used again costs nothing but its memory.

use std::collections::VecDeque;

use matrix::RowPositions;
use rpc::message::{FaultKind, JobId, KeyList, PartitionRun};

use crate::refusal::Refusal;

/// Most lists of a connection, so that a search through them stays cheap.
const LIST_COUNT_LIMIT: usize = 256;
/// Most matrices for which one list keeps positions.
const POSITIONS_COUNT_LIMIT: usize = 4;
/// Most keys of a range: twice the number whose values fill a frame.
const KEY_COUNT_LIMIT: u64 = 1 << 21;

/// The cached lists, the most recently used last.
#[derive(Debug)]
pub(crate) struct KeyLists {
    lists: VecDeque<CachedKeyList>,
    bytes: u64,
    limit_bytes: u64,
}

/// The keys of a request, in runs.
#[derive(Debug)]
pub(crate) struct CachedKeyList {
    pub(crate) runs: Vec<PartitionRun>,
    pub(crate) keys: Vec<u64>,
    range: Option<(u64, u64)>,
    digest: Option<u128>,
    /// The last push with these keys in the write-ahead log: its number on this connection.
    pub(crate) recorded_at: Option<u64>,
    positions: Vec<(TableId, Vec<RowPositions>)>,
}

/// The table that positions belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableId {
    pub(crate) job: JobId,
    pub(crate) matrix: u32,
    pub(crate) table: u32,
}

impl KeyLists {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { lists: VecDeque::new(), bytes: 0, limit_bytes }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes out the list that a request names. The caller returns it with [`Self::put`].
    pub(crate) fn take(&mut self, runs: Vec<PartitionRun>, keys: KeyList) -> Result<CachedKeyList, Refusal> {
        let count: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        let fits = |keys: u64| {
            if keys == count {
                return Ok(());
            }
            let text = format!("the runs have {count} keys, the list has {keys}: the two must be equal");
            Err(Refusal::new(FaultKind::Invalid, text))
        };
        match keys {
            KeyList::Listed(keys) => {
                fits(keys.len() as u64)?;
                Ok(CachedKeyList {
                    runs,
                    keys,
                    range: None,
                    digest: None,
                    recorded_at: None,
                    positions: Vec::new(),
                })
            }
            KeyList::Range { start, end } => {
                fits(end.saturating_sub(start))?;
                if count > KEY_COUNT_LIMIT {
                    let text =
                        format!("a range of {count} keys, the limit is {KEY_COUNT_LIMIT}: split the request");
                    return Err(Refusal::new(FaultKind::TooLarge, text));
                }
                let range = Some((start, end));
                let known = self.lists.iter().rposition(|list| list.range == range && list.runs == runs);
                Ok(self.remove(known).unwrap_or_else(|| {
                    let keys = (start..end).collect();
                    CachedKeyList {
                        runs,
                        keys,
                        range,
                        digest: None,
                        recorded_at: None,
                        positions: Vec::new(),
                    }
                }))
            }
            KeyList::Cached { digest, count: key_count } => {
                fits(u64::from(key_count))?;
                let known =
                    self.lists.iter_mut().rposition(|list| list.digest() == digest && list.runs == runs);
                let unknown = || {
                    let text =
                        format!("the key list {digest:032x} is not cached on this connection: send its keys");
                    Refusal::new(FaultKind::UnknownKeys, text)
                };
                self.remove(known).ok_or_else(unknown)
            }
        }
    }

    /// Caches a list after its use.
    pub(crate) fn put(&mut self, list: CachedKeyList) {
        self.bytes += list.bytes();
        self.lists.push_back(list);
        while self.bytes > self.limit_bytes || self.lists.len() > LIST_COUNT_LIMIT {
            let Some(oldest) = self.lists.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    fn remove(&mut self, at: Option<usize>) -> Option<CachedKeyList> {
        let list = self.lists.remove(at?)?;
        self.bytes -= list.bytes();
        Some(list)
    }
}

impl CachedKeyList {
    /// The keys as a range, if they were sent so.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    pub(crate) fn digest(&mut self) -> u128 {
        *self.digest.get_or_insert_with(|| KeyList::digest(&self.runs, &self.keys))
    }

    /// The runs, the keys, and the row positions in the table `place`, one entry for each run.
    pub(crate) fn with_positions(
        &mut self,
        place: TableId,
    ) -> (&[PartitionRun], &[u64], &mut [RowPositions]) {
        let at = self.positions.iter().position(|(other, _)| *other == place).unwrap_or_else(|| {
            if self.positions.len() == POSITIONS_COUNT_LIMIT {
                self.positions.remove(0);
            }
            self.positions.push((place, vec![RowPositions::default(); self.runs.len()]));
            self.positions.len() - 1
        });
        (&self.runs, &self.keys, &mut self.positions[at].1)
    }

    /// Bytes of the keys, of the runs, and of positions at 4 bytes a key and table.
    fn bytes(&self) -> u64 {
        (self.keys.capacity() * 8 + self.keys.len() * 4 * self.positions.len() + self.runs.len() * 48 + 128)
            as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: TableId = TableId { job: 1, matrix: 0, table: 0 };

    fn runs(count: u32) -> Vec<PartitionRun> {
        vec![PartitionRun { partition: 0, count }]
    }

    /// Sends the list of two keys that begins with `first`.
    fn send(lists: &mut KeyLists, first: u64) {
        let list = lists.take(runs(2), KeyList::Listed(vec![first, first + 1])).unwrap();
        lists.put(list);
    }

    fn knows(lists: &mut KeyLists, first: u64) -> bool {
        let digest = KeyList::digest(&runs(2), &[first, first + 1]);
        let list = lists.take(runs(2), KeyList::Cached { digest, count: 2 });
        list.map(|list| lists.put(list)).is_ok()
    }

    #[test]
    fn the_least_recently_used_list_goes_when_there_are_too_many() {
        let mut lists = KeyLists::new(u64::MAX);
        let limit = LIST_COUNT_LIMIT as u64;
        (0..limit).for_each(|first| send(&mut lists, first));
        assert!(knows(&mut lists, 0), "as many as the limit are remembered");
        send(&mut lists, limit);
        assert!(!knows(&mut lists, 1) && knows(&mut lists, 0) && knows(&mut lists, limit));
        send(&mut lists, limit + 1);
        assert!(!knows(&mut lists, 2) && knows(&mut lists, 3));
    }

    #[test]
    fn lists_take_no_more_bytes_than_they_may() {
        let mut lists = KeyLists::new(u64::MAX);
        send(&mut lists, 0);
        let one = lists.bytes();
        let mut lists = KeyLists::new(2 * one);
        (0..3).for_each(|first| send(&mut lists, first));
        assert_eq!(lists.bytes(), 2 * one);
        assert!(!knows(&mut lists, 0) && knows(&mut lists, 1) && knows(&mut lists, 2));
    }

    #[test]
    fn each_run_of_a_list_is_counted() {
        let bytes = |run_count: u32| {
            let mut lists = KeyLists::new(u64::MAX);
            let runs =
                (0..run_count).map(|partition| PartitionRun { partition, count: 10 / run_count }).collect();
            let list = lists.take(runs, KeyList::Listed((0..10).collect())).unwrap();
            lists.put(list);
            lists.bytes()
        };
        assert_eq!(bytes(10) - bytes(1), 9 * 48);
    }

    #[test]
    fn positions_of_rows_count_four_bytes_a_key() {
        let mut lists = KeyLists::new(u64::MAX);
        send(&mut lists, 0);
        let without = lists.bytes();
        let mut list = lists.take(runs(2), KeyList::Listed(vec![0, 1])).unwrap();
        list.with_positions(PLACE);
        list.with_positions(TableId { matrix: 1, ..PLACE });
        lists.put(list);
        assert_eq!(lists.bytes() - without, without + 2 * 2 * 4);
    }
}
