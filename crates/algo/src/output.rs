//! What a prediction of a model is.

/// What the numbers of a prediction mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The algorithm predicts nothing.
    None,
    /// One number: the probability of label 1.
    Probability,
    /// One number: the signed distance, positive for label 1.
    Margin,
    /// One number: the predicted value.
    Value,
    /// One probability per class, in this order.
    Classes(Vec<f32>),
    /// One number for each of these columns, which are no prediction of a label.
    Columns(Vec<String>),
}

impl Output {
    /// The names of the columns of a prediction before the probabilities of classes.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Probability | Self::Margin | Self::Value => vec!["score"],
            Self::Classes(_) => vec!["predicted"],
            Self::None => Vec::new(),
            Self::Columns(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// Numbers per record.
    pub fn width(&self) -> usize {
        match self {
            Self::Probability | Self::Margin | Self::Value => 1,
            Self::Classes(classes) => classes.len(),
            Self::None => 0,
            Self::Columns(names) => names.len(),
        }
    }
}

/// What a prediction can say of a record besides its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Explanation {
    /// The number of the leaf that the record reaches in each tree.
    Leaves,
    /// What each feature adds to the raw score, and the raw score that is expected of any record.
    Contributions,
}
