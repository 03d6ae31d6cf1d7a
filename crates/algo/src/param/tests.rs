//! Tests of the parameter table on a small table.

use super::*;
use crate::error::Error;

crate::choices! {
    enum Optimizer {
        Sgd = "sgd";
        Momentum = "momentum", reads DECAY;
        Adam = "adam": "two moments", reads DECAY;
    }
}

crate::params! {
    const TABLE = [
        /// step
        RATE = "learning_rate": common::POSITIVE, "0.1";
        /// passes
        EPOCHS = "epochs": ParamKind::AutoInteger { low: 1, high: 10 }, "auto";
        /// rule
        OPTIMIZER = "optimizer": ParamKind::Choice(words::<Optimizer>), "sgd";
        /// what is
        /// kept
        DECAY = "decay": ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed }, "0.9";
    ];
}

fn check(name: &str, value: &str) -> Result<CheckedParams, Error> {
    CheckedParams::new("lr", &TABLE, &ParamValues::from_iter([(name, value)]))
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let text = check("learnig_rate", "1").unwrap_err().to_string();
    assert!(text.contains("did you mean learning_rate?"), "{text}");
}

#[test]
fn a_value_out_of_range_says_range_and_value() {
    for (name, bad, range) in [
        ("learning_rate", "0", "a number > 0"),
        ("learning_rate", "inf", "a number > 0"),
        ("learning_rate", "fast", "a number > 0"),
        ("epochs", "0", "auto or a whole number in [1, 10]"),
        ("epochs", "11", "auto or a whole number in [1, 10]"),
    ] {
        let text = check(name, bad).unwrap_err().to_string();
        assert!(text.contains(range) && text.contains(bad), "{text}");
    }
}

#[test]
fn what_nobody_would_read_is_refused() {
    let set = |pairs: &[(&str, &str)]| {
        let given = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        CheckedParams::new("lr", &TABLE, &given).map(drop)
    };
    let text = set(&[("decay", "0.5")]).unwrap_err().to_string();
    for part in ["lr", "decay=0.5", "optimizer=sgd", "momentum, adam"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(set(&[("optimizer", "adam"), ("decay", "0.5")]).is_ok());
    assert!(set(&[("decay", "0.9")]).is_ok(), "the default says nothing");
    assert_eq!(help_text(&TABLE, &DECAY), "momentum, adam: what is kept");
    assert_eq!(help_text(&TABLE, &OPTIMIZER), "rule; adam: two moments");
}

#[test]
fn a_word_becomes_its_value_and_another_word_is_refused() {
    assert_eq!(check("optimizer", "adam").unwrap().choice::<Optimizer>(&OPTIMIZER), Optimizer::Adam);
    let text = check("optimizer", "adamax").unwrap_err().to_string();
    assert!(text.contains("sgd | momentum | adam"), "{text}");
}

#[test]
fn defaults_fill_what_was_not_given() {
    let checked = check("epochs", "3").unwrap();
    assert_eq!((checked.real(&RATE), checked.auto_integer(&EPOCHS)), (0.1, Some(3)));
}
