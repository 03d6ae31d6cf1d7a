//! A user's own format: one trait for its lines, one row in the table.
//!
//! The format here is `label;key,key,key`: keys of value 1.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use data::format::{FormatContext, FormatRow, LineParser, LinePlan, Parsed, Plan};
use data::{Batch, BatchBuilder, Error, FormatTable, Input, LineError, Schema, Source, SourceConfig};

struct Keys;

impl LinePlan for Keys {
    fn schema(&self) -> Schema {
        Schema::default()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Keys)
    }
}

impl LineParser for Keys {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<Parsed, LineError> {
        let text = std::str::from_utf8(line).map_err(|error| LineError::new(error.valid_up_to(), "UTF-8"))?;
        let Some((label, keys)) = text.split_once(';') else {
            return if text.is_empty() { Ok(Parsed::Nothing) } else { Err(LineError::new(0, "label;keys")) };
        };
        let label = label.parse().map_err(|_| LineError::new(0, "a number as the label"))?;
        for key in keys.split(',').filter(|key| !key.is_empty()) {
            let at = key.as_ptr() as usize - text.as_ptr() as usize;
            out.push_one(key.parse().map_err(|_| LineError::new(at, "a key"))?);
        }
        Ok(Parsed::Record { label: Some(label), weight: 1.0, group: None })
    }
}

const ROW: FormatRow = FormatRow {
    name: "keys",
    title: "label;key,key,key",
    extensions: &["keys"],
    recognize: |head| head.iter().take(4).any(|byte| *byte == b';'),
    open: |_: &FormatContext<'_>| Ok(Plan::Lines(Box::new(Keys))),
};

fn main() -> Result<(), Error> {
    let formats = FormatTable::builtin().with(ROW);
    let files = vec![Input::memory("example", &b"1;3,5,8\n0;5\n"[..])?];
    let source = Source::over(files, &SourceConfig::default(), None, &formats)?;
    let mut reader = source.reader(source.splits(1).remove(0))?;
    let mut batch = Batch::default();
    while reader.next_batch(1000, &mut batch)? {
        println!("labels {:?}, columns {:?}, indices {:?}", batch.labels, batch.columns, batch.indices);
    }
    Ok(())
}
