//! `seraphim inspect out/`: shows kind, parameters, size, largest weights and training of a model.

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::algo::Families;
use engine::matrix::RowBlock;
use engine::model::{Manifest, Model, TrainingRecord};
use engine::{Error, Exit, labels, metrics_text};
use serde_json::{Value, json};

use super::{print_json, print_text};
use crate::progress::{bytes, counted, decimal};

/// Default number of weights that are shown.
const SHOWN_WEIGHTS: &str = "20";

pub(super) fn command() -> Command {
    Command::new("inspect")
        .about("Show a model: kind, parameters, size, largest weights, how it was trained")
        .arg(Arg::new("model").value_name("MODEL").required(true).help("The model directory"))
        .arg(
            Arg::new("top")
                .long("top")
                .value_name("N")
                .default_value(SHOWN_WEIGHTS)
                .value_parser(clap::value_parser!(usize))
                .help("Number of largest weights to show"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the result as JSON"))
}

pub(super) fn run(matches: &ArgMatches, families: &Families) -> Result<Exit, Error> {
    let path = matches.get_one::<String>("model").expect("clap asks for it");
    let count = *matches.get_one::<usize>("top").expect("it has a default");
    let model = Model::read(path.as_ref(), false)?;
    let largest = largest_weights(&model, count);
    let scoring = families.load(&model.manifest.model)?;
    let positive = labels::positive(&*scoring, &model.manifest.schema);
    if matches.get_flag("json") {
        let mut value = json!(model.manifest);
        value["largest_weights"] = largest.iter().map(Weight::to_json).collect();
        value["size_bytes"] = json!(size_bytes(&model.manifest));
        value["positive_label"] = json!(positive);
        print_json(&value)?;
    } else {
        print_text(&text(path, &model.manifest, positive.as_deref(), &largest))?;
    }
    Ok(Exit::Done)
}

struct Weight {
    name: String,
    key: u64,
    values: Vec<f64>,
}

impl Weight {
    fn to_json(&self) -> Value {
        json!({"name": self.name, "key": self.key, "values": self.values})
    }

    fn size(&self) -> f64 {
        self.values.iter().map(|v| v.abs()).fold(0.0, f64::max)
    }
}

/// Returns the weights with the largest absolute values, largest first, ties ordered by key.
fn largest_weights(model: &Model, count: usize) -> Vec<Weight> {
    let entries = model.manifest.matrices.iter().zip(&model.matrices);
    let Some((entry, rows)) = entries.into_iter().find(|(entry, _)| entry.name == "weights") else {
        return Vec::new();
    };
    let columns = entry.columns as usize;
    let mut order: Vec<(f64, usize)> = (0..rows.keys.len())
        .map(|row| (row_of(rows, row, columns).map(f64::abs).fold(0.0, f64::max), row))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.truncate(count);
    let weight = |row: usize| {
        let key = rows.keys[row];
        Weight {
            name: model.manifest.schema.feature_name(&model.dictionary, key),
            key,
            values: row_of(rows, row, columns).collect(),
        }
    };
    order.into_iter().map(|(_, row)| weight(row)).collect()
}

fn row_of(rows: &RowBlock, row: usize, columns: usize) -> impl Iterator<Item = f64> {
    let range = row * columns..(row + 1) * columns;
    rows.values.as_values().slice(range).to_f64().into_iter()
}

fn size_bytes(manifest: &Manifest) -> u64 {
    manifest.files.iter().map(|file| file.size_bytes).sum()
}

fn text(path: &str, manifest: &Manifest, positive: Option<&str>, largest: &[Weight]) -> String {
    let trained = &manifest.trained;
    let mut text =
        format!("{path}: {} model, format version {}\n", manifest.algorithm, manifest.format_version);
    text += &format!("written by   seraphim {}\n", manifest.program_version);
    text += &origin(trained);
    if let Some(from) = &trained.from {
        text += &format!("continued    from {from}\n");
    }
    for applied in &trained.applied {
        text += &format!("applied      {} {} to {}\n", applied.function, applied.argument, applied.matrix);
    }
    if !trained.metrics.is_empty() {
        text += &format!("training     {}\n", metrics_text(&trained.metrics));
    }
    if !trained.validation_metrics.is_empty() {
        text += &format!("validation   {}\n", metrics_text(&trained.validation_metrics));
    }
    if !manifest.schema.label_names.is_empty() {
        text += &format!("classes      {}\n", manifest.schema.label_names.join(", "));
    }
    if let Some(positive) = positive {
        text += &format!("positive     {positive}\n");
    }
    text += &format!("size         {}\n", bytes(size_bytes(manifest)));
    for m in &manifest.matrices {
        text += &format!(
            "matrix       {}: {} x {}, {:?}\n",
            m.name,
            counted(m.stored_rows, "stored row"),
            counted(m.columns, "column"),
            m.dtype
        );
    }
    text += "parameters\n";
    for (name, value) in &manifest.settings {
        text += &format!("  {name} = {value}\n");
    }
    if !largest.is_empty() {
        text += "largest weights\n";
    }
    for weight in largest.iter().filter(|weight| weight.size() > 0.0) {
        let values: Vec<String> = weight.values.iter().map(|v| decimal(*v, 6)).collect();
        text += &format!("  {:<30} {}\n", weight.name, values.join(" "));
    }
    text
}

/// What the model was made of.
fn origin(trained: &TrainingRecord) -> String {
    let (data, records) = (trained.data.join(", "), counted(trained.records, "record"));
    if trained.tasks == 0 {
        return format!("imported     from {data} ({records}, {})\n", counted(trained.epochs, "iteration"));
    }
    format!(
        "trained on   {data} ({records}, {}{}, {}, {}, seed {})\n",
        counted(trained.epochs, "epoch"),
        if trained.interrupted { ", interrupted" } else { "" },
        counted(u64::from(trained.tasks), "task"),
        trained.consistency,
        trained.seed
    )
}
