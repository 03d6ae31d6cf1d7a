//! The progress bar on a terminal: one row that is narrower than the terminal, so that it never wraps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps of the bar.
const LENGTH: u64 = 1000;
/// Minimum number of columns at which the bar has its full width.
const FULL_WIDTH_COLUMNS: usize = 80;
/// Columns of the percentage and of the spaces around it.
const PERCENT_COLUMNS: usize = 8;
/// Maximum number of columns of the row: a terminal of usual size that becomes narrower then has nothing to wrap.
const MAX_COLUMNS: usize = 80;
/// Columns to assume when the terminal does not report its width.
const COLUMNS_FALLBACK: usize = 80;

/// A bar in the last row of the terminal.
#[derive(Debug)]
pub(crate) struct TerminalBar {
    row: ProgressBar,
    term: Term,
    drawn_size: Mutex<DrawnSize>,
}

/// The size of the bar as the terminal shows it.
#[derive(Clone, Copy, Debug, Default)]
struct DrawnSize {
    /// Columns of the terminal at the last drawing.
    columns: usize,
    /// Columns of the bar and its text; 0 before the first drawing.
    bar_columns: usize,
}

impl DrawnSize {
    /// Number of rows above the last one that the bar takes since the terminal became narrower.
    fn wrapped_rows(&self, columns: usize) -> usize {
        if columns < self.columns { self.bar_columns.saturating_sub(1) / columns } else { 0 }
    }
}

impl TerminalBar {
    pub(crate) fn new() -> Self {
        let row = ProgressBar::with_draw_target(Some(LENGTH), ProgressDrawTarget::stderr());
        Self { row, term: Term::stderr(), drawn_size: Mutex::default() }
    }

    /// Prints a line above the bar.
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
        // The position draws the text too.
        self.row.set_message(text);
        self.row.set_position((share * LENGTH as f64) as u64);
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        let mut drawn = self.drawn_size();
        self.fit(&mut drawn);
        self.row.finish_and_clear();
    }

    /// Clears the rows above the last row of the bar when the terminal has become narrower and has wrapped the bar: the
    /// bar does not know these rows.
    fn fit(&self, drawn: &mut DrawnSize) {
        let columns =
            self.term.size_checked().map_or(COLUMNS_FALLBACK, |(_, columns)| usize::from(columns)).max(1);
        let rows = drawn.wrapped_rows(columns);
        if rows > 0 {
            self.row.suspend(|| {
                // A failure is harmless: the terminal may be closed.
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

/// Returns the width of the bar and as much of the text as fits beside it, with one spare column.
fn layout(columns: usize, text: &str) -> (usize, String) {
    let width = if columns >= FULL_WIDTH_COLUMNS { 20 } else { 8 };
    let room = columns.min(MAX_COLUMNS).saturating_sub(width + PERCENT_COLUMNS + 1);
    (width, text.chars().take(room).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_in_a_narrower_terminal_takes_several_rows() {
        let drawn = DrawnSize { columns: 80, bar_columns: 79 };
        let rows = [100, 80, 79, 78, 40, 39, 20].map(|columns| drawn.wrapped_rows(columns));
        assert_eq!(rows, [0, 0, 0, 1, 1, 2, 3]);
        assert_eq!(DrawnSize { columns: 80, bar_columns: 0 }.wrapped_rows(10), 0, "nothing is drawn yet");
    }

    #[test]
    fn rows_that_a_narrower_terminal_has_wrapped_are_cleared() {
        // A file is a terminal without a size: 80 columns.
        let cleared = |columns, bar_columns| {
            let file = tempfile::NamedTempFile::new().unwrap();
            let term = Term::read_write_pair(std::io::stdin(), file.reopen().unwrap());
            let bar = TerminalBar { row: ProgressBar::hidden(), term, drawn_size: Mutex::default() };
            let mut drawn = DrawnSize { columns, bar_columns };
            bar.fit(&mut drawn);
            assert_eq!(drawn.columns, COLUMNS_FALLBACK);
            (std::fs::metadata(file.path()).unwrap().len() > 0, drawn.bar_columns)
        };
        assert_eq!(cleared(100, 99), (true, 0));
        assert_eq!(cleared(100, 80), (false, 80), "it still fits");
        assert_eq!(cleared(80, 99), (false, 99), "the terminal has not become narrower");
        assert_eq!(cleared(100, 0), (false, 0));
    }

    #[test]
    fn a_wide_terminal_shows_the_whole_text_and_a_narrow_one_its_beginning() {
        let text = "0123456789".repeat(9);
        assert_eq!(layout(200, &text), (20, text[..51].to_owned()), "80 columns at most");
        assert_eq!(layout(80, &text), (20, text[..51].to_owned()));
        assert_eq!(layout(79, &text), (8, text[..62].to_owned()));
        assert_eq!(layout(20, &text), (8, text[..3].to_owned()));
        assert_eq!(layout(10, &text), (8, String::new()));
        assert_eq!(layout(80, "short"), (20, "short".to_owned()));
    }

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
