//! The bar on a terminal: one row, never as wide as the terminal, so that nothing wraps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar counts in thousandths of the work.
const LENGTH: u64 = 1000;
/// From so many columns on, the bar has its full width.
const FULL_WIDTH_COLUMNS: usize = 80;
/// Columns of the percentage and of the spaces around it.
const PERCENT_COLUMNS: usize = 8;
/// A row is never longer: a terminal of usual size that becomes narrower has nothing to wrap.
const MAX_COLUMNS: usize = 80;
/// Columns of a terminal that does not say how many it has.
const COLUMNS_FALLBACK: usize = 80;

/// A bar at the end of what a terminal shows.
#[derive(Debug)]
pub(crate) struct TerminalBar {
    row: ProgressBar,
    term: Term,
    drawn_size: Mutex<DrawnSize>,
}

/// What the terminal shows of the bar.
#[derive(Clone, Copy, Debug, Default)]
struct DrawnSize {
    /// Columns of the terminal when it was drawn.
    columns: usize,
    /// Columns of the bar and its text; 0 before the first time.
    bar_columns: usize,
}

impl TerminalBar {
    pub(crate) fn new() -> Self {
        let row = ProgressBar::with_draw_target(Some(LENGTH), ProgressDrawTarget::stderr());
        Self { row, term: Term::stderr(), drawn_size: Mutex::default() }
    }

    /// A line above the bar.
    pub(crate) fn print_line(&self, line: &str) {
        let mut drawn = self.drawn_size();
        self.fit(&mut drawn);
        self.row.println(line);
    }

    pub(crate) fn show(&self, share: f64, text: &str) {
        let mut drawn = self.drawn_size();
        self.fit(&mut drawn);
        let (width, text) = layout(drawn.columns, text);
        drawn.bar_columns = width + PERCENT_COLUMNS + text.chars().count();
        let template = format!("{{bar:{width}}} {{percent:>3}} %  {{msg}}");
        self.row
            .set_style(ProgressStyle::with_template(&template).expect("the template is valid for any width"));
        // The text goes out with the position.
        self.row.set_message(text);
        self.row.set_position((share * LENGTH as f64) as u64);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        let mut drawn = self.drawn_size();
        self.fit(&mut drawn);
        self.row.finish_and_clear();
    }

    /// A terminal that has become narrower has wrapped the bar: the rows above its last are taken away here, which the bar
    /// itself does not know of.
    fn fit(&self, drawn: &mut DrawnSize) {
        let columns =
            self.term.size_checked().map_or(COLUMNS_FALLBACK, |(_, columns)| usize::from(columns)).max(1);
        let rows = drawn.bar_columns.saturating_sub(1) / columns;
        if columns < drawn.columns && rows > 0 {
            self.row.suspend(|| {
                // A terminal that is gone shows nothing wrong.
                let _ = self.term.clear_last_lines(rows);
            });
            drawn.bar_columns = 0;
        }
        drawn.columns = columns;
    }

    fn drawn_size(&self) -> MutexGuard<'_, DrawnSize> {
        self.drawn_size.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The width of the bar and as much of the text as fits beside it, with a column to spare.
fn layout(columns: usize, text: &str) -> (usize, String) {
    let width = if columns >= FULL_WIDTH_COLUMNS { 20 } else { 8 };
    let room = columns.min(MAX_COLUMNS).saturating_sub(width + PERCENT_COLUMNS + 1);
    (width, text.chars().take(room).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fits_into_any_terminal() {
        let text = "epoch 1 of 60  ETA 12 min 3 s  loss 0.69315  456.7k/s  1.23M records";
        for columns in [20, 40, 80, 200] {
            let (width, text) = layout(columns, text);
            assert!(width + PERCENT_COLUMNS + text.len() < columns.min(MAX_COLUMNS), "{columns}: {text:?}");
            assert!(columns < 40 || text.starts_with("epoch 1 of 60"), "{columns}: {text:?}");
        }
    }
}
