//! The counters of a process in the `OpenMetrics` text format of Prometheus, for `/metrics`. Each source adds samples;
//! samples with the same name are grouped, whatever lane they come from, and written by `prometheus-client`.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// The content type for HTTP.
pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The suffix of the name of a counter. The format requires it, and the library adds it itself.
const COUNTER_END: &str = "_total";

/// A label and its value.
pub type Label<'a> = (&'static str, &'a str);

/// Samples by name.
#[derive(Clone, Debug, Default)]
pub struct Metrics(BTreeMap<String, Family>);

#[derive(Clone, Debug)]
struct Family {
    help: &'static str,
    samples: Vec<(Vec<(&'static str, String)>, Sample)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Sample {
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
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family { help, samples: Vec::new() });
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

    pub fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a string takes all that is written");
        text
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, Family { help, samples }) in &self.0 {
            let Some((_, first)) = samples.first() else { continue };
            let (name, kind) = match first {
                Sample::Counter(_) => (name.strip_suffix(COUNTER_END).unwrap_or(name), MetricType::Counter),
                Sample::Gauge(_) => (name.as_str(), MetricType::Gauge),
                Sample::Histogram { .. } => (name.as_str(), MetricType::Histogram),
            };
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, sample) in samples {
                match labels.as_slice() {
                    [] => put(&mut family, sample)?,
                    _ => put(&mut family.encode_family(labels)?, sample)?,
                }
            }
        }
        Ok(())
    }
}

fn put(metric: &mut MetricEncoder<'_>, sample: &Sample) -> Result<(), fmt::Error> {
    match sample {
        Sample::Counter(Number::Count(value)) => metric.encode_counter::<NoLabelSet, u64, u64>(value, None),
        Sample::Counter(Number::Real(value)) => metric.encode_counter::<NoLabelSet, f64, f64>(value, None),
        Sample::Gauge(Number::Count(value)) => metric.encode_gauge(value),
        Sample::Gauge(Number::Real(value)) => metric.encode_gauge(value),
        Sample::Histogram { counts, sum } => {
            let last = counts.len().saturating_sub(1);
            let bound = |at: usize| if at == last { f64::INFINITY } else { at as f64 };
            let buckets: Vec<(f64, u64)> =
                counts.iter().enumerate().map(|(at, count)| (bound(at), *count)).collect();
            metric.encode_histogram::<NoLabelSet>(*sum as f64, counts.iter().sum(), &buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_name_stand_together_behind_what_they_mean() {
        let mut all = Metrics::default();
        for lane in ["0", "1"] {
            let mut of_lane = Metrics::default();
            of_lane.counter("a_requests_total", "Requests", &[("lane", lane), ("kind", "pu\"ll")], 2_u64);
            of_lane.gauge("a_seconds", "Seconds", &[("lane", lane)], 0.5);
            of_lane.histogram("a_staleness", "Clocks behind", &[("lane", lane)], &[3, 0, 1], 7);
            all.merge(of_lane);
        }
        all.gauge("a_jobs", "Jobs", &[], 3_u64);
        let expected = "\
# HELP a_jobs Jobs
# TYPE a_jobs gauge
a_jobs 3
# HELP a_requests Requests
# TYPE a_requests counter
a_requests_total{lane=\"0\",kind=\"pu\\\"ll\"} 2
a_requests_total{lane=\"1\",kind=\"pu\\\"ll\"} 2
# HELP a_seconds Seconds
# TYPE a_seconds gauge
a_seconds{lane=\"0\"} 0.5
a_seconds{lane=\"1\"} 0.5
# HELP a_staleness Clocks behind
# TYPE a_staleness histogram
a_staleness_sum{lane=\"0\"} 7.0
a_staleness_count{lane=\"0\"} 4
a_staleness_bucket{le=\"0.0\",lane=\"0\"} 3
a_staleness_bucket{le=\"1.0\",lane=\"0\"} 3
a_staleness_bucket{le=\"+Inf\",lane=\"0\"} 4
a_staleness_sum{lane=\"1\"} 7.0
a_staleness_count{lane=\"1\"} 4
a_staleness_bucket{le=\"0.0\",lane=\"1\"} 3
a_staleness_bucket{le=\"1.0\",lane=\"1\"} 3
a_staleness_bucket{le=\"+Inf\",lane=\"1\"} 4
# EOF
";
        assert_eq!(all.text(), expected);
    }
}
