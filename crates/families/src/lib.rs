//! The table of all families of algorithms. Nothing below this crate knows them all, and a program may add more.

use algo::{Families, Family};
use matrix::FunctionTable;

/// The families of this repository. A new one is a crate and a row here.
pub const FAMILIES: &[&Family] = &[
    &factorization::FAMILY,
    &kmeans::FAMILY,
    &linear::FAMILY,
    &recommend::FAMILY,
    &topics::FAMILY,
    &trees::FAMILY,
];

/// The table of all families.
pub fn all() -> Families {
    Families::new(FAMILIES).expect("the names of the families and algorithms differ")
}

/// The table of all PS functions: the built-in ones and those of all families.
pub fn functions() -> FunctionTable {
    let mut table = FunctionTable::builtin();
    all().add_functions(&mut table).expect("the names of the functions differ");
    table
}

#[cfg(test)]
mod tests {

    use algo::{DataFacts, ParamSpec};

    use super::all;

    #[test]
    fn every_default_is_allowed_by_its_own_row() {
        for row in all().algorithms() {
            for spec in row.parameters {
                assert!(spec.kind.parse(spec.default).is_some(), "{} {}", row.name, spec.name);
                assert!(!spec.meaning.is_empty());
                for read in spec.kind.words().iter().flat_map(|word| word.reads) {
                    let is_row = |spec: &ParamSpec| spec.name == read.name;
                    assert!(row.parameters.iter().any(is_row), "{}: {} is no row", row.name, read.name);
                }
            }
            let settings = (row.configure)(&algo::param::ParamValues::default()).unwrap();
            assert_eq!(
                settings.settings().values().count(),
                row.parameters.len(),
                "{}: a name stands twice",
                row.name
            );
        }
    }

    #[test]
    fn the_rows_of_all_matrices_but_the_intercept_are_features() {
        let facts = DataFacts { classes: vec![0.0, 1.0], record_count: 10, ..DataFacts::default() };
        for (name, expected) in [("lr", vec![true, false]), ("fm", vec![true, false, true])] {
            let model = all()
                .configure(name, &algo::param::ParamValues::default())
                .unwrap()
                .model(&facts, None)
                .unwrap();
            let matrices = model.matrices(1).into_iter();
            let have: Vec<bool> = matrices.map(|matrix| model.has_feature_rows(&matrix.name)).collect();
            assert_eq!(have, expected, "{name}");
        }
    }
}
