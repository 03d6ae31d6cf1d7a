//! Lists of one column of one row group, straight from its pages.
//!
//! A general reader writes a repetition level, a definition level and a value for every entry, and gathers lists from
//! them. But nearly all levels say "goes on" and "is there": here only the beginnings of lists and the entries that are
//! not there are noted, and values go from the page to the items at once.

use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

use super::layout::has_optional_element;
use super::lists::Lists;
use super::runs::Runs;

/// The most entries of the lists that are read at once: more is a damaged file, not data.
const LEVEL_LIMIT: usize = 1 << 27;

/// A value of fixed size, little-endian where it is written plainly.
pub(super) trait Fixed: Copy + Default {
    /// Adds `item` of each value in `bytes`, whose size is a multiple of [`Self::SIZE`].
    fn extend<U>(bytes: &[u8], item: impl Fn(Self) -> U, out: &mut Vec<U>);
    const SIZE: usize = size_of::<Self>();
    /// In half the bytes, when that is exact: a dictionary that fits the cache is looked up faster.
    fn halved(self) -> Option<u32>;
    /// The value that was halved.
    fn whole(half: u32) -> Self;
}

macro_rules! fixed {
    ($($type:ty: $halved:expr, $whole:expr;)*) => {$(
        impl Fixed for $type {
            #[inline]
            fn halved(self) -> Option<u32> {
                $halved(self)
            }

            #[inline]
            fn whole(half: u32) -> Self {
                $whole(half)
            }

            fn extend<U>(bytes: &[u8], item: impl Fn(Self) -> U, out: &mut Vec<U>) {
                out.extend(bytes.as_chunks().0.iter().map(|bytes| item(Self::from_le_bytes(*bytes))));
            }
        }
    )*};
}
fixed! {
    i32: |_| None, |_| 0;
    i64: |value| u32::try_from(value).ok(), i64::from;
    f32: |_| None, |_| 0.0;
    f64: |_| None, |_| 0.0;
}

/// The values that positions name.
enum Dictionary<T> {
    Whole(Vec<T>),
    Halved(Vec<u32>),
}

impl<T: Fixed> Dictionary<T> {
    /// The values in `bytes`.
    fn new(bytes: &[u8]) -> Self {
        let mut whole = Vec::with_capacity(bytes.len() / T::SIZE);
        T::extend(bytes, |value| value, &mut whole);
        let halved: Option<Vec<u32>> = whole.iter().map(|value| value.halved()).collect();
        halved.map_or(Self::Whole(whole), Self::Halved)
    }
}

/// A column of lists.
pub(super) struct ListPages<T> {
    pages: Box<dyn PageReader>,
    /// Definition level of a value that is there, and of a null in a list.
    present: u32,
    null: Option<u32>,
    dictionary: Dictionary<T>,
    page: Option<Cursor>,
    /// Levels of no value: position and level.
    holes: Vec<(usize, u32)>,
}

/// A place in a page.
struct Cursor {
    page: Page,
    /// Levels that are still to come.
    left: usize,
    repetitions: Runs,
    definitions: Runs,
    values: Values,
}

enum Values {
    /// Where the next one begins.
    Plain(usize),
    Numbers(Runs),
}

fn fault(reason: impl Into<String>) -> ParquetError {
    ParquetError::General(reason.into())
}

/// Whether the lists of a column can be read from its pages: usual values in usual encodings.
pub(super) fn is_usual(column: &ColumnChunkMetaData) -> bool {
    use Encoding::{PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY};
    let descriptor = column.column_descr();
    let numbers = [Physical::INT32, Physical::INT64, Physical::FLOAT, Physical::DOUBLE];
    numbers.contains(&descriptor.physical_type())
        && descriptor.max_rep_level() == 1
        && matches!(descriptor.max_def_level(), 1..=3)
        && column.encodings().all(|one| matches!(one, PLAIN | PLAIN_DICTIONARY | RLE | RLE_DICTIONARY))
}

impl<T: Fixed> ListPages<T> {
    /// A column that [`is_usual`].
    pub(super) fn new(pages: Box<dyn PageReader>, column: &ColumnChunkMetaData) -> Self {
        let descriptor = column.column_descr();
        let present = descriptor.max_def_level() as u32;
        let null = has_optional_element(descriptor).then(|| present - 1);
        Self {
            pages,
            present,
            null,
            dictionary: Dictionary::Whole(Vec::new()),
            page: None,
            holes: Vec::new(),
        }
    }

    /// The next `count` lists.
    pub(super) fn lists<U: Clone>(
        &mut self,
        count: usize,
        out: &mut Lists<U>,
        item: impl Fn(T) -> U + Copy,
    ) -> Result<(), ParquetError> {
        out.clear();
        self.holes.clear();
        let mut levels = 0;
        while self.page.as_ref().is_some_and(|page| page.left > 0) || self.next_page()? {
            let Some(page) = &mut self.page else { break };
            let (bytes, limit) = (page.page.buffer().as_ref(), count - out.offsets.len());
            let (passed, is_next) =
                page.repetitions.zeros(bytes, page.left, limit, levels, &mut out.offsets)?;
            if passed > 0 && out.offsets.first() != Some(&0) {
                return Err(fault("a row group begins within a list"));
            }
            if levels + passed > LEVEL_LIMIT {
                return Err(fault(format!("{count} lists of more than {LEVEL_LIMIT} entries")));
            }
            page.left -= passed;
            let mut at = 0;
            while at < passed {
                let there = page.definitions.same(bytes, self.present, passed - at)?;
                page.values.take(bytes, there, &self.dictionary, item, &mut out.items)?;
                at += there;
                if at < passed {
                    let level = page.definitions.one(bytes)?;
                    if level > self.present {
                        return Err(fault(format!("a definition level of {level}")));
                    }
                    self.holes.push((levels + at, level));
                    at += 1;
                }
            }
            levels += passed;
            if is_next {
                break;
            }
        }
        let missing = count - out.offsets.len();
        if missing > 0 {
            return Err(ParquetError::EOF(format!("a column ends {missing} records before its row group")));
        }
        self.leave_out_holes(out);
        out.offsets.push(out.items.len());
        Ok(())
    }

    /// From positions of levels to positions of items.
    fn leave_out_holes<U>(&self, out: &mut Lists<U>) {
        let mut holes = self.holes.iter().peekable();
        if holes.peek().is_none() {
            return;
        }
        let mut before = 0;
        for r in 0..out.offsets.len() {
            let end = out.offsets.get(r + 1).copied().unwrap_or(usize::MAX);
            out.offsets[r] -= before;
            let mut has_null = false;
            while let Some((_, level)) = holes.next_if(|(position, _)| *position < end) {
                before += 1;
                has_null |= Some(*level) == self.null;
            }
            if has_null {
                out.null_records.push(r);
            }
        }
    }

    /// Goes to the next page of lists; false when there is none.
    fn next_page(&mut self) -> Result<bool, ParquetError> {
        self.page = None;
        while let Some(page) = self.pages.get_next_page()? {
            match &page {
                Page::DictionaryPage { buf, num_values, encoding, .. } => {
                    if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                        return Err(fault(format!("a dictionary encoded as {encoding}")));
                    }
                    let size = (*num_values as usize).saturating_mul(T::SIZE);
                    let bytes =
                        buf.get(..size).ok_or_else(|| fault("a dictionary ends before its values"))?;
                    self.dictionary = Dictionary::new(bytes);
                }
                Page::DataPage { .. } | Page::DataPageV2 { .. } => {
                    self.page = Some(Cursor::open(page, self.present)?);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl Cursor {
    fn open(page: Page, present: u32) -> Result<Self, ParquetError> {
        let bytes = page.buffer().as_ref();
        let (repetitions, definitions) = match &page {
            Page::DataPage { def_level_encoding, rep_level_encoding, .. } => {
                for encoding in [def_level_encoding, rep_level_encoding] {
                    if *encoding != Encoding::RLE {
                        return Err(fault(format!("levels encoded as {encoding}")));
                    }
                }
                let repetitions = measured(bytes, 0)?;
                (repetitions, measured(bytes, repetitions.1)?)
            }
            Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
                let middle = *rep_levels_byte_len as usize;
                ((0, middle), (middle, middle.saturating_add(*def_levels_byte_len as usize)))
            }
            Page::DictionaryPage { .. } => return Err(fault("a dictionary where lists are")),
        };
        let start = definitions.1;
        if start > bytes.len() {
            return Err(fault("a page ends within its levels"));
        }
        let values = match page.encoding() {
            Encoding::PLAIN => Values::Plain(start),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                // A page of empty lists may have no width.
                let width = bytes.get(start).copied().unwrap_or_default();
                if width > 32 {
                    return Err(fault(format!("positions of {width} bits in a dictionary")));
                }
                Values::Numbers(Runs::new(u32::from(width), (start + 1).min(bytes.len()), bytes.len()))
            }
            other => {
                return Err(fault(format!("values encoded as {other}, which the file does not announce")));
            }
        };
        let width = u32::BITS - present.leading_zeros();
        let (repetitions, definitions) =
            (Runs::new(1, repetitions.0, repetitions.1), Runs::new(width, definitions.0, definitions.1));
        let left = page.num_values() as usize;
        Ok(Self { page, left, repetitions, definitions, values })
    }
}

/// Where levels lie whose size stands in the four bytes at `at`.
fn measured(bytes: &[u8], at: usize) -> Result<(usize, usize), ParquetError> {
    let size = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let start = at + 4;
    let end = size.map(|size| start.saturating_add(u32::from_le_bytes(*size) as usize));
    end.filter(|end| *end <= bytes.len())
        .map(|end| (start, end))
        .ok_or_else(|| fault("a page ends within its levels"))
}

impl Values {
    /// Adds `item` of the next `count` values.
    #[inline]
    fn take<T: Fixed, U: Clone>(
        &mut self,
        bytes: &[u8],
        count: usize,
        dictionary: &Dictionary<T>,
        item: impl Fn(T) -> U,
        out: &mut Vec<U>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Plain(at) => {
                let end = at.saturating_add(count.saturating_mul(T::SIZE));
                let values = bytes.get(*at..end).ok_or_else(|| fault("a page ends before its values"))?;
                T::extend(values, item, out);
                *at = end;
                Ok(())
            }
            Self::Numbers(numbers) => match dictionary {
                Dictionary::Whole(values) => numbers.look_up(bytes, count, values, item, out),
                Dictionary::Halved(halves) => {
                    numbers.look_up(bytes, count, halves, |half| item(T::whole(half)), out)
                }
            },
        }
    }
}
