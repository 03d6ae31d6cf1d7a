//! Trees for people: as indented text, and as graphs for Graphviz.

use super::model::Model;
use super::names::{NamedFeature, named_features};
use super::tree::{Node, Test, Tree, leaf_numbers};
use algo::error::Error;
use algo::family::{ModelFacts, TextFormat};
use algo::labels;

/// Categories that are shown of a split.
const SHOWN_CATEGORIES: usize = 8;

/// The text of all trees, or of one; `base` are the scores before the first one.
pub(super) fn render(
    model: &Model,
    facts: &ModelFacts<'_>,
    format: TextFormat,
    (base, trees): (&[f64], &[Tree]),
) -> Result<String, Error> {
    let features = named_features(&model.features, facts);
    let (TextFormat::Text { tree } | TextFormat::Graphviz { tree }) = format else {
        return super::lightgbm::write(model, facts, base, trees.to_vec());
    };
    let is_shown = |number: usize| tree.is_none_or(|tree| tree == number as u64);
    if let Some(tree) = tree.filter(|tree| *tree >= trees.len() as u64) {
        let reason = format!("there is no tree {tree}: the model has {}, counted from 0", trees.len());
        return Err(Error::UnsuitableData { reason });
    }
    let class_of = |number: usize| match model.width() {
        1 => String::new(),
        width => {
            let class = model.classes[number % width];
            format!(", class {}", labels::text(class.into(), &facts.schema.label_names))
        }
    };
    let mut lines = Vec::new();
    if matches!(format, TextFormat::Text { tree: None }) {
        let base: Vec<String> = base.iter().map(|score| short(*score)).collect();
        lines.push(format!("scores before the first tree: {}", base.join(" ")));
    }
    for (number, tree) in trees.iter().enumerate().filter(|(number, _)| is_shown(*number)) {
        if matches!(format, TextFormat::Graphviz { .. }) {
            lines.push(format!("digraph tree_{number} {{"));
            lines.push(format!("  label=\"tree {number}{}\"", escaped(&class_of(number))));
            lines.push("  node [shape=box]".to_owned());
            graph(tree, &features, &mut lines);
            lines.push("}".to_owned());
        } else {
            lines.push(format!("tree {number}{}", class_of(number)));
            indent(tree, &features, &mut lines);
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// A line for each node, below its parent.
fn indent(tree: &Tree, features: &[NamedFeature], out: &mut Vec<String>) {
    let numbers = leaf_numbers(tree);
    let mut open = vec![(0usize, 1, "")];
    while let Some((at, depth, side)) = open.pop() {
        let line = describe(&tree[at], numbers[at], features).join(", ");
        out.push(format!("{}{side}{line}", "  ".repeat(depth)));
        if !tree[at].is_leaf() {
            open.push((tree[at].right as usize, depth + 1, "no: "));
            open.push((tree[at].left as usize, depth + 1, "yes: "));
        }
    }
}

/// Nodes and edges.
fn graph(tree: &Tree, features: &[NamedFeature], out: &mut Vec<String>) {
    let numbers = leaf_numbers(tree);
    for (at, node) in tree.iter().enumerate() {
        let lines: Vec<String> =
            describe(node, numbers[at], features).iter().map(|line| escaped(line)).collect();
        out.push(format!("  n{at} [label=\"{}\"]", lines.join("\\n")));
        if !node.is_leaf() {
            out.push(format!("  n{at} -> n{} [label=\"yes\"]", node.left));
            out.push(format!("  n{at} -> n{} [label=\"no\"]", node.right));
        }
    }
}

/// What a node is, in a few words each.
fn describe(node: &Node, leaf: u32, features: &[NamedFeature]) -> Vec<String> {
    let mut parts = if node.is_leaf() {
        vec![format!("leaf {leaf}: {}", short(node.value))]
    } else {
        vec![condition(node, &features[node.feature as usize]), format!("gain {}", short(node.gain))]
    };
    if node.count > 0.0 {
        parts.push(format!("{} records", node.count));
    }
    parts
}

/// What sends a record to the left.
fn condition(node: &Node, feature: &NamedFeature) -> String {
    let missing = if node.missing_left { " or missing" } else { "" };
    match &node.test {
        Test::UpTo(f32::MAX) => format!("{} is not missing", feature.name),
        Test::UpTo(threshold) => format!("{} <= {threshold}{missing}", feature.name),
        Test::Among(_) => {
            let all =
                || feature.categories.iter().enumerate().filter(|(code, _)| node.goes_left(*code as f32));
            let shown: Vec<&str> = all().take(SHOWN_CATEGORIES).map(|(_, name)| name.as_str()).collect();
            let rest = all().count() - shown.len();
            let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            format!("{} is one of {}{rest}{missing}", feature.name, shown.join(", "))
        }
    }
}

/// A number with about seven digits.
fn short(value: f64) -> String {
    (value as f32).to_string()
}

/// A text inside quotes of Graphviz.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}
