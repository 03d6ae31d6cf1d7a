//! The lines of a text model: keys and values of the header and of each tree.

use std::collections::BTreeMap;

use serde_json::Value;

use super::constants::VERSIONS;
use algo::error::Error;

/// The keys of the header.
const HEADER_KEYS: [&str; 11] = [
    "tree",
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "feature_names",
    "monotone_constraints",
    "feature_infos",
    "tree_sizes",
];
/// The keys of a tree.
const TREE_KEYS: [&str; 18] = [
    "num_leaves",
    "num_cat",
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "leaf_weight",
    "leaf_count",
    "internal_value",
    "internal_weight",
    "internal_count",
    "cat_boundaries",
    "cat_threshold",
    "is_linear",
    "shrinkage",
];
/// The line after the last tree.
const END: &str = "end of trees";
/// The start of the line with the names of categories.
const PANDAS: &str = "pandas_categorical:";

/// Keys with their values.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    /// What the keys belong to.
    pub(super) place: String,
    by_key: BTreeMap<&'a str, &'a str>,
}

/// A text in its parts.
#[derive(Debug, Default)]
pub(super) struct TextModel<'a> {
    pub(super) header: Fields<'a>,
    pub(super) trees: Vec<Fields<'a>>,
    /// The names of the categories of each column that has some; none if there are no names.
    pub(super) categories: Option<Vec<Vec<Value>>>,
}

/// An error of the file.
pub(super) fn bad<T>(reason: impl Into<String>) -> Result<T, Error> {
    Err(Error::UnsuitableData { reason: reason.into() })
}

impl<'a> Fields<'a> {
    fn insert(&mut self, line: &'a str, known: &[&str]) -> Result<(), Error> {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if key == "average_output" {
            return bad("average_output: the mean of trees (random forests of LightGBM) is not supported");
        }
        if !known.contains(&key) {
            return bad(format!("{}: the key {key:?} is not known, and may change predictions", self.place));
        }
        match self.by_key.insert(key, value) {
            None => Ok(()),
            Some(_) => bad(format!("{}: the key {key:?} is there twice", self.place)),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.by_key.get(key).copied()
    }

    pub(super) fn required(&self, key: &str) -> Result<&'a str, Error> {
        self.get(key).map_or_else(|| bad(format!("{}: the key {key:?} is missing", self.place)), Ok)
    }

    /// A number.
    pub(super) fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, Error> {
        let text = self.required(key)?;
        text.parse().or_else(|_| bad(format!("{}: {key}={text} is not a number as expected", self.place)))
    }

    /// So many numbers, or none if the key is not there.
    pub(super) fn numbers<T: std::str::FromStr>(&self, key: &str, count: usize) -> Result<Vec<T>, Error> {
        let Some(text) = self.get(key) else { return Ok(Vec::new()) };
        let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<T>, _>>();
        match numbers {
            Ok(numbers) if numbers.len() == count => Ok(numbers),
            Ok(numbers) => bad(format!("{}: {key} has {} numbers, not {count}", self.place, numbers.len())),
            Err(_) => bad(format!("{}: {key} has something else than numbers", self.place)),
        }
    }

    /// So many numbers, which must be there.
    pub(super) fn required_numbers<T: std::str::FromStr>(
        &self,
        key: &str,
        count: usize,
    ) -> Result<Vec<T>, Error> {
        if count > 0 {
            self.required(key)?;
        }
        self.numbers(key, count)
    }
}

impl<'a> TextModel<'a> {
    /// Divides a text, and checks that it is complete.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        if text.lines().next().map(str::trim_end) != Some("tree") {
            return bad(
                "the first line is not \"tree\", as in a text model of LightGBM (Booster.save_model)",
            );
        }
        if text.lines().all(|line| line != END) {
            return bad(format!("the file is cut off: the line \"{END}\" is missing"));
        }
        let mut model =
            Self { header: Fields { place: "header".to_owned(), ..Fields::default() }, ..Self::default() };
        let (mut starts, mut offset, mut is_ended) = (Vec::new(), 0, false);
        for line in text.split_inclusive('\n') {
            let (start, line) = (offset, line.trim_end_matches(['\n', '\r']));
            offset = start + text[start..].find('\n').map_or(text.len() - start, |end| end + 1);
            if is_ended {
                if let Some(names) = line.strip_prefix(PANDAS) {
                    model.categories = categories(names)?;
                }
            } else if line == END {
                is_ended = true;
                starts.push(start);
            } else if let Some(number) = line.strip_prefix("Tree=") {
                let place = format!("tree {number}");
                if number != model.trees.len().to_string() {
                    return bad(format!("{place}: tree {} was expected here", model.trees.len()));
                }
                starts.push(start);
                model.trees.push(Fields { place, ..Fields::default() });
            } else if !line.is_empty() {
                match model.trees.last_mut() {
                    Some(tree) => tree.insert(line, &TREE_KEYS)?,
                    None => model.header.insert(line, &HEADER_KEYS)?,
                }
            }
        }
        let version = model.header.required("version")?;
        if !VERSIONS.contains(&version) {
            return bad(format!("version={version} is not supported, only {}", VERSIONS.join(" and ")));
        }
        model.check_sizes(&starts)?;
        Ok(model)
    }

    /// Checks the sizes of the trees in bytes.
    fn check_sizes(&self, starts: &[usize]) -> Result<(), Error> {
        if self.header.get("tree_sizes").is_none() {
            return Ok(());
        }
        let sizes: Vec<usize> = self.header.numbers("tree_sizes", self.trees.len())?;
        for ((tree, size), range) in self.trees.iter().zip(sizes).zip(starts.array_windows::<2>()) {
            if range[1] - range[0] != size {
                return bad(format!(
                    "{}: it has {} bytes, and tree_sizes says {size}: the file was changed or cut",
                    tree.place,
                    range[1] - range[0]
                ));
            }
        }
        Ok(())
    }
}

fn categories(text: &str) -> Result<Option<Vec<Vec<Value>>>, Error> {
    serde_json::from_str(text).or_else(|error| bad(format!("{PANDAS} {error}")))
}
