//! Promise: a family of a program gets what it asks for of its records: words in their order, times, and the quantiles of
//! columns before the model is made.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};

use algo::param::CheckedParams;
use algo::{
    AlgorithmRow, DataFacts, EpochEnd, Error, Family, Job, Learner, Model, Needs, Output, Scorer,
    TableLayout, TaskState, TrainTask,
};
use data::Batch;
use engine::{Data, Tables, Training};
use math::hash::named_key;
use matrix::{Agent, ElementType, MatrixSpec, PushRule};

use crate::common::Folder;

/// What the tasks have read: the keys of each record in their order, and its time.
static READ: Mutex<Vec<(Vec<u64>, f64)>> = Mutex::new(Vec::new());

const FAMILY: Family = Family {
    name: "observer",
    algorithms: &[AlgorithmRow {
        name: "observer",
        title: "Notes what it reads",
        parameters: &[],
        configure: |given| Ok(Arc::new(Observer(CheckedParams::new("observer", &[], given)?))),
    }],
    load: |fields| Ok(Arc::new(Bins(serde_json::from_value(fields["bounds"].clone())?))),
    functions: |_| Ok(()),
};

/// The bounds of the bins of column 1.
#[derive(Clone, Debug)]
struct Bins(Vec<f32>);

impl Model for Bins {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> serde_json::Value {
        serde_json::json!({ "bounds": self.0 })
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        vec![MatrixSpec::sparse("nothing", ElementType::F32, 1, PushRule::Add, partition_count)]
    }

    fn output(&self) -> Output {
        Output::Value
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(self.clone())
    }
}

impl Scorer for Bins {
    fn predict(&mut self, _: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        *out = vec![0.0; batch.record_count()];
        Ok(())
    }
}

#[derive(Debug)]
struct Observer(CheckedParams);

impl Job for Observer {
    fn settings(&self) -> &CheckedParams {
        &self.0
    }

    fn needs(&self) -> Needs {
        Needs {
            uses_labels: false,
            keeps_token_order: true,
            uses_times: true,
            quantiles: true,
            ..Needs::default()
        }
    }

    fn model(&self, facts: &DataFacts, _: Option<&dyn Model>) -> Result<Arc<dyn Model>, Error> {
        let survey = facts.survey.as_ref().expect("the family has asked for quantiles");
        assert_eq!(survey.record_count, facts.record_count);
        Ok(Arc::new(Bins(survey.quantiles(1).expect("column 1 has numbers").bounds(4))))
    }

    fn matrices(&self, model: &dyn Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        Ok(model.matrices(layout.partition_count))
    }

    fn begin(&self, _: &mut TrainTask<'_>, _: Option<&TaskState>) -> Result<Box<dyn Learner>, Error> {
        Ok(Box::new(Reading))
    }
}

struct Reading;

impl Learner for Reading {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        task.data.start_epoch(epoch)?;
        while let Some(batch) = task.data.next()? {
            let keys =
                |r| batch.entries(r).map(|entry| batch.columns[batch.indices[entry] as usize]).collect();
            READ.lock().unwrap().extend((0..batch.record_count()).map(|r| (keys(r), batch.times[r])));
            task.agent.tick()?;
        }
        task.agent.barrier()?;
        Ok(Some(EpochEnd::of_last(task.model.metric_accumulator())))
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

#[test]
fn words_in_their_order_times_and_quantiles() {
    let folder = Folder::new();
    let texts = ["to be or not to be", "be", "", "or to"];
    let line = |i: usize| format!("{},{i},1970-01-{:02}\n", texts[i % 4], 1 + i % 28);
    let data =
        folder.write("titles.csv", format!("title,size,day\n{}", (0..400).map(line).collect::<String>()));
    let tables = Tables::default().with_family(&FAMILY).unwrap();
    let training = Training::new("observer").with_tables(tables);
    let training = training.option("token_columns", "title").option("time", "day").option("tasks", 2);
    let model = training.run(&Data::files([&data])).unwrap();

    let saved = folder.path("model");
    model.save(&saved, false).unwrap();
    let manifest = std::fs::read_to_string(format!("{saved}/model.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let bounds: Vec<f64> =
        manifest["model"]["bounds"].as_array().unwrap().iter().map(|bound| bound.as_f64().unwrap()).collect();
    assert!(
        bounds.iter().zip([100.0, 200.0, 300.0]).all(|(bound, right)| (bound - right).abs() < 8.0),
        "{bounds:?}"
    );

    let mut read = READ.lock().unwrap().clone();
    assert_eq!(read.len(), 400);
    read.retain(|(_, time)| *time == 0.0);
    // Every 28th record is of the first day, with the first text; its size is the last entry, unless it is 0.
    let words = ["to", "be", "or", "not", "to", "be"].map(|word| named_key(b"title", word.as_bytes()));
    assert_eq!(read.len(), 15);
    for (keys, _) in &read {
        assert_eq!(keys[..6], words);
        assert!(keys[6..].is_empty() || keys[6..] == [1]);
    }
}
