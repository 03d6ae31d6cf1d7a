//! The exports of the interface. Addresses and lengths are `i32`, numbers of columns `i64`, one argument is a pointer to doubles
//! and their number. What has no `:` in its name is the module's own business.
//!
//! | export | type |
//! |---|---|
//! | `memory` | memory |
//! | `change:NAME:TYPE` | `(from, from_count, into, into_count, length, start i64, argument, argument_count) -> status` |
//! | `terms:NAME:TYPE` | `(from, from_count, terms, length, start i64, argument, argument_count) -> status` |
//! | `read:NAME:TYPE` | `(from, from_count, length, start i64, argument, argument_count) -> part i64` |
//! | `merge:NAME` | `(left, left_bytes, right, right_bytes, argument, argument_count) -> part i64` |
//! | `answer:NAME` | `(part, part_bytes, argument, argument_count) -> doubles i64` |
//! | `reads:NAME`, `writes:NAME`, `arguments:NAME` | `() -> count` |
//! | `version:NAME`, `tries_first:NAME`, `overwrites:NAME` | `() -> i32` |

use matrix::ElementType;

use crate::Error;

/// The memory of the module.
pub const MEMORY: &str = "memory";

/// Arguments of a `change`.
pub type ChangeArguments = (u32, u32, u32, u32, u32, u64, u32, u32);
/// Arguments of a `terms`.
pub type TermsArguments = (u32, u32, u32, u32, u64, u32, u32);
/// Arguments of a `read`.
pub type ReadArguments = (u32, u32, u32, u64, u32, u32);
/// Arguments of a `merge`.
pub type MergeArguments = (u32, u32, u32, u32, u32, u32);
/// Arguments of an `answer`.
pub type AnswerArguments = (u32, u32, u32, u32);

/// The element types of which there may be code, in the order of [`place`].
pub const TYPES: [(ElementType, &str); 3] =
    [(ElementType::F32, "f32"), (ElementType::F64, "f64"), (ElementType::I64, "i64")];

/// The place of an element type in [`TYPES`].
pub fn place(element: ElementType) -> usize {
    match element {
        ElementType::F32 => 0,
        ElementType::F64 => 1,
        ElementType::I64 => 2,
    }
}

/// Bytes of an element.
pub fn size_of(element: ElementType) -> usize {
    if element == ElementType::F32 { 4 } else { 8 }
}

/// What a function does, by its export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Changes rows.
    Change,
    /// A sum over columns: writes the terms.
    Terms,
    /// Reads rows into a part of its own.
    Read,
}

impl Kind {
    /// The word before the name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Change => "change",
            Kind::Terms => "terms",
            Kind::Read => "read",
        }
    }
}

/// Exports with a name behind the word and no type.
const OF_FUNCTIONS: [&str; 8] =
    ["merge", "answer", "reads", "writes", "arguments", "version", "tries_first", "overwrites"];

/// Longest name of a function, in bytes.
const NAME_BYTES: usize = 64;

/// What the name of an export says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    /// Code of a function for an element type.
    Code(Kind, &'a str, ElementType),
    /// Something else about the function.
    About(&'a str),
    /// Nothing of ours.
    Foreign,
}

/// Reads the name of an export.
pub fn meaning(export: &str) -> Result<Meaning<'_>, Error> {
    let Some((word, rest)) = export.split_once(':') else { return Ok(Meaning::Foreign) };
    let kind = [Kind::Change, Kind::Terms, Kind::Read].into_iter().find(|kind| kind.word() == word);
    let Some(kind) = kind else {
        if !OF_FUNCTIONS.contains(&word) {
            let expected = format!("change, terms, read, {} before the first colon", OF_FUNCTIONS.join(", "));
            return Err(Error::export(export, format!("named {word:?} there"), expected));
        }
        return checked(export, rest).map(Meaning::About);
    };
    let typed = rest.rsplit_once(':').and_then(|(name, element)| {
        TYPES.iter().find(|(_, text)| *text == element).map(|(element, _)| (name, *element))
    });
    let Some((name, element)) = typed else {
        let expected = format!("{word}:NAME:TYPE, TYPE f32, f64 or i64");
        return Err(Error::export(export, "without an element type at its end", expected));
    };
    Ok(Meaning::Code(kind, checked(export, name)?, element))
}

fn checked<'a>(export: &str, name: &'a str) -> Result<&'a str, Error> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(good) {
        return Ok(name);
    }
    let expected = format!("a name of 1 to {NAME_BYTES} letters, digits, '_', '-' or '.'");
    Err(Error::export(export, format!("of a function named {name:?}"), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_an_export_is() {
        let code = Meaning::Code(Kind::Change, "axpy", ElementType::F32);
        assert_eq!(meaning("change:axpy:f32"), Ok(code));
        assert_eq!(meaning("reads:axpy"), Ok(Meaning::About("axpy")));
        assert_eq!(meaning("__heap_base"), Ok(Meaning::Foreign));
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
            let text = meaning(export).expect_err(export).to_string();
            assert!(text.contains(export) && text.contains(part), "{text}");
        }
    }
}
