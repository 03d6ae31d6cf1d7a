//! Tests of algorithms on one page: what follows from an impl is trained, saved at every moment and continued.

use data::{Batch, BatchBuilder};
use matrix::{MatrixId, OwnedValues, PushRule};
use serde::{Deserialize, Serialize};

use super::*;
use crate::error::Error;
use crate::job::{DataFacts, Epochs, Needs, Output};
use crate::test_harness::{Harness, Run, clicks};

const HARNESS: Harness = Harness(&[&LeastSquares::FAMILY, &Components::FAMILY]);

crate::settings! {
    struct LeastSquaresSettings {
        /// Step size
        rate: f64 = 0.05, 0.0 to 1.0;
        /// Passes over the records
        epochs: u64 = 4, 1 to 100, "epochs";
        /// Whether steps are made at all
        learns: bool = true;
    }
}

/// Weights of features.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeastSquares {}

impl Algorithm for LeastSquares {
    const NAME: &'static str = "least_squares";
    const TITLE: &'static str = "Least squares by gradient descent";
    const OUTPUT: Output = Output::Value;
    type Settings = LeastSquaresSettings;
    type Loop = BySteps;

    fn needs(settings: &LeastSquaresSettings) -> Needs {
        Needs { epochs: Epochs::Fixed(settings.epochs), ..Needs::default() }
    }

    fn new(_: &LeastSquaresSettings, _: &DataFacts, _: Option<&Self>) -> Result<Self, Error> {
        Ok(Self {})
    }

    fn tables(&self, _: Option<&LeastSquaresSettings>) -> Vec<Table> {
        vec![
            Table::rows("counts", 1, PushRule::Add).doubles().work(),
            Table::rows("weights", 1, PushRule::Add),
        ]
    }

    fn predict(&self, record: &Record<'_>, out: &mut Vec<f64>) {
        out.push(record.entries().map(|(key, value)| record.row(1, key)[0] * value).sum());
    }
}

impl Steps for LeastSquares {
    fn step(&self, settings: &LeastSquaresSettings, record: &Record<'_>, changes: &mut Changes<'_>) -> f64 {
        let error = record.scores[0] - record.label();
        for (key, value) in record.entries().filter(|_| settings.learns) {
            changes.add(0, key, 1.0, &[1.0]);
            changes.add(1, key, -settings.rate * error, &[value]);
        }
        0.5 * error * error
    }
}

/// The smallest key among the nodes that a node is connected with.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Components {}

impl Algorithm for Components {
    const NAME: &'static str = "components";
    const TITLE: &'static str = "Connected components";
    type Settings = ();
    type Loop = ByRounds;

    fn needs((): &()) -> Needs {
        Needs { uses_labels: false, epochs: Epochs::Fixed(50), ..Needs::default() }
    }

    fn new((): &(), _: &DataFacts, _: Option<&Self>) -> Result<Self, Error> {
        Ok(Self {})
    }

    fn tables(&self, _: Option<&()>) -> Vec<Table> {
        vec![Table::rows("component", 1, PushRule::Max).doubles()]
    }
}

impl Rounds for Components {
    type Share = Vec<Edge>;

    fn begin(&self, (): &(), task: &mut Task<'_>) -> Result<Vec<Edge>, Error> {
        let edges = task.edges()?;
        let own = task.own(edges.iter().flat_map(|edge| [edge.source, edge.target]))?;
        if task.is_new() {
            // A row is 0 at first, and the largest number is kept.
            task.push("component", &own, &own.iter().map(|key| 1000.0 - *key as f64).collect::<Vec<_>>())?;
        }
        Ok(edges)
    }

    fn round(&self, (): &(), edges: &mut Vec<Edge>, task: &mut Task<'_>) -> Result<Round, Error> {
        let nodes = || edges.iter().flat_map(|edge| [edge.source, edge.target]);
        let old = task.look_up("component", nodes())?;
        let mut new: std::collections::BTreeMap<u64, f64> =
            nodes().map(|node| (node, old.number(node))).collect();
        for edge in &*edges {
            let both = old.number(edge.source).max(old.number(edge.target));
            for node in [edge.source, edge.target] {
                new.insert(node, new[&node].max(both));
            }
        }
        let changed = new.iter().filter(|(node, number)| old.number(**node) != **number).count();
        let (keys, numbers): (Vec<u64>, Vec<f64>) = new.into_iter().unzip();
        task.push("component", &keys, &numbers)?;
        let [changed] = task.sum([changed as f64])?;
        Ok(Round { is_last: changed == 0.0, shown: vec![("changed", changed)] })
    }
}

crate::settings! {
    struct DegreeSettings {
        /// Whether what is pushed at the beginning is pushed again when training continues
        careless: bool = false;
        /// 1: a change that fails; 2: rounds that end at one task; 3: owners twice; 4: a change after pushes
        deed: u64 = 0, 0 to 4;
    }
}

/// The share of the edges that leave a node, halved in each of three rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Degrees {}

impl Algorithm for Degrees {
    const NAME: &'static str = "degrees";
    const TITLE: &'static str = "Shares of edges";
    type Settings = DegreeSettings;
    type Loop = ByRounds;

    fn needs(_: &DegreeSettings) -> Needs {
        Needs::edges().epochs(3)
    }

    fn new(_: &DegreeSettings, _: &DataFacts, _: Option<&Self>) -> Result<Self, Error> {
        Ok(Self {})
    }

    fn tables(&self, _: Option<&DegreeSettings>) -> Vec<Table> {
        vec![Table::rows("share", 1, PushRule::Add).doubles()]
    }

    fn functions() -> RowFunctions {
        let scale = |argument: &[f64], _: u64, row: &mut [f64]| row[0] *= argument[0];
        RowFunctions::none().fold("total", |_, _, row| [row[0], 1.0]).change("scale", scale)
    }
}

impl Rounds for Degrees {
    type Share = ();

    fn begin(&self, set: &DegreeSettings, task: &mut Task<'_>) -> Result<(), Error> {
        let edges = task.edges()?;
        if task.is_new() || set.careless {
            task.push_sums("share", edges.iter().map(|edge| (edge.source, edge.weight)))?;
        }
        for _ in 0..if set.deed == 3 { 2 } else { 0 } {
            task.own(edges.iter().map(|edge| edge.source))?;
        }
        Ok(())
    }

    fn round(&self, set: &DegreeSettings, (): &mut (), task: &mut Task<'_>) -> Result<Round, Error> {
        let [total, node_count] = task.fold("total", "share", &[])?;
        if set.deed == 4 {
            task.push_sums("share", [(1, 1.0)])?;
            task.change("scale", "share", &[0.0])?;
            let [rest, _] = task.fold("total", "share", &[])?;
            assert_eq!(rest, 0.0, "the pushes of all tasks come before the change");
            return Ok(Round { is_last: true, shown: vec![("rest", f64::NAN)] });
        }
        task.change("scale", "share", &[if set.deed == 1 { f64::INFINITY } else { 0.5 / total }])?;
        Ok(Round {
            is_last: set.deed == 2 && task.number() == 1,
            shown: vec![("total", total), ("nodes", node_count)],
        })
    }
}

/// Edges of a file, some of nodes that several tasks have.
const LINKS: &str = "a b\nb c\nc a\na c\nd a\ne d\nd e\nb a\n";

#[test]
fn an_algorithm_is_checked_by_its_author() {
    crate::check::<Degrees>("edges", LINKS, &[]).unwrap();
    crate::check::<Components>("edges", LINKS, &[]).unwrap();
    let table = "label,x,z\n1,0.5,1\n0,0.1,2\n1,0.2,0\n0,0.7,1\n1,0,3\n0,0.3,0\n1,1,1\n0,1,0\n1,0.4,2\n";
    crate::check::<LeastSquares>("csv", table, &[("epochs", "2")]).unwrap();
    let text = crate::check::<Degrees>("edges", LINKS, &[("careless", "true")]).unwrap_err();
    assert_eq!(text, "with 1 task: the metrics are others continued from clock 2", "the shares are the same");
    for (deed, words) in
        [("1", "is not finite"), ("2", "differ in whether this is the last"), ("3", "decided once")]
    {
        let text = crate::check::<Degrees>("edges", LINKS, &[("deed", deed)]).unwrap_err();
        assert!(text.contains(words), "{deed}: {text}");
    }
    // A change comes after what all tasks have pushed before, and a metric that is no number is equal to itself.
    crate::check::<Degrees>("edges", LINKS, &[("deed", "4")]).unwrap();
    let text = crate::check::<Degrees>("edges", LINKS, &[("carelss", "true")]).unwrap_err();
    assert!(text.contains("carelss") && text.contains("careless"), "{text}");
}

fn edges(edges: &[(u64, u64)]) -> Vec<Batch> {
    let mut builder = BatchBuilder::new();
    for (source, target) in edges {
        builder.push_with_field(0, *source, 1.0);
        builder.push_with_field(1, *target, 1.0);
        builder.end_record(0.0, 1.0, None);
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    vec![batch]
}

/// The values of the matrices of a run, without those of its training.
fn values(run: &Run) -> Vec<OwnedValues> {
    (0..run.model.matrix_count() as u32).map(|id| run.store.export(MatrixId(id)).unwrap().values).collect()
}

/// A run that is continued from each of its moments gives the same bytes.
fn check_moments(name: &str, settings: &str, tasks: &[Vec<Batch>], whole: &Run) {
    assert!(!whole.moments.is_empty());
    for moment in &whole.moments {
        let run = HARNESS.train_from(moment, name, settings, tasks.to_vec(), None).unwrap();
        assert_eq!(values(&run), values(whole), "from clock {}", moment.clock);
    }
}

#[test]
fn steps_learn_and_are_continued_from_every_moment_to_the_same_bytes() {
    let tasks = vec![clicks(1, 6, 20), clicks(2, 6, 20)];
    let whole = HARNESS.train("least_squares", "", tasks.clone(), None, matrix::Consistency::Bsp).unwrap();
    let losses: Vec<f64> = whole.training.iter().map(|metrics| metrics["loss"]).collect();
    assert!(losses.len() == 4 && losses[3] < losses[0], "{losses:?}");
    check_moments("least_squares", "", &tasks, &whole);
    let within = HARNESS.train_saving_at(3, "least_squares", "", tasks.clone()).unwrap();
    check_moments("least_squares", "", &tasks, &within);
    // The tables of the training are not in the model, and the saved model predicts as the trained one.
    assert_eq!(whole.model.matrix_count(), 1);
    let (scores, metrics) = whole.saved_and_loaded(&tasks[0]);
    assert!(scores.iter().any(|score| *score != 0.0) && metrics["rmse"] < 0.6, "{metrics:?}");
    let job = HARNESS.job("least_squares", "").unwrap();
    job.new_model(&DataFacts::default(), Some(&*whole.model)).unwrap();
    let other = HARNESS.job("components", "").unwrap().model(&DataFacts::default(), None).unwrap();
    let error = job.new_model(&DataFacts::default(), Some(&*other)).unwrap_err();
    assert!(matches!(error, Error::ModelFamily { .. }), "{error}");
    let idle = HARNESS.train("least_squares", "learns=false epochs=1", tasks, None, matrix::Consistency::Bsp);
    assert_eq!(idle.unwrap().training.len(), 1);
    let error = HARNESS.job("least_squares", "rate=2").unwrap_err().to_string();
    assert!(error.contains("rate") && error.contains("[0, 1]"), "{error}");
}

#[test]
fn rounds_end_when_nothing_changes_and_are_continued_from_every_moment() {
    let tasks = vec![edges(&[(1, 2), (3, 4), (5, 6)]), edges(&[(2, 3), (6, 7), (9, 9)])];
    let whole = HARNESS.train("components", "", tasks.clone(), None, matrix::Consistency::Bsp).unwrap();
    let rows = whole.store.export(MatrixId(0)).unwrap();
    let OwnedValues::F64(numbers) = rows.values else { panic!("they are doubles") };
    let found: Vec<(u64, f64)> = rows.keys.into_iter().zip(numbers).collect();
    let of = |nodes: &[u64], first: f64| nodes.iter().map(|node| (*node, 1000.0 - first)).collect::<Vec<_>>();
    let expected = [of(&[1, 2, 3, 4], 1.0), of(&[5, 6, 7], 5.0), of(&[9], 9.0)].concat();
    assert_eq!(found, expected);
    let changed: Vec<f64> = whole.training.iter().map(|metrics| metrics["changed"]).collect();
    assert_eq!(changed.last(), Some(&0.0));
    check_moments("components", "", &tasks, &whole);
    // The tables of the training are not in the model, so rounds cannot continue from it.
    let job = HARNESS.job("components", "").unwrap();
    let error = job.model(&DataFacts::default(), Some(&*whole.model)).unwrap_err().to_string();
    assert!(error.contains("components") && error.contains("--from"), "{error}");
    let error =
        HARNESS.train("components", "", vec![Vec::new()], None, matrix::Consistency::Bsp).err().unwrap();
    assert!(matches!(error, Error::NoRecords), "{error}");
    let no_edges = HARNESS.train("components", "", vec![clicks(1, 1, 2)], None, matrix::Consistency::Bsp);
    assert!(no_edges.err().unwrap().to_string().contains("--format edges"));
}
