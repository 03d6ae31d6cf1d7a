//! Where packages come from, which are banned, and which may have two versions.

use super::Finding;
use crate::metadata::Package;

/// The public registry of Rust packages, as lock files spell it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages that must not be used, not even indirectly, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("bincode", "unmaintained; formats on disk and on the wire are written by hand, with versions"),
    ("cmake", "needs a tool that a fresh machine lacks"),
    ("native-tls", "links the system's OpenSSL"),
    ("openssl-sys", "links the system's OpenSSL"),
    ("ring", "its licence is a patchwork and it needs an assembler"),
];

/// Packages that may have several versions, with the reason. Remove a row when it is no longer needed.
const DUPLICATES: &[(&str, &str)] = &[
    ("base64", "tonic is a generation behind parquet, which reads with it what Arrow wrote of its types"),
    ("cpufeatures", "sha2 (wasmtime) is a generation behind chacha20 (proptest), which is for tests only"),
    ("embedded-io", "postcard names two generations of its readers for small devices"),
    ("foldhash", "petgraph (prost-build) is a generation behind wasmtime; build time only"),
    ("getrandom", "ahash and const-random (arrow), proptest's rand and tempfile follow three generations"),
    ("hashbrown", "petgraph (prost-build) is a generation behind indexmap and parquet; build time only"),
    ("syn", "derive macros of serde, clap and thiserror are between two generations; build time only"),
    ("unicode-width", "miette (protox) is a generation behind wat; build time and tests only"),
];

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let place = format!("{} {}", package.name, package.version);
        if package.source.as_deref().is_some_and(|source| source != REGISTRY) {
            let text = format!("comes from {:?}; only the public registry is allowed", package.source);
            findings.push(Finding::new(&place, text));
        }
        if let Some((_, reason)) = BANNED.iter().find(|(name, _)| *name == package.name) {
            findings.push(Finding::new(&place, format!("banned: {reason}")));
        }
    }
    findings.extend(duplicates(packages));
    findings
}

/// Packages are sorted, so versions of one name are adjacent.
fn duplicates(packages: &[Package]) -> Vec<Finding> {
    packages
        .chunk_by(|a, b| a.name == b.name)
        .filter(|versions| versions.len() > 1)
        .filter(|versions| !DUPLICATES.iter().any(|(name, _)| *name == versions[0].name))
        .map(|versions| {
            let all: Vec<&str> = versions.iter().map(|package| package.version.as_str()).collect();
            let text =
                format!("stands in {} versions {all:?}: align them, or add a row with a reason", all.len());
            Finding::new(&versions[0].name, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, source: &str) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            source: Some(source.into()),
            ..Package::default()
        }
    }

    #[test]
    fn only_the_registry_is_a_source() {
        assert!(check(&[package("a", "1.0.0", REGISTRY)]).is_empty());
        assert_eq!(check(&[package("a", "1.0.0", "git+https://example.org/a")]).len(), 1);
    }

    #[test]
    fn banned_packages_are_found() {
        assert_eq!(check(&[package("bincode", "1.0.0", REGISTRY)]).len(), 1);
    }

    #[test]
    fn two_versions_need_a_row() {
        let twice = |name| [package(name, "1.0.0", REGISTRY), package(name, "2.0.0", REGISTRY)];
        assert_eq!(check(&twice("memchr")).len(), 1);
        assert!(check(&twice("syn")).is_empty());
    }
}
