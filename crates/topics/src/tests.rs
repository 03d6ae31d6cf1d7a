//! LDA on `LocalStore`.

use std::sync::Arc;

use data::Batch;
use math::elementary::ln_gamma;
use math::random::{Purpose, stream};
use matrix::{Agent, Consistency, LocalStore, MatrixId, OwnedValues, Selection, Values};

use super::counts::{DocumentTopics, row_width};
use super::documents::{Bags, Division, Documents};
use super::functions::{BETA, Fold, LIKELIHOOD, beta_argument, likelihood_argument};
use super::prior::next_beta;
use super::sampler::{Draws, Frozen, Group};
use super::sparse::{self, TopicLists};
use super::table::{StoredRows, WordRows};
use super::{FAMILY, Model};
use algo::family::{Families, SavedModel};
use algo::test_harness::{Harness, Record, Run, build};

const HARNESS: Harness = Harness(&[&FAMILY]);

/// Words of a topic in [`planted`].
const OWN_WORDS: u64 = 30;

/// Documents of 40 words, each of two of `topics` topics that have no word in common.
fn planted(seed: u64, documents: usize, topics: u64) -> Vec<Record> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut document = || {
        let own = [random.below(topics), random.below(topics)];
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..40 {
            let topic = own[random.below(2) as usize];
            *counts.entry(topic * OWN_WORDS + random.below(OWN_WORDS)).or_insert(0.0) += 1.0;
        }
        (0.0, counts.into_iter().collect())
    };
    (0..documents).map(|_| document()).collect()
}

fn tasks(records: &[Record], count: usize) -> Vec<Vec<Batch>> {
    records.chunks(records.len().div_ceil(count)).map(|share| build(share, 50)).collect()
}

fn i64s(store: &LocalStore, id: MatrixId) -> Vec<i64> {
    match store.export(id).unwrap().values {
        OwnedValues::I64(values) => values,
        OwnedValues::I32(values) => values.into_iter().map(i64::from).collect(),
        other => panic!("whole numbers expected: {other:?}"),
    }
}

/// The tables of the model.
fn tables(run: &Run) -> Vec<matrix::RowBlock> {
    (0..run.model.matrix_count() as u32).map(|id| run.store.export(MatrixId(id)).unwrap()).collect()
}

#[test]
fn topics_that_have_no_word_in_common_are_found() {
    let records = planted(1, 400, 4);
    // The second number of topics is that of the other sampler, and 2 topics are what the first needs at least.
    for (settings, topics) in
        [("topics=4 sweeps=150", 4), ("topics=130 alpha=0.001 sweeps=150 optimize_alpha=false", 130)]
    {
        let run = HARNESS.train("lda", settings, tasks(&records, 1), None, Consistency::Bsp).unwrap();
        let rows = run.store.export(Model::TOPICS).unwrap();
        let counts = i64s(&run.store, Model::TOPICS);
        let mut own = vec![[0i64; 4]; topics];
        for (key, row) in rows.keys.iter().zip(counts.chunks_exact(topics)) {
            row.iter().zip(&mut own).for_each(|(count, own)| own[(key / OWN_WORDS) as usize] += count);
        }
        let all: i64 = counts.iter().sum();
        let pure: i64 = own.iter().map(|own| *own.iter().max().unwrap()).sum();
        assert_eq!(all, 400 * 40);
        assert!(pure as f64 > 0.98 * all as f64, "{settings}: {pure} of {all}");
        let likelihoods: Vec<f64> = run.training.iter().map(|metrics| metrics["log_likelihood"]).collect();
        assert!(likelihoods[14] > likelihoods[0] + 0.1, "{likelihoods:?}");
    }
}

#[test]
fn the_bytes_are_the_same_for_any_tasks_and_partitions_and_counts_add_up() {
    let records = planted(2, 150, 5);
    for settings in [
        "topics=5 sweeps=30",
        "topics=13 sweeps=20 optimize_beta=true",
        "topics=140 sweeps=20",
        "topics=140 sweeps=20 optimize_beta=true",
    ] {
        let alone = HARNESS.train_on(5, "lda", settings, tasks(&records, 1)).unwrap();
        let totals = i64s(&alone.store, Model::TOTALS);
        assert_eq!(totals.iter().sum::<i64>(), 150 * 40);
        for (task_count, partition_count) in [(1, 1), (2, 3), (3, 7)] {
            let mut shares = tasks(&records, task_count);
            shares.push(Vec::new());
            let other = HARNESS.train_on(partition_count, "lda", settings, shares).unwrap();
            assert_eq!(
                tables(&alone),
                tables(&other),
                "{settings} with {task_count} tasks and one without documents"
            );
            assert_eq!(alone.training, other.training, "{settings}");
        }
    }
}

#[test]
fn a_training_goes_on_from_a_save_to_the_same_bytes_with_many_topics_too() {
    let records = planted(3, 60, 3);
    for task_count in [1, 2] {
        let whole = HARNESS.train_on(5, "lda", "topics=150 sweeps=30", tasks(&records, task_count)).unwrap();
        let moment = &whole.moments[1];
        let run = HARNESS
            .train_from(moment, "lda", "topics=150 sweeps=30", tasks(&records, task_count), None)
            .unwrap();
        assert_eq!(tables(&run), tables(&whole));
        let mut other = moment.clone();
        other.states[0].bytes = whole.moments[0].states[0].bytes.clone();
        if task_count == 2 {
            // The rows of one moment and the topics of another.
            let error = HARNESS
                .train_from(&other, "lda", "topics=150 sweeps=30", tasks(&records, 2), None)
                .err()
                .unwrap();
            assert!(error.to_string().contains("do not add up"), "{error}");
        }
    }
}

/// One sweep of either sampler over documents of the word 0 and of others, whose tokens begin with the topics `first`, by topic of
/// the first token; and the exact probabilities.
#[test]
fn both_samplers_draw_from_the_exact_distribution() {
    draws_are_exact(11, &[10, 3]);
    // A document with topics in several vectors.
    draws_are_exact(29, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 15, 16, 28]);
}

/// `others`: the topics of the tokens of word 1 in each document.
fn draws_are_exact(topics: usize, others: &[u16]) {
    const DOCUMENTS: usize = 60_000;
    let beta = 0.3;
    let records: Vec<Record> = vec![(0.0, vec![(0, 1.0), (1, others.len() as f32)]); DOCUMENTS];
    let bags = Bags::read(&mut data::MemoryStream::new(build(&records, 1000))).unwrap();
    let documents = Documents::new(&bags, &[true, true], 7, Division { blocks: 1, slices: 1 });
    // The tokens of word 0 are sampled first: their distribution is known.
    let mut first = vec![3; DOCUMENTS];
    first.extend(others.repeat(DOCUMENTS));
    let alpha: Vec<f64> = (0..topics).map(|topic| 0.1 + topic as f64 / 10.0).collect();
    let totals: Vec<i64> = (0..topics as i64).map(|topic| 50 + 13 * topic).collect();
    let row: Vec<i32> =
        (0..topics as i32).map(|topic| if topic % 3 == 0 { 1 + 2 * topic } else { 0 }).collect();
    let frozen = Frozen::new(&alpha, beta, 2, &totals);
    for is_dense in [true, false] {
        let width = if is_dense { row_width(topics) } else { topics };
        let mut rows = WordRows::new(topics, width, StoredRows::All, &documents);
        for word in &documents.groups[0] {
            rows.row(0, word, &first)[..topics].copy_from_slice(&row);
        }
        let (mut drawn, mut changes) = (first.clone(), vec![0; topics]);
        let mut group = Group {
            documents: &documents,
            words: &documents.groups[0][..1],
            frozen: &frozen,
            draws: Draws::new(5, 1),
            topics: &mut drawn,
            rows: &mut rows,
            changes: &mut changes,
        };
        if is_dense {
            DocumentTopics::new(&documents, &first, topics).sample(&mut group);
        } else {
            sparse::sample(&mut group, &mut TopicLists::new(&documents, &first, topics));
        }
        let weight = |topic: usize| {
            let own = f64::from(u8::from(topic == 3));
            let of_document = others.iter().filter(|other| usize::from(**other) == topic).count() as f64;
            (of_document + alpha[topic]) * (f64::from(row[topic]) - own + beta)
                / (totals[topic] as f64 - own + 2.0 * beta)
        };
        let all: f64 = (0..topics).map(weight).sum();
        for topic in 0..topics {
            let expected = weight(topic) / all * DOCUMENTS as f64;
            let count =
                drawn[..DOCUMENTS].iter().filter(|drawn| usize::from(**drawn) == topic).count() as f64;
            // Five standard deviations.
            assert!(
                (count - expected).abs() < 5.0 * expected.sqrt(),
                "{topic}: {count} and not {expected}, {is_dense}"
            );
        }
        let moved: i64 = changes.iter().sum();
        assert_eq!(
            (moved, changes[3]),
            (0, drawn[..DOCUMENTS].iter().filter(|topic| **topic == 3).count() as i64 - DOCUMENTS as i64)
        );
    }
}

#[test]
fn the_fixed_point_of_beta_has_the_largest_likelihood() {
    let (words, topics) = (200, 6);
    let mut random = stream(3, Purpose::Test, 0, 0);
    // Few words have most of the tokens of a topic.
    let rows: Vec<Vec<f64>> = (0..words)
        .map(|_| (0..topics).map(|_| (1.0 / (0.02 + random.uniform()) - 1.5).max(0.0).floor()).collect())
        .collect();
    let totals: Vec<i64> = (0..topics).map(|k| rows.iter().map(|row| row[k] as i64).sum()).collect();
    let over = |(_, terms): Fold<1>, argument: &[f64]| -> f64 {
        rows.iter().map(|row| terms(argument, 0, row)[0]).sum()
    };
    let likelihood = |beta: f64| -> f64 {
        let all = f64::from(words) * beta;
        let of_words = over(LIKELIHOOD, &likelihood_argument(beta));
        of_words - totals.iter().map(|total| ln_gamma(*total as f64 + all) - ln_gamma(all)).sum::<f64>()
    };
    let mut beta = 0.01;
    for _ in 0..1000 {
        beta = next_beta(beta, over(BETA, &beta_argument(beta)), words as u64, &totals);
    }
    for other in [0.98, 1.02] {
        assert!(likelihood(beta) > likelihood(other * beta), "{beta}");
    }
    let run = |settings| {
        HARNESS.train("lda", settings, tasks(&planted(3, 60, 3), 1), None, Consistency::Bsp).unwrap()
    };
    let [given, fitted] = ["topics=3 sweeps=40", "topics=3 sweeps=40 optimize_beta=true"].map(run);
    let last = |run: &Run| run.training.last().unwrap()["log_likelihood"];
    assert!(last(&fitted) > last(&given));
}

#[test]
fn counts_that_are_no_whole_numbers_and_weights_are_refused() {
    for (count, text) in
        [(-1.0, "count -1"), (0.5, "count 0.5"), (1e9, "count 1000000000"), (f32::NAN, "count NaN")]
    {
        let records = vec![(0.0, vec![(7, count), (8, 1.0)])];
        let error =
            HARNESS.train("lda", "", tasks(&records, 1), None, Consistency::Bsp).err().unwrap().to_string();
        assert!(
            error.contains(text) && error.contains("the key 7") && error.contains("whole number"),
            "{error}"
        );
    }
    let mut weighted = build(&planted(4, 20, 2), 20);
    weighted[0].weights = vec![0.5; 20];
    let error = HARNESS.train("lda", "", vec![weighted], None, Consistency::Bsp).err().unwrap().to_string();
    assert!(error.contains("weight 0.5") && error.contains("0 or 1"), "{error}");
}

#[test]
fn a_document_of_weight_0_and_a_word_of_count_0_are_not_there() {
    let records = planted(5, 60, 2);
    let mut more = records.clone();
    for (_, words) in &mut more {
        words.push((999, 0.0));
    }
    more.push((0.0, vec![(3, 5.0)]));
    let mut batches = build(&more, 61);
    batches[0].weights = vec![1.0; 60];
    batches[0].weights.push(0.0);
    let plain = HARNESS.train_on(5, "lda", "topics=3 sweeps=10", tasks(&records, 1)).unwrap();
    let run = HARNESS.train_on(5, "lda", "topics=3 sweeps=10", vec![batches]).unwrap();
    assert_eq!(tables(&run), tables(&plain));
}

#[test]
fn words_outside_the_limits_are_left_out_and_an_empty_vocabulary_is_refused() {
    let mut records: Vec<Record> =
        (0..40).map(|i| (0.0, vec![(0, 1.0), (1 + i / 4, 1.0), (100 + i, 1.0)])).collect();
    // The words 0 (all documents), 1 to 10 (4 documents each) and 100 to 139 (one each); 11 has 6.
    records[..6].iter_mut().for_each(|(_, words)| words.insert(2, (11, 1.0)));
    let words = |settings: &str| {
        let run = HARNESS
            .train("lda", settings, tasks(&records, 2), None, Consistency::Bsp)
            .map_err(|error| error.to_string())?;
        Ok::<_, String>((run.store.export(Model::TOPICS).unwrap().keys, run.notices.join(" ")))
    };
    let (keys, notice) = words("topics=2 sweeps=1").unwrap();
    assert_eq!(keys.len(), 11);
    assert!(keys.iter().all(|key| (1..12).contains(key)) && notice.contains("11 words"), "{keys:?} {notice}");
    assert_eq!(words("topics=2 sweeps=1 max_document_share=1 min_documents=1").unwrap().0.len(), 52);
    // All words of 4 documents are above the limit together.
    let (keys, notice) = words("topics=2 sweeps=1 vocabulary_limit=5").unwrap();
    assert!(keys == [11] && notice.contains("34 of 40 documents have no word"), "{keys:?} {notice}");
    let error = words("topics=2 min_documents=50").unwrap_err();
    assert!(error.contains("no word of the 40 documents") && error.contains("min_documents"), "{error}");
}

#[test]
fn documents_without_a_word_of_one_and_of_a_million_are_trained_and_predicted() {
    let mut records = planted(6, 40, 2);
    records.push((0.0, vec![]));
    records.push((0.0, vec![(3, 1.0)]));
    records.push((0.0, vec![(4, 1_000_000.0), (40, 3.0)]));
    for settings in ["topics=3 sweeps=20", "topics=129 sweeps=10"] {
        let settings = format!("{settings} inference_sweeps=2 max_document_share=1");
        let run = HARNESS.train("lda", &settings, tasks(&records, 2), None, Consistency::Bsp).unwrap();
        assert_eq!(i64s(&run.store, Model::TOTALS).iter().sum::<i64>(), 40 * 40 + 1 + 1_000_003);
        let topics: usize = run.model.output().width();
        let unknown = build(&[(0.0, vec![(12_345, 2.0)]), (0.0, vec![]), records[42].clone()], 3);
        let (shares, metrics) = run.saved_and_loaded(&unknown);
        for shares in shares.chunks_exact(topics) {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{shares:?}");
        }
        assert_eq!(shares[..topics], shares[topics..2 * topics], "the shares of alpha");
        assert!(metrics["perplexity"] > 1.0);
    }
}

#[test]
fn a_new_document_has_its_topics_wherever_it_is_and_held_out_words_are_predicted() {
    let records = planted(7, 300, 3);
    let held = planted(8, 40, 3);
    let batches = build(&held, 40);
    let run = HARNESS
        .train("lda", "topics=3 sweeps=100", tasks(&records, 1), Some(&batches), Consistency::Bsp)
        .unwrap();
    let (shares, metrics) = run.saved_and_loaded(&batches);
    let single: Vec<Batch> = build(&held, 1);
    assert_eq!(run.saved_and_loaded(&single).0, shares);
    assert_eq!(run.validation.last().unwrap()["perplexity"], metrics["perplexity"]);
    // A document has two topics at most, so 60 of 90 words; one of them has half the documents' tokens.
    assert!(metrics["perplexity"] < 65.0, "{metrics:?}");
    let last = run.training.last().unwrap();
    assert!(last["npmi"] > 0.0 && last["umass"] < 0.0, "{last:?}");
    let saved = SavedModel::new(&*run.model);
    assert_eq!(Families::new(&[&FAMILY]).unwrap().load(&saved).unwrap().save(), run.model.save());
}

#[test]
fn counts_that_do_not_add_up_are_refused_when_a_model_is_used() {
    let records = planted(9, 40, 2);
    let run = HARNESS.train("lda", "topics=3 sweeps=10", tasks(&records, 1), None, Consistency::Bsp).unwrap();
    let mut loaded = LocalStore::with_functions(
        matrix::LocalConfig { task_count: 1, wait_limit: algo::test_harness::WAIT_LIMIT },
        HARNESS.functions(),
    );
    for spec in run.model.matrices(3) {
        let id = loaded.create(spec).unwrap();
        loaded.import(id, &run.store.export(id).unwrap()).unwrap();
    }
    let loaded = Arc::new(loaded);
    let mut agent = loaded.agent(0);
    let (batch, mut out) = (&build(&records, 40)[0], Vec::new());
    run.model.scorer().predict(&mut agent, batch, &mut out).unwrap();
    let key = batch.columns[0];
    let counts = i64s(&loaded, Model::TOPICS);
    let row = [counts[1] as i32, counts[0] as i32 + 1, counts[2] as i32 + 2];
    agent.push(Model::TOPICS, Selection::Rows(matrix::Keys::Sorted(&[key])), Values::I32(&row)).unwrap();
    let error = run.model.scorer().predict(&mut agent, batch, &mut out).unwrap_err().to_string();
    assert!(error.contains("do not add up") && error.contains("train again"), "{error}");
}

#[test]
fn a_training_does_not_go_on_from_a_model() {
    let run = HARNESS
        .train("lda", "topics=2 sweeps=1", tasks(&planted(1, 20, 2), 1), None, Consistency::Bsp)
        .unwrap();
    let job = HARNESS.job("lda", "topics=2").unwrap();
    let error = job.new_model(&algo::DataFacts::default(), Some(&*run.model)).unwrap_err().to_string();
    assert!(error.contains("--from") && error.contains("checkpoint"), "{error}");
}
