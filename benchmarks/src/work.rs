//! The works and their bars: the table that `docs/benchmarks.md` explains.

mod clicks;
mod cluster;
mod defaults;
mod memory;
mod micro;
mod minimum;
mod quality;
mod train;

use anyhow::{Result, bail};

use crate::bar::{Bar, Figures};
use crate::context::Context;
use crate::options::Options;

/// Something to do, with what it must reach.
pub(crate) struct Work {
    /// Name, for `--only`.
    pub(crate) name: &'static str,
    /// One line for people.
    pub(crate) title: &'static str,
    /// What its figures must reach.
    pub(crate) bars: &'static [Bar],
    /// Measures the figures.
    pub(crate) run: fn(&Context) -> Result<Figures>,
}

/// All works, in the order of the table.
pub(crate) const WORKS: &[Work] = &[
    Work {
        name: "clicks_two_cores",
        title: "1M x 10M clicks, text to saved model, one pass, two tasks; peer: VW at two cores",
        bars: &[
            Bar::at_least("auc", "", 0.7728, 0.7735),
            Bar::at_most("log_loss", "", 0.478, 0.478),
            Bar::time_ratio(0.5, 0.25),
            Bar::at_most("peak", "MB", 400.0, 200.0),
        ],
        run: clicks::two_cores,
    },
    Work {
        name: "clicks_one_core",
        title: "the same, one task; peer: VW at one core",
        bars: &[Bar::time_ratio(0.5, 0.25)],
        run: clicks::one_core,
    },
    Work {
        name: "clicks_three_passes",
        title: "the same, three passes with L2",
        bars: &[Bar::at_least("auc", "", 0.7740, 0.775)],
        run: clicks::three_passes,
    },
    Work {
        name: "clicks_parquet",
        title: "the same as Parquet; peer: our own time from text",
        bars: &[Bar::time_ratio(1.3, 1.0)],
        run: clicks::parquet,
    },
    Work {
        name: "clicks_pyarrow",
        title: "the same as pyarrow writes it (dictionaries, snappy); peer: our own time from text",
        bars: &[Bar::time_ratio(1.3, 1.0)],
        run: clicks::pyarrow,
    },
    Work {
        name: "clicks_50m",
        title: "1M x 50M clicks, one pass, two tasks; peer: VW at two cores",
        bars: &[
            Bar::at_least("auc", "", 0.760, 0.762),
            Bar::time_ratio(0.5, 0.25),
            Bar::at_most("peak", "MB", 700.0, 350.0),
        ],
        run: clicks::fifty_million,
    },
    Work {
        name: "later_epochs",
        title: "second epoch from kept blocks; peer: the first epoch, from text",
        bars: &[Bar::time_ratio(0.6, 0.4)],
        run: clicks::later_epochs,
    },
    Work {
        name: "consistency",
        title: "bsp, ssp:4 and asp on two tasks; time is bsp's, the peer is asp",
        bars: &[Bar::at_most("auc_spread", "", 0.002, 0.002), Bar::time_ratio(1.5, 1.2)],
        run: clicks::consistency,
    },
    Work {
        name: "two_tasks",
        title: "two tasks on two cores against one on one (asp, the same records)",
        bars: &[Bar::at_least("speedup", "x", 1.35, 1.6)],
        run: clicks::two_tasks,
    },
    Work {
        name: "predict",
        title: "scores of the test clicks as CSV; peer: VW -t",
        bars: &[Bar::time_ratio(1.0, 0.5)],
        run: clicks::predict,
    },
    Work {
        name: "parse",
        title: "libsvm text to batches on one core, every value checked",
        bars: &[Bar::at_least("speed", "GB/s", 0.6, 1.2)],
        run: micro::parse,
    },
    Work {
        name: "machinery",
        title: "an epoch through LocalAgent; peer: the same mathematics on one Vec",
        bars: &[Bar::time_ratio(1.6, 1.2)],
        run: micro::machinery,
    },
    Work {
        name: "functions",
        title: "in process: dot and axpy of 10M f32 rows, as a share of reading; five maps in one visit; peer: five visits",
        bars: &[
            Bar::at_least("dot", "of reading", 0.5, 0.8),
            Bar::at_least("axpy", "of reading", 0.5, 0.8),
            Bar::ratio("fused", 0.4, 0.4),
        ],
        run: micro::functions,
    },
    Work {
        name: "functions_served",
        title: "dot and axpy of 10M f32 rows on one server process, one lane, as a share of reading",
        bars: &[Bar::at_least("dot", "of reading", 0.5, 0.8), Bar::at_least("axpy", "of reading", 0.5, 0.8)],
        run: micro::functions_served,
    },
    #[cfg(feature = "wasm")]
    Work {
        name: "module",
        title: "axpy as a WebAssembly module, rows of 100k f32, in doubles and in singles; peer: the built-in",
        bars: &[Bar::ratio("twin", 4.0, 1.5), Bar::ratio("singles", 4.0, 1.5)],
        run: micro::module,
    },
    Work {
        name: "wire",
        title: "pulls and pushes between processes on loopback; peers: a raw stream, a raw round trip",
        bars: &[
            Bar::ratio("dense_pull", 3.0, 1.5),
            Bar::ratio("dense_push", 4.0, 2.0),
            Bar::at_most("sparse_pull_ms", "ms", 17.0, 10.0),
            Bar::at_most("sparse_push_ms", "ms", 17.0, 10.0),
            Bar::at_most("sparse_pull_ms_socket", "ms", 17.0, 10.0),
            Bar::at_most("sparse_push_ms_socket", "ms", 17.0, 10.0),
            Bar::ratio("sparse_pull", 1.0, 1.0),
            Bar::at_most("bytes_again", "bytes", 4.3, 4.3),
            Bar::ratio("pull_p50", 1.5, 1.2),
            Bar::ratio("pull_p99", 3.0, 2.0),
            Bar::at_least("small_pushes_per_s", "", 250e3, 500e3),
            Bar::at_most("cpu_s_per_gb", "s", 0.5, 0.3),
            Bar::at_most("cpu_s_per_gb_socket", "s", 0.5, 0.3),
            Bar::ratio("bsp_step", 4.0, 2.0),
            Bar::ratio("bsp_step_socket", 4.0, 2.0),
        ],
        run: cluster::wire,
    },
    Work {
        name: "ahead",
        title: "an epoch of clicks on servers 5 ms away each way, asking ahead; peer: --prefetch off",
        bars: &[
            Bar::at_least("bsp_speedup", "x", 1.5, 2.0),
            Bar::at_least("stale_speedup", "x", 1.5, 2.0),
            Bar::at_most("stale_waits", "of a step", 1.0, 0.1),
        ],
        run: cluster::ahead,
    },
    Work {
        name: "traffic",
        title: "bytes and requests of a step over 1 to 16 servers, counted",
        bars: &[
            Bar::at_most("bytes_a_key_1", "bytes", 16.4, 16.4),
            Bar::at_most("bytes_a_key_2", "bytes", 16.4, 16.4),
            Bar::at_most("bytes_a_key_4", "bytes", 16.4, 16.4),
            Bar::at_most("bytes_a_key_8", "bytes", 16.4, 16.4),
            Bar::at_most("bytes_a_key_16", "bytes", 16.4, 16.4),
            Bar::at_most("requests_1", "a step", 5.0, 5.0),
            Bar::at_most("requests_2", "a step", 8.0, 8.0),
            Bar::at_most("requests_4", "a step", 14.0, 14.0),
            Bar::at_most("requests_8", "a step", 26.0, 26.0),
            Bar::at_most("requests_16", "a step", 50.0, 50.0),
        ],
        run: cluster::traffic,
    },
    Work {
        name: "whole_job",
        title: "clicks on two servers and two workers as processes; peer: the same job in one process",
        bars: &[Bar::time_ratio(3.0, 1.5)],
        run: cluster::whole_job,
    },
    Work {
        name: "defaults_a9a",
        title: "a9a without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::A9A),
    },
    Work {
        name: "defaults_agaricus",
        title: "agaricus without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::AGARICUS),
    },
    Work {
        name: "defaults_adult_raw",
        title: "Adult with names and numbers without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::ADULT),
    },
    Work {
        name: "defaults_higgs7k",
        title: "higgs7k without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::HIGGS),
    },
    Work {
        name: "defaults_criteo_tiny",
        title: "1,600 records of Criteo without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::CRITEO),
    },
    Work {
        name: "defaults_frappe",
        title: "Frappe without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::FRAPPE),
    },
    Work {
        name: "defaults_california",
        title: "California housing without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::CALIFORNIA),
    },
    Work {
        name: "defaults_abalone",
        title: "abalone without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::ABALONE),
    },
    Work {
        name: "defaults_news20",
        title: "news20 without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::NEWS20),
    },
    Work {
        name: "defaults_multi5",
        title: "multi5 without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::MULTI5),
    },
    Work {
        name: "defaults_fashion_mnist",
        title: "Fashion-MNIST without a setting; peer: scikit-learn without one",
        bars: defaults::BARS,
        run: |context| defaults::run(context, &defaults::FASHION),
    },
    Work {
        name: "a9a_lr",
        title: "a9a, logistic regression, at most five passes; peer: liblinear-train -s 0",
        bars: &[
            Bar::at_least("auc", "", 0.9018, 0.9022),
            Bar::at_most("log_loss", "", 0.3247, 0.3241),
            Bar::time_ratio(f64::INFINITY, 1.0),
        ],
        run: quality::a9a_lr,
    },
    Work {
        name: "a9a_svm",
        title: "a9a, linear SVM",
        bars: &[Bar::at_least("accuracy", "", 0.8485, 0.8498)],
        run: quality::a9a_svm,
    },
    Work {
        name: "agaricus_lr",
        title: "agaricus, logistic regression",
        bars: &[Bar::at_least("auc", "", 1.0, 1.0)],
        run: quality::agaricus_lr,
    },
    Work {
        name: "news20_softmax",
        title: "news20, 20 classes",
        bars: &[Bar::at_least("accuracy", "", 0.7995, 0.805)],
        run: quality::news20_softmax,
    },
    Work {
        name: "fashion_softmax",
        title: "Fashion-MNIST, 10 classes",
        bars: &[Bar::at_least("accuracy", "", 0.834, 0.838)],
        run: quality::fashion_softmax,
    },
    Work {
        name: "california",
        title: "California housing, least squares",
        bars: &[Bar::at_most("rmse", "", 0.7250, 0.7230)],
        run: quality::california,
    },
    Work {
        name: "abalone",
        title: "abalone, least squares",
        bars: &[Bar::at_most("rmse", "", 2.42, 2.40)],
        run: quality::abalone,
    },
    Work {
        name: "a9a_lbfgs",
        title: "a9a, sum of logistic losses + 0.5 |w|^2 by L-BFGS, text to model; peer: liblinear-train -s 0",
        bars: &[
            Bar::at_least("auc", "", 0.9022, 0.9022),
            Bar::at_most("log_loss", "", 0.3241, 0.3241),
            Bar::at_most("train_log_loss", "", 0.32279, 0.32279),
            Bar::time_ratio(1.5, 0.6),
        ],
        run: minimum::a9a_lbfgs,
    },
    Work {
        name: "a9a_owlqn",
        title: "a9a, sum of logistic losses + |w|_1 by OWL-QN; peer: liblinear-train -s 6 (only an aim)",
        bars: &[
            Bar::at_most("train_log_loss", "", 0.32289, 0.32289),
            Bar::at_most("non_zeros", "", 96.0, 96.0),
            Bar::time_ratio(f64::INFINITY, 1.0),
        ],
        run: minimum::a9a_owlqn,
    },
    Work {
        name: "a9a_admm",
        title: "a9a, sum of logistic losses + 0.5 |w|^2 by ADMM, four tasks; peer: liblinear-train -s 0 (only an aim)",
        bars: &[
            Bar::at_least("auc", "", 0.9022, 0.9022),
            Bar::at_most("log_loss", "", 0.3241, 0.3241),
            Bar::at_most("train_log_loss", "", 0.3228, 0.32279),
            Bar::time_ratio(f64::INFINITY, 3.0),
        ],
        run: minimum::a9a_admm,
    },
    Work {
        name: "a9a_svm_minimum",
        title: "a9a, sum of squared hinges + 0.5 |w|^2: the minimum is 13742.30",
        bars: &[
            Bar::at_least("accuracy", "", 0.8493, 0.8493),
            Bar::at_most("objective", "", 13742.5, 13742.31),
        ],
        run: minimum::a9a_svm,
    },
    Work {
        name: "california_minimum",
        title: "California: least squares; ridge 1; lasso .01, .1; elastic net .01, .5",
        bars: &[
            Bar::at_most("ols", "rmse", 0.72295, 0.72295),
            Bar::at_most("ridge", "rmse", 0.72295, 0.72295),
            Bar::at_most("lasso_01", "rmse", 0.72625, 0.72625),
            Bar::at_most("lasso_1", "rmse", 0.81715, 0.81715),
            Bar::at_most("elastic_net", "rmse", 0.72555, 0.72555),
            Bar::at_most("lasso_01_non_zeros", "", 7.0, 7.0),
            Bar::at_most("lasso_1_non_zeros", "", 3.0, 3.0),
            Bar::at_most("elastic_net_non_zeros", "", 7.0, 7.0),
        ],
        run: minimum::california,
    },
    Work {
        name: "news20_lbfgs",
        title: "news20, softmax by L-BFGS",
        bars: &[Bar::at_least("accuracy", "", 0.7897, 0.80), Bar::at_most("log_loss", "", 0.943, 0.943)],
        run: minimum::news20,
    },
    Work {
        name: "clicks_lbfgs",
        title: "1M x 10M clicks, L2 of 10 / n, 20 iterations, two tasks; Spark MLlib: 180 s, 9.7 GB",
        bars: &[
            Bar::at_most("objective", "", 0.4299, 0.42966),
            Bar::at_least("auc", "", 0.7725, 0.7725),
            Bar::at_most("seconds", "s", 9.0, 3.6),
            Bar::at_most("peak", "MB", 1456.0, 582.0),
        ],
        run: minimum::clicks_alone,
    },
    Work {
        name: "clicks_lbfgs_servers",
        title: "the same on two servers and two workers; the peak is that of the largest process",
        bars: &[
            Bar::at_most("objective", "", 0.4299, 0.42966),
            Bar::at_least("auc", "", 0.7725, 0.7725),
            Bar::at_most("seconds", "s", 9.0, 3.6),
            Bar::at_most("peak", "MB", 1456.0, 582.0),
        ],
        run: minimum::clicks_on_servers,
    },
    Work {
        name: "worker_memory",
        title: "a worker of L-BFGS on two servers: 50M dimensions against 10M, all else the same",
        bars: &[Bar::ratio("peak", 1.10, 1.02)],
        run: memory::worker,
    },
];

/// The works that are asked for, in the order of the table; an error for a name that no work begins with.
pub(crate) fn chosen(options: &Options) -> Result<Vec<&'static Work>> {
    for name in &options.only {
        if !WORKS.iter().any(|work| work.name.starts_with(name.as_str())) {
            bail!("no work begins with {name:?}: see --list");
        }
    }
    Ok(WORKS.iter().filter(|work| options.wants(work.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Asked;

    fn named(name: &str) -> Result<Vec<&'static str>> {
        let Asked::Run(options) = Options::parse(&["--only".to_owned(), name.to_owned()])? else {
            panic!("a run")
        };
        Ok(chosen(&options)?.iter().map(|work| work.name).collect())
    }

    #[test]
    fn a_name_that_no_work_begins_with_is_an_error() {
        assert_eq!(named("a9a_svm").unwrap(), ["a9a_svm", "a9a_svm_minimum"]);
        assert!(named("nothing_like_this").is_err());
    }
}
