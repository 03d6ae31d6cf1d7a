//! A job of a factorization machine, with its checked settings.

use algo::error::Error;
use algo::job::DataFacts;
use algo::param::{CheckedParams, ParamValues};

use super::model::{Model, NO_FIELDS};
use super::params::Params;

/// Largest number of numbers in a row of factors.
const WIDTH_LIMIT: u64 = 1 << 20;

/// A job of `fm` or `ffm`.
#[derive(Clone, Debug)]
pub(super) struct Factorization {
    pub(super) checked: CheckedParams,
    pub(super) has_fields: bool,
    pub(super) params: Params,
}

impl Factorization {
    pub(super) fn new(
        algorithm: &'static str,
        table: &'static [algo::ParamSpec],
        given: &ParamValues,
    ) -> Result<Self, Error> {
        let checked = CheckedParams::new(algorithm, table, given)?;
        Ok(Self { has_fields: algorithm == "ffm", params: Params::new(&checked)?, checked })
    }

    pub(super) fn is_real(&self) -> bool {
        self.params.loss.is_real()
    }

    /// The number of fields of the model: those of the earlier model, or those in the data.
    pub(super) fn fields(&self, facts: &DataFacts, previous: Option<&Model>) -> Result<Option<u32>, Error> {
        if !self.has_fields {
            return Ok(None);
        }
        let unsuitable = |reason: String| Err(Error::UnsuitableData { reason });
        let (field_count, known) = (facts.field_count, previous.and_then(|model| model.fields));
        let width = field_count.saturating_mul(self.params.factors as u64);
        match known {
            _ if field_count == 0 => unsuitable(NO_FIELDS.to_owned()),
            Some(known) if field_count > u64::from(known) => unsuitable(format!(
                "the training data have fields up to {}, and the earlier model knows {known} fields, from 0: train \
                 without --from, or leave these entries out",
                field_count - 1
            )),
            Some(known) => Ok(Some(known)),
            None if width > WIDTH_LIMIT => unsuitable(format!(
                "the training data have fields up to {}, so each feature would have {width} factors (fields x k), and the \
                 limit is {WIDTH_LIMIT}: number the fields from 0 without gaps, or lower k",
                field_count - 1
            )),
            None => Ok(Some(field_count as u32)),
        }
    }
}
