//! Tests of the driver of scoring jobs, without workers.

use algo::metric::MetricAccumulator;
use data::ReadSummary;
use job::keys::JobCommand;
use rpc::message::{Member, MemberKind};
use serde_json::json;

use super::*;

/// A driver with this number of workers, each with two slots. `keys` are those of the job besides data and model.
fn driver(command: &str, workers: u32, keys: &[(&str, &str)]) -> ScoringDriver {
    let mut job = json!({ "command": command, "data": "/d", "model": "/m" });
    for (key, value) in keys {
        job[key] = json!(value);
    }
    let raw = ::job::RawJob::from_submitted(&job).unwrap();
    let checked = ScoringJob::check(&raw).unwrap().expect("it scores");
    let kind =
        MemberKind::Server { addresses: vec!["unix:/s".into()], lanes: 1, memory_limit_bytes: 1 << 30 };
    let server = Member { id: 99, name: "server-0".into(), host: "here".into(), incarnation: 1, kind };
    let info = |i| WorkerInfo { id: 10 + i, name: Some(format!("worker-{i}")), slots: 2 };
    let config = ScoringConfig {
        job: 1,
        workers: (0..workers).map(info).collect(),
        parameters: ParameterPlace::Servers(vec![server]),
        families: families::all(),
    };
    ScoringDriver::new(config, checked)
}

fn evaluation(workers: u32) -> ScoringDriver {
    driver("evaluate", workers, &[("bad_lines", "skip=2")])
}

fn prediction(workers: u32) -> ScoringDriver {
    driver("predict", workers, &[("output", "/o.csv")])
}

fn model() -> SavedModel {
    let model = json!({
        "family": "linear", "algorithm": "lr", "classes": [0.0, 1.0], "dimensions": null, "intercept": true,
        "loss": { "kind": "logistic" }, "normalize": false, "numbered": 9, "positive_label": null, "standardize": null,
    });
    serde_json::from_value(model).unwrap()
}

fn inspected(driver: &ScoringDriver, chunk_count: u32) -> FromWorker {
    let facts = match driver.job.command() {
        JobCommand::Evaluate => ScoringFacts::Evaluation(Box::new(crate::evaluation::EvaluationFacts {
            algorithm: "lr".into(),
            schema: data::Schema::default(),
            notices: Vec::new(),
            known: crate::coverage::KnownFeatures::default(),
        })),
        _ => ScoringFacts::Prediction(crate::prediction::PredictionFacts::default()),
    };
    FromWorker::ScoringInspected {
        data: DataExtent { chunk_count, size_bytes: None },
        model: model(),
        folder: Some("/parts".into()),
        facts: Box::new(facts),
    }
}

fn told(driver: &mut ScoringDriver, worker: u32, message: FromWorker) -> Vec<Effect> {
    driver.on_event(Instant::now(), Event::FromWorker { worker: 10 + worker, message })
}

/// Brings a driver to the moment at which its workers score. Returns their shares.
fn scoring(driver: &mut ScoringDriver, chunk_count: u32) -> Vec<ScoringShare> {
    let first = driver.start();
    assert!(matches!(&first[..], [Effect::Send { worker: 10, message: ToWorker::InspectScoring { .. } }]));
    let message = inspected(driver, chunk_count);
    let effects = told(driver, 0, message);
    assert!(matches!(&effects[..], [Effect::Parameters(ParametersRequest::Create { .. })]), "{effects:?}");
    let effects = driver.on_event(Instant::now(), Event::ParametersDone(Value::Null));
    assert!(matches!(&effects[..], [Effect::Send { worker: 10, message: ToWorker::ImportModel { .. } }]));
    let share = |effect: Effect| match effect {
        Effect::Send { message: ToWorker::Score { share, .. }, .. } => share,
        other => panic!("{other:?}"),
    };
    told(driver, 0, FromWorker::ModelImported { notices: Vec::new() }).into_iter().map(share).collect()
}

/// Metrics of a chunk whose sums depend on the order in which chunks are added.
fn metrics(chunk: u32) -> FromWorker {
    let MetricAccumulator::Binary(mut metrics) = families::all().load(&model()).unwrap().metric_accumulator()
    else {
        panic!("lr has two classes")
    };
    metrics.loss.add(10f64.powi(chunk as i32 % 9) / 3.0, 1.0 / f64::from(chunk + 3));
    FromWorker::ChunkMetrics { chunk, metrics: Box::new(MetricAccumulator::Binary(metrics)) }
}

fn chunk(chunk: u32, bad_line_count: u64) -> FromWorker {
    let bad_lines = (0..bad_line_count).map(|i| format!("bad line {i} of chunk {chunk}")).collect();
    let read = ReadSummary { record_count: 1, bad_line_count, bad_lines, ..ReadSummary::default() };
    let summary = ChunkSummary { read, ..ChunkSummary::default() };
    FromWorker::ChunkScored { chunk, summary: Box::new(summary) }
}

fn failed(text: &str) -> FromWorker {
    FromWorker::Failed { task: None, error: text.into(), exit: Exit::Data as u8, is_loss: false, rank: None }
}

/// The end of the job among these effects, if it has ended.
fn end(effects: Vec<Effect>) -> Option<Result<Value, String>> {
    let is_told = |effect: &Effect| matches!(effect, Effect::Send { message: ToWorker::End { .. }, .. });
    let told_count = effects.iter().filter(|effect| is_told(effect)).count();
    effects.into_iter().find_map(|effect| match effect {
        Effect::End(result) => {
            assert!(told_count > 0, "the workers learn of the end");
            Some(match *result {
                Ok(RunEnd::Scored(report)) => Ok(report),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error.to_string()),
            })
        }
        _ => None,
    })
}

#[test]
fn shares_cover_the_chunks_and_no_worker_has_more_tasks_than_chunks() {
    for (workers, chunk_count) in [(1, 1), (2, 1), (3, 2), (3, 10), (4, 100)] {
        let shares = scoring(&mut prediction(workers), chunk_count);
        assert_eq!(shares.len() as u32, workers.min(chunk_count));
        let (mut next_chunk, mut next_task) = (0, 0);
        for (part, share) in (0..).zip(&shares) {
            assert_eq!((share.part, share.chunks.first, share.tasks.0), (part, next_chunk, next_task));
            let tasks = share.tasks.1 - share.tasks.0;
            assert!(tasks >= 1 && tasks <= 2.min(share.chunks.end - share.chunks.first), "{share:?}");
            (next_chunk, next_task) = (share.chunks.end, share.tasks.1);
        }
        assert_eq!(next_chunk, chunk_count);
    }
    let tasks = |keys: &[(&str, &str)]| {
        let shares = scoring(&mut driver("predict", 2, &[&[("output", "/o.csv")], keys].concat()), 100);
        shares.iter().map(|share| share.tasks.1 - share.tasks.0).collect::<Vec<_>>()
    };
    assert_eq!(tasks(&[]), [2, 2], "as many as slots");
    assert_eq!(tasks(&[("threads", "1")]), [1, 1]);
    assert_eq!(tasks(&[("tasks", "7")]), [3, 4]);
}

#[test]
fn the_workers_of_an_evaluation_take_the_chunks_in_turn() {
    let shares = scoring(&mut evaluation(3), 8);
    let chunks: Vec<Vec<u32>> = shares.iter().map(|share| share.chunks.iter().collect()).collect();
    assert_eq!(chunks, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
}

#[test]
fn metrics_do_not_depend_on_the_number_of_workers_or_on_who_is_faster() {
    let report = |workers: u32, order: &[u32]| {
        let mut driver = evaluation(workers);
        let parts = scoring(&mut driver, 8).len() as u32;
        for number in order {
            told(&mut driver, 0, metrics(*number));
            told(&mut driver, 0, metrics(number + 3));
            assert!(end(told(&mut driver, 0, chunk(*number, 0))).is_none());
        }
        let ends = (0..parts).map(|part| end(told(&mut driver, part, FromWorker::PartScored { part })));
        ends.last().flatten().expect("it has ended").expect("it has not failed")
    };
    let alone = report(1, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(alone["records"], 8);
    assert_eq!(report(2, &[4, 0, 5, 1, 6, 7, 2, 3]), alone);
    assert_eq!(report(4, &[7, 6, 5, 4, 3, 2, 1, 0]), alone);
}

#[test]
fn scores_are_joined_when_all_parts_are_there() {
    let mut driver = prediction(2);
    scoring(&mut driver, 4);
    for number in 0..4 {
        told(&mut driver, 0, chunk(number, 0));
    }
    assert!(told(&mut driver, 1, FromWorker::PartScored { part: 1 }).is_empty());
    let effects = told(&mut driver, 0, FromWorker::PartScored { part: 0 });
    let join = |effect: &Effect| {
        matches!(effect, Effect::Send { worker: 10, message: ToWorker::JoinScores { part_count: 2 } })
    };
    assert!(matches!(&effects[..], [only] if join(only)), "{effects:?}");
    let report = end(told(&mut driver, 0, FromWorker::ScoresJoined)).unwrap().unwrap();
    assert_eq!((report["records"].as_u64(), report["output"].as_str()), (Some(4), Some("/o.csv")));
}

#[test]
fn bad_lines_count_over_all_workers() {
    let mut driver = evaluation(2);
    scoring(&mut driver, 4);
    assert!(end(told(&mut driver, 1, chunk(2, 1))).is_none());
    assert!(end(told(&mut driver, 1, chunk(3, 1))).is_none());
    assert!(end(told(&mut driver, 0, chunk(0, 0))).is_none(), "two are allowed");
    let error = end(told(&mut driver, 0, chunk(1, 1))).unwrap().unwrap_err();
    assert!(error.contains("bad line 0 of chunk 1"), "the first of the input is told: {error}");
}

#[test]
fn the_first_failure_by_the_order_of_the_input_is_told() {
    let mut driver = evaluation(3);
    scoring(&mut driver, 6);
    assert!(end(told(&mut driver, 2, failed("late"))).is_none(), "workers 0 and 1 may fail before it");
    assert!(end(told(&mut driver, 0, FromWorker::PartScored { part: 0 })).is_none());
    let error = end(told(&mut driver, 1, failed("early"))).unwrap().unwrap_err();
    assert_eq!(error, "worker worker-1: early");

    let mut driver = evaluation(3);
    scoring(&mut driver, 6);
    assert!(end(told(&mut driver, 1, failed("middle"))).is_none());
    assert!(end(driver.on_event(Instant::now(), Event::Timeout)).is_none());
    let later = Instant::now() + FIRST_FAILURE_LIMIT;
    let error = end(driver.on_event(later, Event::Timeout)).unwrap().unwrap_err();
    assert_eq!(error, "worker worker-1: middle", "worker 0 takes too long");
    assert!(told(&mut driver, 0, failed("after the end")).is_empty());
}

#[test]
fn whatever_fails_before_the_first_record_ends_the_job() {
    let mut driver = prediction(2);
    driver.start();
    assert!(end(told(&mut driver, 0, failed("no model"))).unwrap().unwrap_err().contains("no model"));

    let mut driver = prediction(2);
    scoring(&mut driver, 4);
    let lost = Error::Cluster { text: "worker-1 was lost".into(), exit: Exit::Io };
    let error = end(driver.on_event(Instant::now(), Event::Failed(lost))).unwrap().unwrap_err();
    assert!(error.contains("worker-1 was lost"), "{error}");

    let mut driver = prediction(1);
    scoring(&mut driver, 4);
    let error = end(driver.on_event(Instant::now(), Event::StopRequested)).unwrap().unwrap_err();
    assert!(error.contains("scoring was not finished"), "{error}");

    let mut driver = prediction(1);
    scoring(&mut driver, 1);
    told(&mut driver, 0, FromWorker::ChunkScored { chunk: 0, summary: Box::default() });
    let error = end(told(&mut driver, 0, FromWorker::PartScored { part: 0 })).unwrap().unwrap_err();
    assert!(error.contains("no records"), "{error}");

    let mut driver = prediction(1);
    scoring(&mut driver, 2);
    told(&mut driver, 0, chunk(0, 0));
    let error = end(told(&mut driver, 0, FromWorker::PartScored { part: 0 })).unwrap().unwrap_err();
    assert!(error.contains("before all chunks were scored"), "{error}");
}
