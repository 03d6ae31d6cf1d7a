//! Writes a model as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use data::is_missing;
use serde_json::Value;

use super::super::bins::SavedFeature;
use super::super::model::Model;
use super::super::names::{NamedFeature, named_features};
use super::super::tree::{Node, Test, Tree, leaf_numbers};
use super::constants::{CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_SHIFT};
use super::{objective, threshold};
use algo::error::Error;
use algo::family::ModelFacts;

/// Data with features above this number have them in their order, and not by their numbers.
const NUMBER_LIMIT: u64 = 1 << 24;

/// The features of the text: all columns of the data, or all numbers up to the largest.
struct TextFeatures {
    /// The place of each feature of the model.
    places: Vec<usize>,
    names: Vec<String>,
    infos: Vec<String>,
    /// The names of the categories of each column that has some, in the order of the columns.
    categories: Vec<Value>,
    /// Of each feature of the model the category whose name counts as missing in our data.
    missing: Vec<Option<usize>>,
}

/// The text of a model, from its trees and the scores before the first one.
pub(in super::super) fn write(
    model: &Model,
    facts: &ModelFacts<'_>,
    base: &[f64],
    mut trees: Vec<Tree>,
) -> Result<String, Error> {
    let width = model.width();
    if trees.is_empty() {
        trees = vec![vec![Node::leaf(0.0, 0.0)]; width];
    }
    for (class, tree) in trees.iter_mut().take(width).enumerate() {
        tree.iter_mut().filter(|node| node.is_leaf()).for_each(|leaf| leaf.value += base[class]);
    }
    let features = TextFeatures::new(model, facts);
    let texts = (trees.iter().enumerate())
        .map(|(number, tree)| Ok(format!("Tree={number}\n{}\n\n\n", tree_text(tree, &features)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let sizes: Vec<String> = texts.iter().map(|text| text.len().to_string()).collect();
    let objective = objective::line(model.objective, width);
    let mut out = format!(
        "tree\nversion=v4\nnum_class={width}\nnum_tree_per_iteration={width}\nlabel_index=0\nmax_feature_idx={}\n\
         objective={objective}\nfeature_names={}\nfeature_infos={}\ntree_sizes={}\n\n",
        features.names.len() - 1,
        features.names.join(" "),
        features.infos.join(" "),
        sizes.join(" ")
    );
    out += &texts.concat();
    out += "end of trees\n\nfeature_importances:\n";
    let mut counts = vec![0u64; features.names.len()];
    for node in trees.iter().flatten().filter(|node| !node.is_leaf()) {
        counts[features.places[node.feature as usize]] += 1;
    }
    let mut order: Vec<usize> = (0..counts.len()).filter(|place| counts[*place] > 0).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(counts[*place]), *place));
    out.extend(order.iter().map(|&place| format!("{}={}\n", features.names[place], counts[place])));
    let name = objective.split(' ').next().unwrap_or_default();
    let categories = if features.categories.is_empty() { Value::Null } else { features.categories.into() };
    write!(
        out,
        "\nparameters:\n[boosting: gbdt]\n[objective: {name}]\n[num_class: {width}]\n\nend of parameters\n\n\
         pandas_categorical:{categories}\n"
    )
    .expect("a string takes all");
    Ok(out)
}

impl TextFeatures {
    fn new(model: &Model, facts: &ModelFacts<'_>) -> Self {
        let named = named_features(&model.features, facts);
        let columns = &facts.schema.columns;
        let largest = named.iter().map(|feature| feature.position).try_fold(0, |a: u64, b| Some(a.max(b?)));
        let numbered = largest.filter(|largest| columns.is_empty() && *largest < NUMBER_LIMIT);
        let mut places = Vec::new();
        let mut names: Vec<String> = match numbered {
            Some(largest) => (0..=largest).map(|number| format!("Column_{number}")).collect(),
            None => columns.iter().map(|column| safe(&column.name)).collect(),
        };
        for feature in &named {
            let known = feature.position.filter(|_| numbered.is_some() || !columns.is_empty());
            places.push(known.map_or(names.len(), |position| position as usize));
            if known.is_none() {
                names.push(safe(&feature.name));
            }
        }
        let mut seen = BTreeSet::new();
        for (place, name) in names.iter_mut().enumerate() {
            if !seen.insert(name.clone()) {
                *name = format!("Column_{place}");
            }
        }
        let mut infos = vec!["none".to_owned(); names.len()];
        let mut categories = Vec::new();
        for ((saved, named), &place) in model.features.iter().zip(&named).zip(&places) {
            infos[place] = info(saved, named);
            if matches!(saved, SavedFeature::Categories { .. }) {
                categories.push((place, json_names(&named.categories)));
            }
        }
        categories.sort_by_key(|(place, _)| *place);
        let missing =
            |feature: &NamedFeature| feature.categories.iter().position(|name| is_missing(name.as_bytes()));
        let missing = named.iter().map(missing).collect();
        Self {
            places,
            names,
            infos,
            missing,
            categories: categories.into_iter().map(|(_, names)| names).collect(),
        }
    }

    /// Whether a split of categories has that of missing names on the left, as in a model of LightGBM.
    fn sends_missing_left(&self, node: &Node) -> bool {
        self.missing[node.feature as usize].is_some_and(|code| node.goes_left(code as f32))
    }
}

/// A name as LightGBM writes it, which divides names by spaces and has JSON elsewhere.
fn safe(name: &str) -> String {
    let is_special = |letter: char| letter.is_whitespace() || "\",:[]{}".contains(letter);
    name.chars().map(|letter| if is_special(letter) { '_' } else { letter }).collect()
}

/// The range of a number, as far as the bins tell it, or the codes of categories.
fn info(saved: &SavedFeature, named: &NamedFeature) -> String {
    match saved {
        SavedFeature::Numbers { bounds, .. } => match &bounds[..] {
            [] => "none".to_owned(),
            [first, .., last] | [first @ last] => format!("[{first:?}:{last:?}]"),
        },
        SavedFeature::Categories { .. } | SavedFeature::Codes { .. } => {
            let codes: Vec<String> = (0..named.categories.len()).map(|code| code.to_string()).collect();
            if codes.is_empty() { "none".to_owned() } else { codes.join(":") }
        }
    }
}

/// The names of categories. If all are whole numbers, pandas reads the column as such.
fn json_names(names: &[String]) -> Value {
    let number = |name: &String| name.parse::<i64>().ok().filter(|number| number.to_string() == *name);
    let numbers: Option<Vec<i64>> = names.iter().map(number).collect();
    numbers.map_or_else(|| names.into(), Value::from)
}

/// The lines of a tree.
fn tree_text(tree: &Tree, features: &TextFeatures) -> Result<String, Error> {
    let splits: Vec<usize> = {
        // The children of a split follow each other, in the order of the splits.
        let mut splits: Vec<usize> = (0..tree.len()).filter(|at| !tree[*at].is_leaf()).collect();
        splits.sort_by_key(|at| tree[*at].left);
        splits
    };
    let mut leaves: Vec<(u32, usize)> =
        leaf_numbers(tree).into_iter().zip(0..).filter(|(_, at)| tree[*at].is_leaf()).collect();
    leaves.sort_unstable();
    let mut codes = vec![0i64; tree.len()];
    for (at, number) in splits.iter().zip(0..) {
        codes[*at] = number;
    }
    for (number, at) in &leaves {
        codes[*at] = !i64::from(*number);
    }
    let (mut boundaries, mut words) = (vec![0], Vec::new());
    let (mut thresholds, mut decisions) = (Vec::new(), Vec::new());
    for &at in &splits {
        let node = &tree[at];
        let mut decision = MISSING_NAN << MISSING_SHIFT;
        match &node.test {
            Test::UpTo(number) => {
                decision |= if node.missing_left { DEFAULT_LEFT } else { 0 };
                thresholds.push(threshold::to_double(*number));
            }
            Test::Among(_) if node.missing_left && !features.sends_missing_left(node) => {
                let reason = "a split sends missing categories to the left, which LightGBM cannot".to_owned();
                return Err(Error::UnsuitableData { reason });
            }
            Test::Among(own) => {
                decision |= CATEGORICAL;
                thresholds.push((boundaries.len() - 1) as f64);
                words.extend(own.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]));
                boundaries.push(words.len());
            }
        }
        decisions.push(decision);
    }
    let values = inner_values(tree);
    let mut lines = vec![format!("num_leaves={}\nnum_cat={}", leaves.len(), boundaries.len() - 1)];
    let mut line = |name: &str, values: Vec<String>| lines.push(format!("{name}={}", values.join(" ")));
    let of_splits = |of: &dyn Fn(usize) -> String| splits.iter().map(|at| of(*at)).collect::<Vec<_>>();
    let of_leaves = |of: &dyn Fn(usize) -> String| leaves.iter().map(|(_, at)| of(*at)).collect::<Vec<_>>();
    line("split_feature", of_splits(&|at| features.places[tree[at].feature as usize].to_string()));
    line("split_gain", of_splits(&|at| number(tree[at].gain)));
    line("threshold", thresholds.iter().map(|threshold| number(*threshold)).collect());
    line("decision_type", decisions.iter().map(u8::to_string).collect());
    line("left_child", of_splits(&|at| codes[tree[at].left as usize].to_string()));
    line("right_child", of_splits(&|at| codes[tree[at].right as usize].to_string()));
    line("leaf_value", of_leaves(&|at| number(tree[at].value)));
    line("leaf_weight", of_leaves(&|at| number(tree[at].hessian)));
    line("leaf_count", of_leaves(&|at| tree[at].count.to_string()));
    line("internal_value", of_splits(&|at| number(values[at])));
    line("internal_weight", of_splits(&|at| number(tree[at].hessian)));
    line("internal_count", of_splits(&|at| tree[at].count.to_string()));
    if boundaries.len() > 1 {
        line("cat_boundaries", boundaries.iter().map(usize::to_string).collect());
        line("cat_threshold", words.iter().map(u32::to_string).collect());
    }
    line("is_linear", vec!["0".to_owned()]);
    line("shrinkage", vec!["1".to_owned()]);
    Ok(lines.join("\n"))
}

/// The mean of the leaves below each node, by their records.
fn inner_values(tree: &Tree) -> Vec<f64> {
    let mut values: Vec<f64> = tree.iter().map(|node| node.value).collect();
    for (at, node) in tree.iter().enumerate().rev().filter(|(_, node)| !node.is_leaf()) {
        let children = [node.left as usize, node.right as usize];
        let count: f64 = children.iter().map(|child| tree[*child].count).sum();
        let sum: f64 = children.iter().map(|child| tree[*child].count * values[*child]).sum();
        values[at] = if count > 0.0 { sum / count } else { 0.0 };
    }
    values
}

/// A number that is read back exactly, short if it is very large or small.
fn number(value: f64) -> String {
    format!("{value:?}")
}
