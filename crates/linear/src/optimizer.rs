//! The table of optimizers: each row says what an optimizer is called, which parameters it reads and how it learns.
//!
//! A new optimizer is one constant here, with its name in [`OPTIMIZERS`]. Help texts, checks of parameters, the choice
//! of `optimizer=auto` and the training loop follow from the row.

use data::BatchSize;
use matrix::{PushRule, Schedule};

use super::optimizer_params::{
    ADAPTIVE_RHO, BETA, BETA1, BETA2, DECAY, EPSILON, HISTORY, LEARNING_RATE, LOCAL_ITERATIONS,
    MAX_ITERATIONS, MOMENTUM, RHO, START, TOLERANCE,
};
use crate::descent::{Consensus, Settings};
use algo::error::Error;
use algo::param::common::BatchGradient;
use algo::param::{CheckedParams, Choice, ParamSpec};

/// A way to learn the weights.
#[derive(Debug)]
pub struct Optimizer {
    pub name: &'static str,
    /// One phrase.
    pub help: &'static str,
    /// The parameters that it reads, of those that only some optimizers read.
    pub reads: &'static [&'static ParamSpec],
    pub method: Method,
}

#[derive(Debug)]
pub enum Method {
    /// Gradients of batches are pushed, and a push rule merges them into the weights.
    Push {
        rule: fn(&RuleSettings<'_>) -> PushRule,
        /// The default of the parameter `gradient`: mean if the steps of the rule scale with the gradient.
        gradient: BatchGradient,
    },
    /// A step sees all records.
    FullBatch { l1: L1Penalty, training: fn(&CheckedParams, Settings) -> Result<Training, Error> },
}

/// Whether a full-batch optimizer minimizes an objective with `|w|_1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L1Penalty {
    Refused,
    Optional,
    Required,
}

/// What a push rule is made from.
#[derive(Clone, Copy, Debug)]
pub struct RuleSettings<'a> {
    pub checked: &'a CheckedParams,
    /// The learning rate.
    pub rate: f64,
    pub schedule: Schedule,
    pub l1: f64,
    pub l2: f64,
}

/// How the weights are learned, with checked settings.
#[derive(Clone, Debug)]
pub enum Training {
    Push(PushTraining),
    /// L-BFGS, OWL-QN, gradient descent.
    Descent(Settings),
    Svrg(Settings),
    Admm(Settings, Consensus),
}

/// Settings of training by pushes.
#[derive(Clone, Copy, Debug)]
pub struct PushTraining {
    /// Push rule of the weights.
    pub rule: PushRule,
    /// Push rule of the intercept: the same without l1 and l2.
    pub intercept_rule: PushRule,
    /// Whether gradients are summed over the records of a batch, or averaged.
    pub gradient: BatchGradient,
}

/// Records of a step of SVRG, which changes all columns: few enough for many steps per pass.
const SVRG_BATCH: usize = 512;
/// Records per batch in a pass over all records: the columns that occur in a batch stay in the cache.
const FULL_BATCH: usize = 4096;
/// Largest history of OWL-QN: the answers of its products have about 1.5 times the square of it in sums, each of up to
/// 255 terms per lane.
const OWLQN_HISTORY: usize = 100;

/// Every optimizer, in the order of help texts, and of preference where several use all given settings.
pub(super) const OPTIMIZERS: [&Optimizer; 12] =
    [&FTRL, &ADAGRAD, &SGD, &HEAVY_BALL, &RMSPROP, &ADAM, &ADADELTA, &LBFGS, &OWLQN, &GD, &SVRG, &ADMM];

impl Choice for &'static Optimizer {
    fn all() -> Vec<(&'static str, Self)> {
        OPTIMIZERS.iter().map(|optimizer| (optimizer.name, *optimizer)).collect()
    }

    fn help(self) -> &'static str {
        self.help
    }

    fn reads(self) -> &'static [&'static ParamSpec] {
        self.reads
    }
}

pub(super) const FTRL: Optimizer = Optimizer {
    name: "ftrl",
    help: "FTRL-Proximal, a step size for each coordinate",
    reads: &[&LEARNING_RATE, &BETA],
    method: Method::Push {
        rule: |&RuleSettings { checked, rate: alpha, l1, l2, .. }| {
            let beta = checked.real(&BETA);
            PushRule::FtrlProximal { alpha, beta, l1, l2 }
        },
        gradient: BatchGradient::Sum,
    },
};

const ADAGRAD: Optimizer = Optimizer {
    name: "adagrad",
    help: "step sizes from the sum of squared gradients",
    reads: &[&LEARNING_RATE, &EPSILON],
    method: Method::Push {
        rule: |&RuleSettings { checked, rate, schedule, l1, l2 }| {
            let epsilon = checked.real(&EPSILON);
            PushRule::AdaGrad { rate, epsilon, schedule, l1, l2 }
        },
        gradient: BatchGradient::Sum,
    },
};

const SGD: Optimizer = Optimizer {
    name: "sgd",
    help: "steps along the gradient",
    reads: &[&LEARNING_RATE],
    method: Method::Push {
        rule: |&RuleSettings { rate, schedule, l1, l2, .. }| PushRule::Sgd { rate, schedule, l1, l2 },
        gradient: BatchGradient::Mean,
    },
};

const HEAVY_BALL: Optimizer = Optimizer {
    name: "momentum",
    help: "sgd with a share of the previous step",
    reads: &[&LEARNING_RATE, &MOMENTUM],
    method: Method::Push {
        rule: |&RuleSettings { checked, rate, schedule, l1, l2 }| {
            let momentum = checked.real(&MOMENTUM);
            PushRule::Momentum { rate, momentum, schedule, l1, l2 }
        },
        gradient: BatchGradient::Mean,
    },
};

const RMSPROP: Optimizer = Optimizer {
    name: "rmsprop",
    help: "step sizes from the running mean of squared gradients",
    reads: &[&LEARNING_RATE, &EPSILON, &DECAY],
    method: Method::Push {
        rule: |&RuleSettings { checked, rate, schedule, l1, l2 }| {
            let (decay, epsilon) = (checked.real(&DECAY), checked.real(&EPSILON));
            PushRule::RmsProp { rate, decay, epsilon, schedule, l1, l2 }
        },
        gradient: BatchGradient::Sum,
    },
};

const ADAM: Optimizer = Optimizer {
    name: "adam",
    help: "running means of gradients and of their squares",
    reads: &[&LEARNING_RATE, &BETA1, &BETA2, &EPSILON],
    method: Method::Push {
        rule: |&RuleSettings { checked, rate, schedule, l1, l2 }| {
            let (beta1, beta2) = (checked.real(&BETA1), checked.real(&BETA2));
            PushRule::Adam { rate, beta1, beta2, epsilon: checked.real(&EPSILON), schedule, l1, l2 }
        },
        gradient: BatchGradient::Sum,
    },
};

const ADADELTA: Optimizer = Optimizer {
    name: "adadelta",
    help: "step sizes from running means of squared gradients and squared steps",
    reads: &[&EPSILON, &DECAY],
    method: Method::Push {
        rule: |&RuleSettings { checked, l1, l2, .. }| {
            let (decay, epsilon) = (checked.real(&DECAY), checked.real(&EPSILON));
            PushRule::AdaDelta { decay, epsilon, l1, l2 }
        },
        gradient: BatchGradient::Sum,
    },
};

pub(super) const LBFGS: Optimizer = Optimizer {
    name: "lbfgs",
    help: "L-BFGS over all records",
    reads: &[&HISTORY, &MAX_ITERATIONS, &TOLERANCE, &START],
    method: Method::FullBatch {
        l1: L1Penalty::Refused,
        training: |checked, settings| {
            Ok(Training::Descent(Settings { history: checked.integer(&HISTORY) as usize, ..settings }))
        },
    },
};

pub(super) const OWLQN: Optimizer = Optimizer {
    name: "owlqn",
    help: "L-BFGS over all records for objectives with l1",
    reads: &[&HISTORY, &MAX_ITERATIONS, &TOLERANCE, &START],
    method: Method::FullBatch {
        l1: L1Penalty::Required,
        training: |checked, settings| {
            let history = checked.integer(&HISTORY) as usize;
            if history > OWLQN_HISTORY {
                let reason = "each step needs the products of all pairs; the limit of owlqn is 100";
                return Err(checked.conflict("optimizer=owlqn".to_owned(), &HISTORY, reason));
            }
            Ok(Training::Descent(Settings { history, ..settings }))
        },
    },
};

const GD: Optimizer = Optimizer {
    name: "gd",
    help: "gradient descent over all records",
    reads: &[&MAX_ITERATIONS, &TOLERANCE, &START],
    method: Method::FullBatch {
        l1: L1Penalty::Refused,
        training: |_, settings| Ok(Training::Descent(settings)),
    },
};

const SVRG: Optimizer = Optimizer {
    name: "svrg",
    help: "sgd whose variance is reduced by gradients over all records",
    reads: &[&LEARNING_RATE, &MAX_ITERATIONS, &TOLERANCE, &START],
    method: Method::FullBatch {
        l1: L1Penalty::Refused,
        training: |_, settings| Ok(Training::Svrg(settings)),
    },
};

const ADMM: Optimizer = Optimizer {
    name: "admm",
    help: "each task minimizes over its own records, and the tasks agree on a consensus",
    reads: &[&HISTORY, &MAX_ITERATIONS, &TOLERANCE, &START, &RHO, &ADAPTIVE_RHO, &LOCAL_ITERATIONS],
    method: Method::FullBatch {
        l1: L1Penalty::Optional,
        training: |checked, settings| {
            let consensus = Consensus {
                rho: checked.real(&RHO),
                adaptive: checked.flag(&ADAPTIVE_RHO),
                local_iterations: checked.integer(&LOCAL_ITERATIONS),
                history: checked.integer(&HISTORY) as usize,
            };
            Ok(Training::Admm(settings, consensus))
        },
    },
};

impl PartialEq for Optimizer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Optimizer {
    pub fn is_full_batch(&self) -> bool {
        match self.method {
            Method::Push { .. } => false,
            Method::FullBatch { .. } => true,
        }
    }

    /// Whether the parameter `schedule` changes its step sizes.
    pub fn follows_schedule(&self, checked: &CheckedParams) -> bool {
        let schedule = Schedule::InverseTime { decay: 1.0, start: 0 };
        match self.method {
            Method::Push { rule, .. } => {
                rule(&RuleSettings { checked, rate: 1.0, schedule, l1: 0.0, l2: 0.0 }).schedule() == schedule
            }
            Method::FullBatch { .. } => false,
        }
    }

    /// Whether it minimizes an objective with this weight of `|w|_1`.
    pub fn allows_l1(&self, l1: f64) -> bool {
        match self.method {
            Method::Push { .. } | Method::FullBatch { l1: L1Penalty::Optional, .. } => true,
            Method::FullBatch { l1: L1Penalty::Refused, .. } => l1 == 0.0,
            Method::FullBatch { l1: L1Penalty::Required, .. } => l1 > 0.0,
        }
    }
}

impl Training {
    /// The settings of a full-batch optimizer.
    pub fn descent(&self) -> Option<&Settings> {
        match self {
            Self::Push(_) => None,
            Self::Descent(settings) | Self::Svrg(settings) | Self::Admm(settings, _) => Some(settings),
        }
    }

    /// The push rules of the weights and of the intercept.
    pub fn rules(&self) -> (PushRule, PushRule) {
        match self {
            Self::Push(push) => (push.rule, push.intercept_rule),
            Self::Descent(_) | Self::Svrg(_) | Self::Admm(..) => (PushRule::Assign, PushRule::Assign),
        }
    }

    /// Records per batch, unless the user sets it.
    pub fn batch_size(&self) -> BatchSize {
        match self {
            Self::Push(_) => BatchSize::Growing,
            Self::Svrg(_) => BatchSize::Fixed(SVRG_BATCH),
            Self::Descent(_) | Self::Admm(..) => BatchSize::Fixed(FULL_BATCH),
        }
    }
}
