//! What the records of a format have. Other code asks for these abilities and never for the name of a format.

use super::FormatRow;
use crate::Error;
use crate::options::FormatOptions;

/// The abilities of a format. A format of one's own states them in its row of the table, for example as
/// `Abilities { has_groups: true, ..Abilities::NONE }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Records have columns: settings can name those of labels, weights, groups and times, and columns to skip or to
    /// copy. The format reads these settings itself; where it has no columns, they are refused before it is opened.
    pub has_columns: bool,
    /// A feature that is not in a column of its own is a number in the input, and the same number means the same feature
    /// in all formats with this ability. Otherwise such features have names, whose hashes are the keys.
    pub is_numbered: bool,
    /// Features have groups that interactions can multiply: columns, namespaces or fields.
    pub has_groups: bool,
    /// Records may name a query, which is their group if the setting `group` is `qid`.
    pub has_qid: bool,
    /// A record is a text.
    pub has_text: bool,
    /// Columns in the names of folders (`day=1/file`) are read.
    pub reads_partitions: bool,
}

impl Abilities {
    /// Records of features with names, without columns.
    pub const NONE: Self = Self {
        has_columns: false,
        is_numbered: false,
        has_groups: false,
        has_qid: false,
        has_text: false,
        reads_partitions: false,
    };
    /// A table.
    pub const COLUMNS: Self = Self { has_columns: true, has_groups: true, ..Self::NONE };
}

impl FormatRow {
    /// Fails when the user has asked for a tokenizer of texts where there are none.
    pub(crate) fn refuse_tokenizer(&self, options: &FormatOptions) -> Result<(), Error> {
        if options.tokenizer.is_none() || self.abilities.has_text || !options.token_columns.is_empty() {
            return Ok(());
        }
        let reason =
            format!("{} has no texts; name columns of texts with token_columns, or remove it", self.name);
        Err(Error::BadOption { option: "tokenizer", reason })
    }

    /// Fails when a setting needs what the records of this format do not have.
    pub(crate) fn refuse_settings(&self, options: &FormatOptions) -> Result<(), Error> {
        let (name, has) = (self.name, self.abilities);
        let refuse = |option, reason: String| {
            Err(Error::BadOption { option, reason: format!("{reason}; remove this setting") })
        };
        if !options.interactions.is_empty() && !has.has_groups {
            return refuse(
                "interactions",
                format!("{name} has no columns, namespaces or fields to multiply"),
            );
        }
        if has.has_columns {
            return Ok(());
        }
        let of_columns = [
            ("label", options.label.is_some()),
            ("weight", options.weight.is_some()),
            ("time", options.time.is_some()),
            ("text_columns", !options.text_columns.is_empty()),
            ("token_columns", !options.token_columns.is_empty()),
            ("skip_columns", !options.skip_columns.is_empty()),
            ("header", options.header == Some(true)),
            ("delimiter", options.delimiter.is_some()),
        ];
        if let Some((option, _)) = of_columns.into_iter().find(|(_, is_given)| *is_given) {
            return refuse(option, format!("{name} has no columns"));
        }
        match &options.group {
            Some(group) if !has.has_qid => {
                refuse("group", format!("'{group}': records of {name} have no group"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{names, options, rows};
    use crate::{FormatTable, Input, Source, SourceConfig};

    #[test]
    fn formats_without_columns_refuse_settings_of_columns() {
        let column = || Some("x".to_owned());
        let unused = || FormatOptions { uses_labels: false, ..options() };
        for row in FormatTable::builtin().rows().iter().filter(|row| !row.abilities.has_columns) {
            for (option, given) in [
                ("label", FormatOptions { label: column(), ..unused() }),
                ("weight", FormatOptions { weight: column(), ..unused() }),
                ("time", FormatOptions { time: column(), ..unused() }),
                ("text_columns", FormatOptions { text_columns: names(&["x"]), ..unused() }),
                ("token_columns", FormatOptions { token_columns: names(&["x"]), ..unused() }),
                ("skip_columns", FormatOptions { skip_columns: names(&["x"]), ..unused() }),
                ("header", FormatOptions { header: Some(true), ..unused() }),
                ("delimiter", FormatOptions { delimiter: Some(b','), ..unused() }),
                ("group", FormatOptions { group: column(), ..unused() }),
            ] {
                match rows(row.name, &given, "1 1\n") {
                    Err(Error::BadOption { option: found, reason }) => {
                        assert_eq!(found, option, "{}", row.name);
                        assert!(reason.contains(row.name), "{reason}");
                    }
                    other => panic!("{} with {option}: {other:?}", row.name),
                }
            }
            // A header that is said to be absent is nothing to refuse.
            let no_header = FormatOptions { header: Some(false), ..unused() };
            assert!(row.refuse_settings(&no_header).is_ok(), "{}", row.name);
            let products = FormatOptions { interactions: vec![names(&["1", "2"])], ..unused() };
            assert_eq!(row.refuse_settings(&products).is_ok(), row.abilities.has_groups, "{}", row.name);
        }
    }

    #[test]
    fn an_ability_of_a_row_decides_and_not_its_name() {
        let table = FormatTable::builtin();
        let libsvm = table.find("libsvm").expect("a row");
        let renamed = FormatRow { name: "own", ..*libsvm };
        let grouped = FormatOptions { group: Some("qid".to_owned()), ..options() };
        let opened = |row: FormatRow, options: &FormatOptions| {
            let config = SourceConfig {
                format: Some(row.name.to_owned()),
                options: options.clone(),
                ..SourceConfig::default()
            };
            let files = vec![Input::memory("f", &b"1 qid:1 1:2\n"[..]).expect("text")];
            Source::from_inputs(files, &config, None, &FormatTable::builtin().with(row))
        };
        assert_eq!(opened(renamed, &grouped).unwrap().schema().group.as_deref(), Some("qid"));
        let without = FormatRow { abilities: Abilities { is_numbered: false, ..Abilities::NONE }, ..renamed };
        let error = opened(without, &grouped).err().expect("no group").to_string();
        assert!(error.contains("records of own have no group; remove this setting"), "{error}");
        let limited = FormatOptions {
            key_limit: Some(crate::KeyLimit { limit: 9, setting: "dimensions" }),
            ..options()
        };
        assert!(opened(renamed, &limited).is_ok());
        let error = opened(without, &limited).err().expect("names").to_string();
        assert!(error.contains("(own) have names and no numbers"), "{error}");
    }
}
