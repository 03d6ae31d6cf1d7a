//! Why a function was refused or failed.

/// Why a function was refused or failed. The texts are written to follow the name of the function.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum FunctionFault {
    /// No function of this name is registered.
    #[error(
        "this function is not registered{}; a function of your own must be in the table of every process",
        suggestion(nearest.as_deref())
    )]
    Unknown { nearest: Option<String> },

    /// Another version is registered.
    #[error(
        "version {asked} was requested, but version {known} is registered: use the same build for all processes"
    )]
    Version { asked: u32, known: u32 },

    /// A pull function was called as a push function, or the reverse.
    #[error("it is a {is} function and was called as a {asked} function")]
    WrongKind { is: &'static str, asked: &'static str },

    /// The name is already taken.
    #[error("a function {name:?} is registered already: choose another name")]
    DuplicateName { name: String },

    /// An argument or the rows are not valid.
    #[error("{what}: {actual}, expected {expected}")]
    Argument { what: String, actual: String, expected: String },

    /// Functions do not work on this matrix.
    #[error("the matrix has {actual}; functions need {expected}")]
    Matrix { actual: String, expected: &'static str },

    /// A result is not a finite number.
    #[error(
        "the result in row {row}, column {column} is {value}{}; this row is unchanged in that partition",
        inputs_text(inputs)
    )]
    NonFinite { row: u32, column: u64, value: f64, inputs: Vec<f64> },

    /// The answer has a NaN or an infinity.
    #[error("the answer is not finite: the values are too large for this reduction")]
    NonFiniteAnswer,

    /// The code of the function panicked.
    #[error("it panicked: {message}; the rows of that partition are unchanged")]
    Panicked { message: String },

    /// A user's function returned this error.
    #[error("{text}")]
    User { text: String },

    /// The vector was released and has no row any more.
    #[error("the vector of row {row} was released: create another")]
    ReleasedVector { row: u32 },

    /// The vectors belong to different pools.
    #[error("the vectors are in different pools ({first} and {second}): use vectors of one pool")]
    DifferentPools { first: String, second: String },

    /// The pool has no free row.
    #[error("all {rows} rows of the pool are in use: release a vector, or give the matrix more rows")]
    PoolFull { rows: usize },

    /// The agent does not support PS functions.
    #[error("this agent does not support PS functions")]
    UnsupportedAgent,
}

impl FunctionFault {
    /// Creates the fault of an argument that is not valid.
    pub fn argument(what: impl Into<String>, actual: impl Into<String>, expected: impl Into<String>) -> Self {
        FunctionFault::Argument { what: what.into(), actual: actual.into(), expected: expected.into() }
    }

    /// Creates the fault of a user's function.
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
