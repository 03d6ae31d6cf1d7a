//! A job of a recommender, with its checked settings.

use std::sync::Arc;

use algo::error::Error;
use algo::job::Job;
use algo::param::{CheckedParams, ParamSpec, ParamValues};

use super::als::Als;
use super::grid::Grid;
use super::interactions::Duplicates;
use super::neighbors::Neighbors;

/// How a recommender is trained.
#[derive(Clone, Debug)]
pub(super) enum Method {
    Als(Als),
    Grid(Grid),
    Neighbors(Neighbors),
}

impl Method {
    pub(super) fn are_ratings(&self) -> bool {
        match self {
            Self::Als(als) => als.are_ratings(),
            Self::Grid(grid) => grid.are_ratings,
            Self::Neighbors(_) => false,
        }
    }

    pub(super) fn duplicates(&self) -> Duplicates {
        match self {
            Self::Als(als) => als.duplicates,
            Self::Grid(grid) => grid.duplicates,
            Self::Neighbors(neighbors) => neighbors.duplicates,
        }
    }

    /// Share of the records that is held out. Of choices, a record may have all items of a user, so the task that owns the user
    /// holds out items.
    pub(super) fn validation_share(&self) -> f64 {
        match self {
            Self::Als(als) if als.are_ratings() => als.validation_share,
            Self::Grid(grid) if grid.are_ratings => grid.validation_share,
            Self::Als(_) | Self::Grid(_) | Self::Neighbors(_) => 0.0,
        }
    }
}

/// A job of a recommender.
#[derive(Clone, Debug)]
pub(super) struct Recommender {
    pub(super) checked: CheckedParams,
    pub(super) method: Method,
}

impl Recommender {
    pub(super) fn configure(
        name: &'static str,
        parameters: &'static [ParamSpec],
        given: &ParamValues,
        method: fn(&CheckedParams) -> Method,
    ) -> Result<Arc<dyn Job>, Error> {
        let checked = CheckedParams::new(name, parameters, given)?;
        Ok(Arc::new(Self { method: method(&checked), checked }))
    }
}
