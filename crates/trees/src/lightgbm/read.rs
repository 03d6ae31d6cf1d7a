//! Reads a text model.

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{Column, ColumnKind, KeyNames, NumberForm, Schema, is_missing};
use math::hash::named_key;
use matrix::{OwnedValues, RowBlock};
use serde_json::Value;

use super::super::bins::SavedFeature;
use super::super::constraints::Constraints;
use super::super::importances::{Importances, add_importances};
use super::super::model::{IMPORTANCE_COLUMNS, Model};
use super::super::objective::Objective;
use super::super::tree::{NODE_WORDS, Node, Test, Tree, TreeRows};
use super::constants::{CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_NONE, MISSING_SHIFT};
use super::imported::{ImportOptions, ImportedModel};
use super::parse::{Fields, TextModel, bad};
use super::{objective, threshold};
use algo::error::Error;

/// Codes of categories are below this number.
const CODE_LIMIT: usize = 64 * NODE_WORDS as usize;

/// Makes a model of its text.
///
/// # Errors
/// [`Error::UnsuitableData`] with what is wrong or not supported.
pub fn read(text: &str, options: &ImportOptions) -> Result<ImportedModel, Error> {
    let text = TextModel::parse(text)?;
    let (objective, factor) = objective::parse(text.header.get("objective").unwrap_or_default())?;
    let width: usize = text.header.number("num_tree_per_iteration")?;
    let classes = match objective {
        Objective::Softmax => (0..width).map(|class| class as f32).collect(),
        Objective::Logistic { .. } => vec![0.0, 1.0],
        _ => Vec::new(),
    };
    if width == 0
        || (width > 1) != (objective == Objective::Softmax)
        || !text.trees.len().is_multiple_of(width)
    {
        let (trees, of) = (text.trees.len(), text.header.get("objective").unwrap_or_default());
        return bad(format!(
            "num_tree_per_iteration={width} does not fit the objective {of:?} and {trees} trees"
        ));
    }
    if !options.classes.is_empty() && options.classes.len() != classes.len() {
        let (given, count) = (options.classes.len(), classes.len());
        return bad(format!("{given} names of classes are given, and the model has {count} classes"));
    }
    let mut trees = text.trees.iter().map(|tree| read_tree(tree, factor)).collect::<Result<Vec<_>, _>>()?;
    let columns = Columns::new(&text, &trees, options)?;
    columns.widen(&mut trees);
    let leaves = trees.iter().map(|tree| tree.len() as u64 / 2 + 1).max().unwrap_or(0).max(2);
    let is_table = !options.is_numbered;
    let (features, schema, names) = columns.finish(&trees, options);
    let feature_count = features.len();
    let model = Model {
        objective,
        constraints: Constraints::default(),
        classes,
        positive_label: None,
        is_table,
        leaves,
        features,
        is_imported: true,
    };
    let iterations = (trees.len() / width) as u64;
    let settings = [
        ("objective", objective.name().to_owned()),
        ("iterations", iterations.to_string()),
        ("leaves", leaves.to_string()),
    ];
    Ok(ImportedModel {
        algorithm: "gbdt",
        settings: settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        schema,
        tables: tables(&model, &trees, iterations),
        model: Arc::new(model),
        names,
        records: trees.first().map_or(0, |tree| tree[0].count as u64),
        iterations,
        feature_count,
    })
}

/// The rows of the tables of a model, in their order.
fn tables(model: &Model, trees: &[Tree], iterations: u64) -> Vec<RowBlock> {
    let mut importances: Importances = (model.features().by_key.iter())
        .map(|(key, meaning)| (*key, [0.0, 0.0, 1.0 + f64::from(meaning.feature)]))
        .collect();
    for tree in trees {
        add_importances(&model.features, tree, &mut importances);
    }
    let mut ensemble = vec![0.0; 1 + model.width()];
    ensemble[0] = iterations as f64;
    let mut all = TreeRows::default();
    for (number, tree) in (0..).zip(trees) {
        let rows = model.tables().rows(number, tree);
        all.node_keys.extend(rows.node_keys);
        all.nodes.extend(rows.nodes);
        all.word_keys.extend(rows.word_keys);
        all.words.extend(rows.words);
    }
    let table = |keys, values| RowBlock::of_values(keys, values);
    let rows: Vec<[f64; IMPORTANCE_COLUMNS]> = importances.values().copied().collect();
    vec![
        table(importances.keys().copied().collect(), OwnedValues::F64(rows.concat())),
        table(vec![0], OwnedValues::F64(ensemble)),
        table(all.node_keys, OwnedValues::F64(all.nodes)),
        table(all.word_keys, OwnedValues::I64(all.words)),
    ]
}

/// Makes a tree of its lines. The children of inner node s are at the places 1 + 2 s and 2 + 2 s.
fn read_tree(fields: &Fields<'_>, factor: f64) -> Result<Tree, Error> {
    let place = &fields.place;
    let leaf_count: usize = fields.number("num_leaves")?;
    if leaf_count == 0 || leaf_count > u32::MAX as usize / 4 {
        return bad(format!("{place}: num_leaves={leaf_count} is out of range"));
    }
    if fields.get("is_linear").is_some_and(|text| text != "0") {
        return bad(format!("{place}: linear trees (linear_tree=true) are not supported"));
    }
    let split_count = leaf_count - 1;
    let mut tree: Tree = vec![Node::leaf(0.0, 0.0); leaf_count + split_count];
    let sides = ["left_child", "right_child"].map(|key| fields.required_numbers::<i64>(key, split_count));
    let [left, right] = sides;
    let (left, right) = (left?, right?);
    let (mut inner_places, mut leaf_places) = (vec![None; split_count], vec![None; leaf_count]);
    match inner_places.first_mut() {
        Some(root) => *root = Some(0),
        None => leaf_places[0] = Some(0),
    }
    for split in 0..split_count {
        for (child, at) in [(left[split], 1 + 2 * split), (right[split], 2 + 2 * split)] {
            let slot = match usize::try_from(child) {
                Ok(inner) if inner > split => inner_places.get_mut(inner),
                Ok(_) => None,
                Err(_) => leaf_places.get_mut(!child as usize),
            };
            match slot {
                Some(slot) if slot.is_none() => *slot = Some(at),
                _ => {
                    return bad(format!(
                        "{place}: node {split} has the child {child}, which cannot be there"
                    ));
                }
            }
        }
    }
    // As many children as nodes without the root, each there once.
    let place_of = |slot: &Option<usize>| slot.expect("each node is the child of one");
    let inner: Vec<usize> = inner_places.iter().map(place_of).collect();
    let outer: Vec<usize> = leaf_places.iter().map(place_of).collect();
    let values: Vec<f64> = fields.required_numbers("leaf_value", leaf_count)?;
    if let Some(value) = values.iter().find(|value| !value.is_finite()) {
        return bad(format!("{place}: leaf_value has {value}"));
    }
    outer.iter().zip(values).for_each(|(at, value)| tree[*at].value = factor * value);
    for (key, places, set) in [
        ("leaf_weight", &outer, set_hessian as fn(&mut Node, f64)),
        ("leaf_count", &outer, set_count),
        ("internal_weight", &inner, set_hessian),
        ("internal_count", &inner, set_count),
        ("split_gain", &inner, |node, gain| node.gain = gain),
    ] {
        let numbers: Vec<f64> = fields.numbers(key, places.len())?;
        if numbers.iter().any(|number| !number.is_finite()) {
            return bad(format!("{place}: {key} has a number that is not finite"));
        }
        places.iter().zip(numbers).for_each(|(at, number)| set(&mut tree[*at], number));
    }
    read_tests(fields, &inner, &mut tree)?;
    Ok(tree)
}

fn set_hessian(node: &mut Node, hessian: f64) {
    node.hessian = hessian;
}

fn set_count(node: &mut Node, count: f64) {
    node.count = count;
}

/// Sets what decides at the inner nodes, which have these places.
fn read_tests(fields: &Fields<'_>, inner: &[usize], tree: &mut Tree) -> Result<(), Error> {
    let place = &fields.place;
    let features: Vec<u32> = fields.required_numbers("split_feature", inner.len())?;
    let thresholds: Vec<f64> = fields.required_numbers("threshold", inner.len())?;
    let decisions: Vec<u8> = fields.required_numbers("decision_type", inner.len())?;
    let category_count: usize = if fields.get("num_cat").is_some() { fields.number("num_cat")? } else { 0 };
    let (mut boundaries, mut words) = (Vec::new(), Vec::new());
    if category_count > 0 {
        boundaries = fields.required_numbers::<usize>("cat_boundaries", category_count + 1)?;
        words = fields.required_numbers::<u32>("cat_threshold", boundaries[category_count])?;
    }
    for (split, &at) in inner.iter().enumerate() {
        let node = &mut tree[at];
        let (decision, threshold) = (decisions[split], thresholds[split]);
        node.feature = features[split];
        (node.left, node.right) = (1 + 2 * split as u32, 2 + 2 * split as u32);
        let missing = decision >> MISSING_SHIFT;
        if decision & CATEGORICAL > 0 {
            let index = threshold as usize;
            let bits =
                boundaries.get(index).zip(boundaries.get(index + 1)).and_then(|(a, b)| words.get(*a..*b));
            let Some(bits) = bits.filter(|bits| bits.len() <= CODE_LIMIT / 32) else {
                return bad(format!(
                    "{place}: the categories of node {split} are not there, or their codes reach {CODE_LIMIT}"
                ));
            };
            let pair = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
            node.test = Test::Among(bits.chunks(2).map(pair).collect());
            continue;
        }
        if threshold.is_nan() {
            return bad(format!("{place}: the threshold of node {split} is NaN"));
        }
        node.test = Test::UpTo(threshold::to_single(threshold));
        node.missing_left = match missing {
            // A missing number counts as 0.
            MISSING_NONE => 0.0 <= threshold,
            MISSING_NAN => decision & DEFAULT_LEFT > 0,
            _ => {
                return bad(format!(
                    "{place}: node {split} has decision_type={decision}: zeros as missing values (zero_as_missing=true) \
                     are not supported"
                ));
            }
        };
    }
    Ok(())
}

/// What a feature of the text is.
#[derive(Clone, Debug)]
enum Kind {
    Numbers,
    /// Codes of categories below this number.
    Codes(u32),
    Names(Vec<String>),
}

impl Kind {
    /// The category that is missing in the data.
    fn missing_code(&self) -> Option<usize> {
        match self {
            Self::Names(names) => names.iter().position(|name| is_missing(name.as_bytes())),
            Self::Numbers | Self::Codes(_) => None,
        }
    }
}

/// The features of a text.
struct Columns {
    names: Vec<String>,
    kinds: Vec<Kind>,
}

impl Columns {
    fn new(text: &TextModel<'_>, trees: &[Tree], options: &ImportOptions) -> Result<Self, Error> {
        let count = text.header.number::<usize>("max_feature_idx")?.saturating_add(1);
        let words = |key| Ok::<_, Error>(text.header.required(key)?.split(' ').collect::<Vec<_>>());
        let (names, infos) = (words("feature_names")?, words("feature_infos")?);
        if names.len() != count || infos.len() != count {
            let (names, infos) = (names.len(), infos.len());
            return bad(format!(
                "there are {names} feature_names and {infos} feature_infos, and max_feature_idx says {count}"
            ));
        }
        let mut codes: Vec<usize> = infos.iter().map(|info| code_count(info)).collect();
        let mut is_compared = vec![false; count];
        for node in trees.iter().flatten().filter(|node| !node.is_leaf()) {
            let Some(code) = codes.get_mut(node.feature as usize) else {
                return bad(format!("a tree splits by feature {}, and there are {count}", node.feature));
            };
            match &node.test {
                Test::UpTo(_) => is_compared[node.feature as usize] = true,
                Test::Among(words) => *code = (*code).max(used_codes(words)),
            }
        }
        if let Some(feature) = (0..count).find(|feature| is_compared[*feature] && codes[*feature] > 0) {
            return bad(format!(
                "the feature {:?} is a number in some splits and a category in others",
                names[feature]
            ));
        }
        if let Some(feature) = (0..count).find(|feature| codes[*feature] > CODE_LIMIT) {
            return bad(format!(
                "the feature {:?} has codes of categories from {CODE_LIMIT} on",
                names[feature]
            ));
        }
        let kind = |count: &usize| if *count > 0 { Kind::Codes(*count as u32) } else { Kind::Numbers };
        let mut columns = Self {
            names: names.into_iter().map(str::to_owned).collect(),
            kinds: codes.iter().map(kind).collect(),
        };
        if let Some(lists) =
            text.categories.as_ref().filter(|lists| !lists.is_empty() && !options.is_numbered)
        {
            columns.set_names(lists)?;
        }
        Ok(columns)
    }

    /// Names the categories.
    fn set_names(&mut self, lists: &[Vec<Value>]) -> Result<(), Error> {
        let named: Vec<usize> =
            (0..self.kinds.len()).filter(|at| matches!(self.kinds[*at], Kind::Codes(_))).collect();
        if named.len() != lists.len() {
            return bad(format!(
                "pandas_categorical has the categories of {} columns, and {} features are categories ({}): which names \
                 belong to which is not clear",
                lists.len(),
                named.len(),
                named.iter().map(|at| self.names[*at].as_str()).collect::<Vec<_>>().join(", ")
            ));
        }
        for (at, list) in named.into_iter().zip(lists) {
            let Kind::Codes(count) = self.kinds[at] else { continue };
            if (count as usize) > list.len() || list.len() > CODE_LIMIT {
                return bad(format!(
                    "the feature {:?} has {count} codes, and pandas_categorical {} names",
                    self.names[at],
                    list.len()
                ));
            }
            self.kinds[at] = Kind::Names(list.iter().map(text_of).collect());
        }
        Ok(())
    }

    /// Gives all sets of categories of a feature the same length, and sends missing names where a name goes that counts as missing
    /// in the data, such as `?`.
    fn widen(&self, trees: &mut [Tree]) {
        let missing: Vec<Option<usize>> = self.kinds.iter().map(Kind::missing_code).collect();
        for node in trees.iter_mut().flatten() {
            let count = match &self.kinds[node.feature as usize] {
                Kind::Numbers => continue,
                Kind::Codes(count) => *count as usize,
                Kind::Names(names) => names.len(),
            };
            if let Test::Among(words) = &mut node.test {
                words.resize(count.div_ceil(64), 0);
                node.missing_left =
                    missing[node.feature as usize].is_some_and(|code| node.goes_left(code as f32));
            }
        }
    }

    /// The features, the columns of the data, and the names of keys.
    fn finish(self, trees: &[Tree], options: &ImportOptions) -> (Vec<SavedFeature>, Schema, KeyNames) {
        let mut bounds: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
        for node in trees.iter().flatten().filter(|node| !node.is_leaf()) {
            if let Test::UpTo(threshold) = node.test {
                bounds.entry(node.feature).or_default().push(threshold);
            }
        }
        let mut names = Vec::new();
        let features = (0..).zip(&self.kinds).map(|(number, kind)| {
            let key =
                if options.is_numbered { u64::from(number) + options.first_feature } else { number.into() };
            match kind {
                Kind::Numbers => {
                    let mut bounds = bounds.remove(&number).unwrap_or_default();
                    bounds.sort_by(f32::total_cmp);
                    bounds.dedup();
                    SavedFeature::Numbers { key, bounds, is_count: false }
                }
                Kind::Codes(count) => SavedFeature::Codes { key, count: *count },
                Kind::Names(list) => {
                    let column = &self.names[number as usize];
                    let keys: Vec<u64> =
                        list.iter().map(|name| named_key(column.as_bytes(), name.as_bytes())).collect();
                    names.extend(keys.iter().zip(list).map(|(key, name)| (*key, format!("{column}={name}"))));
                    SavedFeature::Categories { keys }
                }
            }
        });
        let features = features.collect();
        (features, self.schema(options), names.into_iter().collect())
    }

    fn schema(&self, options: &ImportOptions) -> Schema {
        let (format, label_names) = (options.format.clone(), options.classes.clone());
        let plain = Schema { format, label_names, ..Schema::default() };
        if options.is_numbered {
            return plain;
        }
        // Without names, columns are counted from 0, with that of the label.
        let is_named = self.names.iter().zip(0..).any(|(name, at)| *name != format!("Column_{at}"));
        let label = options.label.as_ref().and_then(|label| label.parse::<usize>().ok());
        let skipped = |at: usize| usize::from(label.is_some_and(|label| label <= at));
        let column = |(at, kind): (usize, &Kind)| Column {
            name: if is_named { self.names[at].clone() } else { (at + skipped(at)).to_string() },
            kind: if matches!(kind, Kind::Names(_)) { ColumnKind::Text } else { ColumnKind::Numeric },
            form: NumberForm::default(),
            origin: 0.0,
            is_required: false,
        };
        Schema {
            columns: self.kinds.iter().enumerate().map(column).collect(),
            label: options.label.clone(),
            named: is_named,
            keep_zeros: true,
            fields: true,
            ..plain
        }
    }
}

/// Categories of a feature by what `feature_infos` says of it: 1 + its largest code, or 0 for numbers.
fn code_count(info: &str) -> usize {
    if info == "none" || info.starts_with('[') {
        return 0;
    }
    let largest = info.split(':').filter_map(|code| code.parse::<i64>().ok()).max();
    largest.map_or(0, |code| (code + 1).max(1) as usize)
}

/// 1 + the largest code in a set; 1 for an empty one.
fn used_codes(words: &[u64]) -> usize {
    let last = words.iter().rposition(|word| *word > 0);
    last.map_or(1, |at| 64 * at + 64 - words[at].leading_zeros() as usize)
}

/// A category as a table has it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}
