//! Whole matrices: export and import in pages, the row copy and its restoration.

use matrix::{ExportRange, ExportedRows, MatrixSpec, OwnedValues, RowCounts, Values};
use rpc::message::{Export, ExportPage, FaultKind, Import, KeepRows, Message, RestoreRows};

use crate::broken::Broken;
use crate::job::{Job, exported_bytes};
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
        match self.job(export.job).and_then(|job| job.page(&export)) {
            Ok(page) => out.push(Effect::Send { connection: at, message: Message::ExportPage(page) }),
            Err(refusal) => self.refuse(at, export.request, refusal, out),
        }
    }

    pub(crate) fn import(&mut self, at: ConnectionId, mut import: Import, out: &mut Vec<Effect>) {
        import.first &= !self.config.lacks(Broken::ImportKeepsOldRows);
        let (request, job) = (import.request, import.job);
        let result = self.job(job).and_then(|job| job.import_rows(import));
        self.count_memory();
        self.reply(at, request, job, result, out);
    }

    pub(crate) fn keep_rows(&mut self, at: ConnectionId, keep: KeepRows, out: &mut Vec<Effect>) {
        let KeepRows { request, job } = keep;
        self.count_memory();
        let (used, limit) = (self.memory_bytes, self.config.memory_limit_bytes);
        let result = self.job(job).and_then(|job| job.copy_rows(used, limit));
        self.count_memory();
        self.reply(at, request, job, result, out);
    }

    pub(crate) fn restore_rows(&mut self, at: ConnectionId, restore: RestoreRows, out: &mut Vec<Effect>) {
        let RestoreRows { request, job } = restore;
        let result = self.job(job).and_then(Job::restore_row_copy);
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
    fn export_now(&mut self, matrix: u32) -> Result<ExportedRows, Refusal> {
        let bound = self.minimum_or_max();
        Ok(self.matrix(matrix)?.export(bound)?)
    }

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
        let widths = widths(spec);
        let row_bytes = 8 + widths.iter().sum::<usize>() * spec.element.size();
        let (rows, RowCounts { rows: row_count, nonzero_rows: nonzero_count }) = (&kept.rows, kept.counts);
        let start = rows.keys.partition_point(|key| *key < from);
        let end = rows.keys.len().min(start + (PAGE_BYTES / row_bytes).max(1));
        let mut values = OwnedValues::zeros(spec.element, 0);
        let parts = std::iter::once(&rows.values).chain(rows.slots.iter().map(|(_, slot)| slot));
        for (part, width) in parts.zip(&widths) {
            values.extend(part.as_values().slice(start * width..end * width));
        }
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

    fn import_rows(&mut self, import: Import) -> Result<(), Refusal> {
        let Import { matrix, first, with_slots, keys, values, .. } = import;
        self.invalidate_export(matrix);
        let held = self.matrix(matrix)?;
        let spec = held.spec();
        let rows = split_rows(spec, with_slots, keys, &values)?;
        held.import(&rows, first)?;
        Ok(())
    }

    fn copy_rows(&mut self, used: u64, limit: u64) -> Result<(), Refusal> {
        self.row_copy = None;
        let mut kept = Vec::new();
        for matrix in 0..self.matrices.len() as u32 {
            kept.push(self.export_now(matrix)?);
        }
        let copy: u64 = kept.iter().map(exported_bytes).sum();
        if used.saturating_add(copy) > limit {
            let text = format!(
                "a copy of the rows needs {copy} bytes in addition to {used} bytes, the limit is {limit}"
            );
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        self.row_copy = Some(kept);
        Ok(())
    }

    fn restore_row_copy(&mut self) -> Result<(), Refusal> {
        let Some(kept) = &self.row_copy else {
            return Err(Refusal::new(
                FaultKind::Invalid,
                "there is no copy of the rows: send KeepRows first",
            ));
        };
        self.export_cache = None;
        for (matrix, rows) in self.matrices.iter_mut().zip(kept) {
            matrix.import(rows, true)?;
        }
        Ok(())
    }
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
