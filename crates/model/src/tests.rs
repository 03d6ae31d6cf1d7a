//! Tests of the model directory.

use std::path::Path;

use matrix::{
    Axis, Consistency, ElementType, Initializer, MatrixSpec, OwnedValues, Partitioner, PushRule, RowBlock,
    RowCounts, Storage,
};
use store::TempOutputs;

use super::manifest::{FORMAT_NAME, FORMAT_VERSION};
use super::write::write;
use super::*;
use crate::error::Error;

/// Returns the manifest of the smallest possible job.
fn manifest() -> Manifest {
    let job = families::all().configure("lr", &algo::param::ParamValues::default()).unwrap();
    let facts = algo::DataFacts { record_count: 2, classes: vec![0.0, 1.0], ..algo::DataFacts::default() };
    Manifest {
        format: FORMAT_NAME.into(),
        format_version: FORMAT_VERSION,
        program_version: "0.0.0".into(),
        algorithm: "lr".into(),
        settings: std::collections::BTreeMap::new(),
        schema: data::Schema::default(),
        model: algo::SavedModel::new(&*job.model(&facts, None).unwrap()),
        matrices: Vec::new(),
        trained: TrainingRecord::default(),
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

fn spec(storage: Storage, rows: u64) -> MatrixSpec {
    MatrixSpec {
        name: "weights".into(),
        element: ElementType::F32,
        rows,
        columns: 2,
        axis: Axis::Row,
        storage,
        partitioner: Partitioner::Range { partition_count: 1 },
        initializer: Initializer::Zero,
        rule: PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 1.0, l2: 0.0 },
        consistency: Consistency::Bsp,
        seed: 1,
    }
}

/// Returns rows with these keys and weights, whose slots are never zero.
fn rows(keys: &[u64], weights: &[f32]) -> RowBlock {
    let slot = |first: u64| OwnedValues::F32((first..).take(weights.len()).map(|x| x as f32).collect());
    let slots = vec![("z".to_owned(), slot(1)), ("n".to_owned(), slot(100))];
    RowBlock { slots, ..RowBlock::of_values(keys.to_vec(), OwnedValues::F32(weights.to_vec())) }
}

/// Saves a model of one matrix, with names for some keys.
fn save(path: &Path, spec: &MatrixSpec, source: &mut dyn MatrixSource<Error>) -> Result<WriteResult, Error> {
    let names = [(3, "three"), (7, "seven"), (8, "of no row")].into_iter().collect();
    let specs = std::slice::from_ref(spec);
    write(path, false, manifest(), (specs, source), true, &names, &TempOutputs::default())
}

/// A source that gives a few rows at a time, and may give fewer than it has counted.
struct FewAtATime<'a> {
    rows: &'a [RowBlock],
    limit: usize,
    lost: usize,
}

impl MatrixSource<Error> for FewAtATime<'_> {
    fn count_rows(&mut self, matrix: usize) -> Result<RowCounts, Error> {
        RowsInMemory(self.rows).count_rows(matrix)
    }

    fn rows_from(&mut self, matrix: usize, key: u64) -> Result<RowBlock, Error> {
        let mut rows: RowBlock = MatrixSource::<Error>::rows_from(&mut RowsInMemory(self.rows), matrix, key)?;
        rows.truncate(self.limit.min(rows.keys.len().saturating_sub(self.lost)));
        Ok(rows)
    }
}

#[test]
fn a_model_does_not_depend_on_how_its_rows_arrive() {
    let weights: Vec<f32> = (0..40).map(|i| if i % 3 == 0 { 0.0 } else { i as f32 }).collect();
    let rows = [rows(&(0..20).map(|i| i * 7 / 2).collect::<Vec<u64>>(), &weights)];
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(Storage::Sparse, 1 << 63);
    let whole = save(&folder.path().join("whole"), &spec, &mut RowsInMemory(&rows)).unwrap().manifest;
    assert_eq!(whole.files.len(), 3, "the dictionary too");
    for limit in [1, 6] {
        let path = folder.path().join(limit.to_string());
        let parts = save(&path, &spec, &mut FewAtATime { rows: &rows, limit, lost: 0 }).unwrap().manifest;
        assert_eq!(parts.files, whole.files, "{limit}");
        let read = Model::read(&path, true).unwrap();
        assert_eq!(read.matrices, rows);
        assert_eq!(read.dictionary, [(3, "three"), (7, "seven")].into_iter().collect());
    }
    let path = folder.path().join("lost");
    let error = save(&path, &spec, &mut FewAtATime { rows: &rows, limit: 9, lost: 2 }).unwrap_err();
    assert!(error.to_string().contains("the rows have changed while they were written"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left of it");
}

#[test]
fn keys_are_stored_once_where_both_files_have_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let has_own_keys = |name: &str, weights: &[f32]| {
        let path = folder.path().join(name);
        let rows = [rows(&[3, 8], weights)];
        save(&path, &spec(Storage::Sparse, 1 << 63), &mut RowsInMemory(&rows)).unwrap();
        let bytes = std::fs::read(path.join(OPTIMIZER_FILE)).unwrap();
        tensors::SafeTensors::deserialize(&bytes).unwrap().names().contains(&"keys")
    };
    assert!(!has_own_keys("same", &[1.0; 4]));
    assert!(has_own_keys("fewer", &[1.0, 1.0, 0.0, 0.0]), "a row of zeros is only in the file of slots");
}

#[test]
fn a_model_replaces_an_empty_folder_and_with_overwrite_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let (path, absent) = (folder.path().join("model"), folder.path().join("absent"));
    std::fs::create_dir(&path).unwrap();
    check_target(&path, false).unwrap();
    check_target(&absent, false).unwrap();
    let rows = [rows(&[3], &[1.0, 2.0])];
    save(&path, &spec(Storage::Sparse, 1 << 63), &mut RowsInMemory(&rows)).unwrap();
    assert!(matches!(check_target(&path, false), Err(Error::ModelExists { .. })));
    check_target(&path, true).unwrap();
    std::fs::write(path.join("notes.txt"), "mine").unwrap();
    assert!(matches!(check_target(&path, true), Err(Error::ForeignFileInModel { .. })));
    std::fs::create_dir(&absent).unwrap();
    std::fs::write(absent.join("notes.txt"), "mine").unwrap();
    assert!(matches!(check_target(&absent, true), Err(Error::NotReplaceable { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "checks leave nothing behind");
}

#[test]
fn every_type_of_elements_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let of = |element, values| {
        let spec = MatrixSpec { element, rule: PushRule::Add, ..spec(Storage::Sparse, 1 << 63) };
        (spec, RowBlock::of_values(vec![2, 9], values))
    };
    for (spec, rows) in [
        of(ElementType::F32, OwnedValues::F32(vec![0.1, -0.0, 3.5, f32::MIN_POSITIVE])),
        of(ElementType::F64, OwnedValues::F64(vec![0.1, 1e300, 0.0, -7.0])),
        of(ElementType::I64, OwnedValues::I64(vec![i64::MIN, 0, 1 << 60, -1])),
        of(ElementType::I32, OwnedValues::I32(vec![i32::MAX, 0, -3, 1])),
        of(ElementType::U32, OwnedValues::U32(vec![u32::MAX - 1, 0, 3, 1])),
    ] {
        let path = folder.path().join(format!("{:?}", spec.element));
        save(&path, &spec, &mut RowsInMemory(std::slice::from_ref(&rows))).unwrap();
        assert_eq!(Model::read(&path, true).unwrap().matrices, [rows]);
    }
}

#[test]
fn lists_come_back_in_blocks_of_whole_rows() {
    let folder = tempfile::tempdir().unwrap();
    for columns in [0, 1] {
        let spec = matrix::ListMatrix::spec("seen", ElementType::F32, columns, PushRule::Assign, 2);
        let mut rows = RowBlock::no_lists(ElementType::F32);
        for (row, length) in [(3u64, 2u64), (8, 1_200_000), (9, 1), (40, 5)] {
            let entries: Vec<u64> = (0..length).map(|i| i * 3).collect();
            let values: Vec<f32> = entries.iter().map(|&i| i as f32 / 2.0).collect();
            rows.push_list(row, &entries, if columns == 0 { &[] } else { &values });
        }
        let path = folder.path().join(format!("{columns}"));
        save(&path, &spec, &mut RowsInMemory(std::slice::from_ref(&rows))).unwrap();
        let mut files = ModelReader::open(&path, true).unwrap();
        let blocks = [files.rows_from(0, 0).unwrap(), files.rows_from(0, 4).unwrap()];
        assert_eq!((&blocks[0].keys[..], &blocks[1].keys[..]), (&[3][..], &[8][..]), "a long row by itself");
        assert_eq!(Model::read(&path, true).unwrap().matrices, [rows]);
    }
}

/// A zero weight may be left out of the file of weights, but its optimizer state may not.
#[test]
fn rows_come_back_with_all_their_slots_also_those_whose_weights_are_zero() {
    let all: Vec<u64> = (0..5).collect();
    let some = [0.5, 0.0, 0.0, 0.0, -1.0, 2.0, 0.0, 0.0, 0.0, 0.0];
    let cases = [
        ("sparse, none zero", spec(Storage::Sparse, 1 << 63), rows(&[3, 8, 1 << 40], &[1.0; 6])),
        ("sparse, some zero", spec(Storage::Sparse, 1 << 63), rows(&[0, 3, 8, 99, 1 << 40], &some)),
        ("sparse, all zero", spec(Storage::Sparse, 1 << 63), rows(&[3, 8], &[0.0; 4])),
        ("dense, none zero", spec(Storage::Dense, 5), rows(&all, &[1.0; 10])),
        ("dense, some zero", spec(Storage::Dense, 5), rows(&all, &some)),
        (
            "dense, one zero",
            spec(Storage::Dense, 5),
            rows(&all, &[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, spec, rows) in cases {
        let path = folder.path().join(name);
        save(&path, &spec, &mut RowsInMemory(std::slice::from_ref(&rows))).unwrap();
        assert_eq!(Model::read(&path, true).unwrap().matrices, std::slice::from_ref(&rows), "{name}");
        for block_rows in 1..4 {
            let mut files = ModelReader::open(&path, true).unwrap().with_block_rows(block_rows);
            assert_eq!(files.read_all(0).unwrap(), rows, "{name}, {block_rows} rows at a time");
            let from = rows.keys[rows.keys.len() - 1];
            let last = files.rows_from(0, from).unwrap();
            assert_eq!(
                last,
                rows.slice(rows.keys.len() - 1..rows.keys.len()),
                "{name}: not from the beginning"
            );
            assert!(files.rows_from(0, from + 1).unwrap().keys.is_empty(), "{name}");
        }
        let without = &Model::read(&path, false).unwrap().matrices[0];
        let OwnedValues::F32(weights) = &rows.values else { panic!("{name}") };
        for (key, row) in rows.keys.iter().zip(weights.chunks(2)) {
            let at = without.keys.iter().position(|other| other == key);
            let read = at.map_or(vec![0.0; 2], |at| match &without.values {
                OwnedValues::F32(values) => values[2 * at..2 * at + 2].to_vec(),
                other => panic!("{name}: {other:?}"),
            });
            assert_eq!(read, row, "{name}: key {key}");
        }
        assert!(without.slots.is_empty(), "{name}");
    }
}
