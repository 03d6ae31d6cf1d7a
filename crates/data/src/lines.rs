//! Reads the lines of splits into a sink. It reuses one buffer; the start of a line that does not fit is moved to the
//! front.

use crate::compression::ByteStream;
use crate::format::{LineParser, ParsedLine, RecordReader, last_entry_of};
use crate::input::{BYTE_ORDER_MARK, Input};
use crate::key_names::KeyNames;
use crate::quotes::Quotes;
use crate::sink::{Sink, found_label};
use crate::split::{Split, SplitRange};
use crate::{BadLine, Error, LineError};
use memchr::memchr;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes per read: they stay in the second-level cache until they are parsed.
const BUFFER_BYTES: usize = 256 << 10;
/// Limit of the length of a line. A file with longer lines is not text.
const LINE_LIMIT_BYTES: usize = 256 << 20;
/// Number of entries at which a batch ends early: offsets have 32 bits, and one line can add `LINE_LIMIT_BYTES / 2`
/// more entries.
pub(crate) const ENTRY_LIMIT: usize = 1 << 30;
/// Bytes of a bad token that a message shows.
const SHOWN_BYTES: usize = 40;

/// How a format ends lines and names columns.
pub(crate) struct Grammar {
    /// The first line of each file, when it names columns.
    pub(crate) header: Option<Vec<u8>>,
    /// `Some` when quoted fields may have line breaks.
    pub(crate) quotes: Option<Quotes>,
    pub(crate) parser: Box<dyn LineParser>,
}
/// Reads the lines of splits, in order.
pub(crate) struct LineReader {
    files: Arc<[Input]>,
    grammar: Grammar,
    splits: VecDeque<Split>,
    current: Option<SplitCursor>,
    buffer: Vec<u8>,
}

/// A position in a split. The buffer holds bytes `base..base + filled` of the (decompressed) file.
struct SplitCursor {
    file: usize,
    stream: ByteStream,
    /// Lines that begin here or later belong to other splits.
    end: u64,
    base: u64,
    /// Position of the next line in the buffer.
    at: usize,
    filled: usize,
    at_end: bool,
    /// Lines since `count_start`, the present one included.
    lines: u64,
    /// Offset at which the count of lines began. A split that begins in mid-file counts the lines before it only when a
    /// message needs them.
    count_start: u64,
    lines_before: Option<u64>,
    /// Bytes reported to the sink: a position in a plain file, or the bytes consumed of a compressed one.
    reported_bytes: u64,
    is_whole_file: bool,
}

impl LineReader {
    pub(crate) fn new(files: Arc<[Input]>, grammar: Grammar, splits: Vec<Split>) -> Self {
        Self { files, grammar, splits: splits.into(), current: None, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Returns the next line of the splits as a range of the buffer, without its end; `None` when no line is left.
    #[inline]
    fn next_line(&mut self, sink: &mut Sink) -> Result<Option<(usize, usize)>, Error> {
        loop {
            let Some(cursor) = &mut self.current else {
                match self.splits.pop_front() {
                    None => return Ok(None),
                    Some(split) => self.current = Some(open(&self.files, &split, &mut self.buffer)?),
                }
                continue;
            };
            if cursor.base + cursor.at as u64 >= cursor.end {
                self.close(sink);
                continue;
            }
            let start = cursor.at;
            let rest = &self.buffer[start..cursor.filled];
            let end = match self.grammar.quotes {
                None => memchr(b'\n', rest),
                Some(quotes) => quotes.record_or_line_end(rest, cursor.at_end),
            };
            if let Some(length) = end {
                cursor.at = start + length + 1;
                cursor.lines += 1;
                if self.grammar.quotes.is_some() {
                    cursor.lines += memchr::memchr_iter(b'\n', &rest[..length]).count() as u64;
                }
                return Ok(Some((start, start + length)));
            }
            if cursor.at_end {
                cursor.check_size(&self.files[cursor.file])?;
                if start == cursor.filled {
                    self.close(sink);
                    continue;
                }
                cursor.at = cursor.filled;
                cursor.lines += 1 + memchr::memchr_iter(b'\n', rest).count() as u64;
                return Ok(Some((start, cursor.filled)));
            }
            cursor.report_progress(sink);
            cursor.fill(&self.files[cursor.file], &mut self.buffer)?;
        }
    }

    fn close(&mut self, sink: &mut Sink) {
        if let Some(mut cursor) = self.current.take() {
            cursor.report_progress(sink);
        }
        for notice in self.grammar.parser.notices() {
            sink.add_notice(&notice);
        }
    }

    /// Returns where the content of the first line of a file begins; `None` when the line is the header.
    #[cold]
    fn first_line(&self, line: &[u8]) -> Result<Option<usize>, Error> {
        let content = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let Some(header) = &self.grammar.header else {
            return Ok(Some(line.len() - content.len()));
        };
        if trim_end(content) == trim_end(header) {
            return Ok(None);
        }
        let file = self.current.as_ref().map_or(0, |cursor| cursor.file);
        Err(Error::SchemaDiffers {
            file: format!("{}:1", self.files[file].name()),
            difference: format!(
                "its header is '{}', that of {} is '{}'; give all files of one input the same columns",
                excerpt(content),
                self.files[0].name(),
                excerpt(header)
            ),
        })
    }

    /// Reports a bad line with its position.
    #[cold]
    fn bad_line(&mut self, start: usize, end: usize, error: LineError, sink: &mut Sink) -> Result<(), Error> {
        let cursor = self.current.as_mut().expect("a line was read through it");
        let record = &self.buffer[start..end];
        let actual = if error.actual.is_empty() { describe_token(record, error.at) } else { error.actual };
        let (line, column) = cursor.line_and_column(&self.files[cursor.file], record, error.at)?;
        let file = self.files[cursor.file].name().to_owned();
        let expected = error.expected.into_owned();
        sink.report_bad_line(BadLine { file, line, column, expected, actual })
    }
}

impl RecordReader for LineReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            let Some((mut start, mut end)) = self.next_line(sink)? else {
                return Ok(false);
            };
            if start == 0 && self.current.as_ref().is_some_and(|cursor| cursor.base == 0) {
                match self.first_line(&self.buffer[..end])? {
                    Some(content) => start = content,
                    None => continue,
                }
            }
            if end > start && self.buffer[end - 1] == b'\r' {
                end -= 1;
            }
            match self.grammar.parser.parse(&self.buffer[start..end], sink.builder()) {
                Ok(ParsedLine::Record { weight, .. })
                    if !sink.leaves_out(weight)
                        && let Some((key, expected)) = sink.key_beyond_limit() =>
                {
                    sink.discard_record();
                    let at = last_entry_of(&self.buffer[start..end], key);
                    let error = LineError::with_actual(at, expected, format!("index {key}"));
                    self.bad_line(start, end, error, sink)?;
                }
                Ok(ParsedLine::Record { weight, .. })
                    if let Some(expected) = sink.missing_entry()
                        && !sink.leaves_out(weight) =>
                {
                    sink.discard_record();
                    self.bad_line(start, end, LineError::with_actual(0, expected, "only zeros"), sink)?;
                }
                Ok(ParsedLine::Record { label, weight, group }) => {
                    if let Err(expected) = sink.end_record(label, weight, group) {
                        let at = self.grammar.parser.label_at(&self.buffer[start..end]);
                        let error = LineError::with_actual(at, expected, found_label(label));
                        self.bad_line(start, end, error, sink)?;
                    }
                }
                Ok(ParsedLine::Skipped) => {}
                Ok(ParsedLine::Unlabelled) => sink.skip_unlabelled(),
                Err(error) => {
                    sink.discard_record();
                    self.bad_line(start, end, error, sink)?;
                }
            }
        }
        Ok(true)
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.grammar.parser.take_dictionary()
    }

    fn unmet_interactions(&self) -> Vec<String> {
        self.grammar.parser.unmet_interactions()
    }
}

/// Opens the file of a split at the first line of the split.
fn open(files: &[Input], split: &Split, buffer: &mut Vec<u8>) -> Result<SplitCursor, Error> {
    let input = &files[split.file];
    let (range, whole) = match &split.range {
        SplitRange::Bytes(range) => (range.clone(), false),
        SplitRange::Whole => (0..u64::MAX, true),
        SplitRange::Records { .. } => unreachable!("lines are split by bytes"),
    };
    // Reading starts one byte earlier, to see whether a line begins exactly at the start.
    let base = range.start.saturating_sub(1);
    let stream = input.open_at(base)?;
    let mut cursor = SplitCursor {
        file: split.file,
        stream,
        end: range.end,
        base,
        at: 0,
        filled: 0,
        at_end: false,
        lines: 0,
        count_start: 0,
        lines_before: Some(0),
        reported_bytes: range.start,
        is_whole_file: whole,
    };
    if range.start > 0 {
        cursor.skip_line(input, buffer)?;
    }
    Ok(cursor)
}

impl SplitCursor {
    /// Moves the present line to the front of the buffer and reads more bytes behind it.
    fn fill(&mut self, input: &Input, buffer: &mut Vec<u8>) -> Result<(), Error> {
        buffer.copy_within(self.at..self.filled, 0);
        self.base += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        if self.filled == buffer.len() {
            if buffer.len() >= LINE_LIMIT_BYTES {
                let file = input.name().to_owned();
                return Err(Error::LineTooLong { file, offset: self.base, limit_bytes: LINE_LIMIT_BYTES });
            }
            buffer.resize(buffer.len() * 2, 0);
        }
        let count = self.stream.read(&mut buffer[self.filled..])?;
        self.filled += count;
        self.at_end = count == 0;
        Ok(())
    }

    /// Skips the remainder of the line that belongs to the split before.
    fn skip_line(&mut self, input: &Input, buffer: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            let end = memchr(b'\n', &buffer[..self.filled]);
            self.at = end.map_or(self.filled, |length| length + 1);
            if end.is_some() || self.at_end {
                self.count_start = self.base + self.at as u64;
                self.lines_before = None;
                return Ok(());
            }
            self.fill(input, buffer)?;
        }
    }

    /// Reports the bytes read so far to the sink.
    fn report_progress(&mut self, sink: &mut Sink) {
        let now = if self.is_whole_file {
            self.stream.consumed()
        } else {
            (self.base + self.at as u64).min(self.end)
        };
        sink.add_bytes(now.saturating_sub(self.reported_bytes));
        self.reported_bytes = self.reported_bytes.max(now);
    }

    /// Returns line and column, both 1-based, of byte `at` of `record`, which was read last.
    fn line_and_column(&mut self, input: &Input, record: &[u8], at: usize) -> Result<(u64, u64), Error> {
        let before_it = &record[..at.min(record.len())];
        let column = at - memchr::memrchr(b'\n', before_it).map_or(0, |end| end + 1) + 1;
        let after_it = memchr::memchr_iter(b'\n', &record[before_it.len()..]).count() as u64;
        Ok((self.line_number(input)? - after_it, column as u64))
    }

    /// Fails when the file ends before the size that it had when it was opened.
    fn check_size(&mut self, input: &Input) -> Result<(), Error> {
        let ends_at =
            if self.is_whole_file { self.stream.consumed() } else { self.base + self.filled as u64 };
        match input.splittable_bytes() {
            Some(opened_bytes) if ends_at < opened_bytes => Err(Error::FileTruncated {
                file: input.name().to_owned(),
                line: self.line_number(input)? + 1,
                opened_bytes,
                ends_at: input.current_size_bytes().unwrap_or(ends_at).min(ends_at),
            }),
            _ => Ok(()),
        }
    }

    /// Returns the number of the last line of the present record in its file, 1-based.
    fn line_number(&mut self, input: &Input) -> Result<u64, Error> {
        let before = match self.lines_before {
            Some(before) => before,
            None => count_lines(input, self.count_start)?,
        };
        self.lines_before = Some(before);
        Ok(before + self.lines)
    }
}

/// Counts the line ends in the first `limit` bytes of a file.
fn count_lines(input: &Input, limit: u64) -> Result<u64, Error> {
    let mut stream = input.open_at(0)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut left, mut count) = (limit, 0);
    while left > 0 {
        let wanted = left.min(buffer.len() as u64) as usize;
        let read = stream.read(&mut buffer[..wanted])?;
        if read == 0 {
            break;
        }
        count += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        left -= read as u64;
    }
    Ok(count)
}

fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn excerpt(text: &[u8]) -> String {
    let cut = &text[..text.len().min(SHOWN_BYTES)];
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("{}{dots}", String::from_utf8_lossy(cut).escape_debug())
}

/// Returns the token at `at`, for a message.
fn describe_token(line: &[u8], at: usize) -> String {
    let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) else {
        return "the end of the line".to_owned();
    };
    let end =
        rest.iter().skip(1).position(|byte| matches!(byte, b' ' | b'\t')).map_or(rest.len(), |end| end + 1);
    format!("'{}'", excerpt(&rest[..end]))
}
