//! Reads what `cargo metadata` reports about the packages.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::command::Cmd;

/// The platform whose packages are checked, the same on every machine.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A package of this workspace or of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Licence as an SPDX expression.
    pub(crate) license: Option<String>,
    /// Where it comes from; `None` for packages of this workspace.
    pub(crate) source: Option<String>,
    /// Names of packages of this workspace that it depends on, including dev and build dependencies.
    pub(crate) own_dependencies: Vec<String>,
    /// Features of packages of this workspace that it switches on, as `package/feature`: always, or by features of its own.
    pub(crate) switched_features: Vec<String>,
    pub(crate) examples: Vec<String>,
}

/// All features of the workspace but `cloud` and `hdfs`, whose clients of other systems are a third of all packages: what is
/// checked everywhere. `ci --slow` builds and tests those two.
pub(crate) const FEATURES: &str = "wasm,arrow,parquet,fault-injection";

/// All packages that a build of our workspace for [`PLATFORM`] with [`FEATURES`] may use, sorted.
pub(crate) fn packages(root: &Path) -> Result<Vec<Package>> {
    packages_with(root, &["--features", FEATURES])
}

/// All packages that a build of the workspace in a folder may use, sorted.
pub(crate) fn packages_with(folder: &Path, features: &[&str]) -> Result<Vec<Package>> {
    let text = Cmd::cargo(folder, "metadata --format-version 1 --filter-platform")
        .args([PLATFORM])
        .args(features)
        .output()?;
    parse(&text)
}

/// The build folder of cargo: `target`, unless the machine has another setting.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    let text = Cmd::cargo(root, "metadata --format-version 1 --no-deps").output()?;
    let value: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let folder = value["target_directory"].as_str().context("cargo metadata has no target_directory")?;
    Ok(PathBuf::from(folder))
}

fn parse(text: &str) -> Result<Vec<Package>> {
    let root: Value = serde_json::from_str(text).context("cargo metadata is not JSON")?;
    let list = root["packages"].as_array().context("cargo metadata has no packages")?;
    let mut packages: Vec<Package> = list.iter().map(package).collect();
    packages.sort();
    Ok(packages)
}

fn package(value: &Value) -> Package {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let all = |key: &str| value[key].as_array().cloned().unwrap_or_default();
    let own = |dependency: &&Value| dependency["path"].is_string();
    let is_example = |target: &&Value| target["kind"][0] == "example";
    let with_features = |dependency: &Value| -> Vec<String> {
        let name = dependency["name"].as_str().unwrap_or_default();
        let features = dependency["features"].as_array().into_iter().flatten().filter_map(Value::as_str);
        features.map(|feature| format!("{name}/{feature}")).collect()
    };
    let forwarded = value["features"].as_object().into_iter().flat_map(|features| features.values());
    let forwarded = forwarded.filter_map(Value::as_array).flatten().filter_map(text);
    let forwarded = forwarded.filter(|feature| feature.contains('/'));
    Package {
        name: text(&value["name"]).unwrap_or_default(),
        version: text(&value["version"]).unwrap_or_default(),
        license: text(&value["license"]),
        source: text(&value["source"]),
        own_dependencies: all("dependencies").iter().filter(own).filter_map(|d| text(&d["name"])).collect(),
        switched_features: all("dependencies")
            .iter()
            .filter(own)
            .flat_map(with_features)
            .chain(forwarded)
            .collect(),
        examples: all("targets").iter().filter(is_example).filter_map(|t| text(&t["name"])).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_packages_have_no_source_and_their_arrows_are_read() {
        let text = r#"{"packages": [
            {"name": "data", "version": "0.1.0", "license": "Apache-2.0", "source": null,
             "dependencies": [{"name": "math", "path": "/x", "features": ["fast"]}, {"name": "serde", "features": ["rc"]}],
             "features": {"default": [], "slow": ["math/slow", "dep:serde"]},
             "targets": [{"kind": ["example"], "name": "speed"}, {"kind": ["lib"], "name": "data"}]},
            {"name": "a", "version": "1.0.0", "license": null, "source": "registry", "dependencies": [], "targets": []}]}"#;
        let packages = parse(text).unwrap();
        assert_eq!(packages[0].name, "a");
        assert_eq!(packages[0].license, None);
        assert_eq!(packages[1].own_dependencies, ["math"]);
        assert_eq!(packages[1].switched_features, ["math/fast", "math/slow"]);
        assert_eq!(packages[1].examples, ["speed"]);
        assert_eq!(packages[1].source, None);
    }
}
