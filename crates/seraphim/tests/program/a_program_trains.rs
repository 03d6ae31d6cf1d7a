//! The library: training, prediction and evaluation in a program, with arrays in memory.

#![allow(clippy::unwrap_used, clippy::format_collect, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};

use engine::{CsrArrays, Data, DenseArrays, Flow, RecordAttributes, TrainedModel, Training};

use crate::common::{Folder, clicks, succeed};

/// The records of a libsvm text whose values are all 1.
fn arrays(text: &str) -> CsrArrays {
    let (mut labels, mut offsets, mut features) = (Vec::new(), vec![0], Vec::new());
    for line in text.lines() {
        let mut words = line.split_whitespace();
        labels.push(words.next().unwrap().parse().unwrap());
        features.extend(words.map(|word| word.split(':').next().unwrap().parse::<u64>().unwrap()));
        offsets.push(features.len() as u64);
    }
    CsrArrays {
        offsets: offsets.into(),
        features: features.into(),
        attributes: RecordAttributes { labels: Vec::into(labels), ..RecordAttributes::default() },
        ..CsrArrays::default()
    }
}

fn weights(model: &str) -> Vec<u8> {
    std::fs::read(format!("{model}/weights.safetensors")).unwrap()
}

#[test]
fn arrays_give_the_bytes_and_scores_of_the_file_with_the_same_records() {
    let folder = Folder::new();
    let (text, others) = (clicks(600, 1), clicks(50, 2));
    let (data, test) = (folder.write("a.libsvm", &text), folder.write("b.libsvm", &others));
    for (algorithm, settings) in [
        ("lr", &[("epochs", "3"), ("optimizer", "ftrl")][..]),
        ("fm", &[("k", "4")]),
        ("kmeans", &[("k", "3")]),
        ("lr", &[]),
    ] {
        let (by_command, by_library) = (folder.path("command"), folder.path("library"));
        let sets: Vec<String> = settings
            .iter()
            .flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")])
            .collect();
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let job = ["train", algorithm, "--quiet", "--overwrite", "--tasks", "1", "--data", &data];
        succeed(&[&job[..], &["--model", &by_command], &sets].concat());
        let training = Training::new(algorithm).option("tasks", 1);
        let training = settings.iter().fold(training, |training, (name, value)| training.set(name, value));
        let model = training.run(&arrays(&text).into()).unwrap();
        model.save(&by_library, true).unwrap();
        assert!(weights(&by_command) == weights(&by_library), "{algorithm}");
        let scores = model.predict(&arrays(&others).into()).unwrap();
        assert_eq!(scores, model.predict(&Data::files([&test])).unwrap(), "{algorithm}");
        assert_eq!(scores, TrainedModel::load(&by_command).unwrap().predict(&Data::files([&test])).unwrap());
        assert_eq!(scores.values.len(), 50 * scores.columns.len());
        let unlabelled = CsrArrays { attributes: RecordAttributes::default(), ..arrays(&others) };
        assert_eq!(scores, model.predict(&unlabelled.into()).unwrap());
        let metrics = model.evaluate(&arrays(&others).into()).unwrap().metrics;
        let from_file = succeed(&["evaluate", "--model", &by_command, "--data", &test, "--json"]);
        let loss = crate::common::number(&from_file, "/metrics/loss");
        assert_eq!(metrics["loss"].to_bits(), loss.to_bits(), "{algorithm}");
    }
}

/// The bytes of the files of matrices, of optimizer slots and of names.
fn files(model: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(model).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    let kept = named.filter(|(name, _)| name != "model.json");
    let mut files: Vec<_> = kept.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_model_stays_in_memory_until_it_is_saved_and_then_has_the_files_of_the_command() {
    let folder = Folder::new();
    let table: String =
        (0..400).map(|r| format!("u{},i{},{}\n", r % 23, (r * r + r / 7) % 31, 1 + (r * 7) % 5)).collect();
    let table = folder.write("ratings.csv", format!("user,item,rating\n{table}"));
    let records = folder.write("a.libsvm", clicks(300, 5));
    for (algorithm, data, options, matrix_count) in [
        ("lr", &records, &[("keep_optimizer", "true")][..], 1),
        ("gbdt", &records, &[], 2),
        ("fm", &records, &[], 2),
        ("lda", &records, &[], 2),
        ("als", &table, &[("label", "rating")], 4),
        ("itemknn", &table, &[("label", "rating")], 3),
    ] {
        let (by_command, by_library) = (folder.path("command"), folder.path("library"));
        let flag = |(key, value): &(&str, &str)| format!("--{}={value}", key.replace('_', "-"));
        let flags: Vec<String> = options.iter().map(flag).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let job = ["train", algorithm, "--quiet", "--overwrite", "--tasks", "1", "--data", data];
        succeed(&[&job[..], &["--model", &by_command], &flags].concat());
        let training =
            options.iter().fold(Training::new(algorithm).option("tasks", 1), |training, (key, value)| {
                training.option(key, value)
            });
        let model = training.run(&Data::files([data])).unwrap();
        let report = &model.report().unwrap().model;
        assert_eq!(report.path, "(in memory)");
        let rows = model.model().unwrap();
        assert!(rows.matrices.len() >= matrix_count && rows.manifest.files.is_empty(), "{algorithm}");
        assert_eq!(report.size_bytes, rows.size_bytes(), "{algorithm}");
        model.save(&by_library, true).unwrap();
        assert!(files(&by_command) == files(&by_library), "{algorithm}");
        let loaded = TrainedModel::load(&by_library).unwrap();
        if algorithm == "als" || algorithm == "itemknn" {
            let best =
                |model: &TrainedModel| model.recommender().unwrap().recommend(&["u3", "nobody"], 5).unwrap();
            assert_eq!(best(&model), best(&loaded), "{algorithm}");
        } else {
            let data = Data::files([data]);
            assert_eq!(model.predict(&data).unwrap(), loaded.predict(&data).unwrap(), "{algorithm}");
        }
    }
    let nothing = std::fs::read_dir(".")
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("(in memory)"));
    assert_eq!(nothing.count(), 0);
}

#[test]
fn checkpoints_of_a_model_in_memory_need_a_folder() {
    let folder = Folder::new();
    let data = Data::files([folder.write("a.libsvm", clicks(200, 6))]);
    let training =
        Training::new("lr").set("epochs", 3).set("optimizer", "ftrl").option("checkpoint_every", "1ticks");
    let error = training.run(&data).unwrap_err().to_string();
    assert!(error.contains("option(\"checkpoints\", FOLDER)"), "{error}");
    let place = folder.path("checkpoints");
    let whole = training.clone().option("checkpoints", &place).run(&data).unwrap();
    assert!(std::fs::read_dir(&place).unwrap().count() > 0);
    let resumed = training.option("checkpoints", &place).option("resume", "latest").run(&data).unwrap();
    assert_eq!(whole.predict(&data).unwrap(), resumed.predict(&data).unwrap());
}

#[test]
fn a_program_hears_of_every_epoch_and_may_stop() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&heard);
    let training = Training::new("lr")
        .set("optimizer", "ftrl")
        .set("epochs", 1000)
        .validate(&arrays(&clicks(100, 4)).into());
    let training = training.on_epoch(move |line| {
        own.lock().unwrap().push((line.epoch, line.validation.as_ref().unwrap()["auc"]));
        if line.epoch == 3 { Flow::Stop } else { Flow::Continue }
    });
    let model = training.run(&arrays(&clicks(500, 3)).into()).unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 4);
    assert!(heard.iter().enumerate().all(|(i, (epoch, auc))| *epoch == i as u64 && *auc > 0.5));
    let report = model.report().unwrap();
    assert_eq!(report.ended_by, "interrupted");
    assert!(model.predict(&arrays(&clicks(5, 1)).into()).is_ok());
}

#[test]
fn dense_rows_predict_as_the_text_with_the_same_numbers() {
    let folder = Folder::new();
    let value = |r: usize, c: usize| {
        ((r * 7 + c * 3) % 11) as f32 + if r.is_multiple_of(2) { 4.0 * c as f32 } else { 0.0 }
    };
    let values: Vec<f32> = (0..300).flat_map(|r| (0..4).map(move |c| value(r, c))).collect();
    let rows = DenseArrays {
        values: values.clone().into(),
        columns: 4,
        attributes: RecordAttributes {
            labels: (0..300).map(|r| f64::from(r % 2)).collect(),
            ..Default::default()
        },
        ..Default::default()
    };
    let text: String = (0..300)
        .map(|r| format!("{},{},{},{},{}\n", r % 2, value(r, 0), value(r, 1), value(r, 2), value(r, 3)))
        .collect();
    let file = folder.write("a.dense", text);
    let model = Training::new("lr").run(&rows.clone().into()).unwrap();
    let scores = model.predict(&rows.clone().into()).unwrap();
    assert_eq!(scores, model.predict(&Data::files([&file])).unwrap());
    assert!(model.evaluate(&rows.clone().into()).unwrap().metrics["auc"] > 0.99);
    let narrow = DenseArrays {
        columns: 3,
        values: values[..300].into(),
        attributes: RecordAttributes::default(),
        ..rows
    };
    let error = model.predict(&narrow.into()).unwrap_err().to_string();
    assert!(error.contains("it has 3 columns, and 4 are expected (1, 2, 3, 4)"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn record_batches_have_names_of_labels_and_values() {
    use arrow_array::{ArrayRef, Float64Array, StringArray};
    use engine::RecordBatch;
    let batch = |range: std::ops::Range<usize>| {
        let colors: Vec<&str> = range.clone().map(|i| ["red", "green", "blue"][i % 3]).collect();
        let towns: Vec<&str> = range.clone().map(|i| ["Rome", "Oslo"][i / 3 % 2]).collect();
        let bought: Vec<&str> =
            range.clone().map(|i| if (i % 3 == 0) == (i / 3 % 2 == 0) { "yes" } else { "no" }).collect();
        let weights: Vec<f64> = range.map(|i| 1.0 + (i % 2) as f64).collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("color", Arc::new(StringArray::from(colors))),
            ("town", Arc::new(StringArray::from(towns))),
            ("bought", Arc::new(StringArray::from(bought))),
            ("weight", Arc::new(Float64Array::from(weights))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let training = Training::new("ffm").option("label", "bought").option("weight", "weight");
    let training = training.set("init_deviation", 0.2).set("epochs", 20);
    let model = training.run(&vec![batch(0..400), batch(400..500)].into()).unwrap();
    let scores = model.predict(&vec![batch(0..30)].into()).unwrap();
    for (i, score) in scores.values.iter().enumerate() {
        assert_eq!((i % 3 == 0) == (i / 3 % 2 == 0), *score > 0.5, "record {i}: {score}");
    }
    let evaluation = model.evaluate(&vec![batch(0..30)].into()).unwrap();
    assert_eq!(evaluation.metrics["accuracy"], 1.0);
}

#[test]
fn training_goes_on_from_a_saved_model_and_saves_are_not_lost() {
    let folder = Folder::new();
    let path = folder.path("model");
    let data: Data = arrays(&clicks(300, 5)).into();
    let training = Training::new("fm").set("epochs", 2);
    let first = training.run(&data).unwrap();
    first.save(&path, false).unwrap();
    let error = first.save(&path, false).unwrap_err().to_string();
    assert!(error.contains("overwrite"), "{error}");
    let more = training.clone().from_model(&path).run(&data).unwrap();
    let loss = |model: &TrainedModel| model.evaluate(&data).unwrap().metrics["loss"];
    assert!(loss(&more) < loss(&first));
    more.save(&path, true).unwrap();
    assert_eq!(loss(&TrainedModel::load(&path).unwrap()), loss(&more));
    drop((first, more));
    assert_eq!(std::fs::read_dir(folder.path(".")).unwrap().count(), 1, "nothing is left beside the model");
}

#[test]
fn what_a_program_does_wrong_is_an_error_that_says_so() {
    let data: Data = arrays(&clicks(20, 6)).into();
    let text = |training: Training| training.run(&data).map(drop).unwrap_err().to_string();
    assert!(text(Training::new("lrr")).contains("did you mean"));
    assert!(text(Training::new("lr").option("lable", "x")).contains("lable"));
    assert!(text(Training::new("lr").option("model", "x")).contains("is not for a library run"));
    assert!(text(Training::new("lr").option("servers", 2).option("workers", 2)).contains("in one process"));
    assert!(text(Training::new("lr").option("seed", "x")).contains("option seed"));
    assert!(text(Training::new("lr").set("l2", -1)).contains("l2"));
    assert!(
        text(Training::new("lr").option("label", "y"))
            .contains("labels, weights, groups and times as arrays")
    );
    let unlabelled = CsrArrays { attributes: RecordAttributes::default(), ..arrays(&clicks(20, 6)) };
    let error = Training::new("lr").run(&unlabelled.into()).map(drop).unwrap_err().to_string();
    assert_eq!(error, "memory:training: it has no labels: give one for each record");
    let error = Training::new("lr").run(&Data::files(["nowhere.libsvm"])).map(drop).unwrap_err().to_string();
    assert!(error.contains("nowhere.libsvm"), "{error}");
    let error = Training::new("lr").run(&Data::files(["memory:nothing"])).map(drop).unwrap_err().to_string();
    assert!(error.contains("there are no arrays of the name"), "{error}");
    let model = Training::new("lr").run(&data).unwrap();
    for key in ["servers", "workers"] {
        let error = model.predict_with(&data, &[(key, "2")]).unwrap_err().to_string();
        assert!(error.contains("in one process") && error.contains("seraphim predict"), "{error}");
        let error = model.evaluate_with(&data, &[(key, "2")]).map(drop).unwrap_err().to_string();
        assert!(error.contains("in one process"), "{error}");
    }
}
