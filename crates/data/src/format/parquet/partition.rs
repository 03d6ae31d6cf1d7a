//! Columns that are in the names of the folders of a file: `day=1/range-0.parquet`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray, new_null_array};
use arrow_schema::{DataType, Field};

use crate::error::Error;
use crate::input::Input;
use crate::number::parse_f64;

/// The text that Hive and Spark write for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the partition columns of all files; a column is numeric if all its values are numbers.
pub(super) fn fields(inputs: &[Input]) -> Result<Vec<Field>, Error> {
    let names = |input: &Input| input.partition().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let Some(first) = inputs.first() else { return Ok(Vec::new()) };
    let expected = names(first);
    if let Some(other) = inputs.iter().find(|input| names(input) != expected) {
        let difference = format!(
            "its folders give the columns ({}), those of {} give ({})",
            names(other).join(", "),
            first.name(),
            expected.join(", ")
        );
        return Err(Error::SchemaDiffers { file: other.name().to_owned(), difference });
    }
    let is_number = |column: usize| {
        inputs.iter().all(|input| {
            value(&input.partition()[column].1).is_none_or(|value| parse_f64(value.as_bytes()).is_some())
        })
    };
    let kind = |column| if is_number(column) { DataType::Float64 } else { DataType::Utf8 };
    Ok(expected.iter().enumerate().map(|(column, name)| Field::new(name, kind(column), true)).collect())
}

fn value(written: &str) -> Option<&str> {
    (written != NULL && !written.is_empty()).then_some(written)
}

/// Makes the column of a file: `count` times its one value.
pub(super) fn column(written: &str, kind: &DataType, count: usize) -> ArrayRef {
    match (value(written), kind) {
        (None, kind) => new_null_array(kind, count),
        (Some(value), DataType::Float64) => {
            let number = parse_f64(value.as_bytes()).unwrap_or(f64::NAN);
            Arc::new(Float64Array::from(vec![number; count]))
        }
        (Some(value), _) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, count))),
    }
}
