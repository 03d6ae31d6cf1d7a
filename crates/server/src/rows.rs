//! Whole matrices: export and import in pages, and snapshots.

use std::ops::Range;

use matrix::{ExportRange, ExportedRows, Matrix, MatrixSpec, OwnedValues, RowCounts, Snapshot, Values};
use rpc::message::{
    DropRows, Export, ExportPage, FaultKind, Import, KeepRows, Message, RestoreRows, SNAPSHOT_LIMIT, ScanRows,
};

use crate::broken::Broken;
use crate::job::Job;
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// Bytes of a page. A single row may be larger.
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// Rows of a matrix in ascending order, kept from one page of an export to the next.
#[derive(Debug)]
pub(crate) struct ExportCache {
    pub(crate) matrix: u32,
    /// Those of the whole matrix.
    counts: RowCounts,
    /// The kept rows are all those from here on, below `end`.
    from: u64,
    end: Option<u64>,
    rows: ExportedRows,
}

impl ExportCache {
    /// Whether the rows from `key` on begin here.
    fn has(&self, key: u64) -> bool {
        key >= self.from && self.end.is_none_or(|end| key < end)
    }
}

/// Elements of a row in each part of an export: the values, then each slot.
fn widths(spec: &MatrixSpec) -> Vec<usize> {
    let columns = spec.columns_of_table();
    std::iter::once(columns).chain(spec.rule.slots().iter().map(|slot| slot.width(columns))).collect()
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
        import.first &= !self.config.lacks(Broken::ImportKeepsOldRows);
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
        let kept = |job: &mut Job| job.take_snapshot((snapshot, records_changes), used, limit);
        let result = dropped.and_then(|()| self.job(job).and_then(kept));
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
        let kept = self.export_cache.take().filter(|kept| kept.matrix == matrix);
        let counts = match kept {
            Some(kept) if kept.has(from) => return Ok(kept),
            Some(kept) => Some(kept.counts),
            None => None,
        };
        let bound = self.minimum_or_max();
        let held = self.matrix(matrix)?;
        let counts = match counts {
            Some(counts) => counts,
            None => held.count_rows(bound)?,
        };
        let range = ExportRange::block(from, counts.rows, held.spec());
        let rows = held.export_range(bound, range)?;
        let is_full = rows.keys.len() == range.limit;
        let end = rows.keys.last().filter(|_| is_full).map(|last| last + 1);
        Ok(ExportCache { matrix, counts, from, end, rows })
    }

    fn page(&mut self, export: &Export) -> Result<ExportPage, Refusal> {
        let Export { request, matrix, from, .. } = *export;
        let kept = self.export_from(matrix, from)?;
        let spec = self.matrices[matrix as usize].spec();
        let row_bytes = 8 + widths(spec).iter().sum::<usize>() * spec.element.size();
        let (rows, RowCounts { rows: row_count, nonzero_rows: nonzero_count }) = (&kept.rows, kept.counts);
        let start = rows.keys.partition_point(|key| *key < from);
        let end = rows.keys.len().min(start + (PAGE_BYTES / row_bytes).max(1));
        let values = page_values(spec, rows, start..end);
        let next = rows.keys.get(end).copied().or(kept.end);
        let page = ExportPage {
            request,
            row_count,
            nonzero_count,
            next,
            keys: rows.keys[start..end].to_vec(),
            values,
        };
        // After the last page nothing is kept.
        self.export_cache = next.map(|_| kept);
        Ok(page)
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
        if taken.block_count() == 0 && block == 0 {
            let (keys, values) = (Vec::new(), OwnedValues::zeros(spec.element, 0));
            return Ok(ExportPage { request, row_count, nonzero_count: 0, next: None, keys, values });
        }
        if block >= taken.block_count() {
            let count = taken.block_count();
            return Err(missing(format!(
                "the snapshot has {count} blocks of matrix {matrix}, not block {block}"
            )));
        }
        let rows = taken.block(block);
        let values = page_values(spec, &rows, 0..rows.keys.len());
        let next = Some(block + 1).filter(|next| *next < taken.block_count());
        Ok(ExportPage { request, row_count, nonzero_count: 0, next, keys: rows.keys, values })
    }

    fn import_rows(&mut self, import: Import, memory_limit_bytes: u64) -> Result<(), Refusal> {
        let Import { matrix, first, row_count, with_slots, keys, values, .. } = import;
        self.invalidate_export(matrix);
        let held = self.matrix(matrix)?;
        let spec = held.spec();
        let rows = split_rows(spec, with_slots, keys, &values)?;
        let needed = held.room_bytes(row_count);
        if first && needed > memory_limit_bytes {
            let text = format!(
                "{row_count} rows of matrix {:?} need {needed} bytes here, the limit is {memory_limit_bytes}",
                spec.name
            );
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        held.import(&rows, first.then_some(row_count))?;
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

/// The values of some rows as a page has them: those of all rows, then slot after slot.
pub(crate) fn page_values(spec: &MatrixSpec, rows: &ExportedRows, range: Range<usize>) -> OwnedValues {
    let mut values = OwnedValues::zeros(spec.element, 0);
    let parts = std::iter::once(&rows.values).chain(rows.slots.iter().map(|(_, slot)| slot));
    for (part, width) in parts.zip(widths(spec)) {
        values.extend(part.as_values().slice(range.start * width..range.end * width));
    }
    values
}

/// Splits the values of a message into the parts of the rows: the values, then each slot.
fn split_rows(
    spec: &MatrixSpec,
    with_slots: bool,
    keys: Vec<u64>,
    values: &OwnedValues,
) -> Result<ExportedRows, Refusal> {
    let mut widths = widths(spec);
    if !with_slots {
        widths.truncate(1);
    }
    let expected = keys.len().saturating_mul(widths.iter().sum());
    if values.len() != expected {
        let actual = values.len();
        return Err(matrix::Error::ValueCount { matrix: spec.name.clone(), expected, actual }.into());
    }
    let mut end = 0;
    let mut parts = widths.iter().map(|width| {
        let start = end;
        end += width * keys.len();
        Values::slice(values.as_values(), start..end).to_owned_values()
    });
    let own = parts.next().unwrap_or_else(|| OwnedValues::zeros(spec.element, 0));
    let slots =
        spec.rule.slots().iter().zip(parts).map(|(slot, part)| (slot.name.to_owned(), part)).collect();
    Ok(ExportedRows { keys, values: own, slots })
}
