//! Pages, in which the rows of a matrix are sent: encoding, decoding, and merging the rows of several lanes.

use matrix::{ExportedRows, MatrixSpec, OwnedValues};

/// Number of elements per row of the values, then of each slot.
fn widths(spec: &MatrixSpec) -> Vec<usize> {
    let columns = spec.columns_of_table();
    std::iter::once(columns).chain(spec.rule.slots().iter().map(|slot| slot.width(columns))).collect()
}

macro_rules! on_values {
    ($values:expr, $x:ident => $then:expr) => {
        match $values {
            OwnedValues::F32($x) => OwnedValues::F32($then),
            OwnedValues::F64($x) => OwnedValues::F64($then),
            OwnedValues::I64($x) => OwnedValues::I64($then),
            OwnedValues::I32($x) => OwnedValues::I32($then),
            OwnedValues::U32($x) => OwnedValues::U32($then),
        }
    };
}

/// Decodes a page: it has the values of all keys, then slot after slot.
pub(super) fn decode_page(spec: &MatrixSpec, keys: Vec<u64>, values: &OwnedValues) -> ExportedRows {
    let (n, widths) = (keys.len(), widths(spec));
    let mut start = 0;
    let mut parts: Vec<OwnedValues> = widths
        .iter()
        .map(|width| {
            let range = start..start + n * width;
            start = range.end;
            on_values!(values, x => x.get(range).unwrap_or_default().to_vec())
        })
        .collect();
    let first = parts.remove(0);
    let names = spec.rule.slots().iter().map(|slot| slot.name.to_owned());
    ExportedRows { keys, values: first, slots: names.zip(parts).collect() }
}

/// Merges the rows of several lanes, each ascending, into one ascending list.
pub(super) fn merge(spec: &MatrixSpec, parts: Vec<ExportedRows>) -> ExportedRows {
    let mut all: Option<ExportedRows> = None;
    for part in parts {
        match &mut all {
            None => all = Some(part),
            Some(all) => all.append(&part),
        }
    }
    let all = all.unwrap_or_else(|| ExportedRows::none(spec));
    if all.keys.is_sorted() {
        return all;
    }
    let mut order: Vec<(u64, u32)> = all.keys.iter().copied().zip(0..).collect();
    math::sort::sort_pairs(&mut order, &mut Vec::new());
    let positions: Vec<usize> = order.iter().map(|pair| pair.1 as usize).collect();
    let n = positions.len().max(1);
    let pick_all = |values: &OwnedValues| {
        on_values!(values, x => {
            let width = x.len() / n;
            positions.iter().flat_map(|&at| &x[at * width..(at + 1) * width]).copied().collect()
        })
    };
    ExportedRows {
        keys: order.iter().map(|pair| pair.0).collect(),
        values: pick_all(&all.values),
        slots: all.slots.iter().map(|(name, values)| (name.clone(), pick_all(values))).collect(),
    }
}

/// Encodes the rows at `positions` as a page.
pub(super) fn encode_page(rows: &ExportedRows, positions: &[usize]) -> (Vec<u64>, OwnedValues) {
    let n = rows.keys.len().max(1);
    let keys = positions.iter().map(|&at| rows.keys[at]).collect();
    let mut out: Option<OwnedValues> = None;
    for values in std::iter::once(&rows.values).chain(rows.slots.iter().map(|(_, values)| values)) {
        let part = on_values!(values, x => {
            let width = x.len() / n;
            positions.iter().flat_map(|&at| &x[at * width..(at + 1) * width]).copied().collect()
        });
        match &mut out {
            None => out = Some(part),
            Some(out) => out.extend(part.as_values()),
        }
    }
    (keys, out.expect("the values are always there"))
}
