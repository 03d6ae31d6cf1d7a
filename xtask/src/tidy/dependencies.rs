//! Dependencies between crates point only down. The table defines the architecture; a new dependency is added here.

use super::Finding;
use crate::metadata::Package;

/// The only package that may switch on [`FAULT_INJECTION`].
const SIMULATION: &str = "simulation";

/// The feature with which rules are taken out of a state machine, to see that the simulation notices.
const FAULT_INJECTION: &str = "fault-injection";

/// What the program and the test of its state machines may depend on.
const PROGRAM: &[&str] = &[
    "store",
    "math",
    "data",
    "matrix",
    "algo",
    "recommend",
    "trees",
    "families",
    "model",
    "checkpoint",
    "rpc",
    "member",
    "control",
    "server",
    "master",
    "worker",
    "job",
    "driver",
    "runtime",
    "yarn",
    "kubernetes",
    "engine",
];

/// Each of our packages and the packages that it may depend on, also in tests. Rows of future crates are allowed, so
/// that such a crate begins with the right dependencies.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("math", &[]),
    ("store", &[]),
    // Files may lie in stores.
    ("data", &["math", "store"]),
    ("matrix", &["math"]),
    // Only this crate uses wasmtime, so that all others build without it.
    ("wasm", &["matrix"]),
    ("rpc", &["math", "matrix"]),
    ("member", &["rpc"]),
    ("control", &["math", "matrix", "rpc"]),
    ("algo", &["math", "data", "matrix"]),
    // Each family of algorithms knows no other.
    ("linear", &["math", "data", "matrix", "algo"]),
    ("factorization", &["math", "data", "matrix", "algo"]),
    ("kmeans", &["math", "data", "matrix", "algo"]),
    ("trees", &["math", "data", "matrix", "algo"]),
    ("topics", &["math", "data", "matrix", "algo"]),
    ("recommend", &["math", "data", "matrix", "algo"]),
    // The table of all families. Only the program, its tests and benchmarks may name it.
    (
        "families",
        &["data", "matrix", "algo", "linear", "factorization", "kmeans", "trees", "topics", "recommend"],
    ),
    // Starts processes elsewhere: of this program it knows only the names of files.
    ("yarn", &["store"]),
    ("kubernetes", &[]),
    ("model", &["math", "data", "matrix", "algo", "families", "store"]),
    ("checkpoint", &["matrix", "store"]),
    ("server", &["math", "matrix", "rpc", "control"]),
    // Its tests join it as members do.
    ("master", &["math", "matrix", "store", "rpc", "member", "control"]),
    ("worker", &["math", "data", "matrix", "algo", "rpc", "control"]),
    // What a user asks for: no files, no sockets.
    ("job", &["math", "data", "matrix", "algo", "families", "rpc", "control"]),
    // A pure state machine; `purity.rs` holds that too.
    ("driver", &["math", "data", "matrix", "algo", "families", "model", "checkpoint", "rpc", "job"]),
    (
        "runtime",
        &[
            "math",
            "data",
            "matrix",
            "wasm",
            "algo",
            "families",
            "model",
            "store",
            "checkpoint",
            "rpc",
            "member",
            "control",
            "server",
            "master",
            "worker",
            "job",
            "driver",
        ],
    ),
    (
        "engine",
        &[
            "math",
            "data",
            "matrix",
            "algo",
            "recommend",
            "trees",
            "families",
            "model",
            "store",
            "checkpoint",
            "rpc",
            "member",
            "control",
            "master",
            "job",
            "driver",
            "runtime",
            "yarn",
            "kubernetes",
        ],
    ),
    // Only this crate knows flags and terminals.
    ("seraphim", PROGRAM),
    // A test of all state machines. Only this crate may switch on their features `fault-injection`.
    (SIMULATION, PROGRAM),
    // Conversions only; the command line comes with the Python package.
    ("python", &["engine", "seraphim"]),
    (
        "benchmarks",
        &["math", "data", "matrix", "wasm", "algo", "families", "rpc", "server", "worker", "seraphim"],
    ),
    ("xtask", &[]),
];

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.source.is_none()) {
        let Some((_, allowed)) = ALLOWED_DEPENDENCIES.iter().find(|(name, _)| *name == package.name) else {
            let text = "not in the table of crate arrows (xtask/src/tidy/dependencies.rs): a new crate needs a written reason";
            findings.push(Finding::new(&package.name, text));
            continue;
        };
        let injects_faults = |feature: &&String| feature.rsplit('/').next() == Some(FAULT_INJECTION);
        if let Some(feature) =
            package.switched_features.iter().find(injects_faults).filter(|_| package.name != SIMULATION)
        {
            let text = format!("switches on {feature}, which only {SIMULATION} may");
            findings.push(Finding::new(&package.name, text));
        }
        for target in &package.own_dependencies {
            if !allowed.contains(&target.as_str()) {
                let text = format!("depends on {target}, allowed are {allowed:?}: arrows point only down");
                findings.push(Finding::new(&package.name, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, own: &[&str]) -> Package {
        let own_dependencies = own.iter().map(|&name| name.to_owned()).collect();
        Package { name: name.to_owned(), own_dependencies, ..Package::default() }
    }

    #[test]
    fn an_arrow_that_points_down_is_fine() {
        assert!(check(&[package("algo", &["matrix", "math"])]).is_empty());
    }

    #[test]
    fn an_arrow_that_points_up_or_sideways_is_found() {
        let findings = check(&[package("data", &["matrix"]), package("math", &["algo"])]);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].text.contains("depends on matrix"));
    }

    #[test]
    fn only_the_simulation_takes_rules_out() {
        let switching = |name| Package {
            switched_features: vec!["server/fault-injection".to_owned()],
            ..package(name, &[])
        };
        assert!(check(&[switching("simulation")]).is_empty());
        assert!(check(&[switching("seraphim")])[0].text.contains("server/fault-injection"));
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        assert_eq!(check(&[package("utils", &[])]).len(), 1);
    }

    #[test]
    fn the_table_has_no_circle() {
        for (at, (_, targets)) in ALLOWED_DEPENDENCIES.iter().enumerate() {
            for target in *targets {
                let below = ALLOWED_DEPENDENCIES[..at].iter().any(|(name, _)| name == target);
                assert!(below, "{target} must stand above its users in the table");
            }
        }
    }
}
