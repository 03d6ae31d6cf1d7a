//! Progress on standard error: a bar on a terminal (`terminal_bar`), plain lines otherwise, nothing with `--quiet`.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::algo::Epochs;

pub use engine::amounts::bytes;
pub use engine::amounts::count;
pub use engine::amounts::counted;
pub use engine::amounts::decimal;
use engine::progress::ProgressListener;
use engine::report::EpochLine;

use crate::terminal_bar::TerminalBar;

/// Time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two updates of the bar.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Shows the progress of a job.
#[derive(Debug)]
pub struct Progress {
    kind: ProgressKind,
    /// None until the data of the job are inspected.
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
enum ProgressKind {
    Lines,
    Bar(TerminalBar),
}

#[derive(Debug)]
struct State {
    start: Instant,
    size_bytes: Option<u64>,
    epochs: Epochs,
    /// Records of all epochs.
    records: u64,
    /// Input bytes read in the scan, or in epoch 0 without one.
    bytes: u64,
    last: Instant,
    epoch: u64,
    epoch_count: Option<u64>,
    /// Records of an epoch, as the scan or the last epoch has counted them; 0: not known yet.
    epoch_records: u64,
    epoch_start: Instant,
    /// Duration of the last complete epoch.
    epoch_time: Option<Duration>,
    /// Number of records and sum of losses in the current epoch.
    epoch_records_so_far: u64,
    loss_sum: f64,
}

impl Progress {
    /// Creates the progress of a job that has not started.
    pub fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let kind = if is_terminal { ProgressKind::Bar(TerminalBar::new()) } else { ProgressKind::Lines };
        Self { kind, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.state().as_mut() {
            change(state);
        }
    }

    /// Shows the row of the state if the last one was shown long enough ago.
    fn show_when_due(&self, state: &mut State, row: impl FnOnce(&State, Instant) -> Row) {
        let interval = if matches!(self.kind, ProgressKind::Bar(_)) { DRAW_INTERVAL } else { LINE_INTERVAL };
        let now = Instant::now();
        if state.is_due(now, interval) {
            let row = row(state, now);
            match &self.kind {
                ProgressKind::Lines => self.print_line(&row.line()),
                ProgressKind::Bar(bar) => bar.show(row.share.unwrap_or(0.0), &row.text),
            }
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl ProgressListener for Progress {
    fn started(&self, size_bytes: Option<u64>, epochs: Epochs) {
        *self.state() = Some(State::new(size_bytes, epochs, Instant::now()));
    }

    /// Prints a line, above the bar if there is one.
    fn print_line(&self, line: &str) {
        match &self.kind {
            // A closed standard error must not end a training run.
            ProgressKind::Lines => drop(writeln!(std::io::stderr(), "{line}")),
            ProgressKind::Bar(bar) => bar.print_line(line),
        }
    }

    fn add_bytes(&self, count: u64) {
        self.update(|state| state.bytes += count);
    }

    fn add_scanned_bytes(&self, byte_count: u64) {
        self.update(|state| {
            state.bytes += byte_count;
            self.show_when_due(state, State::scan_row);
        });
    }

    fn scanned(&self, record_count: u64) {
        self.update(|state| state.end_scan(record_count, Instant::now()));
    }

    fn step(&self, record_count: u64, loss_sum: f64) {
        self.update(|state| {
            state.add_records(record_count, loss_sum);
            self.show_when_due(state, State::row);
        });
    }

    fn epoch_done(&self, epoch_count: u64, line: &EpochLine) {
        self.update(|state| state.end_epoch(epoch_count, line, Instant::now()));
    }

    /// Removes the bar.
    fn clear(&self) {
        if let ProgressKind::Bar(bar) = &self.kind {
            self.update(|_| bar.clear());
        }
    }
}

impl State {
    fn new(size_bytes: Option<u64>, epochs: Epochs, start: Instant) -> Self {
        Self {
            start,
            size_bytes,
            epochs,
            records: 0,
            bytes: 0,
            last: start,
            epoch: 0,
            epoch_count: None,
            epoch_records: 0,
            epoch_start: start,
            epoch_time: None,
            epoch_records_so_far: 0,
            loss_sum: 0.0,
        }
    }

    fn add_records(&mut self, record_count: u64, loss_sum: f64) {
        self.records += record_count;
        self.epoch_records_so_far += record_count;
        self.loss_sum += loss_sum;
    }

    /// The first epoch begins where the scan ends.
    fn end_scan(&mut self, record_count: u64, now: Instant) {
        self.epoch_records = record_count;
        self.epoch_start = now;
    }

    fn end_epoch(&mut self, epoch_count: u64, line: &EpochLine, now: Instant) {
        self.epoch = line.epoch + 1;
        self.epoch_count = Some(epoch_count);
        self.epoch_records = line.records;
        self.epoch_time = Some(now - self.epoch_start);
        self.epoch_start = now;
        (self.epoch_records_so_far, self.loss_sum) = (0, 0.0);
    }

    /// Whether it is time for an update; then the next one is due after the interval.
    fn is_due(&mut self, now: Instant, interval: Duration) -> bool {
        let is_due = now - self.last >= interval;
        if is_due {
            self.last = now;
        }
        is_due
    }

    /// Amount per second since the start of the job.
    fn speed(&self, amount: u64, now: Instant) -> f64 {
        amount as f64 / (now - self.start).as_secs_f64().max(1e-9)
    }

    /// The row while the epochs are trained.
    fn row(&self, now: Instant) -> Row {
        let within = self.share_of_epoch();
        let epoch_count = self.epoch_count(within);
        let epoch = self.epoch as f64;
        let share = within.zip(epoch_count).map(|(within, count)| (epoch + within) / count.max(1) as f64);
        let eta = within.zip(epoch_count).and_then(|(within, count)| {
            let of_epoch = match self.epoch_time {
                Some(time) => time.as_secs_f64(),
                None => {
                    Some(within).filter(|&w| w > 0.0).map(|w| (now - self.epoch_start).as_secs_f64() / w)?
                }
            };
            Some(duration_text(of_epoch * (count as f64 - epoch - within).max(0.0)))
        });
        let of_all = epoch_count.map_or_else(String::new, |count| format!(" of {count}"));
        let loss = self.loss_sum / self.epoch_records_so_far.max(1) as f64;
        let eta = eta.unwrap_or_else(|| "?".into());
        // The most important numbers come first, since a narrow terminal shows only the beginning.
        let text = format!(
            "epoch {}{of_all}  ETA {eta}  loss {}  {}/s  {} records",
            self.epoch + 1,
            decimal(loss, 5),
            count(self.speed(self.records, now)),
            count(self.records as f64)
        );
        Row { share: share.map(|share| share.min(1.0)), text }
    }

    /// The row while all data are read before the first epoch.
    fn scan_row(&self, now: Instant) -> Row {
        let speed = bytes(self.speed(self.bytes, now) as u64);
        Row { share: self.share_of_bytes(), text: format!("reading all data first  {speed}/s") }
    }

    /// Returns the share of the input that has been read; none when its size is not known.
    fn share_of_bytes(&self) -> Option<f64> {
        let size_bytes = self.size_bytes.filter(|&size| size > 0)?;
        Some((self.bytes as f64 / size_bytes as f64).min(1.0))
    }

    /// Returns the share of the current epoch that is done; none when it cannot be estimated.
    fn share_of_epoch(&self) -> Option<f64> {
        if self.epoch_records == 0 {
            return self.share_of_bytes();
        }
        Some((self.epoch_records_so_far as f64 / self.epoch_records as f64).min(1.0))
    }

    /// Returns the number of epochs. In the first epoch it may be an estimate from the number of records in the share
    /// that has been read.
    fn epoch_count(&self, share: Option<f64>) -> Option<u64> {
        match (self.epoch_count, self.epochs) {
            (Some(count), _) | (None, Epochs::Fixed(count)) => Some(count),
            (None, epochs @ Epochs::Auto { .. }) => {
                let records = match self.epoch_records {
                    0 => (self.epoch_records_so_far as f64 / share.filter(|&share| share > 0.0)?) as u64,
                    known => known,
                };
                Some(epochs.count(records))
            }
        }
    }
}

/// What is shown of a job.
#[derive(Debug, PartialEq)]
struct Row {
    /// The share that is done; none when it is not known.
    share: Option<f64>,
    text: String,
}

impl Row {
    /// The row as a line of a log.
    fn line(&self) -> String {
        let percent = self.share.map_or_else(String::new, |share| format!("{:3.0} %  ", share * 100.0));
        percent + &self.text
    }
}

/// Returns a duration as `12 s`, `3 min 5 s` or `2 h 10 min`.
fn duration_text(seconds: f64) -> String {
    match seconds.round() as u64 {
        s if s >= 3600 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s if s >= 60 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: Epochs = Epochs::Auto { record_visits: 1000, limit: 50 };

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn row(share: f64, text: &str) -> Row {
        Row { share: Some(share), text: text.to_owned() }
    }

    fn epoch_of(records: u64, epoch: u64) -> EpochLine {
        EpochLine { epoch, records, ..EpochLine::default() }
    }

    #[test]
    fn the_first_epoch_says_how_many_there_are_and_how_long_all_take() {
        let start = Instant::now();
        let mut state = State::new(Some(100), Epochs::Fixed(60), start);
        assert_eq!(state.row(start), row(0.0, "epoch 1 of 60  ETA ?  loss 0.00000  0/s  0 records"));
        state.bytes = 50;
        state.add_records(20, 8.0);
        state.add_records(20, 4.0);
        let text = "epoch 1 of 60  ETA 19 min 50 s  loss 0.30000  4/s  40 records";
        assert_eq!(state.row(after(start, 10)), row(0.5 / 60.0, text), "20 s an epoch, 59.5 epochs to come");
    }

    #[test]
    fn a_later_epoch_counts_records_and_takes_as_long_as_the_one_before() {
        let start = Instant::now();
        let mut state = State::new(None, Epochs::Fixed(4), start);
        state.add_records(30_000, 3.0);
        state.end_epoch(4, &epoch_of(30_000, 0), after(start, 20));
        let text = "epoch 2 of 4  ETA 1 min 0 s  loss 0.00000  1500/s  30.0k records";
        assert_eq!(state.row(after(start, 20)), row(0.25, text));
        state.add_records(15_000, 4500.0);
        let text = "epoch 2 of 4  ETA 50 s  loss 0.30000  1125/s  45.0k records";
        assert_eq!(state.row(after(start, 40)), row(0.375, text), "half of the second epoch");
        state.add_records(20_000, 0.0);
        state.end_epoch(4, &epoch_of(30_000, 1), after(start, 50));
        let text = "epoch 3 of 4  ETA 1 min 0 s  loss 0.00000  1300/s  65.0k records";
        assert_eq!(state.row(after(start, 50)), row(0.5, text), "the second epoch took 30 s");
        state.end_epoch(4, &epoch_of(30_000, 3), after(start, 60));
        assert_eq!(state.row(after(start, 60)).share, Some(1.0));
        assert!(state.row(after(start, 60)).text.contains("ETA 0 s"));
        state.add_records(60_000, 0.0);
        assert_eq!(state.row(after(start, 60)).share, Some(1.0), "more records than in the epoch before");
    }

    #[test]
    fn the_number_of_epochs_is_estimated_in_the_first_one() {
        let start = Instant::now();
        let mut state = State::new(Some(100), AUTO, start);
        assert!(state.row(start).text.starts_with("epoch 1  ETA ?"));
        state.bytes = 50;
        state.add_records(100, 1.0);
        let text = "epoch 1 of 5  ETA 36 s  loss 0.01000  25/s  100 records";
        assert_eq!(state.row(after(start, 4)), row(0.1, text), "200 records, 1000 to see");
        state.end_epoch(4, &epoch_of(250, 0), after(start, 10));
        state.add_records(125, 1.0);
        assert_eq!(state.row(after(start, 10)).share, Some(1.5 / 4.0), "the tasks have decided on 4");
        let mut stream = State::new(None, AUTO, start);
        stream.add_records(100, 1.0);
        let told = stream.row(after(start, 10));
        let text = "epoch 1  ETA ?  loss 0.01000  10/s  100 records";
        assert_eq!(told, Row { share: None, text: text.to_owned() });
        assert_eq!(told.line(), text);
    }

    #[test]
    fn reading_before_the_first_epoch_belongs_to_no_epoch() {
        let start = Instant::now();
        let mut state = State::new(Some(1 << 20), Epochs::Fixed(2), start);
        state.bytes = 1 << 19;
        assert_eq!(state.scan_row(after(start, 4)), row(0.5, "reading all data first  128.0 KiB/s"));
        assert_eq!(state.scan_row(after(start, 4)).line(), " 50 %  reading all data first  128.0 KiB/s");
        state.bytes = 1 << 20;
        state.end_scan(10, after(start, 100));
        assert_eq!(
            state.row(after(start, 100)).share,
            Some(0.0),
            "all bytes are read, and no epoch is trained"
        );
        state.add_records(5, 1.0);
        let text = "epoch 1 of 2  ETA 3 s  loss 0.20000  0/s  5 records";
        assert_eq!(state.row(after(start, 101)), row(0.25, text), "2 s an epoch");
        state.add_records(5, 1.0);
        state.end_epoch(2, &epoch_of(10, 0), after(start, 103));
        assert!(state.row(after(start, 103)).text.starts_with("epoch 2 of 2  ETA 3 s"), "the epoch alone");
        for unknown in [None, Some(0)] {
            assert_eq!(State::new(unknown, Epochs::Fixed(2), start).scan_row(start).share, None);
        }
        state.bytes = 1 << 21;
        assert_eq!(state.scan_row(start).share, Some(1.0), "a file that has grown");
        let mut auto = State::new(Some(100), AUTO, start);
        auto.end_scan(250, start);
        assert!(auto.row(start).text.starts_with("epoch 1 of 4 "), "1000 records to see, 250 in an epoch");
    }

    #[test]
    fn a_row_is_shown_once_per_interval() {
        let start = Instant::now();
        let mut state = State::new(None, AUTO, start);
        let mut due = |seconds| state.is_due(after(start, seconds), Duration::from_secs(10));
        assert_eq!([9, 10, 11, 19, 20, 35, 44].map(&mut due), [false, true, false, false, true, true, false]);
    }

    #[test]
    fn what_a_job_reports_is_added_up() {
        let progress = Progress { kind: ProgressKind::Lines, state: Mutex::default() };
        progress.step(1, 1.0);
        assert!(progress.state().is_none(), "nothing is told before the start");
        progress.started(Some(100), Epochs::Fixed(3));
        progress.add_scanned_bytes(30);
        progress.add_bytes(20);
        progress.step(10, 1.0);
        let told = |progress: &Progress| progress.state().as_ref().map(|state| state.row(Instant::now()));
        assert_eq!(told(&progress).unwrap().share, Some(0.5 / 3.0));
        progress.epoch_done(2, &epoch_of(10, 0));
        progress.step(5, 1.0);
        assert_eq!(told(&progress).unwrap().share, Some(0.75));
    }

    #[test]
    fn a_duration_is_short() {
        let texts = [12.0, 59.4, 59.5, 185.0, 3599.0, 3600.0, 7800.0].map(duration_text);
        assert_eq!(
            texts,
            ["12 s", "59 s", "1 min 0 s", "3 min 5 s", "59 min 59 s", "1 h 0 min", "2 h 10 min"]
        );
    }
}
