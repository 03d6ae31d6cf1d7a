//! Promises of the manifest.

use std::path::Path;

use super::manifest::{FORMAT_NAME, FORMAT_VERSION};
use super::*;
use crate::error::Error;

/// The model of the smallest job there is.
fn manifest() -> Manifest {
    let job = (algo::algorithm("lr").unwrap().configure)(&std::collections::BTreeMap::new()).unwrap();
    let facts = algo::DataFacts { record_count: 2, classes: vec![0.0, 1.0], ..algo::DataFacts::default() };
    Manifest {
        format: FORMAT_NAME.into(),
        format_version: FORMAT_VERSION,
        program_version: "0.0.0".into(),
        algorithm: "lr".into(),
        settings: std::collections::BTreeMap::new(),
        schema: data::Schema::default(),
        model: job.model(&facts, None).unwrap(),
        matrices: Vec::new(),
        trained: Trained::default(),
        files: Vec::new(),
    }
}

#[test]
fn a_manifest_comes_back() {
    let text = manifest().to_text();
    let back = Manifest::from_bytes(text.as_bytes(), Path::new("model.json")).unwrap();
    assert_eq!(back.to_text(), text);
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
}

#[test]
fn every_flipped_byte_is_an_error_with_both_checksums() {
    let text = manifest().to_text().into_bytes();
    for position in 0..text.len() {
        let mut broken = text.clone();
        broken[position] ^= 0x20;
        let error = Manifest::from_bytes(&broken, Path::new("model.json")).unwrap_err();
        let damaged = matches!(
            error,
            Error::Checksum { expected, actual, .. } | Error::ModelVersion { damage: Some((expected, actual)), .. }
                if expected != actual
        );
        assert!(damaged, "byte {position}: {error}");
    }
}

#[test]
fn another_version_is_named_with_ours() {
    let mut other = manifest();
    other.format_version = 99;
    let error =
        Manifest::from_bytes(other.to_text().as_bytes(), Path::new("model.json")).unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains(&format!("version {FORMAT_VERSION}")), "{error}");
}
