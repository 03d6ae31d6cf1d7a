//! Decides for all commands whether a command may write to a path. A command never overwrites its own input, never
//! writes into a model, and overwrites an existing file only with `--overwrite` and only when the file is an earlier
//! output of the same kind.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use driver::Error;
use driver::report::Report;
use job::TrainJob;
use model::manifest;
use store::TempOutputs;
use store::file_identity::{self, FileIdentity};

/// Bytes at either end of a file that are inspected to recognize what wrote the file.
const SNIFF_BYTES: u64 = 64 << 10;

/// The kind of a file that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind<'a> {
    /// Scores of `predict`, with these columns.
    Scores(&'a [&'a str]),
    /// The report of `train`.
    Report,
    /// Data of `generate`.
    Generated,
    /// A table of `export`.
    Table,
    /// A whole model as a text, by `export`.
    ModelText,
}

impl OutputKind<'_> {
    fn noun(self) -> &'static str {
        match self {
            Self::Scores(_) => "a file of scores",
            Self::Report => "a report",
            Self::Generated => "a file of an earlier `generate`",
            Self::Table => "a table of an earlier `export`",
            Self::ModelText => "a text of an earlier `export`",
        }
    }

    /// Whether the file at `path` looks like an earlier output of this kind.
    fn recognizes(self, path: &Path) -> bool {
        match self {
            // The earlier scores may be those of another kind of model.
            Self::Scores(names) => head_and_tail(path).is_ok_and(|(start, end)| {
                let header = String::from_utf8_lossy(&start);
                let line = header.lines().next().unwrap_or_default();
                let fields: Vec<&str> =
                    line.split([',', '\t']).map(|field| field.trim().trim_matches('"')).collect();
                let in_parquet = |name: &str| end.windows(name.len()).any(|window| window == name.as_bytes());
                let is_parquet = start.starts_with(b"PAR1");
                let has = |name: &str| if is_parquet { in_parquet(name) } else { fields.contains(&name) };
                let is_explanation = ["expected_value", "tree_0"]
                    .iter()
                    .any(|name| if is_parquet { in_parquet(name) } else { line.contains(name) });
                has("score") || has("predicted") || is_explanation || names.iter().all(|name| has(name))
            }),
            Self::Table => head_and_tail(path).is_ok_and(|(start, end)| {
                let in_parquet = |name: &[u8]| end.windows(name.len()).any(|window| window == name);
                if start.starts_with(b"PAR1") {
                    // The footer has the name of a column behind its length.
                    return in_parquet(b"\x07feature") || in_parquet(b"\x03row");
                }
                [&b"feature,key,"[..], b"row,"].iter().any(|head| start.starts_with(head))
            }),
            Self::ModelText => head_and_tail(path).is_ok_and(|(start, _)| {
                let heads =
                    [&b"tree\nversion="[..], b"tree ", b"digraph tree_", b"scores before the first tree"];
                heads.iter().any(|head| start.starts_with(head))
            }),
            Self::Report => json_of(path).is_some_and(|value| {
                ["program_version", "algorithm", "epochs"].iter().all(|name| value.get(name).is_some())
            }),
            Self::Generated => json_of(&path.with_file_name(GENERATED_META))
                .is_some_and(|value| value.get("generator").is_some_and(serde_json::Value::is_string)),
        }
    }
}

/// The file in which `generate` describes the data that it wrote.
pub const GENERATED_META: &str = "meta.json";

/// Returns the first and the last bytes of a file.
fn head_and_tail(path: &Path) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    if let Some(address) = store::address(path) {
        let (store, name) = store::open_folder_of(address).map_err(std::io::Error::other)?;
        let facts = store.facts(name).map_err(std::io::Error::other)?;
        let size = facts.size_bytes;
        let read = |range: Range<u64>| {
            let mut bytes = Vec::new();
            let mut file = store.open_range(name, &facts, range).map_err(std::io::Error::other)?;
            file.read_to_end(&mut bytes).map(|_| bytes)
        };
        return Ok((read(0..size.min(SNIFF_BYTES))?, read(size.saturating_sub(SNIFF_BYTES)..size)?));
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let (mut start, mut end) = (Vec::new(), Vec::new());
    (&mut file).take(SNIFF_BYTES).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(size.saturating_sub(SNIFF_BYTES)))?;
    file.take(SNIFF_BYTES).read_to_end(&mut end)?;
    Ok((start, end))
}

fn json_of(path: &Path) -> Option<serde_json::Value> {
    if let Some(address) = store::address(path) {
        let (store, name) = store::open_folder_of(address).ok()?;
        return serde_json::from_slice(&store.read(name).ok()?).ok();
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// The inputs of a command, and whether the command may replace earlier outputs.
#[derive(Debug)]
pub struct Outputs {
    overwrite: bool,
    inputs: Vec<(FileIdentity, PathBuf)>,
    models: Vec<(FileIdentity, PathBuf)>,
}

impl Outputs {
    /// For a command that reads nothing.
    pub fn new(overwrite: bool) -> Self {
        Self { overwrite, inputs: Vec::new(), models: Vec::new() }
    }

    /// Adds the files that these inputs name to what the command reads.
    #[must_use]
    pub fn with_inputs(mut self, inputs: &[String]) -> Self {
        let named = data::input_paths(inputs).into_iter();
        self.inputs.extend(named.map(|path| (FileIdentity::of(&path), path)));
        self
    }

    /// Adds a model that the command reads or writes.
    #[must_use]
    pub fn with_model(mut self, path: &Path) -> Self {
        self.models.push((FileIdentity::of(path), path.into()));
        self
    }

    /// Checks that the command may write a folder of parts to `path`, which `flag` sets. Only a folder that is empty, or
    /// with `--overwrite` one that has nothing but parts of the same kind, is replaced.
    pub fn check_folder(&self, flag: &str, path: &Path, kind: OutputKind<'_>) -> Result<(), Error> {
        let shown = path.display();
        let advice = || format!("choose another {flag}");
        let identity = FileIdentity::of(path);
        let read = self.inputs.iter().chain(&self.models);
        if let Some((_, read)) =
            read.clone().find(|(read, _)| read.is_same(&identity) || read.is_inside(&identity))
        {
            let what = format!("{flag} {shown} would replace {}, which is read", read.display());
            return Err(Error::request(what, advice()));
        }
        if let Some(model) = self.enclosing_model(&identity, path) {
            let what = format!("{flag} {shown} lies inside the model {}", model.display());
            return Err(Error::request(what, advice()));
        }
        if path.exists() && !path.is_dir() {
            return Err(Error::request(format!("{shown} is a file, not a folder"), advice()));
        }
        let files = files_of(path)?;
        if !files.is_empty() && !self.overwrite {
            return Err(Error::FileExists { path: path.into(), flag: flag.into() });
        }
        if let Some(other) = files.iter().find(|file| !is_part(file) || !kind.recognizes(file)) {
            let what = format!(
                "{} is no part of {}, so --overwrite does not replace {shown}",
                other.display(),
                kind.noun()
            );
            return Err(Error::request(what, format!("choose another {flag}, or remove the folder")));
        }
        Ok(())
    }

    /// Checks that the command may write a file to `path`, which `flag` sets.
    pub fn check_file(&self, flag: &str, path: &Path, kind: OutputKind<'_>) -> Result<(), Error> {
        let shown = path.display();
        if path.is_dir() {
            let advice = format!("name a file for {flag}");
            return Err(Error::request(format!("{shown} is a folder"), advice));
        }
        if let Some(address) = store::address(path) {
            return self.check_stored_file(flag, address, kind);
        }
        let there = std::fs::metadata(path).ok();
        if there.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            // The path is a device or a pipe, where no data can be lost.
            return Ok(());
        }
        let identity = FileIdentity::of(path);
        if let Some((_, input)) = self.inputs.iter().find(|(input, _)| input.is_same(&identity)) {
            let what = format!("{flag} {shown} would replace {}, which is read", input.display());
            return Err(Error::request(what, format!("choose another {flag}")));
        }
        if let Some((_, model)) = self.models.iter().find(|(model, _)| identity.is_same(model)) {
            let what = format!("{flag} {shown} is the folder of the model {}", model.display());
            return Err(Error::request(what, format!("choose another {flag}")));
        }
        if let Some(model) = self.enclosing_model(&identity, path) {
            let what = format!("{flag} {shown} lies inside the model {}", model.display());
            return Err(Error::request(what, format!("choose another {flag}")));
        }
        let is_taken = there.is_some_and(|metadata| metadata.len() > 0);
        if is_taken && !self.overwrite {
            return Err(Error::FileExists { path: path.into(), flag: flag.into() });
        }
        if is_taken && !kind.recognizes(path) {
            let what = format!("{shown} is not {}, so --overwrite does not replace it", kind.noun());
            return Err(Error::request(what, format!("choose another {flag}, or remove the file")));
        }
        Ok(())
    }

    /// Checks that the command may and can write a file to a store.
    fn check_stored_file(&self, flag: &str, address: &str, kind: OutputKind<'_>) -> Result<(), Error> {
        let (store, name) = store::open_folder_of(address).map_err(model::Error::from)?;
        let path = Path::new(address);
        match store.facts(name) {
            Ok(facts) if facts.size_bytes > 0 && !self.overwrite => {
                Err(Error::FileExists { path: path.into(), flag: flag.into() })
            }
            Ok(facts) if facts.size_bytes > 0 && !kind.recognizes(path) => {
                let what = format!("{address} is not {}, so --overwrite does not replace it", kind.noun());
                Err(Error::request(what, format!("choose another {flag}, or remove the file")))
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => {
                let trial = format!("trial-{}", std::process::id());
                let tried = store.create_new(&trial, b"").and_then(|_| store.remove(&trial));
                Ok(tried.map_err(model::Error::from)?)
            }
            Err(error) => Err(model::Error::from(error).into()),
        }
    }

    /// Checks that the command may and can write a model to `path`: see [`model::check_target`].
    pub fn check_model(&self, flag: &str, path: &Path) -> Result<(), Error> {
        let identity = FileIdentity::of(path);
        let shown = path.display();
        let advice = || format!("choose another {flag}");
        if let Some((_, input)) = self.inputs.iter().find(|(input, _)| input.is_same(&identity)) {
            let what = format!("{flag} {shown} would replace {}, which is read", input.display());
            return Err(Error::request(what, advice()));
        }
        if let Some((_, input)) = self.inputs.iter().find(|(input, _)| input.is_inside(&identity)) {
            let what = format!("{flag} {shown} contains {}, which is read", input.display());
            return Err(Error::request(what, advice()));
        }
        let above = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(model) =
            above.and_then(|above| self.enclosing_model(&identity, &above.join(manifest::FILE_NAME)))
        {
            let what = format!("{flag} {shown} lies inside the model {}", model.display());
            return Err(Error::request(what, advice()));
        }
        Ok(model::check_target(path, self.overwrite)?)
    }

    /// Returns the model that contains a path: a model of this command, or any other.
    fn enclosing_model(&self, identity: &FileIdentity, path: &Path) -> Option<PathBuf> {
        let own = self.models.iter().find(|(model, _)| identity.is_inside(model));
        own.map(|(_, path)| path.clone()).or_else(|| {
            let folder = file_identity::folder_of(path);
            model::is_model(folder).then(|| folder.to_owned())
        })
    }
}

/// Returns a function that moves a finished file to its target. It keeps a file that has appeared there since the
/// check, unless `overwrite` is set.
pub fn put_file(overwrite: bool) -> impl FnOnce(&Path, &Path) -> Result<(), Error> {
    move |from, to| {
        if let Some(address) = store::address(to) {
            let (store, name) = store::open_folder_of(address).map_err(model::Error::from)?;
            return Ok(store::upload(from, &*store, name).map_err(model::Error::from)?);
        }
        let is_empty = std::fs::metadata(to).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0);
        let put = if overwrite || is_empty {
            std::fs::rename(from, to)
        } else {
            file_identity::rename_no_replace(from, to)
        };
        put.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::FileExists { path: to.into(), flag: "--output".into() }
            }
            _ => Error::io("write", to)(error),
        })
    }
}

/// What lies in a folder; nothing if there is none.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let Some(address) = store::address(folder) else {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        return Ok(entries.map(|entry| entry.path()).collect());
    };
    let listed = store::open(address).and_then(|store| store.list("")).map_err(model::Error::Store)?;
    Ok(listed.into_iter().map(|entry| folder.join(entry.name)).collect())
}

/// Whether a file has the name of a part of an output.
fn is_part(file: &Path) -> bool {
    (file.is_file() || store::address(file).is_some())
        && file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("part-"))
}

/// Copies a folder of parts to an address, and removes what earlier parts are there.
fn upload_parts(from: &Path, address: &str) -> Result<(), Error> {
    let store = store::open(address).map_err(model::Error::Store)?;
    for entry in store.list("").map_err(model::Error::Store)? {
        store.remove(&entry.name).map_err(model::Error::Store)?;
    }
    Ok(store::upload_folder(from, &*store).map_err(model::Error::Store)?)
}

/// Returns a function that moves a finished folder of parts to its target. It keeps what has appeared there since the
/// check, unless `overwrite` is set and it has nothing but parts.
pub fn put_folder(overwrite: bool) -> impl FnOnce(&Path, &Path) -> Result<(), Error> {
    move |from, to| {
        if let Some(address) = store::address(to) {
            return upload_parts(from, address);
        }
        let mut entries = std::fs::read_dir(to).into_iter().flatten().filter_map(Result::ok);
        if overwrite && to.is_dir() && entries.all(|entry| is_part(&entry.path())) {
            // Then the temporary output is the old folder, which its owner removes.
            if file_identity::exchange(from, to).map_err(Error::io("replace", to))? {
                return Ok(());
            }
            std::fs::remove_dir_all(to).map_err(Error::io("replace", to))?;
        }
        // An empty folder is replaced, and nothing else.
        std::fs::rename(from, to).map_err(|error| match error.kind() {
            std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::NotADirectory => {
                Error::FileExists { path: to.into(), flag: "--output".into() }
            }
            _ => Error::io("write", to)(error),
        })
    }
}

/// Checks before the work that a file can be written, and leaves nothing behind.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    if store::address(path).is_some() {
        // To check the file has tried that.
        return Ok(());
    }
    if file_identity::is_special(path) {
        return std::fs::OpenOptions::new()
            .append(true)
            .open(path)
            .map(drop)
            .map_err(Error::io("write", path));
    }
    // The file is written beside its place and then moved there.
    let trial = TempOutputs::default().temp_output(&file_identity::resolve_link(path));
    File::create(trial.path()).map(drop).map_err(Error::io("write", path))
}

/// Checks before any work that the job may write its outputs.
pub fn check_outputs(job: &TrainJob) -> Result<(), Error> {
    outputs_of(job).check_model("--model", &job.model)?;
    check_report(job)
}

/// Checks only the report: the model may be written on another machine.
pub fn check_report(job: &TrainJob) -> Result<(), Error> {
    let Some(report) = &job.report else { return Ok(()) };
    let models = [&job.model].into_iter().chain(&job.from);
    let outputs = models.fold(outputs_of(job), |outputs, model| outputs.with_model(model));
    outputs.check_file("--report", report, OutputKind::Report)?;
    check_writable(report)
}

fn outputs_of(job: &TrainJob) -> Outputs {
    Outputs::new(job.overwrite).with_inputs(&job.input.data).with_inputs(&job.validate)
}

/// Writes the report of a training as JSON. It is in its place when it is whole.
pub fn write_report(report: &Report, path: &Path) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(report).expect("strings, numbers and lists are always JSON");
    if file_identity::is_special(path) {
        return std::fs::write(path, text + "\n").map_err(Error::io("write", path));
    }
    let output = TempOutputs::default().temp_output(&file_identity::resolve_link(path));
    std::fs::write(output.path(), text + "\n").map_err(Error::io("write", output.shown()))?;
    output.persist(put_file(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, impl Fn(&str, &str) -> PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        (folder, move |name: &str, content: &str| {
            let file = path.join(name);
            std::fs::write(&file, content).unwrap();
            file
        })
    }

    fn refusal(outputs: &Outputs, path: &Path, kind: OutputKind<'_>) -> String {
        outputs.check_file("--output", path, kind).unwrap_err().to_string()
    }

    #[test]
    fn what_is_read_is_never_written_over_under_whatever_name() {
        let (_folder, file) = folder();
        let data = file("data.csv", "label,score\n1,0.5\n");
        let names = [String::from(data.to_str().unwrap())];
        let outputs = Outputs::new(true).with_inputs(&names);
        let mut others = vec![data.clone(), data.parent().unwrap().join("./data.csv")];
        let hard = data.with_file_name("hard.csv");
        std::fs::hard_link(&data, &hard).unwrap();
        others.push(hard);
        #[cfg(unix)]
        {
            let soft = data.with_file_name("soft.csv");
            std::os::unix::fs::symlink(&data, &soft).unwrap();
            others.push(soft);
        }
        for path in others {
            assert!(
                refusal(&outputs, &path, OutputKind::Scores(&["score"])).contains("which is read"),
                "{}",
                path.display()
            );
        }
    }

    #[test]
    fn a_folder_of_parts_is_replaced_only_by_parts_and_only_when_that_is_asked_for() {
        let (folder, _) = folder();
        let (to, kind) = (folder.path().join("scores"), OutputKind::Scores(&["score"]));
        let write = |folder: &Path, name: &str, score: &str| {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(name), format!("label,score\n1,{score}\n")).unwrap();
        };
        let outputs = [false, true].map(Outputs::new);
        let put = |overwrite: bool, score: &str| {
            let from = folder.path().join("new");
            write(&from, "part-00000.csv", score);
            let put = put_folder(overwrite)(&from, &to);
            let _ = std::fs::remove_dir_all(&from);
            put
        };
        let content = || std::fs::read_to_string(to.join("part-00000.csv")).unwrap();
        for outputs in &outputs {
            outputs.check_folder("--output", &to, kind).unwrap();
        }
        put(false, "1").unwrap();
        assert!(matches!(put(false, "2"), Err(Error::FileExists { .. })));
        assert!(outputs[0].check_folder("--output", &to, kind).is_err() && content().contains(",1"));
        outputs[1].check_folder("--output", &to, kind).unwrap();
        put(true, "3").unwrap();
        assert!(content().contains(",3"));
        write(&to, "thesis.csv", "4");
        assert!(
            outputs[1].check_folder("--output", &to, kind).unwrap_err().to_string().contains("thesis.csv")
        );
        assert!(matches!(put(true, "5"), Err(Error::FileExists { .. })));
        assert!(content().contains(",3"));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(outputs[1].check_folder("--output", &file, kind).is_err());
    }

    #[test]
    fn an_earlier_output_of_the_same_kind_is_replaced_when_that_is_asked_for() {
        let (_folder, file) = folder();
        let scores = file("scores.csv", "label,score\n1,0.5\n");
        let report = file("run.json", r#"{"program_version": "1", "algorithm": "lr", "epochs": []}"#);
        let thesis = file("thesis.csv", "chapter,words\n1,9000\n");
        let empty = file("empty", "");
        let (plain, overwrite) = (Outputs::new(false), Outputs::new(true));
        for (path, kind, other) in [
            (&scores, OutputKind::Scores(&["score"]), OutputKind::Report),
            (&report, OutputKind::Report, OutputKind::Scores(&["score"])),
        ] {
            assert!(refusal(&plain, path, kind).contains("--overwrite"));
            overwrite.check_file("--output", path, kind).unwrap();
            assert!(refusal(&overwrite, path, other).contains("does not replace it"));
        }
        assert!(
            refusal(&overwrite, &thesis, OutputKind::Scores(&["score"])).contains("is not a file of scores")
        );
        plain.check_file("--output", &empty, OutputKind::Scores(&["score"])).unwrap();
        plain.check_file("--output", &empty.with_file_name("new"), OutputKind::Scores(&["score"])).unwrap();
    }
}
