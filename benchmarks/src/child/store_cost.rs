//! What the storage of parameters costs: one epoch of FTRL-Proximal logistic regression over batches in memory, with
//! the parameters in different stores. `plain` stores them in one `Vec` indexed by feature; `sparse` and `dense` use
//! `LocalAgent`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use data::Batch;
use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, LocalAgent, LocalConfig, LocalStore, MatrixId,
    MatrixSpec, Partitioner, PushRule, Selection, Storage, Values, ValuesMut,
};
use serde_json::{Value, json};

use super::{BATCH_SIZE, reader};

const ALPHA: f32 = 0.1;
const BETA: f32 = 1.0;
/// The value that `train` uses for one task.
const PARTITION_COUNT: u32 = 1;
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// A store of parameters.
trait Parameters {
    /// Reads the weights of these features.
    fn weights(&mut self, columns: &[u64], out: &mut [f32]) -> Result<()>;
    /// Makes a step with these gradients.
    fn update(&mut self, columns: &[u64], gradients: &[f32]) -> Result<()>;
}

/// `[w, z, n]` of every feature up to the largest.
struct ArrayParameters {
    table: Vec<[f32; 3]>,
}

impl Parameters for ArrayParameters {
    fn weights(&mut self, columns: &[u64], out: &mut [f32]) -> Result<()> {
        for (column, out) in columns.iter().zip(out) {
            *out = self.table[*column as usize][0];
        }
        Ok(())
    }

    /// `McMahan` et al., KDD 2013, algorithm 1 with l1 = l2 = 0.
    fn update(&mut self, columns: &[u64], gradients: &[f32]) -> Result<()> {
        for (column, &g) in columns.iter().zip(gradients) {
            let [w, z, n] = &mut self.table[*column as usize];
            let root = (*n + g * g).sqrt();
            *z += g - (root - n.sqrt()) / ALPHA * *w;
            *n += g * g;
            *w = -*z / ((BETA + root) / ALPHA);
        }
        Ok(())
    }
}

struct StoreParameters {
    agent: LocalAgent,
}

const WEIGHTS: MatrixId = MatrixId(0);

impl StoreParameters {
    fn new(storage: Storage, dimensions: u64) -> Result<Self> {
        let (rows, partitioner) = match storage {
            Storage::Sparse => (1 << 63, Partitioner::Hash { partition_count: PARTITION_COUNT }),
            Storage::Dense => (dimensions, Partitioner::Range { partition_count: PARTITION_COUNT }),
            Storage::List | Storage::UniqueList => unreachable!("rows of one length are measured"),
        };
        let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT });
        store.create(MatrixSpec {
            name: "weights".to_owned(),
            element: ElementType::F32,
            rows,
            columns: 1,
            axis: Axis::Row,
            storage,
            partitioner,
            initializer: Initializer::Zero,
            rule: PushRule::FtrlProximal { alpha: f64::from(ALPHA), beta: f64::from(BETA), l1: 0.0, l2: 0.0 },
            consistency: Consistency::Asp,
            seed: 1,
        })?;
        Ok(Self { agent: Arc::new(store).agent(0) })
    }
}

impl Parameters for StoreParameters {
    fn weights(&mut self, columns: &[u64], out: &mut [f32]) -> Result<()> {
        Ok(self.agent.pull(WEIGHTS, Selection::Rows(Keys::Sorted(columns)), ValuesMut::F32(out))?)
    }

    fn update(&mut self, columns: &[u64], gradients: &[f32]) -> Result<()> {
        self.agent.push(WEIGHTS, Selection::Rows(Keys::Sorted(columns)), Values::F32(gradients))?;
        Ok(self.agent.tick()?)
    }
}

/// Measures one epoch with this kind of store.
pub(super) fn run(kind: &str, file: &Path) -> Result<Value> {
    let mut reader = reader(file)?;
    let mut batches = Vec::new();
    let mut batch = Batch::default();
    while reader.next_batch(BATCH_SIZE, &mut batch)? {
        batches.push(batch.clone());
    }
    let dimensions = 1 + batches.iter().filter_map(|batch| batch.columns.last()).max().copied().unwrap_or(0);
    let (seconds, loss) = match kind {
        "plain" => epoch(&mut ArrayParameters { table: vec![[0.0; 3]; dimensions as usize] }, &batches)?,
        "sparse" => epoch(&mut StoreParameters::new(Storage::Sparse, dimensions)?, &batches)?,
        "dense" => epoch(&mut StoreParameters::new(Storage::Dense, dimensions)?, &batches)?,
        _ => bail!("unknown kind {kind:?}: plain, sparse or dense"),
    };
    Ok(json!({"kind": kind, "seconds": seconds, "log_loss": loss}))
}

/// Seconds and progressive mean log loss of one epoch.
fn epoch(parameters: &mut impl Parameters, batches: &[Batch]) -> Result<(f64, f64)> {
    let (mut weights, mut gradients) = (Vec::new(), Vec::new());
    let (mut loss, mut records) = (0.0, 0usize);
    let start = Instant::now();
    for batch in batches {
        weights.resize(batch.columns.len(), 0.0);
        parameters.weights(&batch.columns, &mut weights)?;
        gradients.clear();
        gradients.resize(batch.columns.len(), 0.0);
        loss += gradient(batch, &weights, &mut gradients);
        records += batch.record_count();
        parameters.update(&batch.columns, &gradients)?;
    }
    Ok((start.elapsed().as_secs_f64(), loss / records as f64))
}

/// Adds the gradient of the summed log loss of records whose values are all 1; returns that loss.
fn gradient(batch: &Batch, weights: &[f32], gradients: &mut [f32]) -> f64 {
    let mut loss = 0.0;
    for (r, &label) in batch.labels.iter().enumerate() {
        let entries = &batch.indices[batch.entries(r)];
        let score: f32 = entries.iter().map(|&index| weights[index as usize]).sum();
        let probability = 1.0 / (1.0 + (-score).exp());
        let of_label = if label > 0.5 { probability } else { 1.0 - probability };
        loss -= f64::from(of_label).max(f64::MIN_POSITIVE).ln();
        for &index in entries {
            gradients[index as usize] += probability - label as f32;
        }
    }
    loss
}
