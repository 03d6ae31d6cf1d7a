//! Promise: a training that continues from any of its checkpoints, in one process or on servers and workers, ends in the
//! same bytes as without the interruption. A checkpoint that does not fit is refused with the reason.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, bytes_of, clicks, command, fail, seraphim, succeed};

/// Longest wait for a state of a process.
const PATIENCE: Duration = Duration::from_mins(1);

/// Every training loop, with settings that act between epochs, and how often it writes checkpoints.
const JOBS: &[(&str, &str, &str)] = &[
    ("lr", "epochs=3 batch_size=100", "4ticks"),
    ("lr", "epochs=1 batch_size=100", "3ticks"),
    ("lr", "epochs=2 batch_size=100 optimizer=adam standardize=true class_weights=balanced", "5ticks"),
    ("lr", "epochs=2 batch_size=100 optimizer=sgd schedule=inverse_time shuffle=records", "6ticks"),
    ("lr", "epochs=6 batch_size=200 early_stopping=1 validation_share=0.2", "1ticks"),
    ("softmax", "epochs=2 batch_size=100 optimizer=adagrad", "5ticks"),
    ("fm", "epochs=2 k=2 batch_size=100", "5ticks"),
    ("kmeans", "k=3 method=mini_batch epochs=2 batch_size=100", "5ticks"),
    ("kmeans", "k=3 max_iterations=6 tolerance=0", "1ticks"),
    ("gbdt", "iterations=6", "1ticks"),
    ("lda", "topics=3 sweeps=35", "1ticks"),
    ("lr", "optimizer=lbfgs l2=1 max_iterations=6", "1ticks"),
    ("lr", "optimizer=owlqn l1=1 max_iterations=5", "1ticks"),
    ("lr", "optimizer=admm l1=0.5 l2=1 max_iterations=5", "1ticks"),
    ("softmax", "optimizer=svrg l2=1 max_iterations=4 tolerance=0", "1ticks"),
];

/// A folder with data, in which jobs are trained.
struct World {
    folder: Folder,
    data: String,
}

impl World {
    fn new(records: u64) -> Self {
        let folder = Folder::new();
        let data = folder.write("train.libsvm", clicks(records, 1));
        Self { folder, data }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// The words of a command that trains `model`.
    fn words(&self, job: (&str, &str), model: &str, more: &[&str]) -> Vec<String> {
        let (algorithm, settings) = job;
        let model = self.path(model);
        let fixed = ["train", algorithm, "--data", &self.data, "--model", &model, "--tasks", "3", "--quiet"];
        let settings = settings.split(' ').flat_map(|setting| ["--set", setting]);
        fixed.into_iter().chain(settings).chain(more.iter().copied()).map(str::to_owned).collect()
    }

    fn train(&self, job: (&str, &str), model: &str, more: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
        let words = self.words(job, model, more);
        succeed(&words.iter().map(String::as_str).collect::<Vec<_>>());
        bytes_of(&self.path(model))
    }

    fn refused(&self, code: i32, job: (&str, &str), more: &[&str]) -> String {
        let words = self.words(job, "refused", more);
        let text = fail(code, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!Path::new(&self.path("refused")).exists(), "no model: {text}");
        text
    }
}

/// The names of the checkpoints in a folder.
fn checkpoints(folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let whole = entries.map_while(Result::ok).filter(|entry| entry.path().join("manifest").exists());
    let mut names: Vec<String> =
        whole.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const ON_SERVERS: &[&str] = &["--servers", "2", "--workers", "2"];
const ON_ANOTHER_NUMBER: &[&str] = &["--servers", "3", "--workers", "1"];

#[test]
fn every_job_ends_in_the_same_bytes_from_any_checkpoint() {
    for (i, &(algorithm, settings, every)) in JOBS.iter().enumerate() {
        let world = World::new(1500);
        let job = (algorithm, settings);
        let name = format!("job {i}, {algorithm} {settings}");
        let whole = world.train(job, "whole", &["--checkpoint-every", "off"]);
        // Checkpoints of a run in this process are continued on servers, and the other way round.
        let (first, second) = if i % 2 == 0 { (&[][..], ON_SERVERS) } else { (ON_SERVERS, &[][..]) };
        let folder = world.path("checkpoints");
        let increments = (i % 3).to_string();
        let saving = ["--checkpoints", &folder, "--checkpoint-every", every, "--checkpoint-keep", "1000"];
        let saving = [&saving[..], &["--checkpoint-increments", &increments]].concat();
        assert!(
            world.train(job, "saving", &[&saving[..], first].concat()) == whole,
            "{name}: saving changes bytes"
        );
        let names = checkpoints(&folder);
        assert!(!names.is_empty(), "{name}: no checkpoint");
        for (number, where_to) in
            [(0, second), (names.len() / 2, ON_ANOTHER_NUMBER), (names.len() - 1, first)]
        {
            let from = format!("{folder}/{}", names[number]);
            let more = ["--resume", &from, "--checkpoint-every", "off", "--overwrite"];
            let model = world.train(job, "resumed", &[&more[..], where_to].concat());
            assert!(model == whole, "{name} from checkpoint {} of {}", names[number], names.len());
        }
    }
}

/// The checkpoints of a folder with their size, and what each builds on.
fn sizes_and_bases(folder: &str) -> Vec<(u64, u64, Option<u64>)> {
    let listed: serde_json::Value =
        serde_json::from_str(&succeed(&["checkpoints", "list", folder, "--json"])).expect("it is JSON");
    let rows = listed.as_array().expect("it is a list").iter();
    let number = |row: &serde_json::Value, name: &str| row[name].as_u64();
    rows.map(|row| {
        (
            number(row, "number").expect("a number"),
            number(row, "size_bytes").expect("a size"),
            number(row, "base"),
        )
    })
    .collect()
}

/// Many features in the first records, and a few of them in the others: later checkpoints find few changes.
fn many_features_then_few(path: &str) {
    let wide = (0..4_000).map(|i| {
        let features: Vec<String> = (0..50).map(|j| format!("{}:{}", i * 50 + j + 1, 1 + i % 3)).collect();
        format!("{} {}\n", i % 2, features.join(" "))
    });
    let narrow = (0..100_000).map(|i| format!("{} {}:1 {}:2\n", i % 3 % 2, 1 + i % 37, 40 + i % 59));
    let text: Vec<String> = wide.chain(narrow).collect();
    std::fs::write(path, text.concat()).expect("the folder can be written");
}

#[test]
fn an_increment_has_what_changed_and_the_training_continues_from_it() {
    let mut world = World::new(1);
    world.data = world.path("own.libsvm");
    many_features_then_few(&world.data);
    let job = ("lr", "epochs=1 batch_size=5 optimizer=ftrl");
    let whole = world.train(job, "whole", &["--checkpoint-every", "off"]);
    for (i, place) in [&[][..], ON_SERVERS].into_iter().enumerate() {
        let folder = world.path(&format!("checkpoints{i}"));
        let words =
            ["--checkpoints", &folder, "--checkpoint-every", "1ticks", "--checkpoint-increments", "3"];
        let words = [&words[..], &["--checkpoint-keep", "1000", "--overwrite"], place].concat();
        assert!(world.train(job, "saving", &words) == whole, "saving changes bytes");
        let all = sizes_and_bases(&folder);
        let largest = all.iter().map(|(_, size, _)| *size).max().expect("there are checkpoints");
        let mut small = all.iter().filter(|(_, size, base)| base.is_some() && *size < largest / 2);
        let (last, _, base) = *small.next_back().unwrap_or_else(|| panic!("no small increment: {all:?}"));
        let base = base.expect("it is an increment");
        let listed = succeed(&["checkpoints", "list", &folder]);
        assert!(listed.contains(&format!("what changed since {base:08}")), "{listed}");
        let from = format!("{folder}/{last:08}");
        for place in [&[][..], ON_ANOTHER_NUMBER] {
            let more = ["--resume", &from, "--checkpoint-every", "off", "--overwrite"];
            assert!(world.train(job, "resumed", &[&more[..], place].concat()) == whole, "from {from}");
        }
        // A byte of what it builds on.
        let path = std::fs::read_dir(format!("{folder}/{base:08}")).expect("it is there");
        let parts = path.map_while(Result::ok).map(|entry| entry.path());
        let part = parts
            .filter(|path| !path.ends_with("manifest"))
            .max_by_key(|path| path.metadata().map_or(0, |m| m.len()));
        let part = part.expect("it has parts");
        let mut bytes = std::fs::read(&part).expect("it is a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&part, bytes).expect("it can be written");
        let more = ["--resume", &from, "--checkpoint-every", "off", "--overwrite"];
        let text = world.refused(4, job, &more);
        assert!(text.contains("is damaged"), "{text}");
    }
}

/// Long enough for several checkpoints: the tasks go on while one is written.
const LR: (&str, &str) = ("lr", "epochs=600 batch_size=25");

/// Trains with as many checkpoints as can be written, of which three are kept, and returns their folder.
fn with_checkpoints(world: &World) -> String {
    let folder = world.path("checkpoints");
    world.train(LR, "first", &["--checkpoints", &folder, "--checkpoint-every", "1ticks"]);
    folder
}

#[test]
fn a_killed_process_continues_where_its_last_checkpoint_was() {
    let world = World::new(4000);
    let job = ("lr", "epochs=200 batch_size=50");
    let whole = world.train(job, "whole", &["--checkpoint-every", "off"]);
    let words = world.words(job, "killed", &["--checkpoint-every", "10ms"]);
    let mut child =
        command(&words.iter().map(String::as_str).collect::<Vec<_>>()).spawn().expect("the binary was built");
    let folder = world.path("killed.checkpoints");
    let start = Instant::now();
    while checkpoints(&folder).len() < 2 {
        assert!(start.elapsed() < PATIENCE, "no checkpoints in {folder}");
        assert!(child.try_wait().expect("it is a child").is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it lives");
    child.wait().expect("it is a child");
    assert!(!Path::new(&world.path("killed")).exists());
    let words = world.words(job, "killed", &[]);
    let text = fail(2, &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(text.contains("--resume latest") && text.contains("another training"), "{text}");
    let resumed = world.train(job, "killed", &["--resume", "latest"]);
    assert!(resumed == whole);
    assert!(!Path::new(&folder).exists(), "they are removed with the saved model");
}

#[test]
fn a_resumed_command_needs_no_other_setting() {
    let world = World::new(1500);
    let folder = with_checkpoints(&world);
    let first = bytes_of(&world.path("first"));
    std::fs::remove_dir_all(world.path("first")).expect("the folder is ours");
    let output = seraphim(&["train", "--resume", &folder]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("continuing from checkpoint") && said.contains(", clock "), "{said}");
    assert!(bytes_of(&world.path("first")) == first);
}

#[test]
fn without_checkpoints_to_continue_from_that_is_said() {
    let world = World::new(500);
    let text = world.refused(2, LR, &["--resume", "latest"]);
    assert!(text.contains("refused.checkpoints has no complete checkpoint"), "{text}");
    let text = fail(2, &["train", "--resume", "latest"]);
    assert!(text.contains("without --model"), "{text}");
    let folder = with_checkpoints(&World::new(500));
    let text = world.refused(2, LR, &["--resume", &format!("{folder}/00000077")]);
    assert!(text.contains("no complete checkpoint") || text.contains("no checkpoint 77"), "{text}");
}

#[test]
fn other_settings_are_named() {
    let world = World::new(1500);
    let folder = with_checkpoints(&world);
    let text = world.refused(2, ("lr", "epochs=4 batch_size=25"), &["--resume", &folder, "--seed", "3"]);
    for part in ["epochs was \"600\" and is \"4\"", "seed was not set and is \"3\"", "the same settings"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn changed_data_are_named() {
    let world = World::new(1500);
    let folder = with_checkpoints(&world);
    let resume = ["--resume", folder.as_str()];
    let text = std::fs::read_to_string(&world.data).expect("it was written");
    // The same bytes written again: a notice, and the same model.
    std::fs::write(&world.data, &text).expect("the folder is ours");
    let words = world.words(LR, "again", &resume);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--quiet").collect();
    let output = seraphim(&words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("was written again since checkpoint"), "{said}");
    assert!(bytes_of(&world.path("again")) == bytes_of(&world.path("first")));
    std::fs::write(&world.data, &text[..text.len() / 2]).expect("the folder is ours");
    let text = world.refused(3, LR, &resume);
    assert!(text.contains("the data are not those") && text.contains("bytes and has"), "{text}");
}

#[test]
fn a_damaged_checkpoint_is_not_used_and_the_one_before_is() {
    let world = World::new(1500);
    let folder = with_checkpoints(&world);
    let names = checkpoints(&folder);
    let newest = Path::new(&folder).join(names.last().expect("there are some"));
    let part = std::fs::read_dir(&newest).expect("it is a folder").map_while(Result::ok);
    let part =
        part.map(|entry| entry.path()).find(|path| !path.ends_with("manifest")).expect("it has a part");
    let mut bytes = std::fs::read(&part).expect("it is a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).expect("the folder is ours");
    let text = world.refused(4, LR, &["--resume", newest.to_str().expect("names are text")]);
    assert!(text.contains("is damaged at byte") && text.contains("Use an earlier checkpoint"), "{text}");
    let text = fail(4, &["checkpoints", "verify", &folder]);
    assert!(text.contains("is damaged at byte"), "{text}");
    let words = world.words(LR, "again", &["--resume", &folder]);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--quiet").collect();
    let output = seraphim(&words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("a newer checkpoint is not used"), "{said}");
    assert!(bytes_of(&world.path("again")) == bytes_of(&world.path("first")));
}

#[test]
fn data_that_cannot_be_read_again_have_no_checkpoints() {
    let folder = Folder::new();
    let model = folder.path("model");
    let words = ["train", "lr", "--data", "-", "--format", "libsvm", "--model", &model];
    let asked = fed(&[&words[..], &["--checkpoint-every", "5s"]].concat(), &clicks(500, 1));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot be read again"), "{said}");
    let output = fed(&words, &clicks(500, 1));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the binary with this standard input.
fn fed(arguments: &[&str], input: &str) -> Output {
    let mut command = command(arguments);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the binary was built");
    // It may end without reading.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it is a child")
}

#[test]
fn a_checkpoint_that_cannot_be_written_does_not_end_the_training() {
    let world = World::new(1500);
    let folder = world.path("checkpoints");
    std::fs::create_dir(&folder).expect("the folder is ours");
    // A file is where the folder of the first checkpoint belongs.
    std::fs::write(Path::new(&folder).join("00000001"), "mine").expect("the folder is ours");
    let words = world.words(LR, "model", &["--checkpoints", &folder, "--checkpoint-every", "1ticks"]);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--quiet").collect();
    let output = seraphim(&words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("a checkpoint could not be written, training goes on without it"), "{said}");
    assert!(said.contains("00000001"), "{said}");
    assert!(!checkpoints(&folder).is_empty(), "the later ones were written");
    let whole = world.train(LR, "whole", &["--checkpoint-every", "off"]);
    assert!(bytes_of(&world.path("model")) == whole);
}

#[test]
fn two_trainings_do_not_share_a_folder() {
    let world = World::new(1500);
    let folder = with_checkpoints(&world);
    let more = ["--checkpoints", folder.as_str(), "--checkpoint-every", "1ticks"];
    let text = world.refused(2, LR, &more);
    assert!(text.contains("the checkpoints of another training") && text.contains("first"), "{text}");
    assert_eq!(checkpoints(&folder).len(), 3, "they are all there");
    world.train(LR, "other", &[&more[..], &["--overwrite"]].concat());
    let list = succeed(&["checkpoints", "list", &folder]);
    assert!(list.contains("other of lr"), "{list}");
}

#[test]
fn checkpoints_are_listed_verified_and_removed() {
    let world = World::new(1500);
    let folder = with_checkpoints(&world);
    let list = succeed(&["checkpoints", "list", &folder]);
    assert!(list.contains("first of lr"), "{list}");
    // In which epoch the last ones were written depends on how fast the machine is.
    let described =
        |line: &&str| line.contains(" epoch ") && line.contains(", clock ") && line.contains(", 3 tasks, ");
    assert_eq!(list.lines().filter(described).count(), 3, "{list}");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(&["checkpoints", "list", &folder, "--json"])).expect("it is JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(3), "{json}");
    let verified = succeed(&["checkpoints", "verify", &folder]);
    assert_eq!(verified.matches("whole: 3 states").count(), 3, "{verified}");
    let pruned = succeed(&["checkpoints", "prune", &folder, "--keep", "1"]);
    assert!(pruned.contains("removed 2 checkpoints"), "{pruned}");
    assert_eq!(checkpoints(&folder).len(), 1);
    let text = fail(2, &["checkpoints", "list", &world.path("nothing")]);
    assert!(text.contains("nothing has no complete checkpoint"), "{text}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_training_keeps_its_checkpoints_and_continues_exactly() {
    let world = World::new(4000);
    let job = ("lr", "epochs=200 batch_size=50");
    let whole = world.train(job, "whole", &["--checkpoint-every", "off"]);
    let words = world.words(job, "model", &["--checkpoint-every", "10ms"]);
    let mut child =
        command(&words.iter().map(String::as_str).collect::<Vec<_>>()).spawn().expect("the binary was built");
    let folder = world.path("model.checkpoints");
    let start = Instant::now();
    while checkpoints(&folder).is_empty() {
        assert!(start.elapsed() < PATIENCE, "no checkpoints in {folder}");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill is on every system");
    assert_eq!(child.wait().expect("it is a child").code(), Some(130));
    assert!(!checkpoints(&folder).is_empty());
    let resumed = world.train(job, "model", &["--resume", "latest", "--overwrite"]);
    assert!(resumed == whole);
}
