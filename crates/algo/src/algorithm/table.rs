//! The tables of an algorithm: a row of numbers for each key.

use data::Batch;
use matrix::{
    Agent, ElementType, Initializer, Keys, MatrixId, MatrixSpec, PullTicket, PushRule, Schedule, Selection,
    Values, ValuesMut,
};

use crate::error::Error;

/// The rule by which pushed gradients change a table: AdaGrad (Duchi, Hazan, Singer, JMLR 2011) with this step size.
pub fn adagrad(rate: f64) -> PushRule {
    PushRule::AdaGrad { rate, epsilon: 1e-8, schedule: Schedule::Constant, l1: 0.0, l2: 0.0 }
}

/// A table: for each key a row of numbers, 0 at first. A key is the number of a feature or node, or that of its name.
#[derive(Clone, Debug)]
pub struct Table {
    name: &'static str,
    columns: usize,
    rule: PushRule,
    element: ElementType,
    initializer: Initializer,
    is_work: bool,
}

impl Table {
    /// A table of rows of `columns` numbers of single precision. `rule` says what a push does to a row.
    pub fn rows(name: &'static str, columns: usize, rule: PushRule) -> Self {
        let (element, initializer) = (ElementType::F32, Initializer::Zero);
        Self { name, columns, rule, element, initializer, is_work: false }
    }

    /// With numbers of double precision.
    #[must_use]
    pub fn doubles(self) -> Self {
        Self { element: ElementType::F64, ..self }
    }

    /// With random first values of this standard deviation in the rows that are pushed. Other rows read as 0, so that a
    /// model does not score with random values.
    #[must_use]
    pub fn random(self, deviation: f64) -> Self {
        self.first(Initializer::NormalOnFirstPush { deviation })
    }

    /// With these first values.
    #[must_use]
    pub fn first(self, initializer: Initializer) -> Self {
        Self { initializer, ..self }
    }

    /// A table of the training: it is in checkpoints, and not in the model.
    #[must_use]
    pub fn work(self) -> Self {
        Self { is_work: true, ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether pushes are added up or are gradients.
    pub(super) fn adds(&self) -> bool {
        !matches!(self.rule, PushRule::Assign | PushRule::Min | PushRule::Max)
    }

    /// The matrices of these tables: first those of the model, then those of the training.
    pub(super) fn specs(tables: &[Self], is_job: bool, partition_count: u32) -> Vec<MatrixSpec> {
        let spec = |table: &Self| {
            let rule = if is_job { table.rule } else { PushRule::Assign };
            let columns = table.columns as u64;
            let plain = MatrixSpec::sparse(table.name, table.element, columns, rule, partition_count);
            let initializer = if is_job { table.initializer } else { Initializer::Zero };
            MatrixSpec { initializer, ..plain }
        };
        let of_model = tables.iter().filter(|table| !table.is_work).map(spec);
        let of_training = tables.iter().filter(|table| table.is_work && is_job).map(spec);
        of_model.chain(of_training).collect()
    }

    /// The matrix of each table, in the order of the tables.
    pub(super) fn places(tables: &[Self]) -> Vec<TablePlace> {
        let model_count = tables.iter().filter(|table| !table.is_work).count();
        let (mut of_model, mut of_training) = (0..model_count, model_count..tables.len());
        let place = |table: &Self| {
            let next = if table.is_work { of_training.next() } else { of_model.next() };
            let matrix = MatrixId(next.expect("there are as many numbers as tables") as u32);
            let Self { name, columns, element, is_work, .. } = *table;
            TablePlace { name, matrix, columns, element, is_work }
        };
        tables.iter().map(place).collect()
    }
}

/// Where the rows of a table are.
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePlace {
    pub(super) name: &'static str,
    pub(super) matrix: MatrixId,
    pub(super) columns: usize,
    element: ElementType,
    pub(super) is_work: bool,
}

impl TablePlace {
    /// Reads the rows of ascending keys.
    pub(super) fn pull(self, agent: &mut dyn Agent, keys: &[u64], out: &mut Vec<f64>) -> Result<(), Error> {
        self.read(keys, out, |values| agent.pull(self.matrix, Selection::Rows(Keys::Sorted(keys)), values))
    }

    /// Requests rows that [`Self::wait`] reads at a later clock.
    pub(super) fn prefetch(self, agent: &mut dyn Agent, keys: &[u64], clock: u64) -> PullTicket {
        agent.prefetch(self.matrix, Selection::Rows(Keys::Sorted(keys)), clock)
    }

    pub(super) fn wait(
        self,
        agent: &mut dyn Agent,
        ticket: &PullTicket,
        keys: &[u64],
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        self.read(keys, out, |values| agent.wait(ticket, values))
    }

    fn read(
        self,
        keys: &[u64],
        out: &mut Vec<f64>,
        read: impl FnOnce(ValuesMut<'_>) -> Result<(), matrix::Error>,
    ) -> Result<(), Error> {
        out.clear();
        let count = keys.len() * self.columns;
        if count == 0 {
            return Ok(());
        }
        if self.element == ElementType::F64 {
            out.resize(count, 0.0);
            read(ValuesMut::F64(out))?;
        } else {
            let mut singles = vec![0f32; count];
            read(ValuesMut::F32(&mut singles))?;
            out.extend(singles.into_iter().map(f64::from));
        }
        Ok(())
    }

    /// Sends the rows of ascending keys.
    pub(super) fn push(self, agent: &mut dyn Agent, keys: &[u64], values: &[f64]) -> Result<(), Error> {
        let part = Selection::Rows(Keys::Sorted(keys));
        match self.element {
            _ if keys.is_empty() => {}
            ElementType::F64 => agent.push(self.matrix, part, Values::F64(values))?,
            _ => {
                let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
                agent.push(self.matrix, part, Values::F32(&singles))?;
            }
        }
        Ok(())
    }
}

/// The rows of the keys of a batch, in each table of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) places: &'a [TablePlace],
    /// For each table: keys x columns.
    pub(super) values: &'a [Vec<f64>],
}

impl<'a> Rows<'a> {
    /// The records of a batch, to be predicted or learned.
    pub(super) fn records(self, batch: &'a Batch, scores: &'a [f64]) -> impl Iterator<Item = Record<'a>> {
        let count = batch.record_count();
        let width = scores.len() / count.max(1);
        (0..count).map(move |r| Record { batch, r, rows: self, scores: &scores[r * width..][..width] })
    }
}

/// A record of a batch, with the rows of its keys in the tables of the model.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    batch: &'a Batch,
    r: usize,
    rows: Rows<'a>,
    /// In a step, what [`super::Algorithm::predict`] has given for the record before it.
    pub scores: &'a [f64],
}

impl<'a> Record<'a> {
    pub fn label(&self) -> f64 {
        self.batch.labels[self.r]
    }

    /// The numbers of the keys of the record, which [`Self::row`] takes, with their values.
    pub fn entries(&self) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        let batch = self.batch;
        let value = |i: usize| batch.values.get(i).map_or(1.0, |value| f64::from(*value));
        batch.entries(self.r).map(move |i| (batch.indices[i], value(i)))
    }

    /// The numbers of the keys of the ids of the record ([`crate::Needs::ids`]), in the order of the ids.
    ///
    /// # Panics
    /// If the record has fewer ids, which no format with columns gives.
    pub fn ids<const N: usize>(&self) -> [u32; N] {
        std::array::from_fn(|id| {
            let is_id = |i: &usize| self.batch.fields.get(*i) == Some(&(id as u32));
            let at = self.batch.entries(self.r).find(is_id);
            self.batch.indices[at.expect("every record has all ids")]
        })
    }

    /// The row of a key in a table, by its number in [`super::Algorithm::tables`].
    ///
    /// # Panics
    /// In a prediction if the table is one of the training.
    pub fn row(&self, table: usize, key: u32) -> &'a [f64] {
        let (width, at) = (self.rows.places[table].columns, key as usize);
        &self.rows.values[table][at * width..][..width]
    }

    pub(super) fn weight(&self) -> f64 {
        f64::from(self.batch.weight(self.r))
    }
}
