//! Parameters of algorithms. One table gives type, range, default, unit and meaning; the same table checks the values.

use std::collections::BTreeMap;

use crate::error::Error;

/// The value that lets the program choose.
pub const AUTO: &str = "auto";

/// The values that are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A finite number between `low` and `high`.
    Real {
        /// Lower end.
        low: f64,
        /// Upper end; infinite if there is none.
        high: f64,
        /// Which ends belong to the range.
        open: Bounds,
    },
    /// `auto`, or a number as [`Self::Real`].
    AutoReal {
        /// Lower end.
        low: f64,
        /// Upper end; infinite if there is none.
        high: f64,
        /// Which ends belong to the range.
        open: Bounds,
    },
    /// A whole number in `low..=high`.
    Integer {
        /// Smallest value.
        low: u64,
        /// Largest value.
        high: u64,
    },
    /// `auto`, or a whole number in `low..=high`.
    AutoInteger {
        /// Smallest value.
        low: u64,
        /// Largest value.
        high: u64,
    },
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Free text in the form that the meaning describes. Empty text means no value.
    Text,
}

/// Whether the ends of a range belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// `[low, high]`
    Closed,
    /// `(low, high]`
    OpenLow,
    /// `[low, high)`
    OpenHigh,
}

/// A row of a parameter table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamSpec {
    /// The name as typed in `--set name=value`.
    pub name: &'static str,
    /// Type and range.
    pub kind: ParamKind,
    /// Default, as a user would write it.
    pub default: &'static str,
    /// Unit; empty if the parameter has none.
    pub unit: &'static str,
    /// One line of help.
    pub meaning: &'static str,
    /// Another parameter, and its values with which this one is used; `None` if it is always used.
    pub read_when: Option<(&'static str, &'static [&'static str])>,
}

impl ParamSpec {
    /// The same row, used only when the parameter `name` has one of `values`.
    #[must_use]
    pub const fn read_when(self, name: &'static str, values: &'static [&'static str]) -> Self {
        Self { read_when: Some((name, values)), ..self }
    }

    /// The meaning, preceded by the values of the other parameter with which this one is used.
    pub fn help_text(&self) -> String {
        match self.read_when {
            Some((_, values)) => format!("{}: {}", values.join(", "), self.meaning),
            None => self.meaning.to_owned(),
        }
    }
}

/// The name in `known` that is nearest to `name`, if it is similar enough to be a typo.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    /// A suggestion below this similarity would only confuse.
    const NEAR: f64 = 0.6;
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}

/// Values of all parameters of an algorithm, each checked to be in its range.
#[derive(Clone, Debug)]
pub struct CheckedParams {
    algorithm: &'static str,
    table: &'static [ParamSpec],
    values: BTreeMap<&'static str, String>,
}

impl ParamKind {
    /// Type and range in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Real { low, high, open } => {
                let (left, right) = match open {
                    Bounds::Closed => ('[', ']'),
                    Bounds::OpenLow => ('(', ']'),
                    Bounds::OpenHigh => ('[', ')'),
                };
                if high.is_infinite() {
                    let sign = if *open == Bounds::OpenLow { ">" } else { ">=" };
                    format!("a number {sign} {low}")
                } else {
                    format!("a number in {left}{low}, {high}{right}")
                }
            }
            Self::AutoReal { low, high, open } => {
                format!("auto or {}", Self::Real { low: *low, high: *high, open: *open }.describe())
            }
            Self::Integer { low, high } => format!("a whole number in [{low}, {high}]"),
            Self::AutoInteger { low, high } => format!("auto or a whole number in [{low}, {high}]"),
            Self::Flag => "true or false".to_owned(),
            Self::Choice(words) => words.join(" | "),
            Self::Text => "text".to_owned(),
        }
    }

    /// Whether `text` is a value of this kind.
    pub fn allows(&self, text: &str) -> bool {
        match self {
            Self::Real { low, high, open } => text.parse::<f64>().is_ok_and(|x| {
                x.is_finite()
                    && match open {
                        Bounds::Closed => *low <= x && x <= *high,
                        Bounds::OpenLow => *low < x && x <= *high,
                        Bounds::OpenHigh => *low <= x && x < *high,
                    }
            }),
            Self::AutoReal { low, high, open } => {
                text == AUTO || Self::Real { low: *low, high: *high, open: *open }.allows(text)
            }
            Self::Integer { low, high } => text.parse::<u64>().is_ok_and(|x| (*low..=*high).contains(&x)),
            Self::AutoInteger { low, high } => {
                text == AUTO || text.parse::<u64>().is_ok_and(|x| (*low..=*high).contains(&x))
            }
            Self::Flag => text == "true" || text == "false",
            Self::Choice(words) => words.contains(&text),
            Self::Text => true,
        }
    }
}

impl CheckedParams {
    /// Checks the given values against the table and fills in the defaults.
    pub fn new(
        algorithm: &'static str,
        table: &'static [ParamSpec],
        given: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let mut values: BTreeMap<_, _> =
            table.iter().map(|spec| (spec.name, spec.default.to_owned())).collect();
        for (name, text) in given {
            let Some(spec) = table.iter().find(|spec| spec.name == name) else {
                let nearest = nearest(name, table.iter().map(|spec| spec.name));
                return Err(Error::UnknownParameter { algorithm, name: name.clone(), nearest });
            };
            let text = text.trim();
            if !spec.kind.allows(text) {
                return Err(Error::Parameter {
                    algorithm,
                    name: spec.name,
                    actual: text.to_owned(),
                    expected: spec.kind.describe(),
                });
            }
            values.insert(spec.name, text.to_owned());
        }
        let checked = Self { algorithm, table, values };
        checked.check_unused()?;
        Ok(checked)
    }

    /// Refuses a value that the job would not use: it is a mistake, unless it is the default or the other parameter is
    /// still `auto`.
    fn check_unused(&self) -> Result<(), Error> {
        for spec in self.table {
            let (Some((other, words)), actual) = (spec.read_when, self.text(spec.name)) else { continue };
            if actual != spec.default && self.text(other) != AUTO && !words.contains(&self.text(other)) {
                return Err(Error::UnusedParameter {
                    algorithm: self.algorithm,
                    name: spec.name,
                    actual: actual.to_owned(),
                    with: format!("{other}={}", self.text(other)),
                    readers: words.join(", "),
                });
            }
        }
        Ok(())
    }

    pub fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    /// Every parameter with its value as text.
    pub fn values(&self) -> &BTreeMap<&'static str, String> {
        &self.values
    }

    /// Whether the table has the parameter `name`: some losses have parameters of their own.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of `name` as text.
    ///
    /// # Panics
    /// If the table has no such row, which is a bug in this crate.
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).unwrap_or_else(|| panic!("the table of {} has no row {name}", self.algorithm))
    }

    pub fn real(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked by ParamKind::Real")
    }

    pub fn integer(&self, name: &str) -> u64 {
        self.text(name).parse().expect("checked by ParamKind::Integer")
    }

    /// The whole number `name`; `None` for `auto`.
    pub fn auto_integer(&self, name: &str) -> Option<u64> {
        match self.text(name) {
            AUTO => None,
            text => Some(text.parse().expect("checked by ParamKind::AutoInteger")),
        }
    }

    /// The number `name`; `None` for `auto`.
    pub fn auto_real(&self, name: &str) -> Option<f64> {
        match self.text(name) {
            AUTO => None,
            text => Some(text.parse().expect("checked by ParamKind::AutoReal")),
        }
    }

    /// The row of `name`.
    ///
    /// # Panics
    /// If the table has no such row, which is a bug in this crate.
    pub fn spec(&self, name: &str) -> &'static ParamSpec {
        let row = self.table.iter().find(|spec| spec.name == name);
        row.unwrap_or_else(|| panic!("the table of {} has no row {name}", self.algorithm))
    }

    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// An error about the value of `name`, for checks that the table cannot express.
    pub fn invalid_value(&self, name: &str, expected: impl Into<String>) -> Error {
        let spec = self.spec(name);
        Error::Parameter {
            algorithm: self.algorithm,
            name: spec.name,
            actual: self.text(name).to_owned(),
            expected: expected.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[ParamSpec] = &[
        ParamSpec {
            name: "learning_rate",
            kind: ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow },
            default: "0.1",
            unit: "",
            meaning: "step",
            read_when: None,
        },
        ParamSpec {
            name: "epochs",
            kind: ParamKind::AutoInteger { low: 1, high: 10 },
            default: "auto",
            unit: "",
            meaning: "",
            read_when: None,
        },
        ParamSpec {
            name: "optimizer",
            kind: ParamKind::Choice(&["sgd", "momentum", "adam"]),
            default: "sgd",
            unit: "",
            meaning: "",
            read_when: None,
        },
        ParamSpec {
            name: "decay",
            kind: ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed },
            default: "0.9",
            unit: "",
            meaning: "what is kept",
            read_when: Some(("optimizer", &["momentum", "adam"])),
        },
    ];

    fn check(name: &str, value: &str) -> Result<CheckedParams, Error> {
        CheckedParams::new("lr", TABLE, &BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let text = check("learnig_rate", "1").unwrap_err().to_string();
        assert!(text.contains("did you mean learning_rate?"), "{text}");
    }

    #[test]
    fn a_value_out_of_range_says_range_and_value() {
        for (name, bad, range) in [
            ("learning_rate", "0", "a number > 0"),
            ("learning_rate", "inf", "a number > 0"),
            ("learning_rate", "fast", "a number > 0"),
            ("epochs", "0", "auto or a whole number in [1, 10]"),
            ("epochs", "11", "auto or a whole number in [1, 10]"),
        ] {
            let text = check(name, bad).unwrap_err().to_string();
            assert!(text.contains(range) && text.contains(bad), "{text}");
        }
    }

    #[test]
    fn what_nobody_would_read_is_refused() {
        let set = |pairs: &[(&str, &str)]| {
            let given = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
            CheckedParams::new("lr", TABLE, &given).map(drop)
        };
        let text = set(&[("decay", "0.5")]).unwrap_err().to_string();
        for part in ["lr", "decay=0.5", "optimizer=sgd", "momentum, adam"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(set(&[("optimizer", "adam"), ("decay", "0.5")]).is_ok());
        assert!(set(&[("decay", "0.9")]).is_ok(), "the default says nothing");
        assert_eq!(TABLE[3].help_text(), "momentum, adam: what is kept");
    }

    #[test]
    fn defaults_fill_what_was_not_given() {
        let checked = check("epochs", "3").unwrap();
        assert_eq!((checked.real("learning_rate"), checked.auto_integer("epochs")), (0.1, Some(3)));
    }
}
