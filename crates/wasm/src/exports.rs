//! The exports of the interface. Addresses and lengths are `i32`; column numbers are `i64`. The argument of a function
//! is passed as a pointer to doubles and their number. Exports without a `:` in their name are not part of the
//! interface.
//!
//! | export | type |
//! |---|---|
//! | `memory` | memory |
//! | `change:NAME:TYPE` | `(from, from_count, into, into_count, len, start i64, argument, argument_len) -> status` |
//! | `terms:NAME:TYPE` | `(from, from_count, terms, len, start i64, argument, argument_len) -> status` |
//! | `read:NAME:TYPE` | `(from, from_count, len, start i64, argument, argument_len) -> partial i64` |
//! | `merge:NAME` | `(left, left_bytes, right, right_bytes, argument, argument_len) -> partial i64` |
//! | `answer:NAME` | `(partial, partial_bytes, argument, argument_len) -> numbers i64` |
//! | `reads:NAME`, `writes:NAME`, `arguments:NAME` | `() -> count` |
//! | `version:NAME`, `tries_first:NAME`, `overwrites:NAME` | `() -> i32` |

use matrix::ElementType;

use crate::Error;

/// Name of the export of the module's memory.
pub const MEMORY: &str = "memory";

/// Arguments of a `change` export.
pub type ChangeArguments = (u32, u32, u32, u32, u32, u64, u32, u32);
/// Arguments of a `terms` export.
pub type TermsArguments = (u32, u32, u32, u32, u64, u32, u32);
/// Arguments of a `read` export.
pub type ReadArguments = (u32, u32, u32, u64, u32, u32);
/// Arguments of a `merge` export.
pub type MergeArguments = (u32, u32, u32, u32, u32, u32);
/// Arguments of an `answer` export.
pub type AnswerArguments = (u32, u32, u32, u32);

/// Number of element types. A module can have code for each of them.
pub const TYPE_COUNT: usize = ElementType::ALL.len();

/// The index of an element type in [`ElementType::ALL`].
pub fn type_index(element: ElementType) -> usize {
    element as usize
}

/// What a function does. The prefix of its export says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// The function changes rows.
    Change,
    /// The function writes the terms of a sum over columns.
    Terms,
    /// The function reads rows into a partial answer whose format is its own.
    Read,
}

impl ExportKind {
    /// The part of the export name before the first `:`.
    pub fn prefix(self) -> &'static str {
        match self {
            ExportKind::Change => "change",
            ExportKind::Terms => "terms",
            ExportKind::Read => "read",
        }
    }
}

/// Prefixes of exports whose names hold a function name but no element type.
const PROPERTY_PREFIXES: [&str; 8] =
    ["merge", "answer", "reads", "writes", "arguments", "version", "tries_first", "overwrites"];

/// Maximum length of a function name, in bytes.
const NAME_LIMIT_BYTES: usize = 64;

/// The meaning of the name of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedExport<'a> {
    /// Code of a function for an element type.
    Code(ExportKind, &'a str, ElementType),
    /// A property of the function with this name.
    Property(&'a str),
    /// The export is not part of the interface.
    Other,
}

/// Parses the name of an export.
pub fn parse_export(export: &str) -> Result<ParsedExport<'_>, Error> {
    let Some((word, rest)) = export.split_once(':') else { return Ok(ParsedExport::Other) };
    let kind = [ExportKind::Change, ExportKind::Terms, ExportKind::Read]
        .into_iter()
        .find(|kind| kind.prefix() == word);
    let Some(kind) = kind else {
        if !PROPERTY_PREFIXES.contains(&word) {
            let expected =
                format!("change, terms, read, {} before the first colon", PROPERTY_PREFIXES.join(", "));
            return Err(Error::export(export, format!("named {word:?} there"), expected));
        }
        return checked_name(export, rest).map(ParsedExport::Property);
    };
    let typed = rest.rsplit_once(':').and_then(|(name, element)| {
        ElementType::ALL.iter().find(|known| known.name() == element).map(|element| (name, *element))
    });
    let Some((name, element)) = typed else {
        let expected = format!("{word}:NAME:TYPE, TYPE f32, f64 or i64");
        return Err(Error::export(export, "without an element type at its end", expected));
    };
    Ok(ParsedExport::Code(kind, checked_name(export, name)?, element))
}

fn checked_name<'a>(export: &str, name: &'a str) -> Result<&'a str, Error> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_LIMIT_BYTES && name.bytes().all(good) {
        return Ok(name);
    }
    let expected = format!("a name of 1 to {NAME_LIMIT_BYTES} letters, digits, '_', '-' or '.'");
    Err(Error::export(export, format!("of a function named {name:?}"), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_an_export_is() {
        let code = ParsedExport::Code(ExportKind::Change, "axpy", ElementType::F32);
        assert_eq!(parse_export("change:axpy:f32"), Ok(code));
        assert_eq!(parse_export("reads:axpy"), Ok(ParsedExport::Property("axpy")));
        assert_eq!(parse_export("__heap_base"), Ok(ParsedExport::Other));
    }

    #[test]
    fn names_that_are_nearly_right_are_refused() {
        for (export, part) in [
            ("chnage:axpy:f32", "chnage"),
            ("change:axpy", "element type"),
            ("change:axpy:f16", "element type"),
            ("reads:", "letters"),
            ("reads:a b", "letters"),
            ("read::f32", "letters"),
        ] {
            let text = parse_export(export).expect_err(export).to_string();
            assert!(text.contains(export) && text.contains(part), "{text}");
        }
    }
}
