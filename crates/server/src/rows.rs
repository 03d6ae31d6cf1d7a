//! Whole matrices: export and import in pages, and snapshots.

use matrix::{ExportRange, Matrix, RowBlock, RowCounts, Snapshot};
use rpc::message::{
    DropRows, Export, ExportPage, FaultKind, Import, KeepRows, Message, RestoreRows, SNAPSHOT_LIMIT, ScanRows,
};

use crate::injected_fault::InjectedFault;
use crate::job::Job;
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// Bytes of a page. A single row may be larger.
pub(crate) const PAGE_BYTES: usize = 4 << 20;
/// Most entries of a page of lists: a page has their keys, and with them up to as many keys and lengths of rows.
const LIST_PAGE_ENTRIES: usize = rpc::CHUNK_BYTES / size_of::<u64>() / 4;

/// Rows of a matrix in ascending order, kept from one page of an export to the next.
#[derive(Debug)]
pub(crate) struct ExportCache {
    pub(crate) matrix: u32,
    /// Those of the whole matrix.
    counts: RowCounts,
    /// The kept rows are all those from here on, below `end`.
    from: u64,
    end: Option<u64>,
    rows: RowBlock,
}

impl ExportCache {
    /// Whether the rows from `key` on begin here.
    fn has(&self, key: u64) -> bool {
        key >= self.from && self.end.is_none_or(|end| key < end)
    }
}

impl LaneState {
    pub(crate) fn export(&mut self, at: ConnectionId, export: Export, out: &mut Vec<Effect>) {
        let page = self.job(export.job).and_then(|job| job.page(&export));
        self.reply_page(at, export.request, page, out);
    }

    pub(crate) fn scan_rows(&mut self, at: ConnectionId, scan: ScanRows, out: &mut Vec<Effect>) {
        let page = self.job(scan.job).and_then(|job| job.block(&scan));
        self.reply_page(at, scan.request, page, out);
    }

    fn reply_page(
        &mut self,
        at: ConnectionId,
        request: u64,
        page: Result<ExportPage, Refusal>,
        out: &mut Vec<Effect>,
    ) {
        match page {
            Ok(page) => out.push(Effect::Send { connection: at, message: Message::ExportPage(page) }),
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    pub(crate) fn import(&mut self, at: ConnectionId, mut import: Import, out: &mut Vec<Effect>) {
        import.first &= !self.config.injects(InjectedFault::ImportKeepsOldRows);
        let (request, job) = (import.request, import.job);
        let limit = self.config.memory_limit_bytes;
        let result = self.job(job).and_then(|job| job.import_rows(import, limit));
        self.count_memory();
        self.reply(at, request, job, result, out);
    }

    pub(crate) fn keep_rows(&mut self, at: ConnectionId, keep: KeepRows, out: &mut Vec<Effect>) {
        let KeepRows { request, job, snapshot, records_changes } = keep;
        let dropped = self.job(job).and_then(|job| job.drop_snapshot(snapshot));
        self.count_memory();
        let (used, limit) = (self.memory.bytes(), self.config.memory_limit_bytes);
        let take = |job: &mut Job| job.take_snapshot((snapshot, records_changes), used, limit);
        let result = dropped.and_then(|()| self.job(job).and_then(take));
        self.reply(at, request, job, result, out);
    }

    pub(crate) fn drop_rows(&mut self, at: ConnectionId, drop: DropRows, out: &mut Vec<Effect>) {
        let DropRows { request, job, snapshot } = drop;
        let result = self.job(job).and_then(|job| job.drop_snapshot(snapshot));
        self.count_memory();
        self.reply(at, request, job, result, out);
    }

    pub(crate) fn restore_rows(&mut self, at: ConnectionId, restore: RestoreRows, out: &mut Vec<Effect>) {
        let RestoreRows { request, job, snapshot } = restore;
        let result = self.job(job).and_then(|job| job.restore_snapshot(snapshot));
        self.count_memory();
        self.reply(at, request, job, result, out);
    }

    fn reply(
        &mut self,
        at: ConnectionId,
        request: u64,
        job: u32,
        result: Result<(), Refusal>,
        out: &mut Vec<Effect>,
    ) {
        match result {
            Ok(()) => self.reply_done(at, request, job, out),
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }
}

impl Job {
    /// The rows from a key on, and perhaps more of them: those that are kept from the request before, if it asked for
    /// them too.
    fn export_from(&mut self, matrix: u32, from: u64) -> Result<ExportCache, Refusal> {
        let cached = self.export_cache.take().filter(|cached| cached.matrix == matrix);
        let counts = match cached {
            Some(cached) if cached.has(from) => return Ok(cached),
            Some(cached) => Some(cached.counts),
            None => None,
        };
        let bound = self.minimum_or_max();
        let owned = self.matrix(matrix)?;
        let counts = match counts {
            Some(counts) => counts,
            None => owned.count_rows(bound)?,
        };
        let range = ExportRange::block(from, counts.rows, owned.spec());
        let rows = owned.export_range(bound, range)?;
        let is_full = rows.keys.len() == range.limit;
        let end = rows.keys.last().filter(|_| is_full).map(|last| last + 1);
        Ok(ExportCache { matrix, counts, from, end, rows })
    }

    fn page(&mut self, export: &Export) -> Result<ExportPage, Refusal> {
        let Export { request, matrix, from, skip, .. } = *export;
        if self.matrix(matrix)?.spec().storage.has_lists() {
            return self.list_page(request, matrix, (from, skip));
        }
        let cached = self.export_from(matrix, from)?;
        let (rows, counts) = (&cached.rows, cached.counts);
        let start = rows.keys.partition_point(|key| *key < from);
        let row_bytes = if rows.keys.is_empty() { 1 } else { rows.row_bytes(0) };
        let end = rows.keys.len().min(start + (PAGE_BYTES / row_bytes).max(1));
        let (keys, values) = rows.slice(start..end).into_sections();
        let next = rows.keys.get(end).copied().or(cached.end);
        let (row_count, nonzero_count) = (counts.rows, counts.nonzero_rows);
        let page = ExportPage { request, row_count, nonzero_count, next, next_skip: 0, keys, values };
        // After the last page nothing is kept.
        self.export_cache = next.map(|_| cached);
        Ok(page)
    }

    /// Lists from an entry of a row on. The page has the number of entries in place of that of the rows that are not zero.
    fn list_page(&mut self, request: u64, matrix: u32, from: (u64, u64)) -> Result<ExportPage, Refusal> {
        let owned = self.matrix(matrix)?;
        let counts = owned.count_rows(0)?;
        let (block, next) = owned.export_lists(from, LIST_PAGE_ENTRIES)?;
        let (keys, values) = block.into_sections();
        let (next, next_skip) = next.map_or((None, 0), |(row, skip)| (Some(row), skip));
        let (row_count, nonzero_count) = (counts.rows, counts.entries);
        Ok(ExportPage { request, row_count, nonzero_count, next, next_skip, keys, values })
    }

    /// A block of a snapshot.
    fn block(&mut self, scan: &ScanRows) -> Result<ExportPage, Refusal> {
        let ScanRows { request, matrix, snapshot, block, only_changed, .. } = *scan;
        self.matrix(matrix)?;
        let taken = self.snapshot(snapshot)?.get(matrix as usize);
        let taken = taken.ok_or_else(|| missing(format!("the snapshot does not have matrix {matrix}")))?;
        let changes = only_changed.then(|| taken.changes());
        let taken = changes.as_ref().unwrap_or(taken);
        let row_count = taken.row_count();
        let spec = self.matrices[matrix as usize].spec();
        if block >= taken.block_count() && block > 0 {
            let count = taken.block_count();
            return Err(missing(format!(
                "the snapshot has {count} blocks of matrix {matrix}, not block {block}"
            )));
        }
        let rows = if taken.block_count() == 0 { RowBlock::none(spec) } else { taken.block(block) };
        let (keys, values) = rows.into_sections();
        let next = Some(block + 1).filter(|next| *next < taken.block_count());
        Ok(ExportPage { request, row_count, nonzero_count: 0, next, next_skip: 0, keys, values })
    }

    fn import_rows(&mut self, import: Import, memory_limit_bytes: u64) -> Result<(), Refusal> {
        let Import { matrix, first, row_count, with_slots, keys, values, .. } = import;
        self.invalidate_export(matrix);
        let owned = self.matrix(matrix)?;
        let spec = owned.spec();
        let rows = RowBlock::from_sections(spec, keys, values, with_slots)?;
        let needed = owned.room_bytes(row_count);
        if first && needed > memory_limit_bytes {
            let text = format!(
                "{row_count} rows of matrix {:?} need {needed} bytes here, the limit is {memory_limit_bytes}",
                spec.name
            );
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        owned.import(&rows, first.then_some(row_count))?;
        Ok(())
    }

    fn snapshot(&self, number: u32) -> Result<&[Snapshot], Refusal> {
        let taken = self.snapshots.get(number as usize).and_then(Option::as_deref);
        taken.ok_or_else(|| {
            let text = format!("there is no snapshot {number} of the rows: send KeepRows first");
            Refusal::new(FaultKind::Invalid, text)
        })
    }

    /// `used` and `limit` are bytes of the lane.
    fn take_snapshot(
        &mut self,
        (number, records_changes): (u32, bool),
        used: u64,
        limit: u64,
    ) -> Result<(), Refusal> {
        // Everything may change while the snapshot exists.
        let copy: u64 = self.matrices.iter().map(Matrix::size_bytes).sum();
        if used.saturating_add(copy) > limit {
            let text = format!(
                "a copy of the rows needs {copy} bytes in addition to {used} bytes, the limit is {limit}"
            );
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        let bound = self.minimum_or_max();
        let take = if records_changes { Matrix::snapshot_with_changes } else { Matrix::snapshot };
        let taken: Result<Vec<_>, _> = self.matrices.iter().map(|matrix| take(matrix, bound)).collect();
        self.snapshots[number as usize] = Some(taken?);
        Ok(())
    }

    fn drop_snapshot(&mut self, number: u32) -> Result<(), Refusal> {
        let Some(snapshot) = self.snapshots.get_mut(number as usize) else {
            let text = format!("there is no snapshot {number}: their numbers are below {SNAPSHOT_LIMIT}");
            return Err(Refusal::new(FaultKind::Invalid, text));
        };
        *snapshot = None;
        Ok(())
    }

    fn restore_snapshot(&mut self, number: u32) -> Result<(), Refusal> {
        for (matrix, taken) in self.matrices.iter().zip(self.snapshot(number)?) {
            matrix.restore(taken)?;
        }
        self.export_cache = None;
        Ok(())
    }
}

fn missing(text: String) -> Refusal {
    Refusal::new(FaultKind::NotFound, text)
}
