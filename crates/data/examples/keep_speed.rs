//! Measures the block cache: `keep_speed FILE [BATCH_SIZE] [MEMORY_LIMIT_BYTES] [none|batches|records]`
//! It prints seconds and nanoseconds per entry, on one core, for the first epoch (parsing and caching) and two later
//! ones.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::time::Instant;

use data::{BatchStream, CacheConfig, FormatTable, Shuffle, Source, SourceConfig, TaskData};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file =
        arguments.next().ok_or("usage: keep_speed FILE [BATCH_SIZE] [MEMORY_LIMIT_BYTES] [SHUFFLE]")?;
    let batch_size: usize = arguments.next().map_or(Ok(4096), |text| text.parse())?;
    let memory_limit_bytes: u64 = arguments.next().map_or(Ok(u64::MAX), |text| text.parse())?;
    let shuffle = match arguments.next().as_deref() {
        Some("records") => Shuffle::Records,
        Some("batches") => Shuffle::Batches,
        _ => Shuffle::None,
    };
    let config = SourceConfig { inputs: vec![file], ..SourceConfig::default() };
    let source = Source::open(&config, &FormatTable::builtin())?;
    let reader = source.reader(source.splits(1).remove(0))?;
    let keep = CacheConfig { memory_limit_bytes, folder: std::env::temp_dir() };
    let mut data = TaskData::new(reader, Some(keep), shuffle, 1, 0, batch_size);
    for epoch in 0..3 {
        let start = Instant::now();
        let (mut records, mut entries, mut sum) = (0, 0, 0u64);
        data.start_epoch(epoch)?;
        while let Some(batch) = data.next()? {
            records += batch.record_count();
            entries += batch.entry_count();
            sum = sum.wrapping_add(batch.columns.iter().sum());
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "epoch {epoch}: {records} records, {entries} entries: {seconds:.3} s, {:.2} ns an entry ({sum:x})",
            seconds * 1e9 / entries as f64
        );
    }
    println!("{:?}", data.cache_stats());
    Ok(())
}
