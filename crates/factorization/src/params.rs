//! The parameters of factorization machines: type, range, default, unit and meaning of each, and their typed form.

use data::Shuffle;
use matrix::{PushRule, Schedule};

use algo::error::Error;
use algo::job::Epochs;
use algo::loss::Loss;
use algo::param::common::{
    AUTO_POSITIVE, BatchGradient, NOT_NEGATIVE, POSITIVE, POSITIVE_LABEL, RecordScaling, SHUFFLE, VALIDATION,
    VALIDATION_SHARE, early_stopping, positive_label,
};
use algo::param::{CheckedParams, ParamKind, ParamSpec, joined, words};
use algo::stopping::EarlyStopping;

/// `epochs=auto` reads the data until this many records have been read.
const AUTO_RECORD_VISITS: u64 = 600_000;
/// Largest number of epochs of `epochs=auto`.
pub(super) const AUTO_EPOCHS_LIMIT: u64 = 20;
/// Rate of a job whose rates are not chosen yet.
const OPEN_RATE: f64 = 0.5;
/// Added to the denominator of AdaGrad: without it, the first step of every factor would have the length of the rate,
/// however small its gradient is.
const EPSILON: f64 = 1.0;
/// The constant beta of FTRL-Proximal.
const BETA: f64 = 1.0;

algo::choices! {
    /// The push rule of the factors.
    enum FactorOptimizer {
        AdaGrad = "adagrad";
        Sgd = "sgd";
    }

    /// The push rule of weights and intercept.
    enum LinearOptimizer {
        Ftrl = "ftrl";
        AdaGrad = "adagrad";
        Sgd = "sgd";
    }

    /// The losses.
    enum ScoreLoss {
        Logistic = "logistic": "two classes, the prediction is a probability";
        Squared = "squared": "real labels";
    }

    /// The scaling of columns.
    pub(super) enum ColumnScaling {
        Deviation = "true";
        None = "false";
    }
}

algo::params! {
    const ROWS = [
        /// Number of factors of a feature
        FACTORS = "k": ParamKind::Integer { low: 1, high: 1024 }, "8", "factors";
        /// Loss
        LOSS = "loss": ParamKind::Choice(words::<ScoreLoss>), "logistic";
        /// Push rule of the factors
        OPTIMIZER = "optimizer": ParamKind::Choice(words::<FactorOptimizer>), "adagrad";
        /// Step size of the factors; auto: 0.01 to 0.5, smaller for longer records, or 1 for normalize=l2
        pub(super) LEARNING_RATE = "learning_rate": AUTO_POSITIVE, "auto";
        /// Weight of the absolute factors of the features of a record, added to the loss of each record
        pub(super) L1 = "l1": NOT_NEGATIVE, "0";
        /// Weight of half the squared factors of the features of a record, added to the loss of each record
        pub(super) L2 = "l2": NOT_NEGATIVE, "0.03";
        /// Standard deviation of the factors with which a feature begins; 0 would keep them at 0
        DEVIATION = "init_deviation": POSITIVE, "0.02";
        /// Records with a feature before it has factors; more saves the memory of rare features
        ADMISSION = "admission": ParamKind::Integer { low: 1, high: 1_000_000 }, "1", "records";
        /// Push rule of the weights
        LINEAR_OPTIMIZER = "linear_optimizer": ParamKind::Choice(words::<LinearOptimizer>), "ftrl";
        /// Step size of the weights, alpha of ftrl; auto: 0.05 to 0.5, smaller for longer records, or 1 for
        /// normalize=l2
        pub(super) LINEAR_LEARNING_RATE = "linear_learning_rate": AUTO_POSITIVE, "auto";
        /// Weight of the absolute weights; for ftrl on the sum of losses, else on each batch's gradient
        LINEAR_L1 = "linear_l1": NOT_NEGATIVE, "0";
        /// Weight of half the squared weights, in the same units
        LINEAR_L2 = "linear_l2": NOT_NEGATIVE, "1";
        /// true: divide columns by their standard deviation, measured in a scan of the data, and center those of
        /// dense formats; columns of 0 and 1 stay as they are; auto: true for tables with numbers, and if the scales
        /// of columns differ a lot
        pub(super) STANDARDIZE = "standardize": ParamKind::AutoChoice(words::<ColumnScaling>), "auto";
        /// l2: scale each record to unit length; auto: l2 if columns are not standardized and the root mean square of
        /// the values is below 0.5 or above 2
        pub(super) NORMALIZE = "normalize": ParamKind::AutoChoice(words::<RecordScaling>), "auto";
        /// Passes over the data; auto: 1 to 20 passes, until 600,000 records have been read; of at most 30,000
        /// records a tenth is held out to choose the number of passes, unless other records validate
        EPOCHS = "epochs": ParamKind::AutoInteger { low: 1, high: 1_000_000 }, "auto", "passes";
        /// Records per step, with their gradients merged per feature; auto: grows from 64 to 4,096 with the records
        /// read
        BATCH_SIZE = "batch_size": ParamKind::AutoInteger { low: 1, high: 1 << 20 }, "auto", "records";
    ];
}

/// Table of `fm`.
pub(super) const FM: &[ParamSpec] = &joined::<21>(&[&ROWS, &[SHUFFLE], VALIDATION, &[POSITIVE_LABEL]]);
/// Table of `ffm`.
pub(super) const FFM: &[ParamSpec] = &{
    let mut rows = joined::<21>(&[FM]);
    rows[0] = ParamSpec { default: "4", meaning: "Number of factors of a feature for each field", ..FACTORS };
    rows
};

/// Typed parameters of training.
#[derive(Clone, Debug)]
pub(super) struct Params {
    pub(super) factors: usize,
    pub(super) loss: Loss,
    pub(super) weights_rule: PushRule,
    pub(super) intercept_rule: PushRule,
    pub(super) factors_rule: PushRule,
    pub(super) gradient: BatchGradient,
    pub(super) linear_gradient: BatchGradient,
    pub(super) learning_rate: f64,
    pub(super) linear_learning_rate: f64,
    /// Weight of the absolute factors, for each record.
    pub(super) l1: f64,
    /// Weight of half the squared factors, for each record.
    pub(super) l2: f64,
    pub(super) deviation: f64,
    pub(super) admission: u64,
    pub(super) standardize: bool,
    pub(super) normalize: bool,
    pub(super) epochs: Epochs,
    /// `None` grows.
    pub(super) batch_size: Option<usize>,
    pub(super) shuffle: Shuffle,
    pub(super) early_stopping: Option<EarlyStopping>,
    pub(super) validation_share: f64,
    /// The label that counts as 1, as the user writes it.
    pub(super) positive_label: Option<String>,
}

impl Params {
    pub(super) fn new(checked: &CheckedParams) -> Result<Self, Error> {
        let loss = match checked.choice(&LOSS) {
            ScoreLoss::Logistic => Loss::Logistic,
            ScoreLoss::Squared => Loss::Squared,
        };
        let optimizer: FactorOptimizer = checked.choice(&OPTIMIZER);
        let linear: LinearOptimizer = checked.choice(&LINEAR_OPTIMIZER);
        let rate = checked.auto_real(&LEARNING_RATE).unwrap_or(OPEN_RATE);
        let linear_rate = checked.auto_real(&LINEAR_LEARNING_RATE).unwrap_or(OPEN_RATE);
        let linear_rule = |l1, l2| match linear {
            LinearOptimizer::Ftrl => PushRule::FtrlProximal { alpha: linear_rate, beta: BETA, l1, l2 },
            LinearOptimizer::AdaGrad => adagrad(linear_rate, l1, l2),
            LinearOptimizer::Sgd => sgd(linear_rate, l1, l2),
        };
        // The workers add the penalties of the factors to the gradient.
        let factors_rule = match optimizer {
            FactorOptimizer::AdaGrad => adagrad(rate, 0.0, 0.0),
            FactorOptimizer::Sgd => sgd(rate, 0.0, 0.0),
        };
        // A step of SGD grows with the gradient, so the best rate would depend on the batch size; AdaGrad and FTRL divide by
        // the size of past gradients.
        let scale = |is_sgd| if is_sgd { BatchGradient::Mean } else { BatchGradient::Sum };
        Ok(Self {
            factors: checked.integer(&FACTORS) as usize,
            loss,
            weights_rule: linear_rule(checked.real(&LINEAR_L1), checked.real(&LINEAR_L2)),
            intercept_rule: linear_rule(0.0, 0.0),
            factors_rule,
            gradient: scale(optimizer == FactorOptimizer::Sgd),
            linear_gradient: scale(linear == LinearOptimizer::Sgd),
            learning_rate: rate,
            linear_learning_rate: linear_rate,
            l1: checked.real(&L1),
            l2: checked.real(&L2),
            deviation: checked.real(&DEVIATION),
            admission: checked.integer(&ADMISSION),
            standardize: checked.auto_choice(&STANDARDIZE) == Some(ColumnScaling::Deviation),
            normalize: checked.auto_choice(&NORMALIZE) == Some(RecordScaling::L2),
            epochs: checked.auto_integer(&EPOCHS).map_or(
                Epochs::Auto { record_visits: AUTO_RECORD_VISITS, limit: AUTO_EPOCHS_LIMIT },
                Epochs::Fixed,
            ),
            batch_size: checked.auto_integer(&BATCH_SIZE).map(|size| size as usize),
            shuffle: checked.choice(&SHUFFLE),
            early_stopping: early_stopping(checked, loss)?,
            validation_share: checked.real(&VALIDATION_SHARE),
            positive_label: positive_label(checked, loss)?,
        })
    }
}

fn adagrad(rate: f64, l1: f64, l2: f64) -> PushRule {
    PushRule::AdaGrad { rate, epsilon: EPSILON, schedule: Schedule::Constant, l1, l2 }
}

fn sgd(rate: f64, l1: f64, l2: f64) -> PushRule {
    PushRule::Sgd { rate, schedule: Schedule::Constant, l1, l2 }
}
