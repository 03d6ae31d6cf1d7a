//! Progress on standard error: a bar on a terminal (`terminal_bar`), plain lines otherwise, nothing with `--quiet`.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::Epochs;
pub use cluster::amounts::{bytes, count, counted};
use cluster::progress::ProgressListener;
use cluster::report::EpochLine;

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
    /// Input bytes read in epoch 0.
    bytes: u64,
    last: Instant,
    epoch: u64,
    epoch_count: Option<u64>,
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

    /// Whether it is time for an update; then the next one is due after the interval.
    fn is_due(&self, state: &mut State) -> bool {
        let interval = if matches!(self.kind, ProgressKind::Bar(_)) { DRAW_INTERVAL } else { LINE_INTERVAL };
        let is_due = state.last.elapsed() >= interval;
        if is_due {
            state.last = Instant::now();
        }
        is_due
    }

    fn draw(&self, state: &State) {
        let within = state.share_of_epoch();
        let epoch_count = state.epoch_count(within);
        let epoch = state.epoch as f64;
        let share = within.zip(epoch_count).map(|(within, count)| (epoch + within) / count.max(1) as f64);
        let eta = within.zip(epoch_count).and_then(|(within, count)| {
            let of_epoch = match state.epoch_time {
                Some(time) => time.as_secs_f64(),
                None => Some(within)
                    .filter(|&w| w > 0.0)
                    .map(|w| state.epoch_start.elapsed().as_secs_f64() / w)?,
            };
            Some(duration_text(of_epoch * (count as f64 - epoch - within).max(0.0)))
        });
        let of_all = epoch_count.map_or_else(String::new, |count| format!(" of {count}"));
        let loss = state.loss_sum / state.epoch_records_so_far.max(1) as f64;
        let speed = state.records as f64 / state.start.elapsed().as_secs_f64().max(1e-9);
        let eta = eta.unwrap_or_else(|| "?".into());
        // The most important numbers come first, since a narrow terminal shows only the beginning.
        let text = format!(
            "epoch {}{of_all}  ETA {eta}  loss {loss:.5}  {}/s  {} records",
            state.epoch + 1,
            count(speed),
            count(state.records as f64)
        );
        self.show(share.map(|share| share.min(1.0)), &text);
    }

    fn show(&self, share: Option<f64>, text: &str) {
        match &self.kind {
            ProgressKind::Lines => {
                let percent = share.map_or_else(String::new, |s| format!("{:3.0} %  ", s * 100.0));
                self.print_line(&format!("{percent}{text}"));
            }
            ProgressKind::Bar(bar) => bar.show(share.unwrap_or(0.0), text),
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
        *self.state() = Some(State::new(size_bytes, epochs));
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
            // The first epoch begins where the scan ends.
            state.epoch_start = Instant::now();
            if self.is_due(state) {
                let known_size = state.size_bytes.filter(|&size| size > 0);
                let share = known_size.map(|size| (state.bytes as f64 / size as f64).min(1.0));
                let speed = state.bytes as f64 / state.start.elapsed().as_secs_f64().max(1e-9);
                self.show(share, &format!("reading all data first  {}/s", bytes(speed as u64)));
            }
        });
    }

    fn step(&self, record_count: u64, loss_sum: f64) {
        self.update(|state| {
            state.records += record_count;
            state.epoch_records_so_far += record_count;
            state.loss_sum += loss_sum;
            if self.is_due(state) {
                self.draw(state);
            }
        });
    }

    fn epoch_done(&self, epoch_count: u64, line: &EpochLine) {
        self.update(|state| {
            state.epoch = line.epoch + 1;
            state.epoch_count = Some(epoch_count);
            state.epoch_records = line.records;
            state.epoch_time = Some(state.epoch_start.elapsed());
            state.epoch_start = Instant::now();
            (state.epoch_records_so_far, state.loss_sum) = (0, 0.0);
        });
    }

    /// Removes the bar.
    fn clear(&self) {
        if let ProgressKind::Bar(bar) = &self.kind {
            self.update(|_| bar.clear());
        }
    }
}

impl State {
    fn new(size_bytes: Option<u64>, epochs: Epochs) -> Self {
        let start = Instant::now();
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

    /// Returns the share of the current epoch that is done; none when it cannot be estimated.
    fn share_of_epoch(&self) -> Option<f64> {
        let share = if self.epoch_records > 0 {
            self.epoch_records_so_far as f64 / self.epoch_records as f64
        } else {
            self.bytes as f64 / self.size_bytes.filter(|&b| b > 0)? as f64
        };
        Some(share.min(1.0))
    }

    /// Returns the number of epochs. In the first epoch it may be an estimate from the number of records in the share
    /// that has been read.
    fn epoch_count(&self, share: Option<f64>) -> Option<u64> {
        match (self.epoch_count, self.epochs) {
            (Some(count), _) | (None, Epochs::Fixed(count)) => Some(count),
            (None, epochs @ Epochs::Auto { .. }) => {
                let records = self.epoch_records_so_far as f64 / share.filter(|&share| share > 0.0)?;
                Some(epochs.count(records as u64))
            }
        }
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

    fn started(size_bytes: Option<u64>, epochs: Epochs) -> Progress {
        let progress = Progress { kind: ProgressKind::Lines, state: Mutex::default() };
        progress.started(size_bytes, epochs);
        progress
    }

    fn drawn(progress: &Progress) -> (Option<f64>, Option<u64>) {
        let state = progress.state();
        let state = state.as_ref().unwrap();
        let share = state.share_of_epoch();
        (share, state.epoch_count(share))
    }

    #[test]
    fn the_first_epoch_knows_how_many_there_are() {
        let fixed = started(Some(100), Epochs::Fixed(60));
        fixed.add_bytes(97);
        fixed.step(10, 1.0);
        assert_eq!(drawn(&fixed), (Some(0.97), Some(60)));
        let auto = Epochs::Auto { record_visits: 1000, limit: 50 };
        let guessed = started(Some(100), auto);
        guessed.add_bytes(50);
        guessed.step(100, 1.0);
        assert_eq!(drawn(&guessed), (Some(0.5), Some(5)), "200 records, 1000 to see");
        guessed.epoch_done(4, &EpochLine { records: 250, ..EpochLine::default() });
        guessed.step(125, 1.0);
        assert_eq!(drawn(&guessed), (Some(0.5), Some(4)));
        let stream = started(None, auto);
        stream.step(100, 1.0);
        assert_eq!(drawn(&stream), (None, None));
    }

    #[test]
    fn a_duration_is_short() {
        let texts = [12.0, 185.0, 7800.0].map(duration_text);
        assert_eq!(texts, ["12 s", "3 min 5 s", "2 h 10 min"]);
    }
}
