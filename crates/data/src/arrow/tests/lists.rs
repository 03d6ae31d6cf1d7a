//! Features in lists, pairs, maps and vectors.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder, ListBuilder, MapBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{self, Float32Type, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float64Array, Int8Array, Int32Array, Int64Array, LargeListArray,
    ListArray, RecordBatch, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use super::super::sparse::ranges;
use super::{read_source, source_of};
use crate::FormatOptions;
use crate::format::testing::{Row, read_whole};

fn of_columns<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<Vec<Row>, String> {
    let all = columns.map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(all).expect("columns of one length");
    let source =
        source_of(vec![batch], &FormatOptions::default(), None).map_err(|error| error.to_string())?;
    read_source(&source).map(|read| read.rows).map_err(|error| error.to_string())
}

fn label(count: usize) -> (&'static str, ArrayRef) {
    ("label", Arc::new(Float64Array::from(vec![1.0; count])))
}

#[test]
fn indices_of_every_type_are_keys() {
    macro_rules! list {
        ($kind:ty, $values:expr) => {
            Arc::new(ListArray::from_iter_primitive::<$kind, _, _>([Some($values.map(Some).to_vec())]))
        };
    }
    let lists: Vec<(ArrayRef, [u64; 3])> = vec![
        (list!(types::Int8Type, [5, 0, 127]), [5, 0, 127]),
        (list!(types::Int16Type, [5, 0, 32_767]), [5, 0, 32_767]),
        (list!(Int32Type, [5, 0, i32::MAX]), [5, 0, 2_147_483_647]),
        (list!(Int64Type, [5, 0, i64::MAX]), [5, 0, (1 << 63) - 1]),
        (list!(types::UInt8Type, [5, 0, 255]), [5, 0, 255]),
        (list!(types::UInt16Type, [5, 0, 65_535]), [5, 0, 65_535]),
        (list!(types::UInt32Type, [5, 0, u32::MAX]), [5, 0, 4_294_967_295]),
        (list!(UInt64Type, [5, 0, (1u64 << 63) - 1]), [5, 0, (1 << 63) - 1]),
    ];
    for (list, expected) in lists {
        let rows = of_columns([("indices", Arc::clone(&list)), label(1)]).unwrap();
        assert_eq!(rows[0].entries, expected.map(|key| (key, 1.0)), "{}", list.data_type());
        let values: ArrayRef = list!(Float64Type, [0.5, 0.0, 2.0]);
        let rows = of_columns([("indices", Arc::clone(&list)), ("values", values), label(1)]).unwrap();
        assert_eq!(rows[0].entries, [(expected[0], 0.5), (expected[2], 2.0)], "{}", list.data_type());
    }
    let bad: Vec<(ArrayRef, &str)> = vec![
        (list!(types::Int8Type, [5, -1, 1]), "-1"),
        (list!(types::Int16Type, [5, -300, 1]), "-300"),
        (list!(Int32Type, [5, -70_000, 1]), "-70000"),
        (list!(Int64Type, [5, i64::MIN, 1]), "-9223372036854775808"),
        (list!(UInt64Type, [5, 1u64 << 63, 1]), "9223372036854775808"),
    ];
    for (list, found) in bad {
        let error = of_columns([("indices", list), label(1)]).unwrap_err();
        assert!(error.contains("an index from 0 to 2^63 - 1") && error.contains(found), "{error}");
    }
}

#[test]
fn lists_that_do_not_fit_are_bad_records() {
    let keys = |keys: &[i64]| -> ArrayRef {
        let keys = keys.iter().copied().map(Some).collect::<Vec<_>>();
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)]), Some(keys)]))
    };
    let values = |values: &[Option<f64>]| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(1.0)]),
            Some(values.to_vec()),
        ]))
    };
    let with_null: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1)]),
        Some(vec![Some(1), None]),
    ]));
    let two = [Some(1.0), Some(2.0)];
    for (indices, numbers, expected) in [
        (
            keys(&[1, 2]),
            values(&two[..1]),
            "table:2:2: expected 2 values, one for each index, found 1 values",
        ),
        (keys(&[1, 1]), values(&two), "table:2:1: expected each index once in a record, found 1 twice"),
        (keys(&[1, 2]), values(&[Some(1.0), None]), "table:2:2: expected a list without null, found null"),
        (with_null, values(&two), "table:2:1: expected a list without null, found null"),
        (keys(&[1, 2]), values(&[Some(1e39), Some(1.0)]), "table:2:2: expected a finite number"),
    ] {
        let error = of_columns([("indices", indices), ("values", numbers), label(2)]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn pairs_and_maps_have_their_index_in_either_place() {
    let pairs = |index_first: bool| -> ArrayRef {
        let index: ArrayRef = Arc::new(Int64Array::from(vec![4, 2, 9]));
        let value: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 0.0, 3.0]));
        let columns = if index_first { vec![index, value] } else { vec![value, index] };
        let names = if index_first { ["i", "v"] } else { ["v", "i"] };
        let fields: Vec<Field> = names
            .iter()
            .zip(&columns)
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), false))
            .collect();
        let items = StructArray::new(fields.into(), columns, None);
        let item = Arc::new(Field::new("item", items.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths([2, 0, 1]);
        let nulls = NullBuffer::from(vec![true, false, true]);
        Arc::new(ListArray::new(item, offsets, Arc::new(items), Some(nulls)))
    };
    let mut map = MapBuilder::new(None, Int64Builder::new(), Float64Builder::new());
    for record in [&[(4, 0.5), (2, 0.0)][..], &[], &[(9, 3.0)]] {
        for (key, value) in record {
            map.keys().append_value(*key);
            map.values().append_value(*value);
        }
        map.append(true).unwrap();
    }
    let map: ArrayRef = Arc::new(map.finish());
    for features in [pairs(true), pairs(false), map] {
        let rows = of_columns([("features", features), label(3)]).unwrap();
        let entries: Vec<_> = rows.into_iter().map(|row| row.entries).collect();
        assert_eq!(entries, [vec![(4, 0.5)], vec![], vec![(9, 3.0)]]);
    }
}

#[test]
fn dense_lists_have_positions_and_missing_values() {
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        [Some(vec![Some(1.0), Some(0.0), Some(f32::NAN)]), None, Some(vec![None, Some(5.0), Some(6.0)])],
        3,
    ));
    let large: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>([
        Some(vec![Some(1.0), Some(0.0), Some(f64::NAN)]),
        None,
        Some(vec![None, Some(5.0), Some(6.0)]),
    ]));
    for features in [fixed, large] {
        let rows = of_columns([("features", features), label(3)]).unwrap();
        let entries: Vec<_> = rows.into_iter().map(|row| row.entries).collect();
        assert_eq!(entries, [vec![(0, 1.0)], vec![], vec![(1, 5.0), (2, 6.0)]]);
    }
}

#[test]
fn vectors_of_spark_are_sparse_or_dense() {
    let vectors = |types: [i8; 3], valid: [bool; 3]| -> ArrayRef {
        let mut indices = ListBuilder::new(Int32Builder::new());
        let mut values = ListBuilder::new(Float64Builder::new());
        for (keys, numbers) in [(&[3, 8][..], &[1.5, 2.5][..]), (&[], &[7.0, 0.0, 9.0]), (&[1], &[4.0])] {
            indices.values().append_slice(keys);
            indices.append(true);
            values.values().append_slice(numbers);
            values.append(true);
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("type", Arc::new(Int8Array::from(types.to_vec()))),
            ("size", Arc::new(Int32Array::from(vec![Some(10), None, Some(10)]))),
            ("indices", Arc::new(indices.finish())),
            ("values", Arc::new(values.finish())),
        ];
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
            .into_iter()
            .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
            .unzip();
        Arc::new(StructArray::new(fields.into(), arrays, Some(NullBuffer::from(valid.to_vec()))))
    };
    let rows = of_columns([("features", vectors([0, 1, 0], [true, true, false])), label(3)]).unwrap();
    let entries: Vec<_> = rows.into_iter().map(|row| row.entries).collect();
    assert_eq!(entries, [vec![(3, 1.5), (8, 2.5)], vec![(0, 7.0), (2, 9.0)], vec![]]);
    let error = of_columns([("features", vectors([0, 2, 0], [true; 3])), label(3)]).unwrap_err();
    assert!(error.contains("table:2:1") && error.contains("found type 2"), "{error}");
}

#[test]
fn a_part_of_a_column_has_its_own_items_alone() {
    let lists =
        || [Some(vec![Some(1), Some(2)]), Some(vec![Some(3), Some(4)]), None, Some(vec![Some(5), Some(6)])];
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists()));
    let large: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Int64Type, _, _>(lists()));
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(lists(), 2));
    let mut map = MapBuilder::new(None, Int64Builder::new(), Int64Builder::new());
    for keys in lists() {
        for key in keys.iter().flatten() {
            map.keys().append_option(*key);
            map.values().append_value(0);
        }
        map.append(keys.is_some()).unwrap();
    }
    let map: ArrayRef = Arc::new(map.finish());
    for array in [list, large, fixed, map] {
        let (ranges, items) = ranges(&array.slice(1, 3));
        let keys = items.as_struct_opt().map_or(&items, |pairs| pairs.column(0));
        let keys = keys.as_primitive::<Int64Type>();
        let found: Vec<&[i64]> = ranges.into_iter().map(|range| &keys.values()[range]).collect();
        assert_eq!(found, [&[3, 4][..], &[], &[5, 6]], "{}", array.data_type());
        // A list of fixed size has items for a null, too.
        let expected = if matches!(array.data_type(), DataType::FixedSizeList(..)) { 6 } else { 4 };
        assert_eq!(keys.len(), expected, "{}", array.data_type());
    }
}

#[test]
fn records_beyond_the_first_part_of_a_batch_have_their_own_lists() {
    // A batch is read in parts of 4096 records.
    let count = 5000;
    let (mut indices, mut values) =
        (ListBuilder::new(Int32Builder::new()), ListBuilder::new(Float64Builder::new()));
    for r in 0..count {
        indices.values().append_slice(&[r, r + 9]);
        indices.append(true);
        values.values().append_slice(&[0.5, f64::from(if r == 4500 { 16_777_217 } else { r })]);
        values.append(true);
    }
    let columns: [(&str, ArrayRef); 3] = [
        ("indices", Arc::new(indices.finish())),
        ("values", Arc::new(values.finish())),
        label(count as usize),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let source = source_of(vec![batch], &FormatOptions::default(), None).unwrap();
    let rows = read_source(&source).unwrap().rows;
    for (r, row) in (1u16..).zip(&rows[1..]).filter(|(r, _)| *r != 4500) {
        assert_eq!(row.entries, [(u64::from(r), 0.5), (u64::from(r) + 9, f32::from(r))]);
    }
    let rounded = read_whole(&source).summary().rounded.features.clone();
    let numbers = crate::RoundedNumbers { count: 1, first: 16_777_217.0 };
    assert_eq!(rounded, [("feature 4509".to_owned(), numbers)].into());
}
