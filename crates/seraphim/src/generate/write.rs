//! Writes generated data to files. Several threads make text in chunks of records, which are written in order.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use engine::Error;
use engine::interrupt::Interrupt;
use engine::outputs::{GENERATED_META, OutputKind, Outputs, put_file};
use engine::store::TempOutput;
use serde::Serialize;

use super::bayes::{Bayes, bayes};
use super::ctr::{CtrConfig, CtrData, Record};

/// Number of records in a chunk.
const CHUNK_RECORDS: u64 = 10_000;
/// Maximum number of finished chunks per thread that wait for the writer.
const WAITING_CHUNKS: usize = 2;

/// The format of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `label id:1 ...`, ids from 1.
    Libsvm,
    /// Columns `label` and `indices`, ids from 0.
    Parquet,
}

/// The result of [`generate`].
#[derive(Clone, Debug, Serialize)]
pub struct Generated {
    pub files: Vec<PathBuf>,
    /// Quality of the true model on the training split.
    pub train_bayes: Option<Bayes>,
    /// Quality of the true model on the test split.
    pub test_bayes: Option<Bayes>,
}

struct Chunk {
    text: Vec<u8>,
    ids: Vec<u64>,
    truth: Vec<(f64, u8)>,
}

/// Writes `train` and `test` files of each format and `meta.json` into `folder`. All of them are temporary outputs
/// until the last one is complete, so an interrupted run leaves nothing.
pub fn generate(
    config: CtrConfig,
    train_rows: u64,
    test_rows: u64,
    formats: &[Format],
    folder: &Path,
    threads: usize,
    overwrite: bool,
    interrupt: &Interrupt,
) -> Result<Generated, Error> {
    let outputs = Outputs::new(overwrite);
    let places = output_paths(folder, [train_rows, test_rows], formats);
    places.iter().try_for_each(|place| outputs.check_file("--output", place, OutputKind::Generated))?;
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let data = CtrData::new(config);
    let mut parts = Vec::new();
    let mut best = [None, None];
    for (split, (name, rows)) in [("train", train_rows), ("test", test_rows)].into_iter().enumerate() {
        if rows == 0 {
            continue;
        }
        let mut sinks = open(folder, name, formats, config, interrupt)?;
        let mut truth = write_split(&data, split as u64, rows, &mut sinks, threads, interrupt)?;
        for sink in sinks {
            parts.push(sink.finish()?);
        }
        best[split] = Some(bayes(&mut truth));
    }
    let [train_bayes, test_bayes] = best;
    let meta = serde_json::json!({
        "generator": "ctr", "dimensions": config.dimensions, "train_rows": train_rows, "test_rows": test_rows,
        "nonzeros": config.nonzeros, "zipf": config.zipf, "sigma": config.sigma, "bias": config.bias,
        "seed": config.seed, "slot_sizes": data.slot_sizes(), "train_bayes": train_bayes, "test_bayes": test_bayes,
    });
    let part = interrupt.temp_output(&folder.join(GENERATED_META));
    std::fs::write(part.path(), format!("{meta:#}\n")).map_err(Error::io("write", part.target()))?;
    parts.push(part);
    let files = parts.iter().map(|part| part.target().to_owned()).collect();
    for part in parts {
        part.persist(put_file(overwrite))?;
    }
    Ok(Generated { files, train_bayes, test_bayes })
}

/// Returns the paths of the files that will be written.
fn output_paths(folder: &Path, [train_rows, test_rows]: [u64; 2], formats: &[Format]) -> Vec<PathBuf> {
    let splits = [("train", train_rows), ("test", test_rows)].into_iter().filter(|split| split.1 > 0);
    let files =
        splits.flat_map(|(name, _)| formats.iter().map(move |format| output_path(folder, name, *format)));
    files.chain([folder.join(GENERATED_META)]).collect()
}

fn output_path(folder: &Path, split: &str, format: Format) -> PathBuf {
    folder.join(match format {
        Format::Libsvm => format!("{split}.libsvm"),
        Format::Parquet => format!("{split}.parquet"),
    })
}

enum Sink {
    Text {
        out: BufWriter<File>,
        part: TempOutput,
    },
    #[cfg(feature = "parquet")]
    Parquet {
        out: Box<super::parquet::ParquetSink>,
        part: TempOutput,
    },
}

impl Sink {
    #[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "text has its own lengths"))]
    fn write(&mut self, chunk: &Chunk, nonzeros: usize) -> Result<(), Error> {
        match self {
            Self::Text { out, part } => out.write_all(&chunk.text).map_err(Error::io("write", part.target())),
            #[cfg(feature = "parquet")]
            Self::Parquet { out, .. } => out.write(&chunk.truth, &chunk.ids, nonzeros),
        }
    }

    /// Completes the file and returns it as a temporary output, which the caller persists.
    fn finish(self) -> Result<TempOutput, Error> {
        match self {
            Self::Text { mut out, part } => {
                out.flush().map_err(Error::io("write", part.target()))?;
                Ok(part)
            }
            #[cfg(feature = "parquet")]
            Self::Parquet { out, part } => {
                out.finish()?;
                Ok(part)
            }
        }
    }
}

fn open(
    folder: &Path,
    name: &str,
    formats: &[Format],
    config: CtrConfig,
    interrupt: &Interrupt,
) -> Result<Vec<Sink>, Error> {
    let mut sinks = Vec::new();
    for format in formats {
        let part = interrupt.temp_output(&output_path(folder, name, *format));
        sinks.push(match format {
            Format::Libsvm => {
                let file = File::create(part.path()).map_err(Error::io("create", part.target()))?;
                Sink::Text { out: BufWriter::with_capacity(1 << 20, file), part }
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let out = super::parquet::ParquetSink::create(part.path(), config.dimensions)?;
                Sink::Parquet { out: Box::new(out), part }
            }
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => {
                let _ = (config, part);
                let what = "this program was built without Parquet";
                return Err(Error::request(what, "build it with the feature parquet"));
            }
        });
    }
    Ok(sinks)
}

/// Thread `t` makes the chunks `t, t + threads, ...`, and the writer takes one of each thread in turn, so the file is
/// in order.
fn write_split(
    data: &CtrData,
    split: u64,
    rows: u64,
    sinks: &mut [Sink],
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<(f64, u8)>, Error> {
    let chunk_count = rows.div_ceil(CHUNK_RECORDS);
    let text = sinks.iter().any(|sink| matches!(sink, Sink::Text { .. }));
    let mut truth = Vec::with_capacity(rows as usize);
    std::thread::scope(|scope| {
        let mut receivers = Vec::new();
        for t in 0..threads as u64 {
            let (sender, receiver) = mpsc::sync_channel(WAITING_CHUNKS);
            receivers.push(receiver);
            scope.spawn(move || {
                for c in (t..chunk_count).step_by(threads) {
                    let end = rows.min((c + 1) * CHUNK_RECORDS);
                    // The channel is closed because writing failed, so nothing is left to do.
                    if sender.send(make_chunk(data, split, c * CHUNK_RECORDS..end, text)).is_err() {
                        return;
                    }
                }
            });
        }
        for c in 0..chunk_count {
            let Ok(chunk) = receivers[c as usize % threads].recv() else { break };
            if interrupt.is_raised() {
                let what = "before the files were complete; nothing was written".into();
                return Err(Error::Interrupted { what });
            }
            for sink in sinks.iter_mut() {
                sink.write(&chunk, data.slot_count())?;
            }
            truth.extend(chunk.truth);
        }
        Ok(truth)
    })
}

fn make_chunk(data: &CtrData, split: u64, rows: std::ops::Range<u64>, text: bool) -> Chunk {
    let mut chunk = Chunk { text: Vec::new(), ids: Vec::new(), truth: Vec::new() };
    let mut record = Record::default();
    for row in rows {
        data.record(split, row, &mut record);
        chunk.truth.push((record.probability, record.label));
        chunk.ids.extend_from_slice(&record.ids);
        if text {
            write_line(&record, &mut chunk.text);
        }
    }
    chunk
}

fn write_line(record: &Record, out: &mut Vec<u8>) {
    out.push(b'0' + record.label);
    for id in &record.ids {
        out.push(b' ');
        write_number(id + 1, out);
        out.extend_from_slice(b":1");
    }
    out.push(b'\n');
}

/// Writes decimal digits without the formatting machinery, which would take half of the time of writing.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_formatting_does() {
        for number in [0, 7, 10, 1_000_000, u64::MAX] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
