//! Reads lines of splits into a sink. One buffer, reused; a line that is cut by its end is carried over.

use crate::compression::ByteStream;
use crate::format::{LineParser, Parsed, RecordReader};
use crate::input::Input;
use crate::sink::Sink;
use crate::split::{Part, Split};
use crate::{BadLine, Error, LineError};
use memchr::memchr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes read at once: they stay in the second-level cache until they are parsed.
const BUFFER_BYTES: usize = 256 << 10;
/// The longest line. A longer one is no text.
const LINE_LIMIT_BYTES: usize = 256 << 20;
/// Entries of a batch after which it is handed out early: offsets are 32 bits, and one line can add
/// `LINE_LIMIT_BYTES / 2` more.
pub(crate) const ENTRY_LIMIT: usize = 1 << 30;
/// Bytes of a bad token that are shown.
const SHOWN_BYTES: usize = 40;
/// Bytes that some editors put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Reads the lines of splits, in order.
pub(crate) struct LineReader {
    files: Arc<[Input]>,
    header: Option<Vec<u8>>,
    parser: Box<dyn LineParser>,
    splits: VecDeque<Split>,
    current: Option<Cursor>,
    buffer: Vec<u8>,
}

/// A place in a split. The buffer holds bytes `base..base + filled` of the (decompressed) file.
struct Cursor {
    file: usize,
    stream: ByteStream,
    /// Lines that begin here or later are not ours.
    end: u64,
    base: u64,
    /// Where the next line begins, in the buffer.
    at: usize,
    filled: usize,
    at_end: bool,
    /// Lines since `counted_from`, the present one included.
    lines: u64,
    /// Where the count of lines began; a split that begins mid-file counts the lines before it only when asked.
    counted_from: u64,
    lines_before: Option<u64>,
    /// Bytes told to the sink: a position in the file, or bytes consumed of a compressed one.
    told: u64,
    whole: bool,
}

impl LineReader {
    pub(crate) fn new(
        files: Arc<[Input]>,
        header: Option<Vec<u8>>,
        parser: Box<dyn LineParser>,
        splits: Vec<Split>,
    ) -> Self {
        Self { files, header, parser, splits: splits.into(), current: None, buffer: vec![0; BUFFER_BYTES] }
    }

    /// The next line of the splits as a range of the buffer, its end taken off; `None` when there is none left.
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
            if let Some(length) = memchr(b'\n', &self.buffer[start..cursor.filled]) {
                cursor.at = start + length + 1;
                cursor.lines += 1;
                return Ok(Some((start, start + length)));
            }
            if cursor.at_end {
                if start == cursor.filled {
                    self.close(sink);
                    continue;
                }
                cursor.at = cursor.filled;
                cursor.lines += 1;
                return Ok(Some((start, cursor.filled)));
            }
            cursor.tell(sink);
            cursor.fill(&mut self.buffer)?;
        }
    }

    fn close(&mut self, sink: &mut Sink) {
        if let Some(mut cursor) = self.current.take() {
            cursor.tell(sink);
        }
        for notice in self.parser.notices() {
            sink.notice(&notice);
        }
    }

    /// Takes off what only the first line of a file has. `None`: the line is the header.
    #[cold]
    fn first_line(&self, start: usize, end: usize) -> Result<Option<usize>, Error> {
        let mark =
            if self.buffer[start..end].starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let Some(header) = &self.header else {
            return Ok(Some(start + mark));
        };
        let line = &self.buffer[start + mark..end];
        if trim_end(line) == trim_end(header) {
            return Ok(None);
        }
        let file = self.current.as_ref().map_or(0, |cursor| cursor.file);
        Err(Error::SchemaDiffers {
            file: self.files[file].name().to_owned(),
            difference: format!(
                "its header is '{}', that of {} is '{}'; give all files of one input the same columns",
                shown(line),
                self.files[0].name(),
                shown(header)
            ),
        })
    }

    /// Counts a bad line, with its place.
    #[cold]
    fn bad_line(&mut self, start: usize, end: usize, error: LineError, sink: &mut Sink) -> Result<(), Error> {
        let cursor = self.current.as_mut().expect("a line was read through it");
        let found =
            if error.found.is_empty() { found_at(&self.buffer[start..end], error.at) } else { error.found };
        let line = cursor.line_number(&self.files[cursor.file])?;
        let file = self.files[cursor.file].name().to_owned();
        let expected = error.expected.into_owned();
        sink.bad(BadLine { file, line, column: error.at as u64 + 1, expected, found })
    }
}

impl RecordReader for LineReader {
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error> {
        while sink.record_count() < record_limit && sink.entry_count() < ENTRY_LIMIT {
            let Some((mut start, mut end)) = self.next_line(sink)? else {
                return Ok(false);
            };
            if start == 0 && self.current.as_ref().is_some_and(|cursor| cursor.base == 0) {
                match self.first_line(start, end)? {
                    Some(after_mark) => start = after_mark,
                    None => continue,
                }
            }
            if end > start && self.buffer[end - 1] == b'\r' {
                end -= 1;
            }
            match self.parser.parse(&self.buffer[start..end], sink.builder()) {
                Ok(Parsed::Record { label, weight, group }) => {
                    if let Err(expected) = sink.end_record(label, weight, group) {
                        let found = format!("label {}", label.unwrap_or_default());
                        self.bad_line(start, end, LineError::found(0, expected, found), sink)?;
                    }
                }
                Ok(Parsed::Nothing) => {}
                Err(error) => {
                    sink.abandon();
                    self.bad_line(start, end, error, sink)?;
                }
            }
        }
        Ok(true)
    }

    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        self.parser.take_dictionary()
    }
}

/// Goes to the first line of a split.
fn open(files: &[Input], split: &Split, buffer: &mut Vec<u8>) -> Result<Cursor, Error> {
    let input = &files[split.file];
    let (range, whole) = match &split.part {
        Part::Bytes(range) => (range.clone(), false),
        Part::Whole => (0..u64::MAX, true),
        Part::Unit(_) => unreachable!("lines are split by bytes"),
    };
    // One byte earlier, to see whether a line begins exactly at the start.
    let base = range.start.saturating_sub(1);
    let stream = input.open_at(base)?;
    let mut cursor = Cursor {
        file: split.file,
        stream,
        end: range.end,
        base,
        at: 0,
        filled: 0,
        at_end: false,
        lines: 0,
        counted_from: 0,
        lines_before: Some(0),
        told: range.start,
        whole,
    };
    if range.start > 0 {
        cursor.skip_line(buffer)?;
    }
    Ok(cursor)
}

impl Cursor {
    /// Reads more bytes behind the present line, which is moved to the front.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        buffer.copy_within(self.at..self.filled, 0);
        self.base += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        if self.filled == buffer.len() {
            if buffer.len() >= LINE_LIMIT_BYTES {
                let file = self.stream.name().to_owned();
                return Err(Error::LineTooLong { file, offset: self.base, limit_bytes: LINE_LIMIT_BYTES });
            }
            buffer.resize(buffer.len() * 2, 0);
        }
        let count = self.stream.read(&mut buffer[self.filled..])?;
        self.filled += count;
        self.at_end = count == 0;
        Ok(())
    }

    /// Leaves out the rest of the line that belongs to the split before.
    fn skip_line(&mut self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            let found = memchr(b'\n', &buffer[..self.filled]);
            self.at = found.map_or(self.filled, |length| length + 1);
            if found.is_some() || self.at_end {
                self.counted_from = self.base + self.at as u64;
                self.lines_before = None;
                return Ok(());
            }
            self.fill(buffer)?;
        }
    }

    /// Tells the sink how far this is.
    fn tell(&mut self, sink: &mut Sink) {
        let now =
            if self.whole { self.stream.consumed() } else { (self.base + self.at as u64).min(self.end) };
        sink.add_bytes(now.saturating_sub(self.told));
        self.told = self.told.max(now);
    }

    /// The number of the present line in its file, 1-based.
    fn line_number(&mut self, input: &Input) -> Result<u64, Error> {
        let before = match self.lines_before {
            Some(before) => before,
            None => count_lines(input, self.counted_from)?,
        };
        self.lines_before = Some(before);
        Ok(before + self.lines)
    }
}

/// Line ends in the first `limit` bytes of a file.
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

fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(SHOWN_BYTES)];
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("{}{dots}", String::from_utf8_lossy(cut).escape_debug())
}

/// The token at `at`, for a message.
fn found_at(line: &[u8], at: usize) -> String {
    let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) else {
        return "the end of the line".to_owned();
    };
    let end =
        rest.iter().skip(1).position(|byte| matches!(byte, b' ' | b'\t')).map_or(rest.len(), |end| end + 1);
    format!("'{}'", shown(&rest[..end]))
}
