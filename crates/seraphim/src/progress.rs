//! Progress on standard error: a bar on a terminal (`terminal_bar`), plain lines otherwise, nothing with `--quiet`.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use algo::Epochs;

use crate::terminal_bar::TerminalBar;

/// Time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two updates of the bar.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a run, shared by its tasks.
#[derive(Debug)]
pub struct Progress {
    kind: ProgressKind,
    start: Instant,
    /// Records of all epochs.
    records: AtomicU64,
    /// Input bytes read in epoch 0.
    bytes: AtomicU64,
    size_bytes: Option<u64>,
    epochs: Epochs,
    state: Mutex<State>,
}

#[derive(Debug)]
enum ProgressKind {
    Silent,
    Lines,
    Bar(TerminalBar),
}

#[derive(Debug)]
struct State {
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
    /// Creates the progress of a run of `epochs`; `size_bytes` is the size of the input, if known.
    pub fn new(quiet: bool, size_bytes: Option<u64>, epochs: Epochs) -> Self {
        let kind = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => ProgressKind::Silent,
            (false, true) => ProgressKind::Bar(TerminalBar::new()),
            (false, false) => ProgressKind::Lines,
        };
        let start = Instant::now();
        let state = State {
            last: start,
            epoch: 0,
            epoch_count: None,
            epoch_records: 0,
            epoch_start: start,
            epoch_time: None,
            epoch_records_so_far: 0,
            loss_sum: 0.0,
        };
        let (records, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { kind, start, records, bytes, size_bytes, epochs, state: Mutex::new(state) }
    }

    /// Creates a progress that counts but shows nothing.
    pub fn silent() -> Self {
        Self::new(true, None, Epochs::Fixed(1))
    }

    /// Prints a line for people, above the bar if there is one.
    pub fn print_line(&self, line: &str) {
        match &self.kind {
            ProgressKind::Silent => {}
            // A closed standard error must not end a training run.
            ProgressKind::Lines => drop(writeln!(std::io::stderr(), "{line}")),
            ProgressKind::Bar(bar) => bar.print_line(line),
        }
    }

    /// Adds input bytes that a task has read since its last call.
    pub fn add_bytes(&self, count: u64) {
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds input bytes that a task has read in the scan before the first epoch.
    pub fn add_scanned_bytes(&self, byte_count: u64) {
        let bytes = self.bytes.fetch_add(byte_count, Ordering::Relaxed) + byte_count;
        if matches!(self.kind, ProgressKind::Silent) {
            return;
        }
        let Ok(mut state) = self.state.lock() else { return };
        // The first epoch begins where the scan ends.
        state.epoch_start = Instant::now();
        if state.last.elapsed() < self.interval() {
            return;
        }
        state.last = Instant::now();
        let share =
            self.size_bytes.filter(|&size| size > 0).map(|size| (bytes as f64 / size as f64).min(1.0));
        let speed = self::bytes((bytes as f64 / self.start.elapsed().as_secs_f64().max(1e-9)) as u64);
        self.show(share, &format!("reading all data first  {speed}/s"));
    }

    /// Adds a step: its number of records and the sum of their losses.
    pub fn step(&self, record_count: u64, loss_sum: f64) {
        self.records.fetch_add(record_count, Ordering::Relaxed);
        if matches!(self.kind, ProgressKind::Silent) {
            return;
        }
        let Ok(mut state) = self.state.lock() else { return };
        state.epoch_records_so_far += record_count;
        state.loss_sum += loss_sum;
        if state.last.elapsed() >= self.interval() {
            state.last = Instant::now();
            self.draw(&state);
        }
    }

    /// Records that all tasks have ended an epoch.
    pub fn epoch_done(&self, epoch: u64, epoch_count: u64, records: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.epoch = epoch + 1;
            state.epoch_count = Some(epoch_count);
            state.epoch_records = records;
            state.epoch_time = Some(state.epoch_start.elapsed());
            state.epoch_start = Instant::now();
            (state.epoch_records_so_far, state.loss_sum) = (0, 0.0);
        }
    }

    /// Number of records in all epochs so far.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let ProgressKind::Bar(bar) = &self.kind {
            bar.clear();
        }
    }

    /// Returns the share of the current epoch that is done; none when it cannot be estimated.
    fn share_of_epoch(&self, state: &State) -> Option<f64> {
        let share = if state.epoch_records > 0 {
            state.epoch_records_so_far as f64 / state.epoch_records as f64
        } else {
            self.bytes.load(Ordering::Relaxed) as f64 / self.size_bytes.filter(|&b| b > 0)? as f64
        };
        Some(share.min(1.0))
    }

    /// Returns the number of epochs. In the first epoch it may be an estimate from the number of records in the share
    /// that has been read.
    fn epoch_count(&self, state: &State, share: Option<f64>) -> Option<u64> {
        match (state.epoch_count, self.epochs) {
            (Some(count), _) | (None, Epochs::Fixed(count)) => Some(count),
            (None, epochs @ Epochs::Auto { .. }) => {
                let records = state.epoch_records_so_far as f64 / share.filter(|&share| share > 0.0)?;
                Some(epochs.count(records as u64))
            }
        }
    }

    fn draw(&self, state: &State) {
        let within = self.share_of_epoch(state);
        let epoch_count = self.epoch_count(state, within);
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
        let speed = self.records() as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        let eta = eta.unwrap_or_else(|| "?".into());
        // The most important numbers come first, since a narrow terminal shows only the beginning.
        let text = format!(
            "epoch {}{of_all}  ETA {eta}  loss {loss:.5}  {}/s  {} records",
            state.epoch + 1,
            count(speed),
            count(self.records() as f64)
        );
        self.show(share.map(|share| share.min(1.0)), &text);
    }

    /// Time between two updates.
    fn interval(&self) -> Duration {
        if matches!(self.kind, ProgressKind::Bar(_)) { DRAW_INTERVAL } else { LINE_INTERVAL }
    }

    fn show(&self, share: Option<f64>, text: &str) {
        match &self.kind {
            ProgressKind::Silent => {}
            ProgressKind::Lines => {
                let percent = share.map_or_else(String::new, |s| format!("{:3.0} %  ", s * 100.0));
                self.print_line(&format!("{percent}{text}"));
            }
            ProgressKind::Bar(bar) => bar.show(share.unwrap_or(0.0), text),
        }
    }
}

/// Returns a number as `950`, `12.3k` or `4.56M`.
pub fn count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2}G", n / 1e9),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// Returns a number with its noun: `1 epoch`, `3 epochs`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns a number of bytes in binary units.
pub fn bytes(number: u64) -> String {
    match number as f64 {
        n if n >= 1073741824.0 => format!("{:.2} GiB", n / 1073741824.0),
        n if n >= 1048576.0 => format!("{:.1} MiB", n / 1048576.0),
        n if n >= 1024.0 => format!("{:.1} KiB", n / 1024.0),
        n => format!("{n} bytes"),
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

    fn drawn(progress: &Progress) -> (Option<f64>, Option<u64>) {
        let state = progress.state.lock().unwrap();
        let share = progress.share_of_epoch(&state);
        (share, progress.epoch_count(&state, share))
    }

    #[test]
    fn the_first_epoch_knows_how_many_there_are() {
        let fixed =
            Progress { kind: ProgressKind::Lines, ..Progress::new(true, Some(100), Epochs::Fixed(60)) };
        fixed.add_bytes(97);
        fixed.step(10, 1.0);
        assert_eq!(drawn(&fixed), (Some(0.97), Some(60)));
        let auto = Epochs::Auto { record_visits: 1000, limit: 50 };
        let guessed = Progress { kind: ProgressKind::Lines, ..Progress::new(true, Some(100), auto) };
        guessed.add_bytes(50);
        guessed.step(100, 1.0);
        assert_eq!(drawn(&guessed), (Some(0.5), Some(5)), "200 records, 1000 to see");
        guessed.epoch_done(0, 4, 250);
        guessed.step(125, 1.0);
        assert_eq!(drawn(&guessed), (Some(0.5), Some(4)));
        let stream = Progress { kind: ProgressKind::Lines, ..Progress::new(true, None, auto) };
        stream.step(100, 1.0);
        assert_eq!(drawn(&stream), (None, None));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(950.0), count(12_345.0), count(4.56e6)], ["950", "12.3k", "4.56M"]);
        assert_eq!(
            [duration_text(12.0), duration_text(185.0), duration_text(7800.0)],
            ["12 s", "3 min 5 s", "2 h 10 min"]
        );
        assert_eq!([bytes(512), bytes(1536), bytes(3 << 30)], ["512 bytes", "1.5 KiB", "3.00 GiB"]);
    }
}
