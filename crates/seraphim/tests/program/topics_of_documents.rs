//! LDA as a user runs it: formats, deployments, topics with their words, topics of documents, and what is refused.

#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use crate::common::{Folder, fail, number, succeed, train_everywhere};
use math::random::{Purpose, stream};

const THEMES: [[&str; 6]; 3] = [
    ["goal", "team", "match", "league", "coach", "ball"],
    ["bank", "loan", "rate", "bond", "stock", "fund"],
    ["gene", "cell", "virus", "drug", "dose", "trial"],
];

/// Documents of one theme each.
fn documents(count: usize) -> Vec<String> {
    let mut random = stream(4, Purpose::Test, 0, 0);
    let mut word = |theme: usize| THEMES[theme][random.below(6) as usize];
    (0..count).map(|i| (0..20).map(|_| word(i % 3)).collect::<Vec<_>>().join(" ")).collect()
}

/// The topic with the largest share of each document in a CSV of predictions.
fn largest(path: &str) -> Vec<usize> {
    let text = std::fs::read_to_string(path).unwrap();
    let topic = |line: &str| {
        let shares: Vec<f64> = line.split(',').map(|share| share.parse().unwrap()).collect();
        (0..shares.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b])).unwrap()
    };
    text.lines().skip(1).map(topic).collect()
}

#[test]
fn every_format_and_deployment_finds_the_themes() {
    let folder = Folder::new();
    let documents = documents(90);
    let (mut table, mut bags) = ("id,text\n".to_owned(), String::new());
    for (i, document) in documents.iter().enumerate() {
        table += &format!("{i},{document}\n");
        let themes = THEMES.as_flattened();
        let count = |word: &str| document.split(' ').filter(|other| *other == word).count();
        let entries = themes.iter().zip(1..).map(|(word, key)| format!(" {key}:{}", count(word)));
        bags += &format!("0{}\n", entries.collect::<String>());
    }
    let text = folder.write("a.txt", documents.join("\n"));
    let (table, bags) = (folder.write("a.csv", table), folder.write("a.libsvm", bags));
    let words = ["--token-columns", "text", "--skip-columns", "id"];
    let (model, shares) = (folder.path("everywhere"), folder.path("shares.csv"));
    for (data, more) in [(&text, &["--format", "text"][..]), (&table, &words), (&bags, &[])] {
        let job = ["lda", "--tasks", "3", "--set", "topics=3", "--set", "sweeps=60", "--data", data];
        train_everywhere(&folder, &[&job[..], more].concat());
        succeed(&["predict", "--model", &model, "--data", data, "--output", &shares, "--overwrite"]);
        let found = largest(&shares);
        assert!(found.iter().enumerate().all(|(i, topic)| *topic == found[i % 3]), "{data}: {found:?}");
        let metrics = succeed(&["evaluate", "--model", &model, "--data", data, "--json"]);
        // A document has six words.
        assert!((5.0..8.0).contains(&number(&metrics, "/metrics/perplexity")), "{data}: {metrics}");
        let topics = succeed(&["export", &model, "--format", "text", "--output", "-"]);
        let first = topics.lines().next().unwrap();
        let theme = |words: &[&str]| words.iter().filter(|word| first.contains(**word)).count();
        let is_named = data != &bags;
        assert!(!is_named || THEMES.iter().any(|words| theme(words) == 6), "{topics}");
        assert!(topics.lines().count() == 3 && first.contains('%'), "{topics}");
    }
    let whole = ["lda", "--set", "topics=3", "--set", "sweeps=60", "--data", &text, "--format", "text"];
    let of_tasks =
        ["1", "2", "3"].map(|tasks| train_everywhere(&folder, &[&whole[..], &["--tasks", tasks]].concat()));
    let tensors = of_tasks.map(|files| {
        files
            .into_iter()
            .filter(|(path, _)| path.extension().is_some_and(|end| end == "safetensors"))
            .collect::<Vec<_>>()
    });
    assert!(
        !tensors[0].is_empty() && tensors[0] == tensors[1] && tensors[1] == tensors[2],
        "the same for any tasks"
    );
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let folder = Folder::new();
    let model = folder.path("model");
    let train = |name: &str, text: &[u8], more: &[&str]| {
        let data = folder.write(name, text);
        fail(3, &[&["train", "lda", "--quiet", "--data", &data, "--model", &model], more].concat())
    };
    for (bag, said) in [("0 3:-1\n0 3:1\n", "count -1"), ("0 3:0.25\n0 3:1\n", "count 0.25")] {
        let error = train("a.libsvm", bag.as_bytes(), &[]);
        assert!(error.contains(said) && error.contains("tf-idf"), "{error}");
    }
    let error = train("a.txt", b"one two\nthree four\n", &["--format", "text"]);
    assert!(error.contains("no word of the 2 documents") && error.contains("min_documents"), "{error}");
    let error = train("b.txt", b"\n\n", &["--format", "text"]);
    assert!(error.contains("no records"), "{error}");
    assert!(!std::path::Path::new(&model).exists());
    // Words that are not UTF-8 are words.
    let latin = folder.write("c.txt", b"caf\xe9 th\xe9\ncaf\xe9 th\xe9\ncaf\xe9\n".as_slice());
    succeed(&[
        "train", "lda", "--quiet", "--data", &latin, "--format", "text", "--model", &model, "--set",
        "topics=1",
    ]);
    let topics = succeed(&["export", &model, "--format", "text", "--output", "-"]);
    assert!(topics.contains("caf\u{fffd} th\u{fffd}"), "{topics}");
    let again = [
        "train",
        "lda",
        "--data",
        &latin,
        "--format",
        "text",
        "--from",
        &model,
        "--model",
        &model,
        "--overwrite",
    ];
    let error = fail(3, &again);
    assert!(error.contains("cannot go on from a model"), "{error}");
}
