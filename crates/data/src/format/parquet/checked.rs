//! Pages whose counts can be true. The library makes room for as many values as a page says to have, before it looks for them.

use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// The most strings of a page whose lengths are packed as differences: these may take next to no bytes, so that the bytes
/// do not say how many there can be. Pages have some ten thousand.
const PACKED_LIMIT: u64 = 1 << 24;

/// Hands pages on that can be right, and an error for the first that cannot.
pub(super) struct CheckedPages<P> {
    pages: P,
    /// Least bytes of a value that is written plainly.
    value_bytes: usize,
    has_repetitions: bool,
    has_definitions: bool,
}

impl<P: PageReader> CheckedPages<P> {
    /// Of a column.
    pub(super) fn new(pages: P, column: &ColumnDescriptor) -> Self {
        let value_bytes = match column.physical_type() {
            Physical::BOOLEAN => 1,
            // A string has its length before it.
            Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::INT96 => 12,
            Physical::FIXED_LEN_BYTE_ARRAY => column.type_length().max(1) as usize,
        };
        let (has_repetitions, has_definitions) = (column.max_rep_level() > 0, column.max_def_level() > 0);
        Self { pages, value_bytes, has_repetitions, has_definitions }
    }

    fn check(&self, page: &Page) -> Result<()> {
        let (bytes, encoding, values) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                if *num_values as usize > buf.len() / self.value_bytes {
                    return Err(bad(format!("a dictionary of {num_values} values in {} bytes", buf.len())));
                }
                return Ok(());
            }
            Page::DataPage { buf, encoding, .. } => {
                let levels = [self.has_repetitions, self.has_definitions];
                let values = levels.into_iter().filter(|has| *has).try_fold(&buf[..], |rest, _| behind(rest));
                (buf, encoding, values)
            }
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (buf, encoding, buf.get(levels..))
            }
        };
        if !matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY) {
            return Ok(());
        }
        match values.and_then(packed_count) {
            Some(count) if count <= PACKED_LIMIT => Ok(()),
            count => Err(bad(format!("a page of {count:?} strings in {} bytes", bytes.len()))),
        }
    }
}

fn bad(reason: String) -> ParquetError {
    ParquetError::General(reason)
}

/// What stands behind levels, which have their length before them.
fn behind(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
}

/// The number of values in a header of packed differences: size of a block, miniblocks of a block, number of values.
fn packed_count(bytes: &[u8]) -> Option<u64> {
    let mut bytes = bytes.iter();
    let mut number = || {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    (number()?, number()?, number()?).2.into()
}

impl<P: PageReader> Iterator for CheckedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for CheckedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    /// One page.
    struct One(Option<Page>);

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// Whether a page of the only column of a schema is handed on.
    fn is_taken(schema: &str, page: Page) -> bool {
        let schema = format!("message m {{ {schema}; }}");
        let schema = SchemaDescriptor::new(Arc::new(parse_message_type(&schema).unwrap()));
        CheckedPages::new(One(Some(page)), &schema.column(0)).get_next_page().is_ok()
    }

    fn dictionary(num_values: u32, bytes: usize) -> Page {
        let (buf, encoding) = (vec![0; bytes].into(), Encoding::PLAIN);
        Page::DictionaryPage { buf, num_values, encoding, is_sorted: false }
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_its_bytes_hold() {
        for (schema, size) in
            [("required double a", 8), ("required int32 a", 4), ("required binary a (UTF8)", 4)]
        {
            assert!(is_taken(schema, dictionary(10, 10 * size)), "{schema}");
            assert!(!is_taken(schema, dictionary(11, 10 * size)), "{schema}");
            assert!(!is_taken(schema, dictionary(u32::MAX, 10 * size)), "{schema}");
        }
    }

    #[test]
    fn strings_whose_lengths_are_packed_are_as_many_as_a_page_has() {
        let page = |bytes: &[u8]| Page::DataPage {
            buf: bytes.to_vec().into(),
            num_values: 3,
            encoding: Encoding::DELTA_LENGTH_BYTE_ARRAY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (few, many) = ([0x80, 1, 4, 3, 0], [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x07]);
        assert!(is_taken("required binary a (UTF8)", page(&few)));
        assert!(!is_taken("required binary a (UTF8)", page(&many)));
        assert!(!is_taken("required binary a (UTF8)", page(&[0x80])), "it ends in its header");
        let behind_levels = |bytes: &[u8]| page(&[&[2, 0, 0, 0, 6, 1][..], bytes].concat());
        assert!(is_taken("optional binary a (UTF8)", behind_levels(&few)));
        assert!(!is_taken("optional binary a (UTF8)", behind_levels(&many)));
        assert!(!is_taken("optional binary a (UTF8)", page(&[9, 0, 0, 0, 6, 1])), "levels behind the end");
    }
}
