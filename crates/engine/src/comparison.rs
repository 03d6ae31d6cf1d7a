//! How a model that was trained again differs from the one before: the bytes of its files, and what the manifests say.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use driver::amounts::counted;
use model::manifest::{self, DataDigest};
use runtime::worker::data_files::SAMPLED_BYTES;
use serde_json::Value;

use driver::Error;

/// What the manifests of two trainings of one model need not have in common: where the data lie, which version wrote it, and
/// checksums of what is compared itself.
const NOT_COMPARED: [&str; 7] = [
    "program_version",
    "crc32c",
    "files",
    "trained.data",
    "trained.validate",
    "trained.from",
    "trained.files.name",
];
/// Most differences of manifests that are told.
const TOLD_LIMIT: usize = 20;

/// How the data differ from those of the model, a line each. Then nothing is trained.
pub(crate) fn data_changes(before: &[DataDigest], now: &[DataDigest]) -> Vec<String> {
    let changed = before.iter().zip(now).filter(|(then, now)| then.digest != now.digest);
    let mut lines: Vec<String> = changed
        .map(|(then, now)| {
            let (name, size, now_name, now_size) = (&then.name, then.size_bytes, &now.name, now.size_bytes);
            format!("the data differ: {name} of {size} bytes then, {now_name} of {now_size} bytes now")
        })
        .collect();
    if before.len() != now.len() {
        let then = counted(before.len() as u64, "file");
        lines.push(format!("the data differ: {then} then, {} now", now.len()));
    }
    lines
}

/// How the model in `output`, which was trained again, differs from the one at `path`, a line each. What may explain the
/// differences comes first.
pub(crate) fn differences(
    (path, before): (&Path, &model::Manifest),
    output: &Path,
) -> Result<Vec<String>, Error> {
    let now = model::read_manifest(output)?;
    let mut lines = Vec::new();
    for file in &before.files {
        if !now.files.iter().any(|other| other.name == file.name) {
            lines.push(format!("{} is missing", file.name));
        } else if let Some(at) = first_difference(&path.join(&file.name), &output.join(&file.name))? {
            let place = tensor_at(&path.join(&file.name), at).map_or_else(
                || format!("byte {at}"),
                |tensor| format!("tensor {tensor}, at byte {at} of the file"),
            );
            lines.push(format!("{} has other bytes, the first of them in {place}", file.name));
        }
    }
    let added = now.files.iter().filter(|file| !before.files.iter().any(|other| other.name == file.name));
    lines.extend(added.map(|file| format!("{} was not there before", file.name)));
    lines.extend(manifest_differences(&statements(path)?, &statements(output)?));
    if lines.is_empty() {
        return Ok(lines);
    }
    Ok([explanations(before, &now), lines].concat())
}

/// What may explain that two models differ, a line each.
fn explanations(before: &model::Manifest, now: &model::Manifest) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(version_difference(before));
    if before.trained.consistency != "bsp" && before.trained.tasks > 1 {
        lines.push(format!(
            "it was trained under {} with {} tasks: its bytes depend on when they pushed",
            before.trained.consistency, before.trained.tasks
        ));
    }
    let sampled: Vec<&str> = now
        .trained
        .files
        .iter()
        .filter(|file| file.size_bytes > SAMPLED_BYTES)
        .map(|file| file.name.as_str())
        .collect();
    if !sampled.is_empty() {
        lines.push(format!(
            "the data may differ: of files above {} MiB only samples are compared, and what changes between them is not \
             noticed ({})",
            SAMPLED_BYTES >> 20,
            sampled.join(", ")
        ));
    }
    lines
}

/// Tells that another version has trained a model.
pub(crate) fn version_difference(before: &model::Manifest) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    (before.program_version != own)
        .then(|| format!("version {} trained it, this is {own}", before.program_version))
}

/// The position of the first byte in which two files differ.
fn first_difference(a: &Path, b: &Path) -> Result<Option<u64>, Error> {
    const BLOCK_BYTES: u64 = 1 << 20;
    let open = |path: &Path| std::fs::File::open(path).map_err(Error::io("read", path));
    let (mut first, mut second) = (open(a)?, open(b)?);
    let (mut left, mut right, mut start) = (Vec::new(), Vec::new(), 0);
    loop {
        left.clear();
        right.clear();
        (&mut first).take(BLOCK_BYTES).read_to_end(&mut left).map_err(Error::io("read", a))?;
        (&mut second).take(BLOCK_BYTES).read_to_end(&mut right).map_err(Error::io("read", b))?;
        if left != right {
            let same = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
            return Ok(Some(start + same as u64));
        }
        if left.is_empty() {
            return Ok(None);
        }
        start += left.len() as u64;
    }
}

/// The name of the tensor at a byte of a safetensors file.
fn tensor_at(path: &Path, at: u64) -> Option<String> {
    let mut file = std::fs::File::open(path)
        .ok()
        .filter(|_| path.extension().is_some_and(|end| end == "safetensors"))?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    let position = at.checked_sub(8 + length)?;
    let is_there = |tensor: &Value| {
        let offset = |index: usize| tensor["data_offsets"][index].as_u64();
        offset(0).is_some_and(|start| start <= position) && offset(1).is_some_and(|end| position < end)
    };
    header.as_object()?.iter().find(|(_, tensor)| is_there(tensor)).map(|(name, _)| name.clone())
}

/// What the manifest of a model says, each value by its name, without what is not compared.
fn statements(model: &Path) -> Result<BTreeMap<String, String>, Error> {
    let path = model.join(manifest::FILE_NAME);
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    let mut statements = BTreeMap::new();
    // It was read as a manifest before.
    add_statements("", "", &serde_json::from_slice(&bytes).unwrap_or_default(), &mut statements);
    Ok(statements)
}

/// `kind` is the name without positions in lists.
fn add_statements(name: &str, kind: &str, value: &Value, statements: &mut BTreeMap<String, String>) {
    if NOT_COMPARED.contains(&kind) {
        return;
    }
    let below =
        |name: &str, key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| {
                add_statements(&below(name, key), &below(kind, key), value, statements);
            });
        }
        Value::Array(items) => {
            let named = |i: usize| format!("{name}[{i}]");
            items
                .iter()
                .enumerate()
                .for_each(|(i, value)| add_statements(&named(i), kind, value, statements));
        }
        value => drop(statements.insert(name.to_owned(), value.to_string())),
    }
}

/// A line for each value in which the manifests differ.
fn manifest_differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let text = |value: Option<&String>| value.map_or("absent", String::as_str).to_owned();
    let mut lines: Vec<String> = names
        .into_iter()
        .filter(|name| before.get(*name) != now.get(*name))
        .map(|name| {
            format!("model.json: {name} was {}, and is {}", text(before.get(name)), text(now.get(name)))
        })
        .collect();
    let more = lines.len().saturating_sub(TOLD_LIMIT);
    if more > 0 {
        lines.truncate(TOLD_LIMIT);
        lines.push(format!("model.json: {more} more values differ"));
    }
    lines
}
