//! Where scores go: standard output, a file, or a folder of parts. Workers write parts first: those of a folder as they
//! stay, those of a file as blocks of scored batches, which are then written to the file in their order. So the file is
//! the same however many workers scored.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algo::Families;
use checkpoint::block::{BlockReader, BlockWriter};
use driver::Error;
use job::{Exit, PredictJob, ScoringJob};
use rpc::message::JobId;
use store::file_identity::is_special;
use store::{Store, TempOutput};
use tempfile::TempDir;

use crate::environment::load_model;
use crate::explain::model_for;
use crate::interrupt::Interrupt;
use crate::outputs::{self, OutputKind, Outputs};
use crate::score_columns::{ScoreColumns, ScoredBatch, ScoredNumbers};

/// The name of standard output.
const STANDARD_OUTPUT: &str = "-";
/// Buffer size of the output in bytes.
const BUFFER_BYTES: usize = 1 << 18;
/// The kinds of blocks: lines of text, and the numbers of a batch.
const TEXT: u32 = 1;
const NUMBERS: u32 = 2;

/// Where the user wants the scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Standard,
    File(PathBuf),
    /// A folder of files `part-00000.csv`, `part-00001.csv`, ...
    Folder(PathBuf),
}

impl Destination {
    /// A path that ends with a slash names a folder.
    pub fn of(output: &Path) -> Self {
        if output.as_os_str() == STANDARD_OUTPUT {
            Self::Standard
        } else if output.as_os_str().as_encoded_bytes().ends_with(b"/") {
            match store::address(output) {
                Some(address) => Self::Folder(address.trim_end_matches('/').into()),
                None => Self::Folder(output.components().collect()),
            }
        } else {
            Self::File(output.into())
        }
    }

    /// Checks that the command may write there.
    pub fn check(&self, outputs: &Outputs, columns: &[&str]) -> Result<(), Error> {
        match self {
            Self::Standard => Ok(()),
            Self::File(path) => outputs.check_file("--output", path, OutputKind::Scores(columns)),
            Self::Folder(path) => outputs.check_folder("--output", path, OutputKind::Scores(columns)),
        }
    }

    /// Whether scores are written as Parquet.
    pub fn is_parquet(&self) -> bool {
        match self {
            Self::Standard => false,
            Self::File(path) | Self::Folder(path) => {
                path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
            }
        }
    }

    /// The name of a file in the folder.
    fn file_name(&self, part: u32) -> String {
        format!("part-{part:05}.{}", if self.is_parquet() { "parquet" } else { "csv" })
    }

    /// Returns the path beside which workers write their parts; an error if they cannot.
    pub fn place_of_parts(&self) -> Result<&Path, Error> {
        let what = match self {
            Self::File(path) if is_special(path) => {
                format!("output: workers cannot write beside {}", path.display())
            }
            Self::File(path) | Self::Folder(path) => return Ok(path),
            Self::Standard => "output: workers cannot write to the standard output of this command".into(),
        };
        let advice = "name a file or a folder that every worker can write";
        Err(Error::request(what, advice))
    }

    /// Creates the folder beside the output in which the workers of a job write their parts.
    pub fn create_parts(&self, job: JobId, interrupt: &Interrupt) -> Result<ScoreParts, Error> {
        let place = self.place_of_parts()?;
        let parts = interrupt.temp_outputs().temp_output_of_job(place, job);
        // As in one process, the folder of a file must exist.
        let create =
            if matches!(self, Self::File(_)) { std::fs::create_dir } else { std::fs::create_dir_all };
        create(parts.path()).map_err(Error::io("create", place))?;
        let shared = store::address(place).map(|address| store::open(&format!("{address}.parts-{job}")));
        let shared = shared.transpose().map_err(model::Error::Store)?;
        Ok(ScoreParts { output: parts, shared: shared.map(SharedParts) })
    }

    /// Removes what processes that were killed have left beside the output.
    pub fn remove_stale_parts(&self, interrupt: &Interrupt) {
        if let Ok(place) = self.place_of_parts() {
            // To begin a temporary output removes those of dead processes.
            drop(interrupt.temp_output(place));
        }
    }
}

/// The parts of the scores until they are joined.
#[derive(Debug)]
pub struct ScoreParts {
    /// The output before it is in its place. On a disk the parts lie in it.
    output: TempOutput,
    /// Where the parts of an output in a store lie.
    shared: Option<SharedParts>,
}

/// A folder of a store that is removed when nobody needs it.
#[derive(Debug)]
struct SharedParts(Arc<dyn Store>);

impl ScoreParts {
    /// Where workers write their parts: a folder, or an address.
    pub fn folder(&self) -> PathBuf {
        match &self.shared {
            Some(SharedParts(store)) => store.location().into(),
            None => self.output.path().into(),
        }
    }

    /// Copies the parts of a store to this machine.
    fn fetch(&self) -> Result<(), Error> {
        let Some(SharedParts(store)) = &self.shared else { return Ok(()) };
        for entry in store.list("").map_err(model::Error::Store)? {
            let path = self.output.path().join(&entry.name);
            let mut part = store.open(&entry.name).map_err(model::Error::Store)?;
            let mut file = File::create(&path).map_err(Error::io("create", &path))?;
            std::io::copy(&mut part, &mut file).map_err(Error::io("copy", &path))?;
        }
        Ok(())
    }
}

impl Drop for SharedParts {
    fn drop(&mut self) {
        // What is left costs only space.
        let _ = self.0.remove("");
    }
}

/// A file of scores that is being written.
pub enum ScoreWriter {
    Text {
        out: BufWriter<Box<dyn Write + Send>>,
        place: PathBuf,
        /// Written with the first scores, so that standard output stays empty when the data cannot be read.
        header: Option<Vec<u8>>,
    },
    #[cfg(feature = "parquet")]
    Parquet(Box<crate::parquet::ScoreFile>),
}

impl ScoreWriter {
    fn text(out: Box<dyn Write + Send>, place: &Path, layout: &ScoreColumns<'_>) -> Self {
        let header = Some(layout.header());
        Self::Text { out: BufWriter::with_capacity(BUFFER_BYTES, out), place: place.into(), header }
    }

    /// Creates a file at `path`; `place` is where the user finds it.
    fn create(path: &Path, place: &Path, is_parquet: bool, layout: &ScoreColumns<'_>) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", place))?;
        if is_parquet {
            drop(file);
            return Self::parquet(path, layout);
        }
        Ok(Self::text(Box::new(file), place, layout))
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, layout: &ScoreColumns<'_>) -> Result<Self, Error> {
        Ok(Self::Parquet(Box::new(crate::parquet::ScoreFile::create(path, layout)?)))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _layout: &ScoreColumns<'_>) -> Result<Self, Error> {
        let what = format!("{}: this program was built without Parquet", path.display());
        Err(Error::request(what, "name a .csv file, or build it with the feature parquet"))
    }

    #[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "only Parquet lays out numbers"))]
    fn write(&mut self, scored: &ScoredBatch, layout: &ScoreColumns<'_>) -> Result<(), Error> {
        match self {
            Self::Text { out, place, header } => {
                let header = header.take().unwrap_or_default();
                out.write_all(&header)
                    .and_then(|()| out.write_all(&scored.text))
                    .map_err(Error::io("write", &*place))
            }
            #[cfg(feature = "parquet")]
            Self::Parquet(out) => out.write(&scored.numbers, layout),
        }
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            Self::Text { mut out, place, header } => out
                .write_all(&header.unwrap_or_default())
                .and_then(|()| out.flush())
                .map_err(Error::io("write", place)),
            #[cfg(feature = "parquet")]
            Self::Parquet(out) => out.finish(),
        }
    }
}

/// The scores of a run in one process.
pub struct ScoreSink {
    writer: ScoreWriter,
    /// None if nothing must be moved to its place at the end.
    unfinished: Option<TempOutput>,
    is_folder: bool,
}

impl ScoreSink {
    pub fn open(
        destination: &Destination,
        layout: &ScoreColumns<'_>,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let is_parquet = destination.is_parquet();
        let is_folder = matches!(destination, Destination::Folder(_));
        let (writer, unfinished) = match destination {
            Destination::Standard => {
                let place = Path::new("standard output");
                (ScoreWriter::text(Box::new(std::io::stdout()), place, layout), None)
            }
            Destination::File(path) => {
                let unfinished = (is_parquet || !is_special(path)).then(|| interrupt.temp_output(path));
                let file = unfinished.as_ref().map_or(path.as_path(), TempOutput::path);
                let shown = unfinished.as_ref().map_or(path.as_path(), TempOutput::shown);
                (ScoreWriter::create(file, shown, is_parquet, layout)?, unfinished)
            }
            Destination::Folder(path) => {
                let unfinished = interrupt.temp_output(path);
                std::fs::create_dir_all(unfinished.path())
                    .map_err(Error::io("create", unfinished.shown()))?;
                let file = unfinished.path().join(destination.file_name(0));
                (ScoreWriter::create(&file, unfinished.shown(), is_parquet, layout)?, Some(unfinished))
            }
        };
        Ok(Self { writer, unfinished, is_folder })
    }

    pub fn write(&mut self, scored: &ScoredBatch, layout: &ScoreColumns<'_>) -> Result<(), Error> {
        self.writer.write(scored, layout)
    }

    /// Ends the file and moves it to its place.
    pub fn finish(self, overwrite: bool) -> Result<(), Error> {
        self.writer.finish()?;
        match self.unfinished {
            Some(folder) if self.is_folder => folder.persist(outputs::put_folder(overwrite)),
            Some(file) => file.persist(outputs::put_file(overwrite)),
            None => Ok(()),
        }
    }
}

/// The part of the scores that one worker writes.
pub struct PartSink {
    file: PartFile,
    upload: Option<PartUpload>,
}

/// A part that is written here and then copied to a store.
struct PartUpload {
    folder: TempDir,
    store: Arc<dyn Store>,
}

/// The file of a part.
enum PartFile {
    /// A file of the folder that the user wants.
    File(ScoreWriter),
    /// Blocks that are joined later.
    Blocks { out: BlockWriter<BufWriter<File>>, place: PathBuf },
}

impl PartSink {
    /// Creates the file of a part in the folder of the parts, or for their address.
    pub fn create(
        destination: &Destination,
        folder: &Path,
        part: u32,
        layout: &ScoreColumns<'_>,
    ) -> Result<Self, Error> {
        let Some(address) = store::address(folder) else {
            return Ok(Self { file: PartFile::create(destination, folder, part, layout)?, upload: None });
        };
        let folder = tempfile::tempdir().map_err(Error::io("create a folder in", std::env::temp_dir()))?;
        let store = store::open(address).map_err(model::Error::Store)?;
        let file = PartFile::create(destination, folder.path(), part, layout)?;
        Ok(Self { file, upload: Some(PartUpload { folder, store }) })
    }

    pub fn write(&mut self, scored: &ScoredBatch, layout: &ScoreColumns<'_>) -> Result<(), Error> {
        self.file.write(scored, layout)
    }

    pub fn finish(self) -> Result<(), Error> {
        self.file.finish()?;
        let Some(PartUpload { folder, store }) = self.upload else { return Ok(()) };
        Ok(store::upload_folder(folder.path(), &*store).map_err(model::Error::Store)?)
    }
}

impl PartFile {
    fn create(
        destination: &Destination,
        folder: &Path,
        part: u32,
        layout: &ScoreColumns<'_>,
    ) -> Result<Self, Error> {
        if matches!(destination, Destination::Folder(_)) {
            let path = folder.join(destination.file_name(part));
            let writer = ScoreWriter::create(&path, &path, destination.is_parquet(), layout)?;
            return Ok(Self::File(writer));
        }
        let place = path_of_blocks(folder, part);
        let file = File::create(&place).map_err(Error::io("create", &place))?;
        let out = BlockWriter::new(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(Self::Blocks { out: out.map_err(Error::io("write", &place))?, place })
    }

    fn write(&mut self, scored: &ScoredBatch, layout: &ScoreColumns<'_>) -> Result<(), Error> {
        match self {
            Self::File(file) => file.write(scored, layout),
            Self::Blocks { out, place } => {
                let written = if scored.text.is_empty() {
                    let bytes = rmp_serde::to_vec(&scored.numbers).expect("numbers can be encoded");
                    out.write(NUMBERS, &[&bytes])
                } else {
                    out.write(TEXT, &[&scored.text])
                };
                written.map_err(Error::io("write", &*place))
            }
        }
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.finish(),
            Self::Blocks { out, place } => {
                out.finish().and_then(|(mut out, _)| out.flush()).map_err(Error::io("write", place))
            }
        }
    }
}

fn path_of_blocks(folder: &Path, part: u32) -> PathBuf {
    folder.join(format!("part-{part:05}.blocks"))
}

/// Puts the scores that workers have written in their place: the folder as it is, or one file with all parts in their
/// order.
pub fn join_parts(
    destination: &Destination,
    parts: ScoreParts,
    part_count: u32,
    layout: &ScoreColumns<'_>,
    overwrite: bool,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    parts.fetch()?;
    match destination {
        Destination::Standard => return destination.place_of_parts().map(drop),
        Destination::Folder(_) => {
            return parts.output.persist(outputs::put_folder(overwrite));
        }
        Destination::File(_) => {}
    }
    let joined = parts.output.path().join("joined");
    let mut writer = ScoreWriter::create(&joined, parts.output.shown(), destination.is_parquet(), layout)?;
    for part in 0..part_count {
        let path = path_of_blocks(parts.output.path(), part);
        let shown = path.display().to_string();
        let file = File::open(&path).map_err(Error::io("read", &path))?;
        let mut blocks = BlockReader::new(BufReader::with_capacity(BUFFER_BYTES, file), &shown, "scores")?;
        let mut bytes = Vec::new();
        while let Some(kind) = blocks.read(&mut bytes)? {
            interrupt.check(driver::scoring::NOT_ENDED)?;
            let scored = match kind {
                TEXT => ScoredBatch { text: std::mem::take(&mut bytes), ..ScoredBatch::default() },
                _ => ScoredBatch { numbers: decode(&bytes, &shown)?, text: Vec::new() },
            };
            writer.write(&scored, layout)?;
        }
    }
    writer.finish()?;
    parts.output.persist(|_, to| outputs::put_file(overwrite)(&joined, to))
}

fn decode(bytes: &[u8], shown: &str) -> Result<ScoredNumbers, Error> {
    rmp_serde::from_slice(bytes).map_err(|error| Error::Cluster {
        text: format!("{shown} was written by another version of this program: {error}"),
        exit: Exit::Internal,
    })
}

/// Checks before anything is started what the first worker of a job checks too, so that errors are those of a run in one
/// process.
pub fn check_workers_output(job: &ScoringJob, families: &Families) -> Result<(), Error> {
    let manifest = model::read_manifest(job.model())?;
    let scoring = model_for(load_model(job.model(), &manifest, families)?, job)?;
    let ScoringJob::Predict(job) = job else { return Ok(()) };
    checked_destination(job, &*scoring)?.place_of_parts().map(drop)
}

/// Where the scores of a job go; an error if they must not be written there.
pub fn checked_destination(job: &PredictJob, scoring: &dyn algo::Model) -> Result<Destination, Error> {
    let destination = Destination::of(&job.output);
    let outputs = Outputs::new(job.overwrite).with_inputs(&job.input.data).with_model(&job.model);
    destination.check(&outputs, &scoring.output().names())?;
    Ok(destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_at_the_end_names_a_folder() {
        let of = |text: &str| Destination::of(Path::new(text));
        assert_eq!(of("-"), Destination::Standard);
        assert_eq!(of("a/b.csv"), Destination::File("a/b.csv".into()));
        assert_eq!(of("a/b.csv/"), Destination::Folder("a/b.csv".into()));
        assert!(of("scores.parquet/").is_parquet() && of("scores.Parquet").is_parquet());
        assert_eq!(of("scores.parquet/").file_name(3), "part-00003.parquet");
        assert_eq!(of("scores/").file_name(12), "part-00012.csv");
    }
}
