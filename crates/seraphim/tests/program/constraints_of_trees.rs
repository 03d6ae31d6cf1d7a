//! Constraints of boosted trees hold for every record, and all ways to grow trees give the same bytes everywhere.

use std::fmt::Write as _;

use math::random::{Purpose, stream};

use crate::common::{Folder, fail, succeed};

/// A table whose target rises and falls with both columns.
fn waves(count: usize) -> String {
    let mut random = stream(1, Purpose::Test, 0, 0);
    let mut text = "a,b,kind,y\n".to_owned();
    for _ in 0..count {
        let [a, b] = [(); 2].map(|()| random.below(40) as f64 / 4.0);
        let kind = ["north", "south", "west"][random.below(3) as usize];
        let y = 2.0 * math::elementary::cos(a) + a / 3.0 - math::elementary::cos(b * 1.7) - a * b / 20.0;
        writeln!(text, "{a},{b},{kind},{:.3}", y + 0.1 * random.normal()).expect("a string takes all");
    }
    text
}

fn train(folder: &Folder, model: &str, more: &[&str]) {
    let (data, path) = (folder.path("train.csv"), folder.path(model));
    let fixed =
        ["train", "gbdt", "--data", &data, "--label", "y", "--model", &path, "--set", "objective=squared"];
    succeed(&[&fixed[..], &["--set", "iterations=20", "--set", "leaves=15"], more].concat());
}

fn weights(folder: &Folder, model: &str) -> Vec<u8> {
    std::fs::read(folder.path(model) + "/weights.safetensors").expect("a model")
}

/// The predictions on a grid of 40 x 40 points, by rows of `a`.
fn on_grid(folder: &Folder, model: &str) -> Vec<Vec<f64>> {
    let mut text = "a,b,kind\n".to_owned();
    for (a, b) in (0..40).flat_map(|a| (0..40).map(move |b| (a, b))) {
        writeln!(text, "{},{},south", f64::from(a) / 4.0, f64::from(b) / 4.0).expect("a string takes all");
    }
    folder.write("grid.csv", text);
    let (data, model, out) = (folder.path("grid.csv"), folder.path(model), folder.path("grid.out.csv"));
    succeed(&["predict", "--no-label", "--data", &data, "--model", &model, "--output", &out, "--overwrite"]);
    let scores = std::fs::read_to_string(out).expect("predictions");
    let scores: Vec<f64> = scores.lines().skip(1).map(|line| line.parse().expect("a number")).collect();
    scores.chunks(40).map(<[f64]>::to_vec).collect()
}

fn never_falls(mut values: impl Iterator<Item = f64>) -> bool {
    let mut before = values.next().expect("a value");
    values.all(|value| std::mem::replace(&mut before, value) <= value)
}

#[test]
fn predictions_rise_and_fall_as_they_must() {
    let folder = Folder::new();
    folder.write("train.csv", waves(4000));
    train(&folder, "free", &[]);
    let free = on_grid(&folder, "free");
    assert!((0..40).any(|b| !never_falls((0..40).map(|a| free[a][b]))), "the data are no test");
    for (name, more) in
        [("leaf_wise", &[][..]), ("smooth", &["--set", "path_smooth=5", "--set", "growth=depth_wise"])]
    {
        let settings = [&["--set", "monotone_constraints=a:1,b:-1", "--tasks", "1"], more].concat();
        train(&folder, name, &settings);
        let grid = on_grid(&folder, name);
        assert!((0..40).all(|b| never_falls((0..40).map(|a| grid[a][b]))), "{name}: falls with a");
        assert!(grid.iter().all(|row| never_falls(row.iter().map(|y| -y))), "{name}: rises with b");
        assert!(grid[0][0] < grid[39][0] && grid[39][0] > grid[39][39], "{name} learns nothing");
        let positions = ["--set", "monotone_constraints=1,-1", "--tasks", "3"];
        train(&folder, "same", &[&positions[..], more, &["--overwrite"]].concat());
        assert!(weights(&folder, "same") == weights(&folder, name), "{name}: other bytes");
    }
}

#[test]
fn columns_that_may_not_meet_add_up() {
    let folder = Folder::new();
    folder.write("train.csv", waves(4000));
    train(&folder, "free", &[]);
    train(&folder, "apart", &["--set", "interaction_constraints=[a,kind],[b]"]);
    let interaction = |model: &str| {
        let grid = on_grid(&folder, model);
        (1..40).map(|i| (grid[i][i] - grid[i][0] - grid[0][i] + grid[0][0]).abs()).fold(0.0, f64::max)
    };
    assert!(interaction("free") > 0.1);
    assert!(interaction("apart") < 1e-9, "{}", interaction("apart"));
}

#[test]
fn every_way_to_grow_gives_the_same_bytes_everywhere() {
    let folder = Folder::new();
    folder.write("train.csv", waves(2000));
    train(&folder, "plain", &["--tasks", "1"]);
    for setting in [
        "growth=depth_wise",
        "extra_trees=true",
        "path_smooth=10",
        "feature_fraction_bylevel=0.5",
        "max_depth=3",
        "gradient_bits=5",
        "top_rate=0.2",
        "l1=2",
        "interaction_constraints=[a],[b]",
    ] {
        train(&folder, "one", &["--set", setting, "--tasks", "1", "--overwrite"]);
        assert!(weights(&folder, "one") != weights(&folder, "plain"), "{setting} has no effect");
        for more in [&["--tasks", "3"][..], &["--tasks", "2", "--servers", "2", "--workers", "2"]] {
            train(&folder, "many", &[&["--set", setting, "--overwrite"], more].concat());
            assert!(weights(&folder, "many") == weights(&folder, "one"), "{setting} {more:?}: other bytes");
        }
    }
}

#[test]
fn constraints_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let (data, model) = (folder.write("train.csv", waves(100)), folder.path("none"));
    for (setting, words) in [
        ("monotone_constraints=aa:1", "'aa'"),
        ("monotone_constraints=a:2", "column:-1"),
        ("monotone_constraints=kind:1", "no order"),
        ("monotone_constraints=1,0,0,0,1", "'4'"),
        ("interaction_constraints=[a,c]", "'c'"),
        ("interaction_constraints=a,b", "brackets"),
        ("interaction_constraints=[a],", "brackets"),
        ("leaves=20000", "--tasks 1"),
        ("top_rate=0.95", "at most 1 with top_rate"),
        ("bagging_fraction=0.5", "top_rate=0.2"),
    ] {
        let fixed = ["train", "gbdt", "--data", &data, "--label", "y", "--set", "objective=squared"];
        let others =
            if setting.starts_with("bagging") { &["--set", "top_rate=0.2"][..] } else { &["--tasks", "2"] };
        let message = fail(2, &[&fixed[..], &["--model", &model, "--set", setting], others].concat());
        assert!(message.contains(words), "{setting}: {message}");
        assert!(!std::path::Path::new(&model).exists());
    }
}
