//! Why a function was refused or failed.

/// Why a function was refused or failed. Texts are to be read behind the name of the function.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum FunctionFault {
    /// Nobody registered it.
    #[error(
        "nobody registered this function{}; a function of your own must be in the table of every process",
        suggestion(nearest.as_deref())
    )]
    Unknown { nearest: Option<String> },

    /// Another version is registered.
    #[error("version {asked} is asked for, version {known} is registered: use one build for all processes")]
    Version { asked: u32, known: u32 },

    /// A pull function where a push function must stand, or the reverse.
    #[error("it is a {is} function and was called as a {asked} function")]
    WrongKind { is: &'static str, asked: &'static str },

    /// A name that is taken.
    #[error("a function {name:?} is registered already: choose another name")]
    DuplicateName { name: String },

    /// An argument or rows that cannot be.
    #[error("{what}: {actual}, expected {expected}")]
    Argument { what: String, actual: String, expected: String },

    /// A matrix on which functions do not work.
    #[error("the matrix has {actual}; functions need {expected}")]
    Matrix { actual: String, expected: &'static str },

    /// A result that is no number.
    #[error(
        "the result in row {row}, column {column} is {value}{}; this row stays as it was there",
        inputs_text(inputs)
    )]
    NonFinite { row: u32, column: u64, value: f64, inputs: Vec<f64> },

    /// An answer that holds no number.
    #[error("the answer is not finite: values this large cannot be reduced so")]
    NonFiniteAnswer,

    /// Its code panicked.
    #[error("it panicked: {message}; the rows of that partition stay as they were")]
    Panicked { message: String },

    /// What a user's function says of itself.
    #[error("{text}")]
    User { text: String },

    /// A vector whose row was given back.
    #[error("the vector of row {row} was released: create another")]
    ReleasedVector { row: u32 },

    /// Vectors that do not lie together.
    #[error("the vectors lie in different pools ({first} and {second}): only rows of one pool lie together")]
    DifferentPools { first: String, second: String },

    /// A pool without a free row.
    #[error("all {rows} rows of the pool are taken: release a vector, or give the matrix more rows")]
    PoolFull { rows: usize },

    /// An agent that cannot.
    #[error("this agent does not carry out functions")]
    UnsupportedAgent,
}

impl FunctionFault {
    /// An argument that cannot be.
    pub fn argument(what: impl Into<String>, actual: impl Into<String>, expected: impl Into<String>) -> Self {
        FunctionFault::Argument { what: what.into(), actual: actual.into(), expected: expected.into() }
    }

    /// What a function of your own wants to say.
    pub fn user(text: impl Into<String>) -> Self {
        FunctionFault::User { text: text.into() }
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

fn inputs_text(inputs: &[f64]) -> String {
    if inputs.is_empty() {
        return String::new();
    }
    let inputs: Vec<String> = inputs.iter().map(f64::to_string).collect();
    format!(", from {}", inputs.join(" and "))
}
