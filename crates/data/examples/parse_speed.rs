//! Measures how fast text becomes batches: `parse_speed FILE [BATCH_SIZE] [ROUNDS]` prints GB/s, on one core, of
//! reading and parsing alone and of the whole work.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use data::{Batch, FormatTable, Source, SourceConfig};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: parse_speed FILE [BATCH_SIZE] [ROUNDS]")?;
    let batch_size: usize = arguments.next().map_or(Ok(4096), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let config = SourceConfig { inputs: vec![file], ..SourceConfig::default() };
    let source = Source::open(&config, &FormatTable::builtin())?;
    for _ in 0..rounds {
        let mut reader = source.reader(source.splits(1).remove(0))?;
        let mut batch = Batch::default();
        let (mut entries, mut columns) = (0, 0);
        let start = Instant::now();
        while reader.next_batch(batch_size, &mut batch)? {
            entries += batch.entry_count();
            columns += batch.columns.len();
        }
        let seconds = start.elapsed().as_secs_f64();
        let summary = reader.summary();
        println!(
            "{} records, {entries} entries, {columns} columns of batches: {seconds:.3} s, {:.3} GB/s, {:.2} ns an entry",
            summary.record_count,
            summary.bytes_read as f64 / seconds / 1e9,
            seconds * 1e9 / entries as f64,
        );
    }
    Ok(())
}
