//! The counters of a process in the `OpenMetrics` text format of Prometheus, for `/metrics`, written by
//! `prometheus-client`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use rpc::metrics::{COUNTER_END, MetricFamily, Metrics, Number, Sample};

/// The content type for HTTP.
pub(crate) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of `/metrics`.
pub fn metrics_text(metrics: Metrics) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(MetricsText(metrics)));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes all that is written");
    text
}

#[derive(Debug)]
struct MetricsText(Metrics);

impl Collector for MetricsText {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, MetricFamily { help, samples }) in self.0.families() {
            let Some((_, first)) = samples.first() else { continue };
            let (name, kind) = match first {
                Sample::Counter(_) => (name.strip_suffix(COUNTER_END).unwrap_or(name), MetricType::Counter),
                Sample::Gauge(_) => (name, MetricType::Gauge),
                Sample::Histogram { .. } => (name, MetricType::Histogram),
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
        assert_eq!(metrics_text(all), expected);
    }
}
