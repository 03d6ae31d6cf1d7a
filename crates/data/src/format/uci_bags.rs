//! Bags of words as the UCI repository has them (`docword.NAME.txt`).
//!
//! ```text
//! file  = documents line words line entries line { document word count line }
//! ```
//! The first three lines are numbers: of documents, of words, and of the lines that follow. Documents and words are numbered from 1;
//! the lines of a document follow one another, and documents ascend. A number that no line has is a document without words. The key of a
//! word is its number, and the value of the entry its count, from 1 on. Documents have no labels. A file is read by one
//! task, from its beginning to its end.

use std::collections::VecDeque;

use super::tokens::refuse_labels;
use super::{Abilities, FormatContext, FormatRow, OpenFormat, RecordReader, RowGroupFormat};
use crate::compression::ByteStream;
use crate::input::Input;
use crate::lines::ENTRY_LIMIT;
use crate::number::parse_digits;
use crate::schema::Schema;
use crate::sink::Sink;
use crate::split::{RowGroup, Split};
use crate::{BadLine, Error};

/// Lines before the entries.
const HEADER_LINES: usize = 3;
/// Largest count: whole numbers up to it are exact in single precision.
const COUNT_LIMIT: u64 = 1 << 24;
/// Documents without words that may follow one another.
const GAP_LIMIT: u64 = 1_000_000;
/// Longest line, which has three numbers.
const LINE_BYTES: usize = 256;
const READ_BYTES: usize = 64 << 10;

/// The numbers of a line; `None` if it has anything else.
fn numbers(line: &[u8]) -> Option<Vec<u64>> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words
        .map(|word| Some(parse_digits(word, 0)).filter(|(_, end)| *end == word.len()).map(|(n, _)| n))
        .collect()
}

/// The row in the table of formats.
pub(super) const ROW: FormatRow = FormatRow {
    name: "uci_bags",
    title: "bags of words of UCI: three lines with numbers of documents, words and lines, then document word count",
    extensions: &[],
    abilities: Abilities { is_numbered: true, ..Abilities::NONE },
    recognize,
    open,
};

fn recognize(head: &[u8]) -> bool {
    let counts = |line: &[u8]| numbers(line).map(|numbers| numbers.len());
    head.split(|byte| *byte == b'\n').map(counts).take(HEADER_LINES + 1).eq([1, 1, 1, 3].map(Some))
}

fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let advice = "give documents with labels as libsvm, label word:count ...";
    refuse_labels("bags of words", advice, context.options)?;
    Ok(OpenFormat::RowGroups(Box::new(UciBags)))
}

struct UciBags;

impl RowGroupFormat for UciBags {
    fn schema(&self) -> Schema {
        Schema::default()
    }

    fn is_sequence(&self, _: usize) -> bool {
        true
    }

    fn row_groups(&self, _: usize) -> Vec<RowGroup> {
        Vec::new()
    }

    fn reader(&self, files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error> {
        let files = splits.iter().map(|split| files[split.file].clone()).collect();
        Ok(Box::new(Reader { files, current: None }))
    }
}

struct Reader {
    files: VecDeque<Input>,
    current: Option<BagFile>,
}

impl RecordReader for Reader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            let file = match &mut self.current {
                Some(file) => file,
                empty => match self.files.pop_front() {
                    Some(input) => empty.insert(BagFile::open(&input)?),
                    None => return Ok(false),
                },
            };
            if !file.read_document(sink)? {
                self.current = None;
            }
        }
        Ok(true)
    }
}

/// A line with a word of a document.
#[derive(Clone, Copy)]
struct Entry {
    document: u64,
    word: u64,
    count: u64,
}

struct BagFile {
    name: String,
    stream: ByteStream,
    /// Bytes that were read, and the first that is not used.
    buffer: Vec<u8>,
    at: usize,
    is_at_end: bool,
    line: u64,
    documents: u64,
    words: u64,
    entries: u64,
    /// Lines with entries so far.
    entries_read: u64,
    /// The number of the document that comes next.
    next_document: u64,
    /// The first entry that belongs to it or to a later one.
    pending: Option<Entry>,
}

impl BagFile {
    fn open(input: &Input) -> Result<Self, Error> {
        let mut file = Self {
            name: input.name().to_owned(),
            stream: input.open_at(0)?,
            buffer: Vec::new(),
            at: 0,
            is_at_end: false,
            line: 0,
            documents: 0,
            words: 0,
            entries: 0,
            entries_read: 0,
            next_document: 1,
            pending: None,
        };
        let mut header = [0; HEADER_LINES];
        for number in &mut header {
            let line = file.next_line()?.and_then(|line| numbers(&line));
            let Some(&[value]) = line.as_deref() else {
                return Err(file.damaged(
                    "the first three lines are one number each: of documents, of words, and of the lines that follow",
                ));
            };
            *number = value;
        }
        [file.documents, file.words, file.entries] = header;
        Ok(file)
    }

    fn damaged(&self, reason: &str) -> Error {
        let reason = format!("line {}: {reason}", self.line);
        Error::BadFile { file: self.name.clone(), record: None, reason }
    }

    /// The next line that is not blank, without its end.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let rest = &self.buffer[self.at..];
            let end =
                memchr::memchr(b'\n', rest).or((self.is_at_end && !rest.is_empty()).then_some(rest.len()));
            if let Some(length) = end {
                let line = rest[..length].trim_ascii().to_vec();
                self.at = self.buffer.len().min(self.at + length + 1);
                self.line += 1;
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            if self.is_at_end {
                return Ok(None);
            }
            if rest.len() > LINE_BYTES {
                self.line += 1;
                return Err(self.damaged("a line is too long for three numbers"));
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let filled = self.buffer.len();
            self.buffer.resize(filled + READ_BYTES, 0);
            let count = self.stream.read(&mut self.buffer[filled..])?;
            self.buffer.truncate(filled + count);
            self.is_at_end = count == 0;
        }
    }

    /// The next entry. Lines that are bad are reported and left out.
    fn next_entry(&mut self, sink: &mut Sink) -> Result<Option<Entry>, Error> {
        while let Some(line) = self.next_line()? {
            sink.add_bytes(line.len() as u64 + 1);
            self.entries_read += 1;
            let expected = match numbers(&line).as_deref() {
                Some(&[document, word, count]) => {
                    if !(1..=self.documents).contains(&document) {
                        format!("a document from 1 to {}, as the first line says", self.documents)
                    } else if !(1..=self.words).contains(&word) {
                        format!("a word from 1 to {}, as the second line says", self.words)
                    } else if !(1..=COUNT_LIMIT).contains(&count) {
                        format!("a count from 1 to {COUNT_LIMIT}")
                    } else {
                        return Ok(Some(Entry { document, word, count }));
                    }
                }
                _ => "three whole numbers: document, word, count".to_owned(),
            };
            let actual = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
            let (file, line) = (self.name.clone(), self.line);
            sink.report_bad_line(BadLine { file, line, column: 1, expected, actual })?;
        }
        Ok(None)
    }

    /// Reads a document into the sink; returns false if there is none.
    fn read_document(&mut self, sink: &mut Sink) -> Result<bool, Error> {
        if self.pending.is_none() {
            self.pending = self.next_entry(sink)?;
        }
        let Some(first) = self.pending else {
            self.check_end()?;
            return Ok(false);
        };
        let number = self.next_document;
        if first.document > number + GAP_LIMIT {
            return Err(
                self.damaged(&format!("the documents {number} to {} have no words", first.document - 1))
            );
        }
        while let Some(entry) = self.pending.filter(|entry| entry.document <= number) {
            if entry.document < number {
                let reason = "documents must ascend, and the lines of one follow one another; sort the lines after the third, as \
                              with: sort -n";
                return Err(
                    self.damaged(&format!("document {} comes after {number}: {reason}", entry.document))
                );
            }
            sink.builder().push(entry.word, entry.count as f32);
            self.pending = self.next_entry(sink)?;
        }
        self.next_document += 1;
        if sink.builder().duplicate_key().is_some() && !sink.builder().sum_duplicates() {
            sink.discard_record();
        }
        if let Err(expected) = sink.end_record(None, 1.0, None) {
            let (file, line, actual) = (self.name.clone(), self.line, format!("document {number}"));
            sink.report_bad_line(BadLine { file, line, column: 1, expected, actual })?;
        }
        Ok(true)
    }

    /// Refuses a file whose first lines say something else than the others.
    fn check_end(&self) -> Result<(), Error> {
        let (last, said) = (self.next_document - 1, self.documents);
        if self.entries_read != self.entries {
            return Err(self.damaged(&format!(
                "the third line says that {} lines follow, and {} do; the file was cut short, or its first lines are wrong",
                self.entries, self.entries_read
            )));
        }
        if last != said {
            return Err(self.damaged(&format!(
                "the first line says that there are {said} documents, and the last one with words is {last}; correct it"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::FormatOptions;
    use crate::format::testing::{Row, check, options, rows};

    fn documents() -> FormatOptions {
        FormatOptions { uses_labels: false, ..options() }
    }

    #[test]
    fn documents_have_their_words_with_counts_and_may_have_none() {
        let text = "4\n5\n4\n1 2 3\n1 5 1\n3 1 2\n\n4 4 16777216\n";
        let found = rows("uci_bags", &documents(), text).unwrap();
        let expected = [&[(2, 3.0), (5, 1.0)][..], &[], &[(1, 2.0)], &[(4, 16_777_216.0)]];
        assert_eq!(found, expected.map(|entries| Row::new(None, entries)));
        assert!(
            super::recognize(text.as_bytes())
                && !super::recognize(b"1\n2\n3\n4\n")
                && !super::recognize(b"1 2\n3 4\n")
        );
    }

    #[test]
    fn a_word_that_stands_twice_in_a_document_is_added_up() {
        check(
            "uci_bags",
            &documents(),
            &[("1\n3\n3\n1 2 3\n1 1 1\n1 2 4", Row::new(None, &[(1, 1.0), (2, 7.0)]))],
        );
    }

    #[test]
    fn what_the_first_lines_do_not_say_and_what_is_no_count_is_refused() {
        for (text, said) in [
            ("2\n3\n2\n1 1 1\n2 4 1\n", "a word from 1 to 3"),
            ("2\n3\n2\n1 1 1\n2 0 1\n", "a word from 1 to 3"),
            ("2\n3\n2\n1 1 1\n3 1 1\n", "a document from 1 to 2"),
            ("2\n3\n2\n1 1 0\n2 1 1\n", "a count from 1 to"),
            ("2\n3\n2\n1 1 -1\n2 1 1\n", "three whole numbers"),
            ("2\n3\n2\n1 1 0.5\n2 1 1\n", "three whole numbers"),
            ("2\n3\n3\n1 1 1\n2 1 1\n", "3 lines follow, and 2 do"),
            ("2\n3\n1\n1 1 1\n2 1 1\n", "1 lines follow, and 2 do"),
            ("9\n3\n2\n1 1 1\n2 1 1\n", "there are 9 documents, and the last one with words is 2"),
            ("2\n3\n2\n2 1 1\n1 1 1\n", "document 1 comes after 2"),
            ("2\n3\n", "first three lines"),
            ("2 2\n3\n1\n1 1 1\n", "first three lines"),
            ("9000000000\n3\n1\n9000000000 1 1\n", "have no words"),
        ] {
            let error = rows("uci_bags", &documents(), text).unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
        let error = rows("uci_bags", &options(), "1\n1\n1\n1 1 1\n").unwrap_err().to_string();
        assert!(error.contains("no labels") && error.contains("libsvm"), "{error}");
    }
}
