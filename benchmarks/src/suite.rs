//! The benchmarks and their targets: the table that `docs/benchmarks.md` explains.

mod clicks;
mod cluster;
mod cluster_faults;
mod clusters;
mod defaults;
mod factorization;
mod memory;
mod micro;
mod minimum;
mod quality;
mod recommenders;
mod reliability;
mod spark;
mod topics;
mod train;
mod trees;

use anyhow::{Result, bail};

use crate::context::Context;
use crate::options::Options;
use crate::target::{Figures, Target};

/// An entry of the suite.
pub(crate) struct Benchmark {
    /// Name for `--only`.
    pub(crate) name: &'static str,
    /// Description in one line.
    pub(crate) title: &'static str,
    pub(crate) targets: &'static [Target],
    /// Measures the figures.
    pub(crate) run: fn(&Context) -> Result<Figures>,
}

/// All benchmarks, in the order of the table.
pub(crate) fn benchmarks() -> impl Iterator<Item = &'static Benchmark> {
    [
        LINEAR,
        clusters::BENCHMARKS,
        factorization::BENCHMARKS,
        recommenders::BENCHMARKS,
        topics::BENCHMARKS,
        trees::BENCHMARKS,
        memory::BENCHMARKS,
        reliability::BENCHMARKS,
        cluster_faults::BENCHMARKS,
        spark::BENCHMARKS,
    ]
    .into_iter()
    .flatten()
}

/// Linear models, and what all families share.
const LINEAR: &[Benchmark] = &[
    Benchmark {
        name: "clicks_two_cores",
        title: "1M x 10M clicks, text to saved model, one pass, two tasks; peer: VW at two cores",
        targets: &[
            Target::at_least("auc", "", 0.7728, 0.7735),
            Target::at_most("log_loss", "", 0.478, 0.478),
            Target::time_ratio(0.5, 0.25),
            Target::at_most("peak", "MB", 400.0, 200.0),
        ],
        run: clicks::two_cores,
    },
    Benchmark {
        name: "clicks_one_core",
        title: "the same, one task; peer: VW at one core",
        targets: &[Target::time_ratio(0.5, 0.25)],
        run: clicks::one_core,
    },
    Benchmark {
        name: "clicks_three_passes",
        title: "the same, three passes with L2",
        targets: &[Target::at_least("auc", "", 0.7740, 0.775)],
        run: clicks::three_passes,
    },
    Benchmark {
        name: "clicks_parquet",
        title: "the same as Parquet; peer: our own time from text",
        targets: &[Target::time_ratio(1.3, 1.0)],
        run: clicks::parquet,
    },
    Benchmark {
        name: "clicks_pyarrow",
        title: "the same as pyarrow writes it (dictionaries, snappy); peer: our own time from text",
        targets: &[Target::time_ratio(1.3, 1.0)],
        run: clicks::pyarrow,
    },
    Benchmark {
        name: "clicks_50m",
        title: "1M x 50M clicks, one pass, two tasks; peer: VW at two cores",
        targets: &[
            Target::at_least("auc", "", 0.760, 0.762),
            Target::time_ratio(0.5, 0.25),
            Target::at_most("peak", "MB", 700.0, 350.0),
        ],
        run: clicks::fifty_million,
    },
    Benchmark {
        name: "later_epochs",
        title: "second epoch from kept blocks; peer: the first epoch, from text",
        targets: &[Target::time_ratio(0.6, 0.4)],
        run: clicks::later_epochs,
    },
    Benchmark {
        name: "consistency",
        title: "bsp, ssp:4 and asp on two tasks; time is bsp's, the peer is asp",
        targets: &[Target::at_most("auc_spread", "", 0.002, 0.002), Target::time_ratio(1.5, 1.2)],
        run: clicks::consistency,
    },
    Benchmark {
        name: "two_tasks",
        title: "two tasks on two cores against one on one (asp, the same records)",
        targets: &[Target::at_least("speedup", "x", 1.35, 1.6)],
        run: clicks::two_tasks,
    },
    Benchmark {
        name: "predict",
        title: "scores of the test clicks as CSV; peer: VW -t",
        targets: &[Target::time_ratio(1.0, 0.5)],
        run: clicks::predict,
    },
    Benchmark {
        name: "parse",
        title: "libsvm text to batches on one core, every value checked",
        targets: &[Target::at_least("speed", "GB/s", 0.6, 1.2)],
        run: micro::parse,
    },
    Benchmark {
        name: "machinery",
        title: "an epoch through LocalAgent; peer: the same mathematics on one Vec",
        targets: &[Target::time_ratio(1.6, 1.2)],
        run: micro::machinery,
    },
    Benchmark {
        name: "functions",
        title: "in process: dot and axpy of 10M f32 rows, as a share of reading; five maps in one visit; peer: five visits",
        targets: &[
            Target::at_least("dot", "of reading", 0.5, 0.8),
            Target::at_least("axpy", "of reading", 0.5, 0.8),
            Target::ratio("fused", 0.4, 0.4),
        ],
        run: micro::functions,
    },
    Benchmark {
        name: "functions_served",
        title: "dot and axpy of 10M f32 rows on one server process, one lane, as a share of reading",
        targets: &[
            Target::at_least("dot", "of reading", 0.5, 0.8),
            Target::at_least("axpy", "of reading", 0.5, 0.8),
        ],
        run: micro::functions_served,
    },
    #[cfg(feature = "wasm")]
    Benchmark {
        name: "module",
        title: "axpy as a WebAssembly module, rows of 100k f32, in doubles and in singles; peer: the built-in",
        targets: &[Target::ratio("twin", 4.0, 1.5), Target::ratio("singles", 4.0, 1.5)],
        run: micro::module,
    },
    Benchmark {
        name: "wire",
        title: "pulls and pushes between processes on loopback; peers: a raw stream, a raw round trip",
        targets: &[
            Target::ratio("dense_pull", 3.0, 1.5),
            Target::ratio("dense_push", 4.0, 2.0),
            Target::at_most("sparse_pull_ms", "ms", 17.0, 10.0),
            Target::at_most("sparse_push_ms", "ms", 17.0, 10.0),
            Target::at_most("sparse_pull_ms_socket", "ms", 17.0, 10.0),
            Target::at_most("sparse_push_ms_socket", "ms", 17.0, 10.0),
            Target::ratio("sparse_pull", 1.0, 1.0),
            Target::at_most("bytes_again", "bytes", 4.3, 4.3),
            Target::ratio("pull_p50", 1.5, 1.2),
            Target::ratio("pull_p99", 3.0, 2.0),
            Target::at_least("small_pushes_per_s", "", 250e3, 500e3),
            Target::at_most("cpu_s_per_gb", "s", 0.5, 0.3),
            Target::at_most("cpu_s_per_gb_socket", "s", 0.5, 0.3),
            Target::ratio("bsp_step", 4.0, 2.0),
            Target::ratio("bsp_step_socket", 4.0, 2.0),
        ],
        run: cluster::wire,
    },
    Benchmark {
        name: "lists",
        title: "10M edges appended to lists on two servers, 100k lists of 20 pulled; peer: dense rows of as many bytes",
        targets: &[
            Target::at_least("append_rate", "x", 0.3, 0.6),
            Target::at_least("pull_rate", "x", 0.5, 0.8),
            Target::ratio("memory", 1.25, 1.05),
        ],
        run: cluster::lists,
    },
    Benchmark {
        name: "ahead",
        title: "an epoch of clicks on servers 5 ms away each way, asking ahead; peer: --prefetch off",
        targets: &[
            Target::at_least("bsp_speedup", "x", 1.5, 2.0),
            Target::at_least("ssp_speedup", "x", 1.5, 2.0),
            Target::at_most("ssp_waits", "of a step", 1.0, 0.1),
        ],
        run: cluster::ahead,
    },
    Benchmark {
        name: "traffic",
        title: "bytes and requests of a step over 1 to 16 servers, counted",
        targets: &[
            Target::at_most("bytes_a_key_1", "bytes", 16.4, 16.4),
            Target::at_most("bytes_a_key_2", "bytes", 16.4, 16.4),
            Target::at_most("bytes_a_key_4", "bytes", 16.4, 16.4),
            Target::at_most("bytes_a_key_8", "bytes", 16.4, 16.4),
            Target::at_most("bytes_a_key_16", "bytes", 16.4, 16.4),
            Target::at_most("requests_1", "a step", 5.0, 5.0),
            Target::at_most("requests_2", "a step", 8.0, 8.0),
            Target::at_most("requests_4", "a step", 14.0, 14.0),
            Target::at_most("requests_8", "a step", 26.0, 26.0),
            Target::at_most("requests_16", "a step", 50.0, 50.0),
        ],
        run: cluster::traffic,
    },
    Benchmark {
        name: "whole_job",
        title: "clicks on two servers and two workers as processes; peer: the same job in one process",
        targets: &[Target::time_ratio(3.0, 1.5)],
        run: cluster::whole_job,
    },
    Benchmark {
        name: "defaults_a9a",
        title: "a9a without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::A9A),
    },
    Benchmark {
        name: "defaults_agaricus",
        title: "agaricus without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::AGARICUS),
    },
    Benchmark {
        name: "defaults_adult_raw",
        title: "Adult with names and numbers without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::ADULT),
    },
    Benchmark {
        name: "defaults_higgs7k",
        title: "higgs7k without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::HIGGS),
    },
    Benchmark {
        name: "defaults_criteo_tiny",
        title: "1,600 records of Criteo without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::CRITEO),
    },
    Benchmark {
        name: "defaults_frappe",
        title: "Frappe without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::FRAPPE),
    },
    Benchmark {
        name: "defaults_california",
        title: "California housing without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::CALIFORNIA),
    },
    Benchmark {
        name: "defaults_abalone",
        title: "abalone without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::ABALONE),
    },
    Benchmark {
        name: "defaults_news20",
        title: "news20 without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::NEWS20),
    },
    Benchmark {
        name: "defaults_multi5",
        title: "multi5 without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::MULTI5),
    },
    Benchmark {
        name: "defaults_fashion_mnist",
        title: "Fashion-MNIST without a setting; peer: scikit-learn without one",
        targets: defaults::BARS,
        run: |context| defaults::run(context, &defaults::FASHION),
    },
    Benchmark {
        name: "a9a_lr",
        title: "a9a, logistic regression, at most five passes; peer: liblinear-train -s 0",
        targets: &[
            Target::at_least("auc", "", 0.9018, 0.9022),
            Target::at_most("log_loss", "", 0.3247, 0.3241),
            Target::time_ratio(f64::INFINITY, 1.0),
        ],
        run: quality::a9a_lr,
    },
    Benchmark {
        name: "a9a_svm",
        title: "a9a, linear SVM",
        targets: &[Target::at_least("accuracy", "", 0.8485, 0.8498)],
        run: quality::a9a_svm,
    },
    Benchmark {
        name: "agaricus_lr",
        title: "agaricus, logistic regression",
        targets: &[Target::at_least("auc", "", 1.0, 1.0)],
        run: quality::agaricus_lr,
    },
    Benchmark {
        name: "news20_softmax",
        title: "news20, 20 classes",
        targets: &[Target::at_least("accuracy", "", 0.7995, 0.805)],
        run: quality::news20_softmax,
    },
    Benchmark {
        name: "fashion_softmax",
        title: "Fashion-MNIST, 10 classes",
        targets: &[Target::at_least("accuracy", "", 0.834, 0.838)],
        run: quality::fashion_softmax,
    },
    Benchmark {
        name: "california",
        title: "California housing, least squares",
        targets: &[Target::at_most("rmse", "", 0.7250, 0.7230)],
        run: quality::california,
    },
    Benchmark {
        name: "abalone",
        title: "abalone, least squares",
        targets: &[Target::at_most("rmse", "", 2.42, 2.40)],
        run: quality::abalone,
    },
    Benchmark {
        name: "a9a_lbfgs",
        title: "a9a, sum of logistic losses + 0.5 |w|^2 by L-BFGS, text to model; peer: liblinear-train -s 0",
        targets: &[
            Target::at_least("auc", "", 0.9022, 0.9022),
            Target::at_most("log_loss", "", 0.3241, 0.3241),
            Target::at_most("train_log_loss", "", 0.32279, 0.32279),
            Target::time_ratio(1.5, 0.6),
        ],
        run: minimum::a9a_lbfgs,
    },
    Benchmark {
        name: "a9a_owlqn",
        title: "a9a, sum of logistic losses + |w|_1 by OWL-QN; peer: liblinear-train -s 6 (only an aim)",
        targets: &[
            Target::at_most("train_log_loss", "", 0.32289, 0.32289),
            Target::at_most("non_zeros", "", 96.0, 96.0),
            Target::time_ratio(f64::INFINITY, 1.0),
        ],
        run: minimum::a9a_owlqn,
    },
    Benchmark {
        name: "a9a_admm",
        title: "a9a, sum of logistic losses + 0.5 |w|^2 by ADMM, four tasks; peer: liblinear-train -s 0 (only an aim)",
        targets: &[
            Target::at_least("auc", "", 0.9022, 0.9022),
            Target::at_most("log_loss", "", 0.3241, 0.3241),
            Target::at_most("train_log_loss", "", 0.3228, 0.32279),
            Target::time_ratio(f64::INFINITY, 3.0),
        ],
        run: minimum::a9a_admm,
    },
    Benchmark {
        name: "a9a_svm_minimum",
        title: "a9a, sum of squared hinges + 0.5 |w|^2: the minimum is 13742.30",
        targets: &[
            Target::at_least("accuracy", "", 0.8493, 0.8493),
            Target::at_most("objective", "", 13742.5, 13742.31),
        ],
        run: minimum::a9a_svm,
    },
    Benchmark {
        name: "california_minimum",
        title: "California: least squares; ridge 1; lasso .01, .1; elastic net .01, .5",
        targets: &[
            Target::at_most("ols", "rmse", 0.72295, 0.72295),
            Target::at_most("ridge", "rmse", 0.72295, 0.72295),
            Target::at_most("lasso_01", "rmse", 0.72625, 0.72625),
            Target::at_most("lasso_1", "rmse", 0.81715, 0.81715),
            Target::at_most("elastic_net", "rmse", 0.72555, 0.72555),
            Target::at_most("lasso_01_non_zeros", "", 7.0, 7.0),
            Target::at_most("lasso_1_non_zeros", "", 3.0, 3.0),
            Target::at_most("elastic_net_non_zeros", "", 7.0, 7.0),
        ],
        run: minimum::california,
    },
    Benchmark {
        name: "news20_lbfgs",
        title: "news20, softmax by L-BFGS",
        targets: &[
            Target::at_least("accuracy", "", 0.7897, 0.80),
            Target::at_most("log_loss", "", 0.943, 0.943),
        ],
        run: minimum::news20,
    },
    Benchmark {
        name: "clicks_lbfgs",
        title: "1M x 10M clicks, L2 of 10 / n, 20 iterations, two tasks; Spark MLlib: 180 s, 9.7 GB",
        targets: &[
            Target::at_most("objective", "", 0.4299, 0.42966),
            Target::at_least("auc", "", 0.7725, 0.7725),
            Target::at_most("seconds", "s", 9.0, 3.6),
            Target::at_most("peak", "MB", 1456.0, 582.0),
        ],
        run: minimum::clicks_alone,
    },
    Benchmark {
        name: "clicks_lbfgs_servers",
        title: "the same on two servers and two workers; the peak is that of the largest process",
        targets: &[
            Target::at_most("objective", "", 0.4299, 0.42966),
            Target::at_least("auc", "", 0.7725, 0.7725),
            Target::at_most("seconds", "s", 9.0, 3.6),
            Target::at_most("peak", "MB", 1456.0, 582.0),
        ],
        run: minimum::clicks_on_servers,
    },
];

/// Returns the selected benchmarks in the order of the table. A name with which no benchmark begins is an error.
pub(crate) fn select(options: &Options) -> Result<Vec<&'static Benchmark>> {
    for name in &options.only {
        if !benchmarks().any(|work| work.name.starts_with(name.as_str())) {
            bail!("no work begins with {name:?}: see --list");
        }
    }
    Ok(benchmarks().filter(|work| options.wants(work.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Action;

    fn named(name: &str) -> Result<Vec<&'static str>> {
        let Action::Run(options) = Options::parse(&["--only".to_owned(), name.to_owned()])? else {
            panic!("a run")
        };
        Ok(select(&options)?.iter().map(|work| work.name).collect())
    }

    #[test]
    fn a_name_that_no_work_begins_with_is_an_error() {
        assert_eq!(named("a9a_svm").unwrap(), ["a9a_svm", "a9a_svm_minimum"]);
        assert!(named("nothing_like_this").is_err());
    }
}
