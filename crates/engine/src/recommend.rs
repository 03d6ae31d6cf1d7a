//! `recommend`: the best items for users, the items most similar to others, and how well the best items meet those that users
//! have chosen later. The model is read into this process.

mod list_writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use algo::Families;
use data::{Batch, InputPurpose, KeyNames, Schema, Source};
use driver::Error;
use job::Input;
use list_writer::{ListWriter, Lists};
use math::hash::named_key;
use matrix::{ElementType, OwnedValues, RowBlock};
use model::ModelReader;
use recommend::ranking::{DEFINITIONS, RankingQuality};
use recommend::top::{Basis, Items, KeyedRows, Recommendation, Recommender, Request};
use recommend::{FactorModel, NeighborModel, interactions_of};
use runtime::input::source_config;
use runtime::outputs::{OutputKind, Outputs};
use runtime::{Environment, load_model, outputs};
use serde::{Deserialize, Serialize};
use store::TempOutput;

/// Users whose lists are found before they are written.
const WRITTEN_AT_ONCE: usize = 4096;
/// Records that are read at once.
const READ_SIZE: usize = 4096;
/// The columns of the output.
pub const COLUMNS: [&str; 4] = ["user", "item", "rank", "score"];
/// Those of similar items.
const SIMILAR_COLUMNS: [&str; 4] = ["item", "similar", "rank", "similarity"];

/// What `recommend` does.
#[derive(Clone, Debug)]
pub struct RecommendJob {
    pub model: PathBuf,
    pub subjects: Subjects,
    /// Length of a list.
    pub top: usize,
    /// A file of lines with the names of the items that may be recommended; none: all.
    pub items: Option<PathBuf>,
    /// Whether items that a user has already may be recommended.
    pub keeps_seen: bool,
    /// What users have besides the training data, and what new users have.
    pub seen: Option<Input>,
    /// What users have chosen later.
    pub test: Option<Input>,
    /// `-` is standard output; none: only metrics.
    pub output: Option<PathBuf>,
    pub overwrite: bool,
    pub threads: usize,
}

/// For whom, or for what, items are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// All users of the model; with a test, those that have items there.
    All,
    /// A file of lines with names of users.
    Users(PathBuf),
    /// A file of lines with names of items: similar items are found.
    SimilarTo(PathBuf),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecommendSummary {
    /// Users, or items with similar ones.
    pub lists: u64,
    pub output: Option<String>,
    /// Users with rows that were computed from what they have.
    pub folded_in: u64,
    /// Users that are not in the model and have nothing: they got the most popular items.
    pub popular: u64,
    pub quality: Option<RankingQuality>,
    /// The same of the most popular items for everybody.
    pub most_popular: Option<RankingQuality>,
    pub definitions: Option<String>,
    pub notices: Vec<String>,
}

/// A recommender that was read from a model directory, with the names of users and items.
#[derive(Debug)]
pub struct LoadedRecommender {
    engine: Recommender,
    are_ratings: bool,
    /// What users had in training.
    seen: UserItems,
    schema: Schema,
    names: KeyNames,
}

impl LoadedRecommender {
    /// Reads a model. Only items whose keys are among `allowed` (ascending) are recommended; none: all.
    ///
    /// # Errors
    /// If the model is none of users and items.
    pub fn read(
        mut files: ModelReader,
        families: &Families,
        allowed: Option<&[String]>,
    ) -> Result<Self, Error> {
        let model = load_model(&files.path, &files.manifest, families)?;
        let algorithm = files.manifest.algorithm.clone();
        let (schema, names) = (files.manifest.schema.clone(), files.dictionary()?);
        let allowed: Option<BTreeSet<u64>> =
            allowed.map(|names| names.iter().map(|name| key_of(&schema, 1, name)).collect());
        let is_allowed = |key: u64| allowed.as_ref().is_none_or(|keys| keys.contains(&key));
        let counts: BTreeMap<u64, i64> = each(&mut files, "counts")?
            .into_iter()
            .flat_map(|block| match block.values {
                OwnedValues::I64(values) => block.keys.into_iter().zip(values).collect::<Vec<_>>(),
                _ => Vec::new(),
            })
            .collect();
        let items =
            |keys: Vec<u64>| Items::new(keys, |key| counts.get(&key).copied().unwrap_or(0), is_allowed);
        let seen = UserItems::new(lists(&mut files, "seen")?);
        let (engine, are_ratings) = if let Ok(own) = model.of::<FactorModel>() {
            let (users, rows) = (rows(&mut files, "users")?, rows(&mut files, "items")?);
            let scale = each(&mut files, "scale")?.into_iter().find_map(|block| match block.values {
                OwnedValues::F64(values) => <[f64; 3]>::try_from(values).ok(),
                _ => None,
            });
            let objective = own.objective.map(|objective| {
                let pairs = seen.block.entries().len() as u64;
                objective.resolve(pairs, users.keys.len() as u64, rows.keys.len() as u64)
            });
            let items = (items(rows.keys), scale.unwrap_or_default());
            (Recommender::of_factors(own, users, &rows.values, items, objective), own.are_ratings)
        } else if model.of::<NeighborModel>().is_ok() {
            let neighbors = lists(&mut files, "neighbors")?;
            let items = items(counts.keys().copied().collect());
            (Recommender::of_neighbors(seen.block.keys.clone(), &neighbors, items), false)
        } else {
            return Err(Error::request(
                format!("{} is a model of {algorithm}, which has no users and items", files.path.display()),
                "train als, ials or another recommender",
            ));
        };
        Ok(Self { engine, are_ratings, seen, schema, names })
    }

    /// What is asked for a user: its items in the model and these further ones (ascending) are left out, unless it keeps them.
    fn request(&self, user: u64, more: &[(u64, f32)], keeps_seen: bool) -> Request {
        let mut choices = self.seen.of(user);
        choices.extend_from_slice(more);
        choices.sort_by_key(|(item, _)| *item);
        choices.dedup_by_key(|(item, _)| *item);
        let seen = choices.iter().map(|(item, _)| *item);
        Request { user, seen: if keeps_seen { Vec::new() } else { seen.collect() }, choices }
    }

    /// The n best items of each user that it does not have, best first, with their scores. Users that the model does not have get the most popular
    /// items.
    pub fn recommend(&self, users: &[&str], n: usize) -> Result<Vec<Vec<(String, f64)>>, Error> {
        let request = |user: &&str| self.request(key_of(&self.schema, 0, user), &[], false);
        let requests: Vec<Request> = users.iter().map(request).collect();
        let threads = runtime::machine::core_count();
        let lists = self.engine.recommend(&requests, n, threads)?;
        Ok(lists.into_iter().map(|(_, list)| self.named(&list).collect()).collect())
    }

    /// The n items that are most similar to each of these, best first, with the cosine of their factors.
    pub fn similar(&self, items: &[&str], n: usize) -> Vec<Vec<(String, f64)>> {
        let keys: Vec<u64> = items.iter().map(|item| key_of(&self.schema, 1, item)).collect();
        self.engine.similar(&keys, n).iter().map(|list| self.named(list).collect()).collect()
    }

    fn named<'a>(&'a self, list: &'a [Recommendation]) -> impl Iterator<Item = (String, f64)> + 'a {
        list.iter().map(|one| (name_of(&self.schema, &self.names, 1, one.item), one.score))
    }
}

/// The items of users.
#[derive(Debug)]
struct UserItems {
    block: RowBlock,
    /// For each user the end of its entries.
    ends: Vec<usize>,
}

impl UserItems {
    fn new(block: RowBlock) -> Self {
        let ends = block.rows().map(|(_, range)| range.end).collect();
        Self { block, ends }
    }

    /// The items of a user, ascending, with their values.
    fn of(&self, user: u64) -> Vec<(u64, f32)> {
        let Ok(at) = self.block.keys.binary_search(&user) else { return Vec::new() };
        let range = if at == 0 { 0 } else { self.ends[at - 1] }..self.ends[at];
        let OwnedValues::F32(values) = &self.block.values else { unreachable!("the lists have such values") };
        self.block.entries()[range.clone()].iter().copied().zip(values[range].iter().copied()).collect()
    }
}

/// All blocks of a matrix; none if the model has no such matrix.
fn each(files: &mut ModelReader, name: &str) -> Result<Vec<RowBlock>, Error> {
    let Some(at) = files.manifest.matrices.iter().position(|entry| entry.name == name) else {
        return Ok(Vec::new());
    };
    let (mut blocks, mut key) = (Vec::new(), 0);
    loop {
        let block = files.rows_from(at, key)?;
        let Some(last) = block.keys.last() else { return Ok(blocks) };
        key = last + 1;
        blocks.push(block);
    }
}

/// The lists of a matrix.
fn lists(files: &mut ModelReader, name: &str) -> Result<RowBlock, Error> {
    let mut all = RowBlock::no_lists(ElementType::F32);
    for block in each(files, name)? {
        let OwnedValues::F32(values) = &block.values else { continue };
        for (key, range) in block.rows() {
            all.push_list(key, &block.entries()[range.clone()], &values[range]);
        }
    }
    Ok(all)
}

fn rows(files: &mut ModelReader, name: &str) -> Result<KeyedRows, Error> {
    let mut rows = KeyedRows::default();
    for block in each(files, name)? {
        rows.keys.extend(block.keys);
        if let OwnedValues::F32(values) = block.values {
            rows.values.extend(values);
        }
    }
    Ok(rows)
}

/// The key of a user (side 0) or an item (side 1) with this name.
fn key_of(schema: &Schema, side: usize, name: &str) -> u64 {
    match schema.columns.get(side) {
        Some(column) => named_key(column.name.as_bytes(), name.as_bytes()),
        None => data::format::key_of_node(name.as_bytes()),
    }
}

fn name_of(schema: &Schema, names: &KeyNames, side: usize, key: u64) -> String {
    let Some(name) = names.get(key) else { return key.to_string() };
    let column = schema.columns.get(side).map(|column| format!("{}=", column.name));
    column.and_then(|column| name.strip_prefix(&column)).unwrap_or(name).to_owned()
}

/// The lines of a file that are not empty.
fn lines(path: &Path) -> Result<Vec<String>, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// What users have in some data: for each user its items, ascending, with their ratings or strengths, and the names of keys.
#[derive(Default)]
struct Choices {
    of_users: BTreeMap<u64, Vec<(u64, f32)>>,
    names: data::NameCollector,
}

impl Choices {
    fn add(
        &mut self,
        input: &Input,
        schema: &Schema,
        are_ratings: bool,
        environment: Environment<'_>,
    ) -> Result<(), Error> {
        let mut input = input.clone();
        input.options.uses_labels = are_ratings;
        input.options.purpose = if are_ratings { InputPurpose::Evaluation } else { InputPurpose::Prediction };
        input.options.field_limit = Some(2);
        let source = Source::open_with_schema(
            &source_config(&input, environment.interrupt),
            schema,
            environment.formats,
        )?;
        let mut batch = Batch::default();
        for splits in source.splits(1) {
            let mut reader = source.reader(splits)?;
            while reader.next_batch(READ_SIZE, &mut batch)? {
                environment.interrupt.check("while the data were read; nothing was written")?;
                for r in (0..batch.record_count()).filter(|&r| batch.weight(r) != 0.0) {
                    let value = if are_ratings { batch.labels[r] as f32 } else { batch.weight(r) };
                    for (user, item) in interactions_of(&batch, r)? {
                        self.of_users.entry(user).or_default().push((item, value));
                    }
                }
            }
            self.names.add_all(&reader.take_dictionary());
        }
        source.check_bad_lines()?;
        for items in self.of_users.values_mut() {
            items.sort_by_key(|(item, _)| *item);
            items.dedup_by_key(|(item, _)| *item);
        }
        Ok(())
    }

    /// What a user has, items ascending.
    fn choices(&self, user: u64) -> &[(u64, f32)] {
        self.of_users.get(&user).map_or(&[], Vec::as_slice)
    }
}

/// Recommends, writes and measures.
pub fn recommend(job: &RecommendJob, environment: Environment<'_>) -> Result<RecommendSummary, Error> {
    let destination = check(job)?;
    let allowed = job.items.as_deref().map(lines).transpose()?;
    let mut loaded = LoadedRecommender::read(
        ModelReader::open(&job.model, false)?,
        environment.families,
        allowed.as_deref(),
    )?;
    let are_ratings = loaded.are_ratings;
    let (mut seen, mut test) = (Choices::default(), Choices::default());
    if let Some(input) = &job.seen {
        seen.add(input, &loaded.schema, are_ratings, environment)?;
    }
    if let Some(input) = &job.test {
        test.add(input, &loaded.schema, false, environment)?;
    }
    let mut names = data::NameCollector::default();
    names.add_all(&loaded.names);
    for choices in [&mut seen, &mut test] {
        names.add_all(&std::mem::take(&mut choices.names).finish().0);
    }
    loaded.names = names.finish().0;
    let stored = destination.as_ref().map(|path| environment.interrupt.temp_output(path));
    let mut writer = match &job.output {
        Some(place) => {
            ListWriter::create(stored.as_ref().map(TempOutput::path), place, columns(&job.subjects))?
        }
        None => ListWriter::Nowhere,
    };
    let mut summary = match &job.subjects {
        Subjects::SimilarTo(path) => write_similar(&loaded, &lines(path)?, job.top, &mut writer),
        Subjects::All | Subjects::Users(_) => {
            let users = users(job, &loaded, &test)?;
            Run { job, loaded: &loaded, seen: &seen, test: &test }.run(&users, &mut writer, environment)
        }
    }?;
    writer.finish()?;
    if let Some(stored) = stored {
        stored.persist(outputs::put_file(job.overwrite))?;
    }
    summary.output = job.output.as_ref().map(|path| path.display().to_string());
    Ok(summary)
}

fn columns(subjects: &Subjects) -> &'static [&'static str; 4] {
    match subjects {
        Subjects::SimilarTo(_) => &SIMILAR_COLUMNS,
        Subjects::All | Subjects::Users(_) => &COLUMNS,
    }
}

/// Checks what is asked for, and returns the file to write.
fn check(job: &RecommendJob) -> Result<Option<PathBuf>, Error> {
    if job.output.is_none() && job.test.is_none() {
        return Err(Error::request(
            "neither --output nor --test is given",
            "give --output FILE for the items, --test FILES for metrics, or both",
        ));
    }
    if matches!(job.subjects, Subjects::SimilarTo(_)) && job.test.is_some() {
        return Err(Error::request(
            "--test measures items for users, and --similar-to asks for items similar to items",
            "leave one of the two out",
        ));
    }
    let destination = job.output.clone().filter(|path| path.as_os_str() != "-");
    if let Some(path) = &destination {
        let inputs = [&job.seen, &job.test].into_iter().flatten().flat_map(|input| input.data.clone());
        let outputs =
            Outputs::new(job.overwrite).with_inputs(&inputs.collect::<Vec<_>>()).with_model(&job.model);
        outputs.check_file("--output", path, OutputKind::Scores(columns(&job.subjects)))?;
    }
    Ok(destination)
}

/// The keys of the users with their names where the model does not have them.
fn users(
    job: &RecommendJob,
    loaded: &LoadedRecommender,
    test: &Choices,
) -> Result<Vec<(u64, Option<String>)>, Error> {
    Ok(match &job.subjects {
        Subjects::Users(path) => {
            lines(path)?.into_iter().map(|name| (key_of(&loaded.schema, 0, &name), Some(name))).collect()
        }
        _ if job.test.is_some() => test.of_users.keys().map(|key| (*key, None)).collect(),
        _ => loaded.engine.users().iter().map(|key| (*key, None)).collect(),
    })
}

fn write_similar(
    loaded: &LoadedRecommender,
    items: &[String],
    top: usize,
    writer: &mut ListWriter,
) -> Result<RecommendSummary, Error> {
    let names: Vec<&str> = items.iter().map(String::as_str).collect();
    let (mut lists, mut unknown) = (Lists::default(), Vec::new());
    for (name, list) in names.iter().zip(loaded.similar(&names, top)) {
        if list.is_empty() {
            unknown.push(format!("'{name}'"));
        }
        lists.add(name, list.into_iter());
    }
    writer.write(&lists)?;
    let notice = |unknown: &[String]| format!("the model does not have the items {}", unknown.join(", "));
    let notices = if unknown.is_empty() { Vec::new() } else { vec![notice(&unknown)] };
    Ok(RecommendSummary { lists: items.len() as u64, notices, ..RecommendSummary::default() })
}

/// The lists of users that are found, written and measured.
struct Run<'a> {
    job: &'a RecommendJob,
    loaded: &'a LoadedRecommender,
    seen: &'a Choices,
    test: &'a Choices,
}

impl Run<'_> {
    fn run(
        &self,
        users: &[(u64, Option<String>)],
        writer: &mut ListWriter,
        environment: Environment<'_>,
    ) -> Result<RecommendSummary, Error> {
        let Self { job, loaded, seen, test } = self;
        let mut summary = RecommendSummary { lists: users.len() as u64, ..RecommendSummary::default() };
        let (mut measured, mut popular) = (Vec::new(), Vec::new());
        for users in users.chunks(WRITTEN_AT_ONCE) {
            environment.interrupt.check("while items were found; nothing was written")?;
            let requests: Vec<Request> = users
                .iter()
                .map(|(user, _)| loaded.request(*user, seen.choices(*user), job.keeps_seen))
                .collect();
            let lists = loaded.engine.recommend(&requests, job.top, job.threads)?;
            let mut written = Lists::default();
            for (((user, name), request), (basis, list)) in users.iter().zip(&requests).zip(lists) {
                summary.folded_in += u64::from(basis == Basis::FoldedIn);
                summary.popular += u64::from(basis == Basis::Popularity);
                if job.output.is_some() {
                    let name =
                        name.clone().unwrap_or_else(|| name_of(&loaded.schema, &loaded.names, 0, *user));
                    written.add(&name, loaded.named(&list));
                }
                if job.test.is_some() {
                    let keys =
                        |list: &[Recommendation]| list.iter().map(|one| one.item).collect::<Vec<u64>>();
                    let relevant: Vec<u64> = test.choices(*user).iter().map(|(item, _)| *item).collect();
                    popular.push((keys(&loaded.engine.popular(&request.seen, job.top)), relevant.clone()));
                    measured.push((keys(&list), relevant));
                }
            }
            writer.write(&written)?;
        }
        if job.test.is_some() {
            let of = |lists: &[(Vec<u64>, Vec<u64>)]| {
                RankingQuality::of(lists.iter().map(|(list, relevant)| (&list[..], &relevant[..])), job.top)
            };
            (summary.quality, summary.most_popular) = (Some(of(&measured)), Some(of(&popular)));
            summary.definitions = Some(DEFINITIONS.to_owned());
        }
        if summary.popular > 0 {
            summary.notices.push(format!(
                "{} not in the model and without items of their own (--seen): they get the most popular items",
                driver::amounts::counted(summary.popular, "user")
            ));
        }
        Ok(summary)
    }
}
