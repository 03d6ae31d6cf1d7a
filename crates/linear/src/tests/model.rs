//! Properties of a model: how labels are read, what is measured, which matrices it has.

use super::HARNESS;
use data::LabelRule;
use matrix::{Partitioner, PushRule, Storage};

use super::super::Model;
use algo::family::Model as _;
use algo::job::DataFacts;
use algo::metric::MetricAccumulator;

fn model(name: &str) -> Model {
    let facts = DataFacts { classes: vec![0.0, 1.0], record_count: 10, ..DataFacts::default() };
    let model = HARNESS.job(name, "").unwrap().model(&facts, None).unwrap();
    model.of::<Model>().unwrap().clone()
}

#[test]
fn labels_are_read_as_the_loss_takes_them() {
    let binary = LabelRule::Binary { positive: Some(2.0) };
    for (name, expected) in [
        ("lr", binary),
        ("svm", binary),
        ("softmax", LabelRule::Class),
        ("linear", LabelRule::Real),
        ("huber", LabelRule::Real),
    ] {
        let model = Model { positive_label: Some(2.0), ..model(name) };
        assert_eq!(model.record_needs().label_rule, expected, "{name}");
    }
}

#[test]
fn scores_of_logistic_regression_are_measured_as_probabilities_and_margins_are_not() {
    for (name, expected) in [("lr", true), ("svm", false)] {
        let MetricAccumulator::Binary(parts) = model(name).metric_accumulator() else {
            panic!("{name}: two classes")
        };
        assert_eq!(parts.probabilities, expected, "{name}");
    }
}

#[test]
fn an_intercept_is_one_dense_row_in_one_partition_however_the_weights_are_stored() {
    for (dimensions, storage) in [(None, Storage::Sparse), (Some(1000), Storage::Dense)] {
        let model = Model { dimensions, intercept: true, standardize: None, ..model("lr") };
        let specs = model.matrices_with((PushRule::Add, PushRule::Assign), 4);
        let [weights, intercept] = &specs[..] else { panic!("{specs:?}") };
        assert_eq!((weights.storage, weights.rule), (storage, PushRule::Add));
        assert_eq!(weights.partitioner.partition_count(), 4);
        assert_eq!((intercept.rows, intercept.storage), (1, Storage::Dense));
        assert_eq!(intercept.partitioner, Partitioner::Range { partition_count: 1 });
        assert_eq!(intercept.rule, PushRule::Assign);
    }
}

#[test]
fn the_columns_of_a_matrix_are_numbered_if_there_are_several() {
    let model = model("softmax");
    assert_eq!(model.column_names("weights", 1), ["value"]);
    assert_eq!(model.column_names("weights", 3), ["value_0", "value_1", "value_2"]);
}
