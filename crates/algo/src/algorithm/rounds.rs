//! Algorithms that keep the data of a task in a form of their own, such as a graph, and pass over it in rounds. A round is an
//! epoch and a tick: all pushes of a round are visible when the next one begins, and checkpoints are made between two rounds.

use std::collections::BTreeMap;

use data::{Batch, BatchStream};
use matrix::function::unpack;
use matrix::{Agent, FunctionCall, PushRule};

use super::functions::full_name;
use super::interface::{Algorithm, AlgorithmJob, AlgorithmModel, Loop};
use super::table::{Table, TablePlace};
use crate::error::Error;
use crate::job::{Epochs, Needs, TrainTask};
use crate::metric::MetricAccumulator;
use crate::metric::named::{MergeRule, NamedMetric};
use crate::task_loop::{EpochEnd, Learner, TaskState};

/// An algorithm whose [`Algorithm::Loop`] is [`ByRounds`].
pub trait Rounds: Algorithm<Loop = ByRounds> {
    /// What a task keeps of its data.
    type Share;

    /// Reads the data of the task. A training that goes on after a loss, or from a checkpoint, calls it again on the tables of that
    /// moment: what it pushes, and the sums over tasks for it, belong into `if task.is_new()`.
    fn begin(&self, settings: &Self::Settings, task: &mut Task<'_>) -> Result<Self::Share, Error>;

    /// Makes a round. At its end all tasks wait for each other.
    fn round(
        &self,
        settings: &Self::Settings,
        share: &mut Self::Share,
        task: &mut Task<'_>,
    ) -> Result<Round, Error>;
}

/// The loop of [`Rounds`].
#[derive(Clone, Copy, Debug)]
pub struct ByRounds;

/// How a round ended, the same at every task.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// No round follows.
    pub is_last: bool,
    /// What is shown of the round, by name: values that are the same at every task.
    pub shown: Vec<(&'static str, f64)>,
}

/// An edge of a graph, with the keys of its nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    pub source: u64,
    pub target: u64,
    pub weight: f64,
}

/// What an algorithm reaches from a task: its data, the tables, the other tasks.
pub struct Task<'t> {
    algorithm: &'static str,
    agent: &'t mut dyn Agent,
    data: &'t mut dyn BatchStream,
    places: &'t [TablePlace],
    /// The table of the owners of keys.
    owners: TablePlace,
    is_new: bool,
    round: u64,
    record_count: &'t mut u64,
    /// The owners of keys are decided.
    has_owners: &'t mut bool,
}

impl Task<'_> {
    /// Whether the tables are as they are created: in [`Rounds::begin`] of a new training. It is the same at every task.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The number of the task, from 0.
    pub fn number(&self) -> u32 {
        self.agent.task()
    }

    /// The number of the round, from 0.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Reads the task's share of the data, batch by batch, in the order of the files.
    pub fn for_each_batch(
        &mut self,
        mut visit: impl FnMut(&Batch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.data.start_epoch(0)?;
        *self.record_count = 0;
        while let Some(batch) = self.data.next()? {
            *self.record_count += batch.record_count() as u64;
            visit(batch)?;
        }
        Ok(())
    }

    /// Reads the edges of the task's share of the data: `--format edges` or `adjacency`, or entries with the fields 0 and 1.
    pub fn edges(&mut self) -> Result<Vec<Edge>, Error> {
        let mut edges = Vec::new();
        self.for_each_batch(|batch| {
            for r in 0..batch.record_count() {
                let nodes = |field: u32| {
                    let of_field = move |i: &usize| batch.fields.get(*i) == Some(&field);
                    batch.entries(r).filter(of_field).map(|i| batch.columns[batch.indices[i] as usize])
                };
                let (Some(source), Some(_)) = (nodes(0).next(), nodes(1).next()) else {
                    return Err(Error::unsuitable("a record is no edge: give edges (--format edges)"));
                };
                let weight = f64::from(batch.weight(r));
                edges.extend(nodes(1).map(|target| Edge { source, target, weight }));
            }
            Ok(())
        })?;
        Ok(edges)
    }

    /// The table of this name.
    ///
    /// # Panics
    /// If the algorithm has no such table.
    fn place(&self, name: &str) -> TablePlace {
        let place = self.places.iter().find(|place| place.name == name);
        *place.unwrap_or_else(|| panic!("the algorithm has no table {name:?}"))
    }

    /// The rows of ascending keys in a table.
    pub fn get(&mut self, table: &str, keys: &[u64]) -> Result<Vec<f64>, Error> {
        let mut out = Vec::new();
        self.place(table).pull(self.agent, keys, &mut out)?;
        Ok(out)
    }

    /// Pushes rows of ascending keys to a table. Other tasks, and this one, see them after a [`Self::barrier`] or
    /// [`Self::sum`].
    pub fn push(&mut self, table: &str, keys: &[u64], rows: &[f64]) -> Result<(), Error> {
        self.place(table).push(self.agent, keys, rows)
    }

    /// The rows of these keys in a table, to look them up by their keys.
    pub fn look_up(&mut self, table: &str, keys: impl IntoIterator<Item = u64>) -> Result<KeyRows, Error> {
        let keys = ascending(keys);
        let width = self.place(table).columns;
        Ok(KeyRows { rows: self.get(table, &keys)?, width, keys })
    }

    /// Pushes numbers to a table of one column, in which those of a key are added up first, in their order.
    pub fn push_sums(
        &mut self,
        table: &str,
        numbers: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<(), Error> {
        let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
        numbers.into_iter().for_each(|(key, number)| *sums.entry(key).or_default() += number);
        let (keys, values): (Vec<u64>, Vec<f64>) = sums.into_iter().unzip();
        self.push(table, &keys, &values)
    }

    /// Waits for all tasks.
    pub fn barrier(&mut self) -> Result<(), Error> {
        Ok(self.agent.barrier()?)
    }

    /// The sums over all tasks. All tasks wait for each other.
    pub fn sum<const N: usize>(&mut self, mut values: [f64; N]) -> Result<[f64; N], Error> {
        self.agent.all_reduce(&mut values)?;
        Ok(values)
    }

    /// Runs a fold of [`Algorithm::functions`] over all rows of a table, at the servers. All tasks wait for each other first,
    /// so it sees what they have pushed before.
    pub fn fold<const N: usize>(
        &mut self,
        name: &str,
        table: &str,
        argument: &[f64],
    ) -> Result<[f64; N], Error> {
        self.agent.barrier()?;
        let call = FunctionCall::of_rows(&full_name(self.algorithm, name), argument);
        let answer = self.agent.pull_function(self.place(table).matrix, &call)?;
        let sums: Vec<f64> = unpack(&answer).map_err(|fault| matrix::Error::function(table, name, fault))?;
        let count = sums.len();
        sums.try_into().map_err(|_| {
            Error::unsuitable(format!("the fold {name:?} has {count} sums, and {N} are asked for"))
        })
    }

    /// Runs a change of [`Algorithm::functions`] over all rows of a table, at the servers. All tasks call it with the same
    /// argument, and it runs once. They wait for each other first, so it comes after what they have pushed before, and before
    /// what they push then; they see it after a [`Self::barrier`] or [`Self::sum`].
    pub fn change(&mut self, name: &str, table: &str, argument: &[f64]) -> Result<(), Error> {
        self.agent.barrier()?;
        // Of the pushes of a clock, those of task 0 come first, in their order.
        if self.agent.task() == 0 {
            let call = FunctionCall::of_rows(&full_name(self.algorithm, name), argument);
            self.agent.push_function(self.place(table).matrix, &[call])?;
        }
        Ok(())
    }

    /// Those of the keys that belong to this task, ascending: a key that several tasks name belongs to one of them. All tasks
    /// call it, once and in [`Rounds::begin`], with the same keys in a training that goes on.
    pub fn own(&mut self, keys: impl IntoIterator<Item = u64>) -> Result<Vec<u64>, Error> {
        if std::mem::replace(self.has_owners, true) {
            return Err(Error::unsuitable(
                "the owners of keys are decided once, when the training begins (Task::own)",
            ));
        }
        let keys = ascending(keys);
        let number = f64::from(self.agent.task_count() - self.agent.task());
        if self.is_new {
            self.owners.push(self.agent, &keys, &vec![number; keys.len()])?;
            self.agent.barrier()?;
        }
        let mut owners = Vec::new();
        self.owners.pull(self.agent, &keys, &mut owners)?;
        let owned = keys.into_iter().zip(owners).filter(|(_, owner)| *owner == number);
        Ok(owned.map(|(key, _)| key).collect())
    }
}

/// Rows of a table by their keys.
#[derive(Clone, Debug)]
pub struct KeyRows {
    /// Ascending.
    keys: Vec<u64>,
    rows: Vec<f64>,
    width: usize,
}

impl KeyRows {
    /// The row of one of the keys.
    ///
    /// # Panics
    /// If the key is not among those that were looked up.
    pub fn row(&self, key: u64) -> &[f64] {
        let at = self.keys.binary_search(&key).expect("the key was looked up");
        &self.rows[at * self.width..][..self.width]
    }

    /// The number of one of the keys in a table of one column.
    pub fn number(&self, key: u64) -> f64 {
        self.row(key)[0]
    }
}

/// The distinct keys, ascending.
fn ascending(keys: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut keys: Vec<u64> = keys.into_iter().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The table of the owners: for each key the largest of `task_count - task` of the tasks that name it.
fn owners() -> Table {
    Table::rows("owners", 1, PushRule::Max).doubles().work()
}

impl<A: Rounds> Loop<A> for ByRounds {
    fn complete(needs: Needs) -> Needs {
        Needs { requires_bsp: true, ..needs }
    }

    fn work_tables() -> Vec<Table> {
        vec![owners()]
    }

    fn begin<'a>(
        job: &'a AlgorithmJob<A>,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        let model: &AlgorithmModel<A> = task.model.of()?;
        let mut places = Table::places(&job.tables(&model.0));
        let owners = places.pop().expect("the tables of the loop are the last");
        let (model, is_new) = (&model.0, saved.is_none());
        let Epochs::Fixed(round_limit) = A::needs(&job.settings).epochs else {
            return Err(Error::unsuitable("the number of rounds must be fixed (Needs::epochs)"));
        };
        let mut learner = RoundLearner {
            job,
            model,
            places,
            owners,
            share: None,
            is_new,
            record_count: 0,
            has_owners: false,
            round_limit,
        };
        let share = learner.with_task(task, 0, Rounds::begin)?;
        (learner.is_new, learner.has_owners) = (false, true);
        task.agent.barrier()?;
        learner.share = Some(share);
        let mut all = [learner.record_count as f64];
        task.agent.all_reduce(&mut all)?;
        if all[0] == 0.0 {
            return Err(Error::NoRecords);
        }
        Ok(Box::new(learner))
    }
}

struct RoundLearner<'a, A: Rounds> {
    job: &'a AlgorithmJob<A>,
    model: &'a A,
    places: Vec<TablePlace>,
    owners: TablePlace,
    share: Option<A::Share>,
    is_new: bool,
    record_count: u64,
    has_owners: bool,
    round_limit: u64,
}

impl<A: Rounds> RoundLearner<'_, A> {
    fn with_task<T>(
        &mut self,
        task: &mut TrainTask<'_>,
        round: u64,
        run: impl FnOnce(&A, &A::Settings, &mut Task<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (places, owners, is_new) = (&self.places, self.owners, self.is_new);
        let (agent, data, record_count) = (&mut *task.agent, &mut *task.data, &mut self.record_count);
        let has_owners = &mut self.has_owners;
        let algorithm = A::NAME;
        let mut task =
            Task { algorithm, agent, data, places, owners, is_new, round, record_count, has_owners };
        run(self.model, &self.job.settings, &mut task)
    }
}

impl<A: Rounds> Learner for RoundLearner<'_, A> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let mut share = self.share.take().expect("it is put back after each round");
        let run =
            |model: &A, settings: &A::Settings, task: &mut Task<'_>| model.round(settings, &mut share, task);
        let round = self.with_task(task, epoch, run)?;
        self.share = Some(share);
        task.agent.tick()?;
        // The tasks wait for each other, and agree.
        let mut last = [f64::from(u8::from(round.is_last))];
        task.agent.all_reduce(&mut last)?;
        if last[0] != 0.0 && last[0] != f64::from(task.agent.task_count()) {
            return Err(Error::unsuitable(
                "the tasks differ in whether this is the last round (Round::is_last)",
            ));
        }
        let count = self.round_limit;
        let mut training = task.model.metric_accumulator();
        if let MetricAccumulator::Named(parts) = &mut training {
            parts.loss.record_count = self.record_count;
            // The values of the tasks are added up.
            let share = if task.agent.task() == 0 { 1.0 } else { 0.0 };
            for (name, value) in &round.shown {
                let mut metric = NamedMetric::new(name, MergeRule::Sum);
                metric.add(share * value, 1.0);
                parts.metrics.push(metric);
            }
        }
        Ok(Some(EpochEnd {
            training,
            record_count: self.record_count,
            epoch_count: count,
            is_stopped: false,
            is_last: round.is_last || epoch + 1 >= count,
            notice: None,
        }))
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}
