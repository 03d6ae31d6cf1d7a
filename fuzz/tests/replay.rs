//! Every kept input is run through its target.

use std::path::Path;

#[test]
fn every_kept_input_keeps_the_promise_of_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in fuzz::TARGETS {
        let folder = corpus.join(name);
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            target(&std::fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count >= 2, "target {name} needs a good and a bad seed, has {count}");
    }
}

#[test]
fn every_target_has_a_binary_and_a_row() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, fuzz::TARGETS.iter().map(|row| row.0).collect::<Vec<_>>());
}
