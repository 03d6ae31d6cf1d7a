//! Progress: a bar on a terminal, plain lines otherwise, nothing with `--quiet`. All of it goes to standard error.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Time between two looks of the bar at the counters.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// The bar counts in thousandths of the work.
const BAR_LENGTH: u64 = 1000;

/// Shared by the tasks of a run.
#[derive(Debug)]
pub struct Progress {
    kind: Kind,
    start: Instant,
    /// Records of all epochs.
    records: AtomicU64,
    /// Input bytes read in epoch 0.
    bytes: AtomicU64,
    size_bytes: Option<u64>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum Kind {
    Silent,
    Lines,
    Bar(ProgressBar),
}

#[derive(Debug)]
struct State {
    last: Instant,
    epoch: u64,
    epoch_count: Option<u64>,
    epoch_records: u64,
    /// Records and losses of the current epoch.
    seen: u64,
    loss_sum: f64,
}

impl Progress {
    /// For a run over `size_bytes` of input, when that is known.
    pub fn new(quiet: bool, size_bytes: Option<u64>) -> Self {
        let kind = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Kind::Silent,
            (false, true) => Kind::Bar(bar()),
            (false, false) => Kind::Lines,
        };
        let start = Instant::now();
        let state =
            State { last: start, epoch: 0, epoch_count: None, epoch_records: 0, seen: 0, loss_sum: 0.0 };
        let (records, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { kind, start, records, bytes, size_bytes, state: Mutex::new(state) }
    }

    /// A line for people, above the bar if there is one.
    pub fn say(&self, line: &str) {
        match &self.kind {
            Kind::Silent => {}
            // A closed standard error must not end a training run.
            Kind::Lines => drop(writeln!(std::io::stderr(), "{line}")),
            Kind::Bar(bar) => bar.println(line),
        }
    }

    /// Input bytes that a task has read since it last said so.
    pub fn add_bytes(&self, count: u64) {
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Input bytes that a task has read in the scan before the first epoch.
    pub fn scanned(&self, byte_count: u64) {
        let bytes = self.bytes.fetch_add(byte_count, Ordering::Relaxed) + byte_count;
        if matches!(self.kind, Kind::Silent) {
            return;
        }
        let Ok(mut state) = self.state.lock() else { return };
        if state.last.elapsed() < self.every() {
            return;
        }
        state.last = Instant::now();
        let share =
            self.size_bytes.filter(|&size| size > 0).map(|size| (bytes as f64 / size as f64).min(1.0));
        let speed = self::bytes((bytes as f64 / self.start.elapsed().as_secs_f64().max(1e-9)) as u64);
        self.show(share, &format!("reading all data before the first epoch  {speed}/s"));
    }

    /// A step: records and the sum of their losses.
    pub fn step(&self, record_count: u64, loss_sum: f64) {
        self.records.fetch_add(record_count, Ordering::Relaxed);
        if matches!(self.kind, Kind::Silent) {
            return;
        }
        let Ok(mut state) = self.state.lock() else { return };
        state.seen += record_count;
        state.loss_sum += loss_sum;
        if state.last.elapsed() >= self.every() {
            state.last = Instant::now();
            self.draw(&state);
        }
    }

    /// All tasks have ended an epoch.
    pub fn epoch_done(&self, epoch: u64, epoch_count: u64, records: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.epoch = epoch + 1;
            state.epoch_count = Some(epoch_count);
            state.epoch_records = records;
            (state.seen, state.loss_sum) = (0, 0.0);
        }
    }

    /// Records of all epochs so far.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }

    /// Share of the work that is done, when it can be known.
    fn share(&self, state: &State) -> Option<f64> {
        let epochs = state.epoch_count.unwrap_or(1).max(1) as f64;
        let within = if state.epoch_records > 0 {
            state.seen as f64 / state.epoch_records as f64
        } else {
            self.bytes.load(Ordering::Relaxed) as f64 / self.size_bytes.filter(|&b| b > 0)? as f64
        };
        Some(((state.epoch as f64 + within.min(1.0)) / epochs).min(1.0))
    }

    fn draw(&self, state: &State) {
        let seconds = self.start.elapsed().as_secs_f64().max(1e-9);
        let speed = self.records() as f64 / seconds;
        let share = self.share(state);
        let loss = state.loss_sum / state.seen.max(1) as f64;
        let eta = share.filter(|&s| s > 0.0).map_or_else(|| "?".into(), |s| span(seconds / s - seconds));
        let records = count(self.records() as f64);
        let text = format!(
            "epoch {}  {records} records  {}/s  loss {loss:.5}  ETA {eta}",
            state.epoch + 1,
            count(speed)
        );
        self.show(share, &text);
    }

    /// Time between two looks at the counters.
    fn every(&self) -> Duration {
        if matches!(self.kind, Kind::Bar(_)) { DRAW_EVERY } else { LINE_EVERY }
    }

    fn show(&self, share: Option<f64>, text: &str) {
        match &self.kind {
            Kind::Silent => {}
            Kind::Lines => {
                let percent = share.map_or_else(String::new, |s| format!("{:3.0} %  ", s * 100.0));
                self.say(&format!("{percent}{text}"));
            }
            Kind::Bar(bar) => {
                bar.set_position((share.unwrap_or(0.0) * BAR_LENGTH as f64) as u64);
                bar.set_message(text.to_owned());
            }
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(BAR_LENGTH), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
    bar.set_style(style.expect("the template is a constant that a test has seen"));
    bar
}

/// `950`, `12.3k`, `4.56M`.
pub fn count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2}G", n / 1e9),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// Bytes in binary units.
pub fn bytes(number: u64) -> String {
    match number as f64 {
        n if n >= 1073741824.0 => format!("{:.2} GiB", n / 1073741824.0),
        n if n >= 1048576.0 => format!("{:.1} MiB", n / 1048576.0),
        n if n >= 1024.0 => format!("{:.1} KiB", n / 1024.0),
        n => format!("{n} bytes"),
    }
}

/// `12 s`, `3 min 5 s`, `2 h 10 min`.
fn span(seconds: f64) -> String {
    match seconds.round() as u64 {
        s if s >= 3600 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s if s >= 60 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        assert_eq!(bar().length(), Some(BAR_LENGTH));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(950.0), count(12_345.0), count(4.56e6)], ["950", "12.3k", "4.56M"]);
        assert_eq!([span(12.0), span(185.0), span(7800.0)], ["12 s", "3 min 5 s", "2 h 10 min"]);
        assert_eq!([bytes(512), bytes(1536), bytes(3 << 30)], ["512 bytes", "1.5 KiB", "3.00 GiB"]);
    }
}
