//! Lists of items as CSV or Parquet: subject, item, rank, score.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use driver::Error;
use runtime::score_columns::quote;

/// Lists that are written together, column by column.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub subjects: Vec<String>,
    pub items: Vec<String>,
    pub ranks: Vec<i64>,
    pub scores: Vec<f64>,
}

impl Lists {
    /// Adds the list of a user or an item, best first.
    pub(super) fn add(&mut self, subject: &str, list: impl Iterator<Item = (String, f64)>) {
        for (rank, (item, score)) in (1..).zip(list) {
            self.subjects.push(subject.to_owned());
            self.items.push(item);
            self.ranks.push(rank);
            self.scores.push(score);
        }
    }

    fn lines(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, score) in self.scores.iter().enumerate() {
            quote(&mut out, self.subjects[at].as_bytes());
            out.push(b',');
            quote(&mut out, self.items[at].as_bytes());
            out.extend_from_slice(format!(",{},{score}\n", self.ranks[at]).as_bytes());
        }
        out
    }
}

/// Where lists go.
pub(super) enum ListWriter {
    /// Only metrics are asked for.
    Nowhere,
    /// `place` is where the user finds the file.
    Text { out: BufWriter<Box<dyn Write>>, place: PathBuf },
    #[cfg(feature = "parquet")]
    Parquet(Box<data::parquet_writer::ParquetWriter>),
}

impl ListWriter {
    /// Creates a file at `path`, or writes to standard output without one. `place` is where the user finds it; it is Parquet if it
    /// ends with `.parquet`.
    pub(super) fn create(path: Option<&Path>, place: &Path, columns: &[&str; 4]) -> Result<Self, Error> {
        let is_parquet = place.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        let out: Box<dyn Write> = match path {
            Some(path) if is_parquet => return Self::parquet(path, columns),
            Some(path) => Box::new(File::create(path).map_err(Error::io("create", place))?),
            None => Box::new(std::io::stdout()),
        };
        let mut out = BufWriter::new(out);
        writeln!(out, "{}", columns.join(",")).map_err(Error::io("write", place))?;
        Ok(Self::Text { out, place: place.to_owned() })
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, columns: &[&str; 4]) -> Result<Self, Error> {
        use data::parquet_writer::{ColumnType, ParquetWriter};
        let kinds = [ColumnType::Text, ColumnType::Text, ColumnType::I64, ColumnType::F64];
        let columns: Vec<_> = columns.iter().copied().zip(kinds).collect();
        Ok(Self::Parquet(Box::new(ParquetWriter::create(path, &columns)?)))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _: &[&str; 4]) -> Result<Self, Error> {
        Err(Error::request(
            format!("{}: this program was built without Parquet", path.display()),
            "name a .csv file, or build it with the feature parquet",
        ))
    }

    pub(super) fn write(&mut self, lists: &Lists) -> Result<(), Error> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Text { out, place } => out.write_all(&lists.lines()).map_err(Error::io("write", &*place)),
            #[cfg(feature = "parquet")]
            Self::Parquet(out) => {
                use data::parquet_writer::ColumnData;
                let Lists { subjects, items, ranks, scores } = lists;
                out.write(&[
                    ColumnData::Text(subjects),
                    ColumnData::Text(items),
                    ColumnData::I64(ranks),
                    ColumnData::F64(scores),
                ])?;
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Text { mut out, place } => out.flush().map_err(Error::io("write", &place)),
            #[cfg(feature = "parquet")]
            Self::Parquet(out) => {
                out.finish()?;
                Ok(())
            }
        }
    }
}
