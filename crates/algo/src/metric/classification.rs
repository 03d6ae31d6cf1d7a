//! Comparison of predicted classes with labels: accuracy, precision, recall, F1, confusion matrix.

use std::collections::BTreeMap;

/// The first index of the largest score: the class that is predicted.
pub fn argmax(scores: &[f64]) -> usize {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best
}

/// Weights of the four outcomes of a binary prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BinaryCounts {
    /// Predicted 1, label 1.
    pub true_positive: f64,
    /// Predicted 1, label 0.
    pub false_positive: f64,
    /// Predicted 0, label 0.
    pub true_negative: f64,
    /// Predicted 0, label 1.
    pub false_negative: f64,
}

impl BinaryCounts {
    /// Adds a record with its predicted class and its label.
    #[inline]
    pub fn add(&mut self, said: bool, is: bool, weight: f64) {
        // Without branches: which cell it is cannot be predicted.
        let part = |holds: bool| if holds { weight } else { 0.0 };
        self.true_positive += part(said && is);
        self.false_positive += part(said && !is);
        self.true_negative += part(!said && !is);
        self.false_negative += part(!said && is);
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        self.true_positive += other.true_positive;
        self.false_positive += other.false_positive;
        self.true_negative += other.true_negative;
        self.false_negative += other.false_negative;
    }

    /// The four weights as a confusion matrix.
    pub fn confusion(&self) -> Confusion {
        let cells = [
            ((0, 0), self.true_negative),
            ((0, 1), self.false_positive),
            ((1, 0), self.false_negative),
            ((1, 1), self.true_positive),
        ];
        Confusion { cells: cells.into_iter().filter(|(_, weight)| *weight > 0.0).collect() }
    }

    /// Share of records with label 1; `None` without records.
    pub fn positive_share(&self) -> Option<f64> {
        let ones = self.true_positive + self.false_negative;
        ratio(ones, ones + self.false_positive + self.true_negative)
    }

    /// Share of correct predictions; `None` without records.
    pub fn accuracy(&self) -> Option<f64> {
        let right = self.true_positive + self.true_negative;
        ratio(right, right + self.false_positive + self.false_negative)
    }

    /// Share of the predicted 1 whose label is 1; `None` if 1 was never predicted.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.true_positive, self.true_positive + self.false_positive)
    }

    /// Share of the labels 1 that were predicted 1; `None` if there are none.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.true_positive, self.true_positive + self.false_negative)
    }

    /// Harmonic mean of precision and recall: `2 tp / (2 tp + fp + fn)`; `None` if that is 0 / 0.
    pub fn f1(&self) -> Option<f64> {
        let twice = 2.0 * self.true_positive;
        ratio(twice, twice + self.false_positive + self.false_negative)
    }
}

/// The confusion matrix: weights of records by their class and the predicted class.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Confusion {
    /// Weights by (class, predicted class); pairs that do not occur are absent.
    pub cells: BTreeMap<(u32, u32), f64>,
}

impl Confusion {
    /// Adds a record with the numbers of its predicted class and its class.
    pub fn add(&mut self, said: usize, is: usize, weight: f64) {
        *self.cells.entry((is as u32, said as u32)).or_insert(0.0) += weight;
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        for (pair, weight) in &other.cells {
            *self.cells.entry(*pair).or_insert(0.0) += weight;
        }
    }
}

/// Weights of correct and predicted records of each class.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClassCounts {
    /// Weight of the records of each class that were predicted correctly.
    pub right: Vec<f64>,
    /// Weight of the records that were predicted as each class.
    pub said: Vec<f64>,
    /// Weight of the records of each class.
    pub is: Vec<f64>,
}

impl ClassCounts {
    pub fn new(class_count: usize) -> Self {
        let zeros = || vec![0.0; class_count];
        Self { right: zeros(), said: zeros(), is: zeros() }
    }

    /// Adds a record with the numbers of its predicted class and its class.
    pub fn add(&mut self, said: usize, is: usize, weight: f64) {
        self.said[said] += weight;
        self.is[is] += weight;
        if said == is {
            self.right[is] += weight;
        }
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in
            [(&mut self.right, &other.right), (&mut self.said, &other.said), (&mut self.is, &other.is)]
        {
            assert_eq!(mine.len(), theirs.len(), "merge: counts of different numbers of classes");
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    /// Share of the records of each class; `None` without records.
    pub fn shares(&self) -> Option<Vec<f64>> {
        let all = self.is.iter().sum();
        self.is.iter().map(|is| ratio(*is, all)).collect()
    }

    /// Share of correct predictions; `None` without records.
    pub fn accuracy(&self) -> Option<f64> {
        ratio(self.right.iter().sum(), self.is.iter().sum())
    }

    /// Mean F1 over the classes that occur or were predicted.
    pub fn macro_f1(&self) -> Option<f64> {
        let each = self.right.iter().zip(&self.said).zip(&self.is);
        let scores: Vec<f64> = each.filter_map(|((right, said), is)| ratio(2.0 * right, said + is)).collect();
        ratio(scores.iter().sum(), scores.len() as f64)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
