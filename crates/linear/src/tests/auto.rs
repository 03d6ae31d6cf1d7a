//! How `auto` is resolved from properties of the data.

use data::{Batch, Survey};
use math::random::{Purpose, stream};

use super::HARNESS;
use super::harness::{Record, build};
use algo::job::{DataProfile, Resolution, ResolvedSettings};

const TABLE: DataProfile<'static> = DataProfile {
    is_table: true,
    size_bytes: Some(1 << 20),
    is_bsp: true,
    has_validation: true,
    survey: None,
    class_count: 2,
    label_name_count: 0,
    labels: None,
};
const NUMBERED: DataProfile<'static> = DataProfile { is_table: false, ..TABLE };

fn settled(name: &str, settings: &str, known: &DataProfile<'_>) -> ResolvedSettings {
    match HARNESS.job(name, settings).unwrap().resolve_settings(known, None).unwrap() {
        Resolution::Resolved(settled) => settled,
        Resolution::NeedsSurvey => panic!("{name} {settings} asks for a survey"),
    }
}

/// The chosen values of the settings `names`, in one line.
fn chosen(name: &str, settings: &str, known: &DataProfile<'_>, names: &[&str]) -> String {
    let set = settled(name, settings, known).settings;
    let texts: Vec<&str> = names.iter().map(|name| set.text(name).unwrap_or("-")).collect();
    texts.join(" ")
}

fn survey(batches: &[Batch]) -> Survey {
    let mut survey = Survey::default();
    for batch in batches {
        survey.add(batch);
    }
    survey
}

/// Statistics of records with `entries(random)` entries among `columns` columns; their values come from `value`.
fn sparse(records: u64, columns: u64, entries: impl Fn(u64) -> u64, value: impl Fn(u64) -> f32) -> Survey {
    let mut random = stream(3, Purpose::Test, 0, 0);
    let records: Vec<Record> = (0..records)
        .map(|record| {
            let mut keys: Vec<u64> = (0..entries(record)).map(|_| random.below(columns)).collect();
            keys.sort_unstable();
            keys.dedup();
            ((record % 2) as f32, keys.into_iter().map(|key| (key, value(key))).collect())
        })
        .collect();
    survey(&build(&records, 500))
}

const NAMES: &[&str] = &["optimizer", "l2", "standardize", "normalize"];

#[test]
fn the_data_decide_what_no_setting_says() {
    let table = sparse(2000, 10, |_| 40, |key| 10f32.powi(key as i32));
    let one_hot = sparse(5000, 300, |_| 14, |_| 1.0);
    let wide = sparse(2000, 1 << 40, |_| 20, |_| 1.0);
    let clicks = sparse(30_000, 1 << 40, |_| 40, |_| 1.0);
    let texts = sparse(2000, 5000, |record| 5 + record % 300, |key| 1.0 + (key % 5) as f32);
    let baskets = sparse(6000, 3000, |record| 5 + record % 300, |_| 1.0);
    let one_hot_and_numbers = sparse(5000, 2000, |_| 14, |key| if key % 100 == 7 { 900.0 } else { 1.0 });
    let unlike_about_one = sparse(2000, 10, |_| 40, |key| if key == 3 { 4.0 } else { 0.01 });
    let small = sparse(2000, 10, |_| 40, |_| 1e-4);
    let small_sparse = sparse(5000, 2000, |_| 14, |_| 1e-4);
    let prices = sparse(5000, 2000, |record| 5 + record % 30, |key| 0.3 + key as f32);
    let cases = [
        ("lr", TABLE, &table, "lbfgs 1 true none"),
        ("linear", TABLE, &table, "lbfgs 0 true none"),
        ("svm", TABLE, &table, "lbfgs 1 true none"),
        ("lr", NUMBERED, &table, "lbfgs 1 true none"),
        ("lr", NUMBERED, &one_hot, "lbfgs 1 false none"),
        ("lr", NUMBERED, &wide, "lbfgs 5 false none"),
        ("lr", NUMBERED, &clicks, "ftrl 0 false none"),
        ("softmax", NUMBERED, &texts, "ftrl 0 idf l2"),
        ("linear", NUMBERED, &texts, "lbfgs 1 false none"),
        ("lr", NUMBERED, &baskets, "lbfgs 1 false none"),
        ("lr", NUMBERED, &one_hot_and_numbers, "lbfgs 1 entries none"),
        ("lr", NUMBERED, &unlike_about_one, "lbfgs 1 true none"),
        ("lr", NUMBERED, &small, "lbfgs 1 true none"),
        ("lr", NUMBERED, &small_sparse, "lbfgs 1 entries none"),
        ("lr", NUMBERED, &prices, "lbfgs 1 entries none"),
        ("linear", NUMBERED, &wide, "lbfgs 1 false none"),
    ];
    for (case, (name, known, survey, expected)) in cases.into_iter().enumerate() {
        let known = DataProfile { survey: Some(survey), ..known };
        assert_eq!(chosen(name, "", &known, NAMES), expected, "case {case}, {name}");
    }
}

#[test]
fn objectives_with_l1_are_minimized_by_owlqn() {
    let table = sparse(2000, 10, |_| 40, |_| 1.0);
    let known = DataProfile { survey: Some(&table), ..TABLE };
    for (settings, optimizer) in [("", "lbfgs"), ("l1=0.5", "owlqn"), ("l1=0", "lbfgs")] {
        assert_eq!(chosen("lr", settings, &known, &["optimizer"]), optimizer, "{settings}");
    }
}

#[test]
fn every_choice_has_its_reason() {
    const COMMON: &str = "l2=1: the default penalty of most programs";
    fn of(survey: &Survey) -> DataProfile<'_> {
        DataProfile { survey: Some(survey), ..NUMBERED }
    }
    let alike = sparse(2000, 10, |_| 40, |_| 1.0);
    let unlike = sparse(2000, 10, |_| 40, |key| 10f32.powi(key as i32));
    let one_hot = sparse(5000, 300, |_| 14, |_| 1.0);
    let clicks = sparse(30_000, 1 << 40, |_| 40, |_| 1.0);
    let small = sparse(2000, 10, |_| 40, |_| 1e-4);
    let few = |records, columns| {
        format!(
            "optimizer=lbfgs: {records} records with about {columns} columns are few enough to optimize to the minimum"
        )
    };
    let unread = "standardize=false: features are numbered, and the input is not read before the first step";
    let cases: [(DataProfile<'_>, &[&str]); 8] = [
        (of(&alike), &[&few(2000, 10), "standardize=false: the columns are of similar scale", COMMON]),
        (
            of(&unlike),
            &[
                &few(2000, 10),
                "standardize=true: the scales of columns differ by a factor of 1000000000",
                COMMON,
            ],
        ),
        (
            of(&one_hot),
            &[&few(5000, 300), "standardize=false: the columns are sparse and of similar scale", COMMON],
        ),
        (
            of(&clicks),
            &[
                "optimizer=ftrl: 30000 records with about 1141973 columns are sparse, where a few passes generalize best",
                "standardize=false: there are too many columns for a table",
                "epochs=2: more epochs overfit wide sparse data",
            ],
        ),
        (
            of(&small),
            &[
                &few(2000, 10),
                "standardize=true: the root mean square of all entries is 1.0e-4, far from 1",
                COMMON,
            ],
        ),
        (
            DataProfile { size_bytes: None, ..NUMBERED },
            &["optimizer=ftrl: the input is a stream, which is not read before the first step", unread],
        ),
        (
            DataProfile { size_bytes: Some(1 << 40), ..NUMBERED },
            &["optimizer=ftrl: the input is larger than 2 GiB", unread],
        ),
        (
            DataProfile { is_bsp: false, ..of(&alike) },
            &[
                "optimizer=ftrl: reads may miss pushes (--consistency)",
                "standardize=false: the columns are of similar scale",
            ],
        ),
    ];
    for (known, expected) in cases {
        assert_eq!(settled("lr", "", &known).reasons, expected);
    }
}

/// Texts whose records all have length 1, except the first, which has no word.
fn normalized_texts() -> Survey {
    let record = |record: u64| {
        let count = if record == 0 { 0 } else { 5 + record % 40 };
        let value = 1.0 / (count as f32).sqrt();
        ((record % 2) as f32, (0..count).map(|word| (record * 7 % 4000 + word, value)).collect())
    };
    survey(&build(&(0..4500).map(record).collect::<Vec<Record>>(), 500))
}

#[test]
fn texts_of_one_length_are_told_by_their_words() {
    let texts = normalized_texts();
    let known = DataProfile { survey: Some(&texts), ..NUMBERED };
    assert_eq!(chosen("lr", "", &known, NAMES), "ftrl 0 false none");
    assert_eq!(chosen("linear", "", &known, NAMES), "lbfgs 1 false none");
}

#[test]
fn the_penalty_of_wide_data_follows_the_share_of_positives() {
    let few = |positives: u64| {
        let record = |record: u64| {
            let keys = (0..20).map(|k| (record * 20 + k, 1.0)).collect();
            (f32::from(record < positives), keys)
        };
        survey(&build(&(0..1000).map(record).collect::<Vec<Record>>(), 500))
    };
    for (positives, l2) in [(500, "5"), (200, "3"), (20, "1")] {
        let survey = few(positives);
        let known = DataProfile { survey: Some(&survey), ..NUMBERED };
        let settled = settled("lr", "", &known);
        assert_eq!(settled.settings.text("l2"), Some(l2), "{positives} positives");
        assert!(settled.reasons.iter().any(|reason| reason.starts_with(&format!("l2={l2}: "))));
    }
}

#[test]
fn data_that_are_not_read_twice_are_read_once() {
    for known in
        [DataProfile { size_bytes: None, ..NUMBERED }, DataProfile { size_bytes: Some(1 << 40), ..NUMBERED }]
    {
        assert_eq!(chosen("lr", "", &known, NAMES), "ftrl 0 false none", "{known:?}");
    }
    // All else is surveyed, for the scales of columns also where the optimizer is given.
    for (name, settings) in [("lr", ""), ("svm", ""), ("lr", "optimizer=ftrl"), ("lr", "optimizer=lbfgs")] {
        let choice = HARNESS.job(name, settings).unwrap().resolve_settings(&NUMBERED, None).unwrap();
        assert_eq!(choice, Resolution::NeedsSurvey, "{name} {settings}");
    }
    assert_eq!(chosen("lr", "optimizer=ftrl standardize=false", &NUMBERED, &["standardize"]), "false");
}

#[test]
fn a_setting_decides_for_the_optimizer_that_reads_it() {
    for (settings, optimizer) in [
        ("learning_rate=0.1", "ftrl"),
        ("epochs=3", "ftrl"),
        ("beta=2", "ftrl"),
        ("momentum=0.9", "momentum"),
        ("beta1=0.8", "adam"),
        ("schedule=exponential", "adagrad"),
        ("max_iterations=5", "lbfgs"),
        ("history=5 l1=1", "owlqn"),
        ("rho=0.1", "admm"),
        ("learning_rate=0.1 max_iterations=5", "svrg"),
        ("optimizer=sgd", "sgd"),
        ("optimizer=lbfgs", "lbfgs"),
    ] {
        assert_eq!(chosen("lr", settings, &TABLE, &["optimizer"]), optimizer, "{settings}");
    }
    for settings in ["beta=2 max_iterations=5", "epochs=3 history=4"] {
        let error =
            HARNESS.job("lr", settings).unwrap().resolve_settings(&NUMBERED, None).unwrap_err().to_string();
        assert!(error.contains("no optimizer uses all of them"), "{error}");
    }
}

#[test]
fn the_setting_that_decides_is_told() {
    for (settings, reason) in [
        ("dimensions=100 momentum=0.9", "optimizer=momentum: it uses momentum=0.9, which is given"),
        ("beta1=0.8", "optimizer=adam: it uses beta1=0.8, which is given"),
        ("dimensions=100 rho=0.1", "optimizer=admm: it uses rho=0.1, which is given"),
        ("dimensions=100 epochs=3", "optimizer=ftrl: it uses epochs=3, which is given"),
    ] {
        let reasons = settled("lr", settings, &TABLE).reasons;
        assert!(reasons.iter().any(|told| told == reason), "{settings}: {reasons:?}");
    }
}

#[test]
fn what_is_given_is_kept_and_what_is_settled_is_settled() {
    let survey = sparse(2000, 10, |_| 40, |key| 10f32.powi(key as i32));
    let known = DataProfile { survey: Some(&survey), ..TABLE };
    let given = "l2=3 standardize=false normalize=l2 tolerance=1e-3";
    let first = settled("lr", given, &known);
    assert_eq!(chosen("lr", given, &known, NAMES), "lbfgs 3 false l2");
    let again: Vec<String> =
        first.settings.iter().map(|(name, value)| format!("{name}={}", value.text())).collect();
    let second = settled("lr", &again.join(" "), &known);
    assert_eq!((second.settings, second.reasons), (first.settings, Vec::new()), "nothing is left to choose");
    assert!(
        first.reasons.iter().any(|reason| reason.starts_with("optimizer=lbfgs: ")),
        "{:?}",
        first.reasons
    );
}
