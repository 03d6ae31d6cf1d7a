//! The counters of a process: each source adds samples, and samples with the same name are grouped, whatever lane they
//! come from.

use std::collections::BTreeMap;

/// The end of the name of a counter.
pub const COUNTER_END: &str = "_total";

/// A label and its value.
pub type Label<'a> = (&'static str, &'a str);

/// Samples by name.
#[derive(Clone, Debug, Default)]
pub struct Metrics(BTreeMap<String, MetricFamily>);

/// The samples of one name.
#[derive(Clone, Debug)]
pub struct MetricFamily {
    pub help: &'static str,
    /// Each with its labels.
    pub samples: Vec<(Vec<(&'static str, String)>, Sample)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    Counter(Number),
    Gauge(Number),
    /// Number of samples by value; the last entry counts its value and all larger ones.
    Histogram {
        counts: Vec<u64>,
        sum: u64,
    },
}

/// The value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A count of things.
    Count(u64),
    /// A real number, of seconds for example.
    Real(f64),
}

impl From<u64> for Number {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl Metrics {
    /// Adds a sample that only grows. The name must end with `_total`.
    pub fn counter(
        &mut self,
        name: &str,
        help: &'static str,
        labels: &[Label<'_>],
        value: impl Into<Number>,
    ) {
        assert!(name.ends_with(COUNTER_END), "the name of the counter {name} does not end in {COUNTER_END}");
        self.add(name, help, labels, Sample::Counter(value.into()));
    }

    /// Adds a sample that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &'static str, labels: &[Label<'_>], value: impl Into<Number>) {
        self.add(name, help, labels, Sample::Gauge(value.into()));
    }

    /// Adds a histogram: how often each whole number was seen, from 0; the last count is for its number and all larger
    /// ones. `sum` is the sum of all numbers.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &'static str,
        labels: &[Label<'_>],
        counts: &[u64],
        sum: u64,
    ) {
        self.add(name, help, labels, Sample::Histogram { counts: counts.to_vec(), sum });
    }

    fn add(&mut self, name: &str, help: &'static str, labels: &[Label<'_>], sample: Sample) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let family =
            self.0.entry(name.to_owned()).or_insert_with(|| MetricFamily { help, samples: Vec::new() });
        family.samples.push((labels, sample));
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: Self) {
        for (name, family) in other.0 {
            match self.0.entry(name) {
                std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(family)),
                std::collections::btree_map::Entry::Occupied(mut place) => {
                    place.get_mut().samples.extend(family.samples);
                }
            }
        }
    }

    /// The names in ascending order, each with its samples.
    pub fn families(&self) -> impl Iterator<Item = (&str, &MetricFamily)> {
        self.0.iter().map(|(name, family)| (name.as_str(), family))
    }
}
