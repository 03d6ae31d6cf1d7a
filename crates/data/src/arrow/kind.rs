//! What a column of some Arrow type can be used as.

use arrow_schema::{DataType, Field, Fields};

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArrowKind {
    Number,
    Text,
    IntegerList,
    FloatList,
    /// Lists of an integer with a number, or maps.
    PairList,
    /// A vector of Spark ML: type, size, indices, values.
    Vector,
    /// Something that cannot be read, in words.
    Other(String),
}

impl ArrowKind {
    pub(super) fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Text,
            DataType::Dictionary(_, values) if Self::of(values) == Self::Text => Self::Text,
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::of_list(item)
            }
            DataType::Map(entries, _) if pair(entries).is_some() => Self::PairList,
            DataType::Map(..) => Self::Other("a map, and not from integers to numbers".to_owned()),
            DataType::Struct(fields) if is_vector(fields) => Self::Vector,
            DataType::Struct(_) => Self::Other("a struct".to_owned()),
            DataType::FixedSizeBinary(size) => Self::Other(format!("{size} bytes that are no number")),
            DataType::Interval(_) => Self::Other("an interval of months, days and milliseconds".to_owned()),
            number if is_number(number) => Self::Number,
            other => Self::Other(format!("of type {other}")),
        }
    }

    fn of_list(item: &Field) -> Self {
        match item.data_type() {
            integer if integer.is_integer() => Self::IntegerList,
            number if is_number(number) => Self::FloatList,
            DataType::Struct(_) if pair(item).is_some() => Self::PairList,
            DataType::List(_) | DataType::LargeList(_) => Self::Other("a list of lists".to_owned()),
            _ => Self::Other("a list of something else than numbers".to_owned()),
        }
    }

    /// In words.
    pub(super) fn description(&self) -> &str {
        match self {
            Self::Number => "a number",
            Self::Text => "a string",
            Self::IntegerList => "a list of integers",
            Self::FloatList => "a list of floats",
            Self::PairList => "a list of pairs",
            Self::Vector => "a vector",
            Self::Other(what) => what,
        }
    }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || kind.is_temporal() && !matches!(kind, DataType::Interval(_)) || {
        matches!(kind, DataType::Boolean | DataType::Null)
    }
}

/// Which field of a struct is the index, and which the value, if it is a pair.
pub(super) fn pair(item: &Field) -> Option<(usize, usize)> {
    let DataType::Struct(fields) = item.data_type() else { return None };
    let [first, second] = &fields[..] else { return None };
    let integer = |field: &Field| field.data_type().is_integer();
    match (is_number(first.data_type()), is_number(second.data_type())) {
        (true, true) if integer(first) => Some((0, 1)),
        (true, true) if integer(second) => Some((1, 0)),
        _ => None,
    }
}

/// The type that Spark ML gives its vectors.
fn is_vector(fields: &Fields) -> bool {
    let kind = |name: &str| fields.find(name).map(|(_, field)| ArrowKind::of(field.data_type()));
    fields.len() == 4
        && [kind("type"), kind("size")] == [Some(ArrowKind::Number), Some(ArrowKind::Number)]
        && kind("indices") == Some(ArrowKind::IntegerList)
        && kind("values") == Some(ArrowKind::FloatList)
}
