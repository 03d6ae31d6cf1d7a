//! A job of KMeans, with its checked settings.

use algo::error::Error;
use algo::param::{CheckedParams, ParamValues};

use super::params::{
    BATCH_SIZE, CLUSTERS, DISTANCE, Distance, EPOCHS, MAX_ITERATIONS, METHOD, Method, PARAMETERS, SEEDING,
    Seeding, TOLERANCE,
};

/// A job of KMeans.
#[derive(Clone, Debug)]
pub(super) struct KMeans {
    pub(super) checked: CheckedParams,
    pub(super) clusters: usize,
    pub(super) method: Method,
    pub(super) distance: Distance,
    pub(super) seeding: Seeding,
    pub(super) max_iterations: u64,
    pub(super) tolerance: f64,
    pub(super) epochs: u64,
    pub(super) batch_size: usize,
}

impl KMeans {
    pub(super) fn new(given: &ParamValues) -> Result<Self, Error> {
        let checked = CheckedParams::new("kmeans", &PARAMETERS, given)?;
        Ok(Self {
            clusters: checked.integer(&CLUSTERS) as usize,
            method: checked.choice(&METHOD),
            distance: checked.choice(&DISTANCE),
            seeding: checked.choice(&SEEDING),
            max_iterations: checked.integer(&MAX_ITERATIONS),
            tolerance: checked.real(&TOLERANCE),
            epochs: checked.integer(&EPOCHS),
            batch_size: checked.integer(&BATCH_SIZE) as usize,
            checked,
        })
    }
}
