//! A row of a table of parameters: its kind, its values, its words, its help.

use super::Value;

/// The value that lets the program choose.
pub const AUTO: &str = "auto";

/// A closed set of values, each of which a user writes as one word.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its word, as in `--set parameter=word`, in the order of help texts.
    fn all() -> Vec<(&'static str, Self)>;

    fn name(self) -> &'static str {
        let word = Self::all().into_iter().find(|(_, value)| *value == self);
        word.expect("every value has a word").0
    }

    /// What the word stands for; empty if the meaning of the parameter says it.
    fn help(self) -> &'static str {
        ""
    }

    /// Parameters that a job uses only with some words of this set, this one among them.
    fn reads(self) -> &'static [&'static ParamSpec] {
        &[]
    }
}

/// A [`Choice`] as help texts show it.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub name: &'static str,
    pub help: &'static str,
    pub reads: &'static [&'static ParamSpec],
}

impl Word {
    /// Words that need no help and decide about no parameter.
    pub fn plain(names: &[&'static str]) -> Vec<Self> {
        names.iter().map(|name| Self { name, help: "", reads: &[] }).collect()
    }
}

/// The words of `T`, for [`ParamKind::Choice`].
pub fn words<T: Choice>() -> Vec<Word> {
    let word = |(name, value): (_, T)| Word { name, help: value.help(), reads: value.reads() };
    T::all().into_iter().map(word).collect()
}

/// The values that are allowed.
#[derive(Clone, Copy, Debug)]
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
    Choice(fn() -> Vec<Word>),
    /// `auto`, or one of these words.
    AutoChoice(fn() -> Vec<Word>),
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
#[derive(Clone, Copy, Debug)]
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
}

/// The parameter whose words decide whether the parameter `name` of `table` is used, and the words that use it; `None`
/// if it is always used.
pub(super) fn readers(
    table: &'static [ParamSpec],
    name: &str,
) -> Option<(&'static ParamSpec, Vec<&'static str>)> {
    table.iter().find_map(|spec| {
        let reads = |word: &Word| word.reads.iter().any(|read| read.name == name);
        let names: Vec<_> = spec.kind.words().into_iter().filter(reads).map(|word| word.name).collect();
        (!names.is_empty()).then_some((spec, names))
    })
}

/// The meaning of the parameter `spec` of `table`, with the words that use it before it and the help of its own words
/// after it.
pub fn help_text(table: &'static [ParamSpec], spec: &ParamSpec) -> String {
    let mut parts = vec![spec.meaning.to_owned()];
    for word in spec.kind.words().iter().filter(|word| !word.help.is_empty()) {
        parts.push(format!("{}: {}", word.name, word.help));
    }
    let readers = readers(table, spec.name).map(|(_, names)| format!("{}: ", names.join(", ")));
    readers.unwrap_or_default() + &parts.join("; ")
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
            Self::Choice(_) => self.word_names().join(" | "),
            Self::AutoChoice(_) => format!("auto | {}", self.word_names().join(" | ")),
            Self::Text => "text".to_owned(),
        }
    }

    /// What `text` means; `None` if it is no value of this kind.
    pub fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Self::Real { low, high, open } => text
                .parse::<f64>()
                .ok()
                .filter(|x| {
                    x.is_finite()
                        && match open {
                            Bounds::Closed => low <= x && x <= high,
                            Bounds::OpenLow => low < x && x <= high,
                            Bounds::OpenHigh => low <= x && x < high,
                        }
                })
                .map(Value::Real),
            Self::Integer { low, high } => {
                text.parse().ok().filter(|x| (*low..=*high).contains(x)).map(Value::Integer)
            }
            Self::AutoReal { .. } | Self::AutoInteger { .. } | Self::AutoChoice(_) if text == AUTO => {
                Some(Value::Auto)
            }
            Self::AutoReal { low, high, open } => {
                Self::Real { low: *low, high: *high, open: *open }.parse(text)
            }
            Self::AutoInteger { low, high } => Self::Integer { low: *low, high: *high }.parse(text),
            Self::Flag => text.parse().ok().map(Value::Flag),
            Self::Choice(_) | Self::AutoChoice(_) => self.word_names().contains(&text).then_some(Value::Word),
            Self::Text => Some(Value::Text),
        }
    }

    /// The words of a closed set; empty for other kinds.
    pub fn words(&self) -> Vec<Word> {
        match self {
            Self::Choice(words) | Self::AutoChoice(words) => words(),
            Self::Real { .. }
            | Self::AutoReal { .. }
            | Self::Integer { .. }
            | Self::AutoInteger { .. }
            | Self::Flag
            | Self::Text => Vec::new(),
        }
    }

    fn word_names(&self) -> Vec<&'static str> {
        self.words().into_iter().map(|word| word.name).collect()
    }
}
