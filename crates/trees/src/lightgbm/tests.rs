//! Tests with small text models.

use std::collections::BTreeMap;

use data::{Batch, BatchBuilder, KeyNames, Schema};
use math::hash::named_key;
use matrix::{Agent, LocalConfig, LocalStore, MatrixId};

use super::{ImportOptions, ImportedModel, read};
use algo::error::Error;
use algo::family::{ModelFacts, TextFormat};
use algo::job::{Explanation, Output};
use algo::rows::rows_of;
use algo::test_harness::WAIT_LIMIT;

/// A tree of three leaves in the lines of a text model: feature 0 is compared with 0.5, feature 1 is among two categories
/// (codes 1 and 34).
fn tree(decisions: &str) -> String {
    format!(
        "num_leaves=3\nnum_cat=1\nsplit_feature=0 1\nsplit_gain=4 2\nthreshold=0.5 0\ndecision_type={decisions}\n\
         left_child=1 -1\nright_child=-2 -3\nleaf_value=1 20 300\nleaf_weight=1 1 1\nleaf_count=10 20 30\n\
         internal_value=0 0\ninternal_weight=3 2\ninternal_count=60 40\ncat_boundaries=0 2\ncat_threshold=2 4\n\
         is_linear=0\nshrinkage=1\n\n\n"
    )
}

/// A text model of these trees; the numbers are those of trees of an iteration.
fn text(objective: &str, width: usize, trees: &[String], categories: &str) -> String {
    let trees: Vec<String> = trees.iter().enumerate().map(|(i, tree)| format!("Tree={i}\n{tree}")).collect();
    let sizes: Vec<String> = trees.iter().map(|tree| tree.len().to_string()).collect();
    format!(
        "tree\nversion=v4\nnum_class={width}\nnum_tree_per_iteration={width}\nlabel_index=0\nmax_feature_idx=2\n\
         objective={objective}\nfeature_names=age city rest\nfeature_infos=[0:1] 0:1:34 none\ntree_sizes={}\n\n{}\
         end of trees\n\nfeature_importances:\nage=1\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\n\
         pandas_categorical:{categories}\n",
        sizes.join(" "),
        trees.concat()
    )
}

fn csv() -> ImportOptions {
    ImportOptions { format: "csv".to_owned(), ..ImportOptions::default() }
}

fn libsvm() -> ImportOptions {
    ImportOptions { format: "libsvm".to_owned(), is_numbered: true, ..ImportOptions::default() }
}

/// The tables of an imported model.
fn agent(read: &ImportedModel) -> Box<dyn Agent> {
    let mut store = LocalStore::with_functions(
        LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT },
        matrix::FunctionTable::builtin(),
    );
    for spec in read.model.matrices(1) {
        store.create(spec).unwrap();
    }
    let mut agent = std::sync::Arc::new(store).agent(0);
    for (number, table) in (0..).zip(&read.tables).filter(|(_, table)| !table.keys.is_empty()) {
        agent.push(MatrixId(number), rows_of(&table.keys), table.values.as_values()).unwrap();
    }
    agent.tick().unwrap();
    Box::new(agent)
}

/// Records of these entries.
fn batch(records: &[&[(u64, f32)]]) -> Batch {
    let mut builder = BatchBuilder::new();
    for record in records {
        record.iter().for_each(|(key, value)| builder.push(*key, *value));
        builder.end_record(0.0, 1.0, None);
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    batch
}

/// The raw scores of records of these entries.
fn scores(read: &ImportedModel, records: &[&[(u64, f32)]]) -> Vec<f64> {
    let mut out = Vec::new();
    read.model.scorer().raw_scores(&mut *agent(read), &batch(records), &mut out).unwrap();
    out
}

fn reason(text: &str, options: &ImportOptions) -> String {
    match read(text, options) {
        Err(Error::UnsuitableData { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn codes_of_categories_and_missing_values_go_where_lightgbm_sends_them() {
    // Missing: counts as 0; goes right; goes left. The category test sends what it does not know to the right.
    for (decisions, missing) in [("2 1", 1.0), ("8 9", 20.0), ("10 9", 1.0)] {
        let read = read(&text("regression", 1, &[tree(decisions)], "null"), &csv()).unwrap();
        let found = scores(
            &read,
            &[
                &[(0, 0.5), (1, 1.0)],
                &[(0, 0.4), (1, 34.0)],
                &[(0, 0.4), (1, 34.9)],
                &[(0, 0.6), (1, 1.0)],
                &[(0, 0.4), (1, 2.0)],
                &[(0, 0.4), (1, 1e9)],
                &[(0, 0.4), (1, -1.0)],
                &[(0, 0.4)],
                &[(1, 1.0)],
            ],
        );
        assert_eq!(found, [1.0, 1.0, 1.0, 20.0, 300.0, 300.0, 300.0, 300.0, missing], "{decisions}");
    }
}

#[test]
fn numbered_features_that_are_left_out_are_zero() {
    let plain = text("regression", 1, &[tree("8 9")], "null");
    let read_from = |first_feature| read(&plain, &ImportOptions { first_feature, ..libsvm() }).unwrap();
    // The category 0 is not among those on the left.
    assert_eq!(scores(&read_from(0), &[&[(1, 1.0)], &[], &[(0, 9.0)]]), [1.0, 300.0, 20.0]);
    assert_eq!(scores(&read_from(1), &[&[(2, 1.0)], &[], &[(1, 9.0)]]), [1.0, 300.0, 20.0]);
    assert!(read_from(1).schema.columns.is_empty() && read_from(1).schema.format == "libsvm");
}

#[test]
fn categories_have_the_names_of_pandas() {
    let names: Vec<String> = (0..40).map(|code| format!("\"town {code}\"")).collect();
    let list = format!("[[{}]]", names.join(", "));
    let read = read(&text("regression", 1, &[tree("8 9")], &list), &csv()).unwrap();
    let town = |code: u32| (named_key(b"city", format!("town {code}").as_bytes()), 1.0);
    let found =
        scores(&read, &[&[(0, 0.0), town(34)], &[(0, 0.0), town(2)], &[(0, 0.0)], &[(0, 0.0), (7, 1.0)]]);
    assert_eq!(found, [1.0, 300.0, 300.0, 300.0]);
    assert_eq!(read.names.get(town(1).0), Some("city=town 1"));
    assert_eq!(
        read.schema.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
        ["age", "city", "rest"]
    );
}

#[test]
fn a_category_that_counts_as_missing_in_the_data_goes_where_its_name_goes() {
    for (code, missing) in [(1, 1.0), (2, 300.0)] {
        let name = |at: u32| if at == code { "?".to_owned() } else { format!("town {at}") };
        let list = format!("[{:?}]", (0..40).map(name).collect::<Vec<_>>());
        let first = read(&text("regression", 1, &[tree("8 9")], &list), &csv()).unwrap();
        assert_eq!(scores(&first, &[&[(0, 0.0)]]), [missing]);
        let facts = ModelFacts { schema: &first.schema, names: &first.names, single_rows: &BTreeMap::new() };
        let document = first.model.document(TextFormat::LightGbm, &facts, &mut *agent(&first)).unwrap();
        assert_eq!(read(&document.unwrap(), &csv()).unwrap().tables, first.tables);
    }
}

#[test]
fn objectives_say_what_scores_mean() {
    let of = |objective: &str, width: usize| {
        let trees: Vec<String> = (0..2 * width).map(|_| tree("8 9")).collect();
        read(&text(objective, width, &trees, "null"), &csv()).unwrap()
    };
    let record: [&[(u64, f32)]; 1] = [&[(0, 0.6)]];
    let two = of("binary sigmoid:0.5", 1);
    assert_eq!((two.model.output(), scores(&two, &record)), (Output::Probability, vec![20.0]));
    let three = of("multiclass num_class:3", 3);
    assert_eq!(three.model.output(), Output::Classes(vec![0.0, 1.0, 2.0]));
    assert_eq!((scores(&three, &record), three.iterations), (vec![40.0; 3], 2));
    assert_eq!(of("quantile", 1).model.output(), Output::Value);
}

#[test]
fn a_written_model_is_read_as_the_same_one() {
    for (objective, width) in [("regression", 1), ("binary sigmoid:1", 1), ("multiclass num_class:2", 2)] {
        let trees: Vec<String> = (0..width).map(|_| tree("8 9")).collect();
        let list = format!("[{:?}]", (0..35).map(|code| format!("town {code}")).collect::<Vec<_>>());
        let first = read(&text(objective, width, &trees, &list), &csv()).unwrap();
        let facts = ModelFacts { schema: &first.schema, names: &first.names, single_rows: &BTreeMap::new() };
        let document = |format| first.model.document(format, &facts, &mut *agent(&first)).unwrap();
        let second = read(&document(TextFormat::LightGbm).unwrap(), &csv()).unwrap();
        assert_eq!((&first.tables, &first.schema), (&second.tables, &second.schema));
        assert_eq!(first.model.save(), second.model.save());
        let shown = document(TextFormat::Text { tree: Some(0) }).unwrap();
        for part in [
            "age <= 0.5, gain 4, 60 records",
            "yes: city is one of town 1, town 34, gain 2, 40 records",
            "no: leaf 1: 20, 20 records",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        let graph = document(TextFormat::Graphviz { tree: None }).unwrap();
        assert_eq!(graph.matches("digraph").count(), width);
        assert!(graph.contains("n0 -> n1 [label=\"yes\"]"), "{graph}");
        let error = document(TextFormat::Text { tree: Some(9) }).unwrap_err().to_string();
        assert!(error.contains("no tree 9"), "{error}");
    }
}

#[test]
fn contributions_need_counts() {
    let explain = |text: &str| {
        let read = read(text, &csv()).unwrap();
        let rows = BTreeMap::from([("ensemble".to_owned(), vec![1.0, 0.0])]);
        let (schema, names): (&Schema, &KeyNames) = (&read.schema, &read.names);
        let facts = ModelFacts { schema, names, single_rows: &rows };
        let model = read.model.explained(Explanation::Contributions, &facts).unwrap().unwrap();
        assert_eq!(model.output().names(), ["age", "city", "rest", "expected_value"]);
        let mut out = Vec::new();
        model.scorer().predict(&mut *agent(&read), &batch(&[&[(0, 0.6)]]), &mut out).map(|()| out)
    };
    let whole = text("regression", 1, &[tree("8 9")], "null");
    // 1 x 10/60 + 20 x 20/60 + 300 x 30/60 is expected of any record, and 20 of this one.
    let found = explain(&whole).unwrap();
    assert!(
        (found[3] - 470.5 / 3.0).abs() < 1e-9 && (found.iter().sum::<f64>() - 20.0).abs() < 1e-9,
        "{found:?}"
    );
    let without = tree("8 9").replace("internal_count=60 40\n", "").replace("leaf_count=10 20 30\n", "");
    let error = explain(&text("regression", 1, &[without], "null")).unwrap_err().to_string();
    assert!(error.contains("how many training records"), "{error}");
}

#[test]
fn texts_that_are_damaged_or_not_supported_are_refused() {
    let whole = text("regression", 1, &[tree("8 9"), tree("8 9")], "null");
    assert_eq!(read(&whole, &csv()).unwrap().iterations, 2);
    let of_tree = |from: &str, to: &str| text("regression", 1, &[tree("8 9").replace(from, to)], "null");
    for (text, words) in [
        (String::new(), "the first line"),
        ("a,b\n1,2\n".to_owned(), "the first line"),
        (whole[..whole.len() / 2].to_owned(), "cut off"),
        (whole.replace("Tree=1\n", "Tree=2\n"), "tree 1 was expected"),
        (whole.replace("leaf_value=1 ", "leaf_value=1.25 "), "tree_sizes says"),
        (whole.replace("version=v4", "version=v9"), "version=v9"),
        (whole.replace("version=v4\n", ""), "\"version\" is missing"),
        (whole.replace("label_index=0", "label_index=0\naverage_output"), "random forests"),
        (whole.replace("label_index=0", "label_index=0\nshape=round"), "\"shape\" is not known"),
        (whole.replace("=regression", "=regression sqrt"), "regression sqrt"),
        (whole.replace("=regression", "=mine"), "objective=mine"),
        (whole.replace("num_tree_per_iteration=1", "num_tree_per_iteration=2"), "does not fit"),
        (whole.replace("max_feature_idx=2", "max_feature_idx=3"), "max_feature_idx says 4"),
        (whole.replace("pandas_categorical:null", "pandas_categorical:[[1],[2]]"), "2 columns"),
        (whole.replace("pandas_categorical:null", "pandas_categorical:[[\"a\"]]"), "35 codes"),
        (whole.replace("pandas_categorical:null", "pandas_categorical:[["), "pandas_categorical"),
        (of_tree("is_linear=0", "is_linear=1"), "linear trees"),
        (of_tree("shrinkage=1", "shrinkage=1\nleaf_colour=red"), "\"leaf_colour\" is not known"),
        (of_tree("shrinkage=1", "shrinkage=1\nshrinkage=1"), "twice"),
        (of_tree("decision_type=8", "decision_type=4"), "zero_as_missing"),
        (of_tree("leaf_value=1 20 300", "leaf_value=1 20"), "leaf_value has 2 numbers, not 3"),
        (of_tree("leaf_value=1 20 300", "leaf_value=1 x 300"), "something else than numbers"),
        (of_tree("leaf_value=1 20 300", "leaf_value=1 NaN 300"), "leaf_value has NaN"),
        (of_tree("threshold=0.5 0", "threshold=nan 0"), "NaN"),
        (of_tree("threshold=0.5 0", "threshold=0.5 7"), "categories of node 1"),
        (of_tree("num_leaves=3", "num_leaves=-3"), "num_leaves=-3"),
        (of_tree("num_leaves=3\n", ""), "\"num_leaves\" is missing"),
        (of_tree("split_feature=0 1", "split_feature=0 9"), "feature 9"),
        (of_tree("split_feature=0 1", "split_feature=1 1"), "a number in some splits"),
        (of_tree("left_child=1 -1", "left_child=1 0"), "node 1 has the child 0"),
        (of_tree("left_child=1 -1", "left_child=1 -3"), "node 1 has the child -3"),
        (of_tree("left_child=1 -1", "left_child=-1 -1"), "node 1 has the child -1"),
        (of_tree("left_child=1 -1", "left_child=1 -99"), "child -99"),
    ] {
        let reason = reason(&text, &csv());
        assert!(reason.contains(words), "{words}: {reason}");
    }
}
