//! Promise: `seraphim apply` applies a function to the weights of a model, in this process and on servers. If it
//! cannot, it reports an error and writes nothing.

use crate::common::{Folder, bytes_of, clicks, fail, seraphim, succeed};
use serde_json::Value;

const USAGE: i32 = 2;

fn trained(folder: &Folder) -> String {
    let (data, model) = (folder.write("a.libsvm", clicks(300, 1)), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--model", &model, "--quiet"]);
    model
}

fn json(arguments: &[&str]) -> Value {
    let text = succeed(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn functions_are_listed_with_the_rows_they_take() {
    let text = succeed(&["functions"]);
    assert!(text.lines().any(|line| line.split_whitespace().eq(["axpy", "push", "2", "1"])), "{text}");
    let list = json(&["functions"]);
    let dot = list.as_array().and_then(|list| list.iter().find(|row| row["name"] == "dot"));
    assert_eq!(dot.map(|row| (&row["kind"], &row["reads"])), Some((&"pull".into(), &"2".into())));
}

#[test]
fn an_answer_is_the_same_on_any_number_of_servers() {
    let folder = Folder::new();
    let model = trained(&folder);
    let norm = ["apply", &model, "--function", "norm_2"];
    let here = json(&norm);
    for servers in ["1", "3"] {
        assert_eq!(json(&[&norm[..], &["--servers", servers]].concat()), here, "{servers} servers");
    }
    let text = succeed(&["apply", &model, "--function", "top_k_magnitude", "--argument", "2"]);
    let largest: Vec<(u64, f64)> = serde_json::from_str(&text).expect("columns and values");
    let shown = json(&["inspect", &model]);
    let weights = &shown["largest_weights"];
    for (i, (key, value)) in largest.iter().enumerate() {
        assert_eq!(
            (weights[i]["key"].as_u64(), weights[i]["values"][0].as_f64()),
            (Some(*key), Some(*value))
        );
    }
}

#[test]
fn a_changed_model_is_written_and_says_what_was_done_to_it() {
    let folder = Folder::new();
    let model = trained(&folder);
    let write = |name: &str, servers: &str| {
        let output = folder.path(name);
        let function = ["--function", "scalar_mul", "--argument", "-2"];
        succeed(&[&["apply", &model, "--output", &output, "--servers", servers][..], &function].concat());
        output
    };
    let (here, there) = (write("here", "0"), write("there", "2"));
    assert_eq!(bytes_of(&here), bytes_of(&there));
    let (before, after) = (json(&["inspect", &model]), json(&["inspect", &here]));
    let weight =
        |shown: &Value, i: usize| shown["largest_weights"][i]["values"][0].as_f64().expect("a number");
    for i in 0..5 {
        assert_eq!(weight(&after, i), -2.0 * weight(&before, i));
    }
    let applied = &after["trained"]["applied"][0];
    assert_eq!((&applied["function"], &applied["argument"]), (&"scalar_mul".into(), &(-2).into()));
    assert!(after["trained"]["metrics"].as_object().is_some_and(serde_json::Map::is_empty));
    assert!(succeed(&["inspect", &here]).contains("applied      scalar_mul -2 to weights"));
    let data = folder.path("a.libsvm");
    succeed(&["evaluate", "--model", &here, "--data", &data]);
    succeed(&["train", "lr", "--data", &data, "--from", &here, "--model", &folder.path("on"), "--quiet"]);
}

#[test]
fn each_output_of_a_model_is_a_row() {
    let folder = Folder::new();
    let lines: Vec<String> = (0..300).map(|i| format!("{} {}:1 {}:0.5", i % 3, i % 7, 8 + i % 5)).collect();
    let (data, model) = (folder.write("three.libsvm", lines.join("\n")), folder.path("model"));
    succeed(&["train", "softmax", "--data", &data, "--model", &model, "--quiet"]);
    let sums = json(&["apply", &model, "--function", "sum"]);
    let rows: Vec<&Value> = sums["answers"].as_array().into_iter().flatten().map(|row| &row["row"]).collect();
    assert_eq!(rows, [&Value::from(0), &1.into(), &2.into()]);
    let output = folder.path("copied");
    let copy = ["--function", "copy", "--from", "0", "--into", "2", "--output", &output];
    succeed(&[&["apply", &model][..], &copy].concat());
    let difference = ["--function", "first_difference", "--from", "0,2"];
    assert_eq!(json(&[&["apply", &output][..], &difference].concat())["answers"][0]["answer"], Value::Null);
}

#[test]
fn any_table_of_a_model_can_be_named_and_the_others_stay() {
    let folder = Folder::new();
    let (data, model) = (folder.write("a.libsvm", clicks(300, 1)), folder.path("model"));
    let factors = ["--set", "k=3", "--set", "epochs=2", "--quiet"];
    succeed(&[&["train", "fm", "--data", &data, "--model", &model][..], &factors].concat());
    let norms = ["apply", &model, "--function", "norm_2", "--table", "factors"];
    let here = json(&norms);
    assert_eq!((&here["table"], here["answers"].as_array().map(Vec::len)), (&"factors".into(), Some(3)));
    assert_eq!(json(&[&norms[..], &["--servers", "2"]].concat()), here);
    let half = ["--function", "scalar_mul", "--argument", "0.5", "--table", "factors"];
    let changed = |name: &str, servers: &str| {
        let output = folder.path(name);
        let said =
            succeed(&[&["apply", &model, "--output", &output, "--servers", servers][..], &half].concat());
        assert!(said.contains(" values of factors; the model is saved in "), "{said}");
        output
    };
    let (output, there) = (changed("half", "0"), changed("there", "2"));
    assert_eq!(bytes_of(&output), bytes_of(&there));
    let export = |model: &str, table: &str| succeed(&["export", model, "--table", table]);
    assert_eq!(export(&model, "weights"), export(&output, "weights"));
    assert_ne!(export(&model, "factors"), export(&output, "factors"));
    assert!(succeed(&["inspect", &output]).contains("applied      scalar_mul 0.5 to factors"));
    // Without a name it is the first table, also of a model that has no weights.
    let centres = folder.path("centres");
    succeed(&["train", "kmeans", "--data", &data, "--set", "k=2", "--model", &centres, "--quiet"]);
    let first = json(&["apply", &centres, "--function", "sum"]);
    let exported = succeed(&["export", &centres, "--output", &folder.path("t.csv")]);
    let table = first["table"].as_str().expect("a name");
    assert!(exported.contains(&format!("rows of {table} written")), "{table}: {exported}");
    // The norms would be those of other centres.
    let (scale, output) = (["--function", "scalar_mul", "--argument", "2"], folder.path("scaled"));
    let said = fail(2, &[&["apply", &centres, "--output", &output][..], &scale].concat());
    assert!(said.contains("one table of a kmeans model") && said.contains("'norms'"), "{said}");
}

#[test]
fn keys_that_are_hashes_are_packed_and_it_is_said() {
    let folder = Folder::new();
    let cities = ["Rome", "Oslo", "Lima", "Bonn"];
    let row = |i: usize| format!("{},{}", i % 2, cities[i % 4 * (1 + i % 3) % 4]);
    let rows: Vec<String> = (0..200).map(row).collect();
    let (data, model) = (folder.write("a.csv", format!("y,city\n{}", rows.join("\n"))), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--label", "y", "--model", &model, "--quiet"]);
    let text = succeed(&["apply", &model, "--function", "count_non_zero"]);
    assert!(text.contains("column i is the i-th stored key"), "{text}");
    let output = folder.path("clipped");
    let clip = ["--function", "clip", "--argument", "[-0.01, 0.01]", "--output", &output];
    succeed(&[&["apply", &model][..], &clip].concat());
    let shown = json(&["inspect", &output]);
    let names: Vec<&str> = shown["largest_weights"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|w| w["name"].as_str())
        .collect();
    assert!(cities.iter().all(|city| names.iter().any(|name| name.contains(city))), "{names:?}");
    let largest = shown["largest_weights"][0]["values"][0].as_f64().map(f64::abs);
    assert!(largest.is_some_and(|largest| largest <= 0.010_001), "{largest:?}");
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_written() {
    let folder = Folder::new();
    let (model, output) = (trained(&folder), folder.path("output"));
    let cases: [(&[&str], &str); 9] = [
        (&["--function", "som"], "this function is not registered (did you mean \"sum\"?)"),
        (&["--function", "dot"], "none given, expected rows, as in --from 0,1"),
        (&["--function", "dot", "--from", "0,5"], "row 5, expected below the 1 rows"),
        (&["--function", "top_k", "--argument", "1.5"], "1.5, expected a whole number of at least 0"),
        (&["--function", "top_k", "--argument", "one"], "\"one\" is not JSON"),
        (&["--function", "abs"], "changes the model; give --output"),
        (&["--function", "sum", "--output", &output], "only reads, so that there is no model to write"),
        (
            &["--function", "sum", "--table", "wights"],
            "--table: the model has no such table (\"wights\"); give one of weights, intercept",
        ),
        (
            &["--function", "log", "--output", &output],
            "function \"log\" on matrix \"weights\": the result in row 0",
        ),
    ];
    for (arguments, expected) in cases {
        let output = seraphim(&[&["apply", &model], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(USAGE), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let on_servers = ["--function", "log", "--output", &output, "--servers", "2"];
    let error = fail(USAGE, &[&["apply", &model][..], &on_servers].concat());
    assert!(error.contains("server-0 (lane 0): function \"log\" on matrix \"weights\""), "{error}");
    assert!(!std::path::Path::new(&output).exists());
}

#[test]
fn a_value_that_one_server_alone_cannot_take_is_named_with_its_place() {
    let folder = Folder::new();
    // The keys are far enough apart for several partitions, so that both servers own some.
    let lines: Vec<String> = (0..300).map(|i| format!("{} {}:1 2000:0.5", i % 2, i * 7 % 1990)).collect();
    let (data, model) = (folder.write("wide.libsvm", lines.join("\n")), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--model", &model, "--quiet"]);
    let apply = |from: &str, name: &str, function: &[&str]| {
        let output = folder.path(name);
        succeed(&[&["apply", from, "--output", &output, "--servers", "2"][..], function].concat());
        output
    };
    let positive = apply(&model, "abs", &["--function", "abs"]);
    let positive = apply(&positive, "one", &["--function", "scalar_add", "--argument", "1"]);
    let log = ["--function", "log"];
    apply(&positive, "log", &log);
    let below = ["--function", "set_vector", "--argument", r#"[1999, {"f32": [-0.5]}, 1]"#];
    let one = apply(&positive, "one-below", &below);
    let output = folder.path("none");
    let error = fail(USAGE, &[&["apply", &one, "--output", &output, "--servers", "2"][..], &log].concat());
    let place = "the result in row 0, column 1999 is NaN, from -0.5";
    assert!(error.contains("server-1 (lane 0)") && error.contains(place), "{error}");
    assert!(!std::path::Path::new(&output).exists());
}
