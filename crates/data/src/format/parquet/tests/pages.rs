//! The pages of one column that is written by hand: an optional column of 32-bit integers.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::super::delta::tests::write_varint;
use super::super::pages::{ChunkPages, MemoryBudget};
use crate::byte_source::ByteSource;

/// Thrift's types in the compact protocol.
const I32: u8 = 5;
const STRUCT: u8 = 12;
const END: u8 = 0;

/// Writes integer fields that follow one another, from the first number of a structure on.
fn integers(numbers: &[u32], out: &mut Vec<u8>) {
    for number in numbers {
        out.push(1 << 4 | I32);
        write_varint(u64::from(*number) << 1, out);
    }
}

/// What the header of a page of plain values says.
#[derive(Clone)]
struct Header {
    uncompressed_size: u32,
    compressed_size: u32,
    values: u32,
    /// Encoding of the values, by its number.
    encoding: u32,
    /// Bytes of the statistics, which readers skip.
    statistics: usize,
}

impl Header {
    /// The header before `bytes` that are not compressed.
    fn of(bytes: &[u8], values: u32) -> Self {
        let size = bytes.len() as u32;
        Self { uncompressed_size: size, compressed_size: size, values, encoding: 0, statistics: 0 }
    }

    /// The header and the page behind it. Field 5 describes a data page: values, and the encodings of values and of
    /// both kinds of levels, RLE.
    fn before(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        integers(&[0, self.uncompressed_size, self.compressed_size], &mut out);
        out.push(2 << 4 | STRUCT);
        integers(&[self.values, self.encoding, 3, 3], &mut out);
        if self.statistics > 0 {
            out.extend([1 << 4 | STRUCT, 1 << 4 | 8]);
            write_varint(self.statistics as u64, &mut out);
            out.resize(out.len() + self.statistics, b'x');
            out.push(END);
        }
        out.extend([END, END]);
        out.extend(bytes);
        out
    }
}

/// A page of version 2 with two values and a null: field 8 has values, nulls, records, the encoding, and the sizes of
/// both kinds of levels.
fn second_version([values, nulls, records]: [u32; 3]) -> Vec<u8> {
    let bytes = [&[0x03, 0b101][..], &values_of(&[5, 7])].concat();
    let mut out = Vec::new();
    integers(&[3, bytes.len() as u32, bytes.len() as u32], &mut out);
    out.push(5 << 4 | STRUCT);
    integers(&[values, nulls, records, 0, 2, 0], &mut out);
    out.extend([END, END]);
    out.extend(bytes);
    out
}

/// A page of type 1, an index, which is not read.
fn index_page() -> Vec<u8> {
    let mut out = Vec::new();
    integers(&[1, 3, 3], &mut out);
    out.extend([END, 1, 2, 3]);
    out
}

fn values_of(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A page without nulls: the levels of `values` are one run of ones.
fn body(values: &[i32]) -> Vec<u8> {
    let mut levels = Vec::new();
    write_varint((values.len() as u64) << 1, &mut levels);
    levels.push(1);
    [&(levels.len() as u32).to_le_bytes()[..], &levels, &values_of(values)].concat()
}

fn page(values: &[i32]) -> Vec<u8> {
    let bytes = body(values);
    Header::of(&bytes, values.len() as u32).before(&bytes)
}

fn chunk(bytes: Vec<u8>, values: i64, budget: &Arc<MemoryBudget>) -> ChunkPages {
    chunk_of("optional int32", bytes, values, budget)
}

fn chunk_of(column: &str, bytes: Vec<u8>, values: i64, budget: &Arc<MemoryBudget>) -> ChunkPages {
    let message = parse_message_type(&format!("message m {{ {column} a; }}")).expect("a schema");
    let schema = SchemaDescriptor::new(Arc::new(message));
    let column = ColumnChunkMetaData::builder(schema.column(0))
        .set_compression(Compression::UNCOMPRESSED)
        .set_num_values(values)
        .set_total_compressed_size(bytes.len() as i64)
        .set_data_page_offset(0)
        .build()
        .expect("metadata");
    ChunkPages::new(ByteSource::Memory(Bytes::from(bytes)), &column, Arc::clone(budget))
}

/// Reads all pages: their numbers of values, or the first error.
fn read(bytes: Vec<u8>, values: i64) -> Result<Vec<u32>, String> {
    let pages = chunk(bytes, values, &Arc::new(MemoryBudget::new(0)));
    pages.map(|page| page.map(|page| page.num_values()).map_err(|error| error.to_string())).collect()
}

fn error(bytes: Vec<u8>, values: i64) -> String {
    read(bytes, values).expect_err("these pages are bad")
}

#[test]
fn pages_end_where_the_chunk_ends_or_with_the_last_value() {
    assert_eq!(read([page(&[1, 2, 3]), page(&[4])].concat(), 4), Ok(vec![3, 1]));
    // Some writers leave bytes behind the last page.
    assert_eq!(read([page(&[1, 2, 3]), vec![0xff; 9]].concat(), 3), Ok(vec![3]));
    let text = error(page(&[1, 2, 3]), 5);
    assert!(text.contains("a column ends 2 values early"), "{text}");
    let text = error(page(&[1, 2, 3]), 2);
    assert!(text.contains("a page of 3 values in a column that has 2 more"), "{text}");
}

#[test]
fn a_page_larger_than_the_rest_of_its_chunk_is_cut_short() {
    let mut bytes = page(&[1, 2, 3]);
    let size = body(&[1, 2, 3]).len();
    bytes.pop();
    let text = error(bytes, 3);
    assert!(text.contains(&format!("a page of {size} bytes, of which")), "{text}");
    // Also behind bytes that were read with an earlier page.
    let mut bytes = [page(&[1]), page(&[1, 2, 3])].concat();
    bytes.pop();
    let text = error(bytes, 4);
    assert!(text.contains(&format!("a page of {size} bytes, of which")), "{text}");
}

#[test]
fn pages_of_an_index_are_skipped() {
    assert_eq!(read([index_page(), page(&[1, 2]), index_page(), page(&[3])].concat(), 3), Ok(vec![2, 1]));
}

#[test]
fn a_header_may_be_long_but_must_end() {
    let bytes = body(&[1, 2]);
    let with = |statistics| Header { statistics, ..Header::of(&bytes, 2) }.before(&bytes);
    for statistics in [1 << 9, 1 << 10, 5000, 300 << 10, (1 << 20) - 100] {
        assert_eq!(read(with(statistics), 2), Ok(vec![2]), "{statistics} bytes of statistics");
    }
    let text = error(with(3 << 20), 2);
    assert!(text.contains("a page header that does not end"), "{text}");
    let text = error(with(100)[..60].to_vec(), 2);
    assert!(text.contains("a page header that does not end"), "{text}");
}

#[test]
fn sizes_in_a_header_are_those_of_the_page() {
    let bytes = body(&[1, 2]);
    let size = bytes.len() as u32;
    let text = error(Header { uncompressed_size: size + 1, ..Header::of(&bytes, 2) }.before(&bytes), 2);
    assert!(text.contains(&format!("a page of {size} bytes, but {} in its header", size + 1)), "{text}");
    let largest = 256 << 20;
    let text = error(Header { uncompressed_size: largest, ..Header::of(&bytes, 2) }.before(&bytes), 2);
    assert!(text.contains("in its header"), "{text}");
    let text = error(Header { uncompressed_size: largest + 1, ..Header::of(&bytes, 2) }.before(&bytes), 2);
    assert!(
        text.contains(&format!("a page of {} bytes, which is more than {largest}", largest + 1)),
        "{text}"
    );
}

#[test]
fn counts_of_nulls_and_records_are_at_most_those_of_values() {
    assert_eq!(read(second_version([3, 1, 3]), 3), Ok(vec![3]));
    assert_eq!(read(second_version([3, 3, 3]), 3), Ok(vec![3]));
    for counts in [[3, 4, 3], [3, 1, 4]] {
        let text = error(second_version(counts), 3);
        assert!(text.contains("a page of 3 values") && text.contains("nulls"), "{text}");
    }
}

#[test]
fn the_next_page_is_described_before_it_is_read() {
    let budget = Arc::new(MemoryBudget::new(0));
    let mut pages = chunk([page(&[1, 2]), second_version([3, 1, 3]), page(&[9])].concat(), 6, &budget);
    let next = pages.peek_next_page().unwrap().expect("a page");
    assert_eq!((next.num_levels, next.num_rows, next.is_dict), (Some(2), None, false));
    pages.skip_next_page().unwrap();
    let next = pages.peek_next_page().unwrap().expect("a page");
    assert_eq!((next.num_levels, next.num_rows, next.is_dict), (Some(3), Some(3), false));
    pages.skip_next_page().unwrap();
    match pages.get_next_page().unwrap() {
        Some(Page::DataPage { buf, num_values: 1, .. }) => assert_eq!(buf, body(&[9])),
        _ => panic!("the third page"),
    }
    assert!(pages.peek_next_page().unwrap().is_none() && pages.get_next_page().unwrap().is_none());
}

#[test]
fn a_page_is_open_until_the_next_one_of_its_column() {
    let budget = Arc::new(MemoryBudget::new(0));
    let size = body(&[1]).len() as u64;
    let mut pages = chunk([page(&[1]), page(&[2]), page(&[3])].concat(), 3, &budget);
    for _ in 0..3 {
        pages.get_next_page().unwrap();
        assert_eq!(budget.open_bytes(), size);
    }
    let mut other = chunk(page(&[1]), 1, &budget);
    other.get_next_page().unwrap();
    assert_eq!(budget.open_bytes(), 2 * size);
    drop((pages, other));
    assert_eq!(budget.open_bytes(), 0);
}

/// The number of an encoding whose values are the lengths of strings, packed, and then their bytes.
const DELTA_LENGTH_BYTE_ARRAY: u32 = 6;

/// Reads a page of strings without nulls, whose lengths are all `length`: blocks of 128 lengths in 4 parts, of which
/// the first length is in the header and the differences are 0.
fn read_strings(column: &str, count: u32, length: i64, bytes: &[u8]) -> Result<Option<Page>, String> {
    let mut body = Vec::new();
    for number in [128, 4, u64::from(count), (length as u64) << 1] {
        write_varint(number, &mut body);
    }
    body.extend([0; 5]);
    body.extend(bytes);
    let header = Header { encoding: DELTA_LENGTH_BYTE_ARRAY, ..Header::of(&body, count) };
    let budget = Arc::new(MemoryBudget::new(0));
    let mut pages = chunk_of(column, header.before(&body), i64::from(count), &budget);
    pages.get_next_page().map_err(|error| error.to_string())
}

#[test]
fn strings_are_within_their_page() {
    assert!(matches!(read_strings("required binary", 3, 2, b"aabbcc"), Ok(Some(Page::DataPage { .. }))));
    // All values behind the levels count, the packed lengths, too: a sum that is above them is no size of strings.
    let text = read_strings("required binary", 3, 6, b"aabbcc").unwrap_err();
    assert!(text.contains("strings of 18 bytes in a page of 16"), "{text}");
    let text = read_strings("required int32", 3, 2, b"aabbcc").unwrap_err();
    assert!(text.contains("values of INT32 encoded as strings"), "{text}");
}

#[test]
fn open_pages_are_limited_by_the_size_of_their_row_group() {
    let least = 512 << 20;
    for (size, limit) in [(0, least), (least / 8, least), (least, 8 * least), (u64::MAX, u64::MAX)] {
        let budget = MemoryBudget::new(size);
        assert!(budget.open(limit).is_ok(), "{limit} bytes of pages in a row group of {size}");
        if limit < u64::MAX {
            let text = budget.open(1).unwrap_err().to_string();
            assert!(
                text.contains(&format!(
                    "pages of {} bytes open at once, which is more than {limit}",
                    limit + 1
                )),
                "{text}"
            );
        }
    }
    let budget = MemoryBudget::new(0);
    for _ in 0..3 {
        budget.open(least).unwrap();
        budget.close(least);
    }
}

#[test]
fn a_batch_reserves_memory_up_to_its_limit() {
    let budget = MemoryBudget::new(0);
    let limit = 256 << 20;
    for _ in 0..2 {
        budget.start_batch();
        budget.reserve(limit - 1).unwrap();
        budget.reserve(1).unwrap();
        let text = budget.reserve(2).unwrap_err().to_string();
        let expected = format!("lists or strings take 2 bytes after {limit}, which is more than {limit}");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn entries_of_lists_take_memory_of_their_batch() {
    // Sixteen bytes for each entry: three of them are within the limit when its rest is 48, and four are not.
    for (count, fits) in [(3, true), (4, false)] {
        let values = vec![1; count as usize];
        let bytes = [body(&values)[..6].to_vec(), body(&values)].concat();
        let budget = Arc::new(MemoryBudget::new(0));
        budget.reserve((256 << 20) - 48).unwrap();
        let header = Header::of(&bytes, count).before(&bytes);
        let mut pages = chunk_of("repeated int32", header, i64::from(count), &budget);
        assert_eq!(pages.get_next_page().is_ok(), fits, "{count} entries");
    }
}
