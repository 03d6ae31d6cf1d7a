//! Words for a missing value: those of pandas, and `?`.

/// Whether a field is a missing value.
#[inline]
pub fn is_missing(field: &[u8]) -> bool {
    match field.len() {
        0 => true,
        1 => field == b"?",
        2 => field == b"NA",
        3 => matches!(field, b"N/A" | b"NaN" | b"nan" | b"n/a" | b"#NA"),
        4 => matches!(field, b"null" | b"NULL" | b"None" | b"#N/A" | b"<NA>" | b"-NaN" | b"-nan"),
        6 => field == b"1.#IND",
        7 => matches!(field, b"1.#QNAN" | b"-1.#IND"),
        8 => matches!(field, b"-1.#QNAN" | b"#N/A N/A"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_pandas_are_missing_values() {
        // These words are `pandas._libs.parsers.STR_NA_VALUES` of pandas 3.1.
        for word in [
            "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
            "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?",
        ] {
            assert!(is_missing(word.as_bytes()), "{word}");
        }
        for word in ["0", "none", "Nan", "-", "NAN", "missing"] {
            assert!(!is_missing(word.as_bytes()), "{word}");
        }
    }
}
