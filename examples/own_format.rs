//! Your own format: one trait and one row of the format table, then the ordinary commands.
//!
//! `weather` lines look like `rain: wind=12.5 cloud=0.9`, or `dry: ...`. Try it:
//! ```text
//! cargo run --example own_format -- train lr --data examples/days.weather --model out/
//! cargo run --example own_format -- predict --model out/ --data examples/days.weather --output -
//! ```

use std::process::ExitCode;

use data::format::{Abilities, FormatContext, FormatRow, LineFormat, LineParser, OpenFormat, ParsedLine};
use data::{BatchBuilder, FormatTable, LineError, Schema};
use engine::Tables;

/// The parser of one line. Splits, compression and line numbers are handled elsewhere.
struct Weather;

impl LineParser for Weather {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let text = std::str::from_utf8(line).map_err(|e| LineError::new(e.valid_up_to(), "text in UTF-8"))?;
        if text.trim().is_empty() {
            return Ok(ParsedLine::Skipped);
        }
        let (sky, measured) = text.split_once(':').ok_or_else(|| LineError::new(0, "rain: or dry:"))?;
        let label = match sky.trim() {
            "rain" => 1.0,
            "dry" => 0.0,
            _ => return Err(LineError::new(0, "rain: or dry:")),
        };
        for word in measured.split_whitespace() {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            let entry =
                word.split_once('=').and_then(|(name, value)| Some((name, value.parse::<f32>().ok()?)));
            let (name, value) = entry.ok_or_else(|| LineError::new(at, "name=number"))?;
            out.push(math::hash::named_key(b"weather", name.as_bytes()), value);
        }
        if let Some(key) = out.duplicate_key() {
            return Err(LineError::with_actual(0, "each name once", format!("a name twice (key {key})")));
        }
        Ok(ParsedLine::Record { label: Some(label), weight: 1.0, group: None })
    }
}

impl LineFormat for Weather {
    fn schema(&self) -> Schema {
        Schema::default()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Weather)
    }
}

/// The row of the format table.
const ROW: FormatRow = FormatRow {
    name: "weather",
    title: "rain: or dry:, then name=number ...",
    extensions: &["weather"],
    // Features have names and no groups, and there are no columns: settings that need these are refused.
    abilities: Abilities::NONE,
    recognize: |head| head.starts_with(b"rain:") || head.starts_with(b"dry:"),
    open: |_: &FormatContext<'_>| Ok(OpenFormat::Lines(Box::new(Weather))),
};

fn main() -> ExitCode {
    seraphim::cli::run_with(&Tables { formats: FormatTable::builtin().with(ROW), ..Tables::default() })
}

#[cfg(test)]
mod tests {
    use data::{FormatOptions, Input, KeyLimit, Source, SourceConfig};

    use super::*;

    fn open(options: FormatOptions) -> Result<Source, data::Error> {
        let config = SourceConfig { format: Some("weather".to_owned()), options, ..SourceConfig::default() };
        let files = vec![Input::memory("days", &b"rain: wind=12.5\n"[..])?];
        Source::from_inputs(files, &config, None, &FormatTable::builtin().with(ROW))
    }

    #[test]
    fn settings_that_the_format_has_no_use_for_are_refused() {
        assert!(open(FormatOptions::default()).is_ok());
        let column = || Some("wind".to_owned());
        for options in [
            FormatOptions { label: column(), ..FormatOptions::default() },
            FormatOptions { group: column(), ..FormatOptions::default() },
            FormatOptions { interactions: vec![vec!["a".into(), "b".into()]], ..FormatOptions::default() },
            FormatOptions {
                key_limit: Some(KeyLimit { limit: 100, setting: "dimensions" }),
                ..FormatOptions::default()
            },
        ] {
            let error = open(options).err().expect("a setting that is refused").to_string();
            assert!(error.contains("weather") && error.contains("remove this setting"), "{error}");
        }
    }
}
