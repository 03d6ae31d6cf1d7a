//! The decision after an epoch.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use algo::metric::Metrics;
use algo::{EarlyStopping, EpochDecision, EpochMetrics, EpochReport, MetricAccumulator, TrainingReport};
use job::Exit;

use crate::amounts::{count, counted, decimal};
use crate::error::Error;
use crate::progress::ProgressListener;
use crate::report::EpochLine;

/// Returns the error when some tasks have not reported an epoch within the limit.
pub fn missing_reports_error(reports: &[Option<EpochReport>], wait_limit: Duration) -> Error {
    let missing = (0u32..).zip(reports).filter(|(_, report)| report.is_none());
    let missing: Vec<String> = missing.map(|(task, _)| task.to_string()).collect();
    let text = format!(
        "waited {} s at the end of an epoch for the report of task {}; raise --wait-limit if this is expected",
        wait_limit.as_secs(),
        missing.join(", ")
    );
    Error::Cluster { text, exit: Exit::Internal }
}

/// The reason why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// All epochs were run.
    Finished,
    /// The validation metric has not improved for the number of epochs that `patience` allows.
    EarlyStopping,
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl StopReason {
    /// The name of the reason in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::EarlyStopping => "early_stopping",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The result of training when all tasks have ended.
#[derive(Debug)]
pub struct TrainingSummary {
    pub epochs: Vec<EpochLine>,
    pub end: StopReason,
    /// The epoch whose weights are in the store, when early stopping chose one.
    pub best_epoch: Option<u64>,
    /// Number of steps of all tasks.
    pub step_count: u64,
    /// Notices about the metrics.
    pub notices: Vec<String>,
    /// Losses of the best constant prediction for the records of the last epoch: training data, validation data.
    pub constant_losses: (Option<f64>, Option<f64>),
}

impl TrainingSummary {
    /// What the family of the algorithm judges.
    pub fn metrics_report(&self) -> TrainingReport<'_> {
        let epochs = self.epochs.iter().map(|line| EpochMetrics {
            epoch: line.epoch,
            training: &line.training,
            validation: line.validation.as_ref(),
        });
        TrainingReport {
            epochs: epochs.collect(),
            best_epoch: self.best_epoch,
            constant_losses: self.constant_losses,
        }
    }
}

/// Time between two epochs that are printed, except for the first and the last.
const PRINT_INTERVAL: Duration = Duration::from_secs(1);

/// What a monitor keeps in a checkpoint.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct MonitorState {
    /// The best epoch and its value, for early stopping.
    best: Option<(u64, f64)>,
    epochs: Vec<EpochLine>,
    notices: Vec<String>,
    constant_losses: (Option<f64>, Option<f64>),
}

/// Whether Ctrl-C has reached the run and its tasks.
#[derive(Clone, Copy, Debug)]
pub struct InterruptState {
    /// A task has received the request to stop in this epoch.
    pub stop_sent: bool,
    /// The user has pressed Ctrl-C.
    pub requested: bool,
}

/// The decision after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The decision for the tasks.
    pub verdict: EpochDecision,
    /// The weights are the best so far, so a copy must be kept.
    pub save_best: bool,
    /// The copy of the best weights must be restored.
    pub restore_best: bool,
}

/// Merges the reports of an epoch, prints them, and decides whether training stops.
#[derive(Debug)]
pub struct EpochMonitor {
    stopping: Option<EarlyStopping>,
    best_epoch: Option<u64>,
    epochs: Vec<EpochLine>,
    epoch_start: Instant,
    /// When an epoch was printed last.
    printed_at: Option<Instant>,
    end: StopReason,
    notices: Vec<String>,
    constant_losses: (Option<f64>, Option<f64>),
}

impl EpochMonitor {
    /// Creates a monitor; the first epoch starts at `now`.
    pub fn new(stopping: Option<EarlyStopping>, now: Instant) -> Self {
        Self {
            stopping,
            best_epoch: None,
            epochs: Vec::new(),
            epoch_start: now,
            printed_at: None,
            end: StopReason::Finished,
            notices: Vec::new(),
            constant_losses: (None, None),
        }
    }

    /// Creates a monitor that continues from a checkpoint.
    pub fn restored(stopping: Option<EarlyStopping>, state: MonitorState, now: Instant) -> Self {
        let MonitorState { best, epochs, notices, constant_losses } = state;
        let stopping = stopping.map(|rule| rule.with_best(best));
        let best_epoch = stopping.as_ref().and(best).map(|(epoch, _)| epoch);
        Self { best_epoch, epochs, notices, constant_losses, ..Self::new(stopping, now) }
    }

    /// What [`Self::restored`] continues from.
    pub fn state(&self) -> MonitorState {
        MonitorState {
            best: self.stopping.as_ref().and_then(EarlyStopping::best),
            epochs: self.epochs.clone(),
            notices: self.notices.clone(),
            constant_losses: self.constant_losses,
        }
    }

    /// Whether training may stop early, so that the rows of the best epoch are copied.
    pub fn has_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// The best epoch so far, if training may stop early.
    pub fn best_epoch(&self) -> Option<u64> {
        self.best_epoch
    }

    /// Merges the reports of all tasks (in the order of tasks), prints the epoch, and decides.
    pub fn decide(
        &mut self,
        now: Instant,
        reports: &[EpochReport],
        interrupted: InterruptState,
        progress: &dyn ProgressListener,
    ) -> Result<Decision, algo::Error> {
        let (epoch, epoch_count) = (reports[0].epoch, reports[0].epoch_count);
        let training = merge_parts(reports.iter().map(|report| &report.training));
        // An incomplete validation is not printed, and early stopping ignores it.
        let whole =
            reports.iter().filter(|_| !interrupted.stop_sent).filter_map(|report| report.validation.as_ref());
        let validation = merge_parts(whole);
        if validation.as_ref().is_some_and(|parts| parts.record_count() == 0) {
            return Err(data::Error::NoRecords { files: "the validation data".into() }.into());
        }
        let finished = validation.as_ref().map(MetricAccumulator::finish);
        let line = EpochLine {
            epoch,
            clock: reports[0].clock,
            records: reports.iter().map(|report| report.record_count).sum(),
            seconds: now.saturating_duration_since(self.epoch_start).as_secs_f64(),
            training: training.as_ref().map(metrics).unwrap_or_default(),
            validation: finished.as_ref().map(finite_metrics),
            calibration_table: validation
                .as_ref()
                .map(MetricAccumulator::calibration_table)
                .unwrap_or_default(),
        };
        let constant =
            |parts: &Option<MetricAccumulator>| parts.as_ref().and_then(MetricAccumulator::constant_loss);
        self.constant_losses = (constant(&training), constant(&validation));
        let of_metrics = training.iter().chain(&validation).flat_map(MetricAccumulator::notices);
        let of_tasks = reports.iter().filter_map(|report| report.notice.clone());
        for notice in of_metrics.chain(of_tasks) {
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
        progress.epoch_done(epoch_count, &line);
        let scored = training.as_ref().map_or(0, MetricAccumulator::record_count);
        let text = epoch_text(&line, epoch_count, scored);
        let value = self.monitored_value(finished.as_ref())?;
        self.epochs.push(line);
        self.epoch_start = now;
        let keep = self.observe(epoch, value);
        let more = epoch + 1 < epoch_count;
        if interrupted.stop_sent || (more && interrupted.requested) {
            self.end = StopReason::Interrupted;
        }
        let goes_on = self.end == StopReason::Finished && more;
        if !goes_on || self.is_printed(now, epoch, epoch_count) {
            progress.print_line(&text);
            self.printed_at = Some(now);
        }
        let verdict = if goes_on { EpochDecision::Continue } else { EpochDecision::Stop };
        let restore = !goes_on && self.best_epoch.is_some_and(|best| best != epoch);
        Ok(Decision { verdict, save_best: keep, restore_best: restore })
    }

    /// Judges the metric of an epoch for early stopping. Returns whether its weights are the best so far.
    fn observe(&mut self, epoch: u64, value: Option<f64>) -> bool {
        let (Some(rule), Some(value)) = (&mut self.stopping, value) else { return false };
        let judgement = rule.observe(epoch, value);
        if judgement.improved {
            self.best_epoch = Some(epoch);
        }
        if judgement.stop {
            self.end = StopReason::EarlyStopping;
        }
        judgement.improved
    }

    /// Returns the metric for early stopping; none when early stopping is off or the validation is incomplete.
    fn monitored_value(&self, validation: Option<&Metrics>) -> Result<Option<f64>, algo::Error> {
        let (Some(rule), Some(metrics)) = (&self.stopping, validation) else { return Ok(None) };
        let metric = rule.metric();
        match (metrics.get(metric.name), metric.requirement) {
            (Some(value), _) => Ok(Some(*value)),
            (None, Some(needs)) => Err(algo::Error::UndefinedMetric { metric: metric.name, needs }),
            // A model that never predicts 1 has no precision, and counts as no improvement.
            (None, None) => Ok(Some(f64::NAN)),
        }
    }

    /// Whether an epoch that is not the last is printed: the first, and of slow epochs also the next two and about ten later
    /// ones. The report has all epochs.
    fn is_printed(&self, now: Instant, epoch: u64, epoch_count: u64) -> bool {
        let is_due =
            self.printed_at.is_none_or(|printed| now.saturating_duration_since(printed) >= PRINT_INTERVAL);
        is_due && (epoch < 3 || (epoch + 1).is_multiple_of(epoch_count.div_ceil(10)))
    }

    /// Returns the last epoch whose decision was made.
    pub fn last_epoch(&self) -> Option<&EpochLine> {
        self.epochs.last()
    }

    /// Returns the summary after all tasks have ended.
    pub fn summary(self, step_count: u64) -> TrainingSummary {
        let Self { best_epoch, epochs, end, notices, constant_losses, .. } = self;
        TrainingSummary { epochs, end, best_epoch, step_count, notices, constant_losses }
    }
}

fn merge_parts<'p>(mut parts: impl Iterator<Item = &'p MetricAccumulator>) -> Option<MetricAccumulator> {
    let mut sum = parts.next()?.clone();
    parts.for_each(|part| sum.merge(part));
    Some(sum)
}

/// Returns the finite metrics by name.
pub fn metrics(parts: &MetricAccumulator) -> BTreeMap<String, f64> {
    finite_metrics(&parts.finish())
}

/// Returns only the finite metrics: reports and models are JSON, which cannot represent other numbers.
fn finite_metrics(metrics: &Metrics) -> BTreeMap<String, f64> {
    let finite = metrics.iter().filter(|(_, value)| value.is_finite());
    finite.map(|(name, value)| (name.clone().into_owned(), *value)).collect()
}

/// Returns metrics as one line: the loss first, then the usual metrics of predictions, then those that a family names.
pub fn metrics_text(metrics: &BTreeMap<String, f64>) -> String {
    let usual = ["log_loss", "auc", "gauc", "accuracy", "macro_f1", "rmse", "mae", "r2"];
    let only_in_reports = ["calibration", "precision", "recall", "f1"];
    let is_named = |name: &&str| *name != "loss" && !usual.contains(name) && !only_in_reports.contains(name);
    let first = (!metrics.contains_key("log_loss")).then_some("loss");
    let named = metrics.keys().map(String::as_str).filter(is_named);
    let shown = first.into_iter().chain(usual).chain(named);
    let text = |name: &str| metrics.get(name).map(|value| format!("{name} {}", decimal(*value, 5)));
    shown.filter_map(text).collect::<Vec<_>>().join("  ")
}

/// Describes an epoch with the metrics of `scored` records. An optimizer that sees all records at each step may read them
/// several times in an epoch.
fn epoch_text(line: &EpochLine, epoch_count: u64, scored: u64) -> String {
    let speed = count(line.records as f64 / line.seconds.max(1e-9));
    let is_repeated = scored > 0 && line.records > scored && line.records.is_multiple_of(scored);
    let records = if is_repeated {
        format!("{}, read {} times", counted(scored, "record"), line.records / scored)
    } else {
        counted(line.records, "record")
    };
    let mut text = format!("epoch {}/{epoch_count}  {records}  {speed}/s", line.epoch + 1);
    if !line.training.is_empty() {
        text += &format!("\n  training    {}", metrics_text(&line.training));
    }
    if let Some(validation) = &line.validation {
        text += &format!("\n  validation  {}", metrics_text(validation));
    }
    text
}

#[cfg(test)]
mod tests {
    use algo::MetricAccumulator;

    use super::*;
    use crate::progress::SilentProgress;

    fn watching(patience: u64) -> EarlyStopping {
        EarlyStopping::new(patience, algo::metric::STOPPING_METRICS[0])
    }

    /// A report of an epoch with this loss.
    fn report(epoch: u64, epoch_count: u64, loss: f64) -> EpochReport {
        let mut parts = algo::metric::RealAccumulator::default();
        parts.loss.add(loss, 1.0);
        let parts = MetricAccumulator::Real(parts);
        EpochReport {
            task: 0,
            epoch,
            epoch_count,
            record_count: 1,
            clock: epoch + 1,
            training: parts.clone(),
            validation: Some(parts),
            notice: None,
        }
    }

    /// Returns the decision after an epoch with this validation loss.
    fn decide(monitor: &mut EpochMonitor, epoch: u64, epoch_count: u64, loss: f64, raised: bool) -> Decision {
        let report = report(epoch, epoch_count, loss);
        let interrupted = InterruptState { stop_sent: false, requested: raised };
        monitor.decide(Instant::now(), &[report], interrupted, &SilentProgress).unwrap()
    }

    /// Returns for every loss whether the weights are copied, whether earlier ones are restored, and whether training
    /// continues.
    fn decisions(
        patience: u64,
        epoch_count: u64,
        losses: &[f64],
    ) -> (Vec<(bool, bool, bool)>, TrainingSummary) {
        let mut monitor = EpochMonitor::new(Some(watching(patience)), Instant::now());
        let decided = losses
            .iter()
            .zip(0..)
            .map(|(&loss, epoch)| decide(&mut monitor, epoch, epoch_count, loss, false))
            .map(|decision| {
                (decision.save_best, decision.restore_best, decision.verdict == EpochDecision::Continue)
            })
            .collect();
        (decided, monitor.summary(0))
    }

    #[derive(Debug, Default)]
    struct Lines(std::sync::Mutex<Vec<String>>);

    impl ProgressListener for Lines {
        fn print_line(&self, line: &str) {
            self.0.lock().unwrap().push(line.split("  ").next().unwrap().to_owned());
        }
    }

    /// The epochs that are printed of those that take this long; the job ends after `last` of `epoch_count`.
    fn printed(epoch_ms: u64, epoch_count: u64, last: u64) -> Vec<String> {
        let (lines, start) = (Lines::default(), Instant::now());
        let mut monitor = EpochMonitor::new(None, start);
        for epoch in 0..last {
            let report = report(epoch, epoch_count, 0.5);
            let interrupted = InterruptState { stop_sent: false, requested: epoch + 1 == last };
            let now = start + Duration::from_millis(epoch_ms * (epoch + 1));
            monitor.decide(now, &[report], interrupted, &lines).unwrap();
        }
        lines.0.into_inner().unwrap()
    }

    #[test]
    fn of_fast_epochs_the_first_and_the_last_are_printed_and_of_slow_ones_more() {
        assert_eq!(printed(2, 50, 50), ["epoch 1/50", "epoch 50/50"]);
        assert_eq!(printed(2, 50, 7), ["epoch 1/50", "epoch 7/50"], "a job that ends early");
        let slow = ["epoch 1/50", "epoch 2/50", "epoch 3/50", "epoch 5/50", "epoch 10/50", "epoch 12/50"];
        assert_eq!(printed(2000, 50, 12), slow);
        assert_eq!(printed(10, 1000, 250), ["epoch 1/1000", "epoch 200/1000", "epoch 250/1000"]);
    }

    #[test]
    fn records_that_are_read_several_times_in_an_epoch_are_counted_once() {
        let line = |records| EpochLine { records, seconds: 1.0, ..EpochLine::default() };
        assert!(epoch_text(&line(455), 9, 455).starts_with("epoch 1/9  455 records  455/s"));
        assert!(epoch_text(&line(910), 9, 455).starts_with("epoch 1/9  455 records, read 2 times  910/s"));
        assert!(epoch_text(&line(910), 9, 0).starts_with("epoch 1/9  910 records  910/s"), "no metrics");
    }

    #[test]
    fn small_and_large_metrics_show_their_digits() {
        let metrics = [("change", 3.2e-7), ("loss", 0.5), ("size", 5.8e75)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(metrics_text(&metrics), "loss 0.50000  change 3.2e-7  size 5.80000e75");
    }

    #[test]
    fn at_the_end_the_weights_of_the_best_epoch_are_put_back() {
        let (decided, outcome) = decisions(2, 9, &[0.5, 0.4, 0.6, 0.7]);
        let expected = [(true, false, true), (true, false, true), (false, false, true), (false, true, false)];
        assert_eq!(decided, expected, "after its patience");
        assert_eq!((outcome.end, outcome.best_epoch), (StopReason::EarlyStopping, Some(1)));
        let (decided, outcome) = decisions(5, 3, &[0.4, 0.5, 0.6]);
        assert_eq!(
            decided,
            [(true, false, true), (false, false, true), (false, true, false)],
            "after all epochs"
        );
        assert_eq!((outcome.end, outcome.best_epoch), (StopReason::Finished, Some(0)));
        let (decided, _) = decisions(5, 2, &[0.5, 0.4]);
        assert_eq!(
            decided,
            [(true, false, true), (true, false, false)],
            "the last is the best: nothing is put back"
        );
    }

    #[test]
    fn a_run_that_is_interrupted_ends_with_its_best_weights_too() {
        let mut monitor = EpochMonitor::new(Some(watching(9)), Instant::now());
        decide(&mut monitor, 0, 9, 0.4, false);
        let decision = decide(&mut monitor, 1, 9, 0.5, true);
        assert_eq!(decision, Decision { verdict: EpochDecision::Stop, save_best: false, restore_best: true });
        assert_eq!(monitor.summary(0).end, StopReason::Interrupted);
    }

    #[test]
    fn a_metric_that_is_no_finite_number_is_no_part_of_a_report() {
        let mut parts = algo::metric::RealAccumulator::default();
        parts.loss.add(1.0, 1.0);
        parts.regression.add(1e200, -1e200, 1.0);
        let metrics = metrics(&MetricAccumulator::Real(parts));
        assert_eq!(
            (metrics.get("mae"), metrics.get("rmse")),
            (Some(&2e200), None),
            "the square of 2e200 is infinite"
        );
    }

    #[test]
    fn an_infinite_loss_is_no_improvement_and_no_error() {
        let mut monitor = EpochMonitor::new(Some(watching(9)), Instant::now());
        decide(&mut monitor, 0, 9, 0.4, false);
        let decision = decide(&mut monitor, 1, 9, f64::INFINITY, false);
        assert_eq!(
            decision,
            Decision { verdict: EpochDecision::Continue, save_best: false, restore_best: false }
        );
    }
}
