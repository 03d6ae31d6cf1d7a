//! Promise: same seed, same bytes. Under BSP the model depends on the seed and the number of tasks, not on the threads
//! or their timing.

use crate::common::{Folder, bytes_of, clicks, succeed};

fn train(folder: &Folder, data: &str, name: &str, extra: &[&str]) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let model = folder.path(name);
    let mut arguments =
        vec!["train", "lr", "--data", data, "--model", &model, "--tasks", "4", "--set", "epochs=2"];
    arguments.extend_from_slice(extra);
    succeed(&arguments);
    bytes_of(&model)
}

#[test]
fn bsp_models_are_equal_for_any_number_of_threads_and_runs() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(6000, 1));
    let first = train(&folder, &data, "first", &["--threads", "4"]);
    for (name, threads) in [("again", "4"), ("one", "1"), ("two", "2")] {
        assert!(first == train(&folder, &data, name, &["--threads", threads]), "{name}: other bytes");
    }
}

#[test]
fn another_seed_is_another_order() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(6000, 1));
    let shuffled = ["--set", "shuffle=records", "--set", "batch_size=64"];
    let weights = |name: &str, seed: &str| {
        let extra = [&shuffled[..], &["--seed", seed]].concat();
        train(&folder, &data, name, &extra)
            .into_iter()
            .find(|(name, _)| name.ends_with("weights.safetensors"))
    };
    assert_eq!(weights("a", "5"), weights("b", "5"));
    assert_ne!(weights("c", "5"), weights("d", "6"));
}
