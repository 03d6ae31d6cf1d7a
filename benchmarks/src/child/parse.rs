//! How fast text becomes batches: reading, parsing, checking, distinct columns. The batches are not used.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use data::Batch;
use serde_json::{Value, json};

use super::{BATCH_SIZE, reader};

/// Reads the file once so that it is in the page cache, then measures a second pass.
pub(super) fn run(file: &Path) -> Result<Value> {
    let bytes = std::io::copy(&mut std::fs::File::open(file)?, &mut std::io::sink())?;
    let mut reader = reader(file)?;
    let mut batch = Batch::default();
    let (mut records, mut entries) = (0usize, 0usize);
    let start = Instant::now();
    while reader.next_batch(BATCH_SIZE, &mut batch)? {
        records += batch.record_count();
        entries += batch.entry_count();
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(json!({
        "gb_per_s": bytes as f64 / seconds / 1e9, "seconds": seconds, "records": records, "entries": entries,
    }))
}
