//! One job on one worker: handles each message of the driver.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use algo::SavedModel;
use checkpoint::TrainingId;
use data::{NameCollector, Schema, TaskData};
use driver::Error;
use driver::messages::{BegunTraining, FromWorker, ScoringShare, ToWorker};
use driver::run_info::names_notice;
use job::checkpoints::CheckpointEvery;
use job::training::consistency_name;
use job::{Exit, ScoringJob, TrainJob};
use matrix::FunctionTable;
use model::{Manifest, ModelClaim, ModelReader, TrainingPosition};
use rpc::layout::JobLayout;

use crate::environment::Environment;
use crate::failures::{BusyGuard, panic_message};
use crate::input::{TaskDataPlan, TrainingInput, open};
use crate::model_writer::{numbered_path, save_under};
use crate::modules::extend_table;
use crate::program::THIS_PROGRAM;
use crate::resume;
use crate::task_count::{explain, size_bytes, task_count};
use crate::task_streams::task_summary;
use crate::worker::coordinator::TaskCoordinator;
use crate::worker::data_files::data_files;
use crate::worker::scan::scan;
use crate::worker::scoring::ScoringTask;
use crate::worker::semaphore::Semaphore;
use crate::worker::task_runner::{TaskBegin, TaskRunner};
use crate::worker::{ModelTarget, WorkerContext, checkpoints, lock};

/// The claim of the job on the name of its model, until the job ends.
pub type SharedClaim = Arc<Mutex<Option<ModelClaim>>>;

/// A job as one worker executes it.
pub struct WorkerJob {
    coordinator: Arc<TaskCoordinator>,
    /// The place of its checkpoints, once the job is known, if it has any.
    checkpoints: Arc<Mutex<Option<String>>>,
    claim: SharedClaim,
    job: Option<TrainJob>,
    /// The data of `InspectData`. `PrepareData` uses them, because standard input can be opened only once.
    inspected: Option<TrainingInput>,
    prepared: Option<PreparedJob>,
    /// The job, if it does not train but score.
    scoring: Option<ScoringTask>,
    /// The model from which the training continues, once it was opened: a model of a store is copied here only once.
    previous: Option<ModelReader>,
    /// Names of keys for the model to be written.
    key_names: NameCollector,
    /// Whether this is not the first run of the job.
    has_run_before: bool,
}

/// The result of `PrepareData`, which `Train` uses.
struct PreparedJob {
    job: TrainJob,
    algorithm: Arc<dyn algo::Job>,
    functions: FunctionTable,
    input: TrainingInput,
    task_count: u32,
    tasks: Range<u32>,
    start: TrainingPosition,
    /// Whether the data were surveyed before the settings were chosen.
    is_survey: bool,
    shares: Vec<TaskData>,
    permits: Option<Arc<Semaphore>>,
}

impl WorkerJob {
    pub fn new(
        coordinator: Arc<TaskCoordinator>,
        checkpoints: Arc<Mutex<Option<String>>>,
        claim: SharedClaim,
    ) -> Self {
        let key_names = NameCollector::default();
        Self {
            coordinator,
            checkpoints,
            claim,
            job: None,
            inspected: None,
            prepared: None,
            scoring: None,
            previous: None,
            key_names,
            has_run_before: false,
        }
    }

    pub fn release_claim(&self) {
        lock(&self.claim).take();
    }

    fn context(&self) -> &WorkerContext {
        self.coordinator.context()
    }

    fn environment(&self) -> Environment<'_> {
        let WorkerContext { formats, families, functions, interrupt, .. } = self.context();
        // A worker starts no processes.
        Environment { formats, families, functions, interrupt, program: &THIS_PROGRAM }
    }

    /// Handles a message of the driver; a failure is reported to the driver. It may drop `busy` when only the tasks can
    /// still fail.
    pub fn on_message(&mut self, message: ToWorker, busy: BusyGuard) {
        let mut busy = Some(busy);
        let handle = AssertUnwindSafe(|| self.handle_message(message, &mut busy));
        let handled = std::panic::catch_unwind(handle).unwrap_or_else(|panic| {
            let text = format!("a fault of this program: {}", panic_message(&*panic));
            Err(Error::Cluster { text, exit: Exit::Internal })
        });
        if let Err(error) = handled {
            tracing::info!(job = self.context().job, %error, "a job failed on this worker");
            let (rank, exit, is_loss) =
                (self.coordinator.failures().rank(), error.exit() as u8, error.is_loss());
            let error = error.to_string();
            self.coordinator.send(FromWorker::Failed { task: None, error, exit, is_loss, rank });
        }
    }

    fn handle_message(&mut self, message: ToWorker, busy: &mut Option<BusyGuard>) -> Result<(), Error> {
        match message {
            ToWorker::InspectData { job, begun } => self.inspect_data(*job, begun),
            ToWorker::PrepareData { job, schema, task_count, first, count, start, survey } => {
                let tasks = first..first + count;
                self.prepared = Some(self.prepare(*job, &schema, task_count, tasks, start, survey)?);
                Ok(())
            }
            ToWorker::InspectScoring { job } => self.inspect_scoring(*job),
            ToWorker::Score { job, layout, share } => self.score(*job, &layout, share),
            ToWorker::JoinScores { part_count } => self.join_scores(part_count),
            ToWorker::ImportModel { layout } => self.import(&layout),
            ToWorker::RestoreRows { layout, checkpoint } => {
                let mut matrices = self.context().parameters.open(&layout)?;
                checkpoints::restore_rows(&checkpoint, &mut *matrices)?;
                self.coordinator.send(FromWorker::RowsRestored);
                Ok(())
            }
            ToWorker::Train { params, layout, model, resumed, checkpoint } => {
                let Some(mut prepared) = self.prepared.take() else { return Ok(()) };
                prepared.job.params = params;
                prepared.algorithm = prepared.job.algorithm_job(&self.context().families)?;
                prepared.job.set_params(&*prepared.algorithm);
                let states = checkpoint
                    .map(|place| checkpoints::states(&place, prepared.tasks.clone()))
                    .transpose()?;
                let begin = TaskBegin { resumed, states: states.unwrap_or_default() };
                self.train(prepared, &layout, &model, &begin, busy.take())
            }
            ToWorker::KeyNames { names } => {
                self.key_names.add_all(&names);
                Ok(())
            }
            ToWorker::SaveModel { layout, manifest, remove } => self.save(&layout, &manifest, remove),
            ToWorker::EpochDecided { .. }
            | ToWorker::PlanSave { .. }
            | ToWorker::DecideSave { .. }
            | ToWorker::EndSave
            | ToWorker::WritePart { .. }
            | ToWorker::CommitCheckpoint { .. }
            | ToWorker::DropCheckpoint { .. }
            | ToWorker::Stop
            | ToWorker::FinishReading { .. }
            | ToWorker::End { .. } => Ok(()),
        }
    }

    fn inspect_scoring(&mut self, job: ScoringJob) -> Result<(), Error> {
        let mut scoring = ScoringTask::open(job, self.environment())?;
        self.coordinator.send(scoring.inspect(self.context())?);
        self.scoring = Some(scoring);
        Ok(())
    }

    fn score(&mut self, job: ScoringJob, layout: &JobLayout, share: ScoringShare) -> Result<(), Error> {
        let scoring = match self.scoring.take() {
            Some(scoring) => scoring,
            None => ScoringTask::open(job, self.environment())?,
        };
        scoring.score(share, layout, self.context())?;
        self.scoring = Some(scoring);
        Ok(())
    }

    fn join_scores(&mut self, part_count: u32) -> Result<(), Error> {
        let Some(scoring) = self.scoring.take() else { return Ok(()) };
        scoring.join(part_count, self.environment())?;
        self.coordinator.send(FromWorker::ScoresJoined);
        Ok(())
    }

    fn job(&self) -> Result<&TrainJob, Error> {
        self.job.as_ref().ok_or_else(|| Error::Cluster {
            text: "the driver has not sent the description of the job".into(),
            exit: Exit::Internal,
        })
    }

    /// The model from which the training continues, if there is one.
    fn previous(&mut self) -> Result<Option<&mut ModelReader>, Error> {
        if self.previous.is_none()
            && let Some(path) = &self.job()?.from
        {
            self.previous = Some(ModelReader::open(path, true)?);
        }
        Ok(self.previous.as_mut())
    }

    /// Takes a job of the driver: its paths become those of this machine.
    fn take_job(&mut self, mut job: TrainJob) -> Result<(TrainJob, Arc<dyn algo::Job>), Error> {
        let algorithm = job.algorithm_job(&self.context().families)?;
        self.context().local_data.resolve_job(&mut job)?;
        let has_checkpoints = job.checkpoints.every != CheckpointEvery::Off;
        *lock(&self.checkpoints) = has_checkpoints.then(|| job.checkpoints.location.clone());
        self.job = Some(job.clone());
        Ok((job, algorithm))
    }

    fn inspect_data(&mut self, job: TrainJob, begun: Option<BegunTraining>) -> Result<(), Error> {
        let (job, algorithm) = self.take_job(job)?;
        // An earlier run of the job may have written the model before it was lost. If it was somebody else, this model will
        // be saved beside it.
        self.has_run_before = begun.is_some();
        let own = begun.as_ref().map(|begun| begun.training.to_string());
        let mut claim = self.claim_model(&job, own.as_deref())?;
        let previous = self.previous()?.map(|model| model.manifest.clone());
        if let Some(previous) = &previous {
            let families = &self.context().families;
            families.check_continues(families.algorithm(&job.algorithm)?, &previous.model)?;
        }
        let schema = previous.as_ref().map(|manifest| &manifest.schema);
        let input = open(&job, algorithm.as_ref(), schema, self.environment())?;
        let task_count = task_count(&job, &input.source);
        let resumed = |manifest: &Manifest| resume::start(&job, task_count, manifest);
        let start = previous.as_ref().map(resumed).unwrap_or_default();
        // Files of one worker say nothing about those of the others.
        let data = if job.is_data_local { None } else { data_files(&input) };
        let training = checkpoints::find_training(&job, begun, data.as_deref())?;
        // Where there is no room for it the training goes on without a claim.
        let id = training.training.to_string();
        *lock(&self.claim) = claim.take_if(|claim| claim.set_training(&id).is_ok());
        let notices = input.notices().into_iter().chain(training.notices).collect();
        self.coordinator.send(FromWorker::DataInspected {
            schema: input.source.schema().clone(),
            size_bytes: size_bytes(&job, &input.source),
            notices,
            task_count,
            greeting: greeting(&job, &input, task_count),
            previous: previous.map(|manifest| manifest.model),
            start,
            training: training.training,
            resume: training.resume,
            data,
        });
        self.inspected = Some(input);
        Ok(())
    }

    /// Checks that the model can be written, and claims its name. `training`: as for [`ModelClaim::take`].
    fn claim_model(&self, job: &TrainJob, training: Option<&str>) -> Result<Option<ModelClaim>, Error> {
        let WorkerContext { model_target: ModelTarget::Folder, interrupt, .. } = self.context() else {
            return Ok(None);
        };
        if !self.has_run_before {
            model::check_target(&job.model, job.overwrite)?;
        }
        Ok(ModelClaim::take(&job.model, training, interrupt.temp_outputs())?)
    }

    fn prepare(
        &mut self,
        job: TrainJob,
        schema: &Schema,
        task_count: u32,
        tasks: Range<u32>,
        start: TrainingPosition,
        is_survey: bool,
    ) -> Result<PreparedJob, Error> {
        let (job, algorithm) = self.take_job(job)?;
        let functions = extend_table(job.modules(), &self.context().functions)?;
        let mut input = match self.inspected.take() {
            Some(input) => input,
            None => open(&job, algorithm.as_ref(), Some(schema), self.environment())?,
        };
        input.apply_settings(algorithm.as_ref())?;
        let first_epoch = start.epochs;
        let plan = TaskDataPlan {
            job: &job,
            opened: &input,
            task_count,
            tasks: tasks.clone(),
            first_epoch,
            is_survey,
        };
        let permits = match self.context().threads {
            // One for each task: they show for how long the tasks compute.
            None => Some(Semaphore::new(tasks.len())),
            Some(threads) => (threads < tasks.len()).then(|| Semaphore::new(threads)),
        };
        let mut shares = plan.training()?;
        let scanned = plan.must_scan();
        if scanned {
            let (failures, interrupt) = (self.coordinator.failures(), &self.context().interrupt);
            let on_bytes = |count| self.coordinator.add_scanned_bytes(count);
            scan(&mut shares, plan.tasks.start, permits.as_deref(), failures, interrupt, &on_bytes)?;
        }
        let summaries = shares.iter().map(|share| task_summary(share, None)).collect();
        self.coordinator.send(FromWorker::DataPrepared { scanned, summaries });
        Ok(PreparedJob {
            job,
            algorithm,
            functions,
            input,
            task_count,
            tasks,
            start,
            is_survey,
            shares,
            permits,
        })
    }

    fn import(&mut self, layout: &JobLayout) -> Result<(), Error> {
        if let Some(scoring) = &mut self.scoring {
            let mut matrices = self.coordinator.context().parameters.open(layout)?;
            scoring.import(layout, &mut *matrices)?;
            self.coordinator.send(FromWorker::ModelImported { notices: Vec::new() });
            return Ok(());
        }
        let mut matrices = self.context().parameters.open(layout)?;
        let Some(previous) = self.previous()? else { return Ok(()) };
        resume::import(previous, &layout.matrices, &mut *matrices)?;
        let notices = resume::notices(previous, &layout.matrices);
        self.coordinator.send(FromWorker::ModelImported { notices });
        Ok(())
    }

    fn train(
        &self,
        prepared: PreparedJob,
        layout: &JobLayout,
        model: &SavedModel,
        begin: &TaskBegin,
        begun: Option<BusyGuard>,
    ) -> Result<(), Error> {
        let PreparedJob {
            job, algorithm, functions, mut input, task_count, tasks, start, mut shares, ..
        } = prepared;
        input.apply_settings(algorithm.as_ref())?;
        let model = self.context().families.load(model)?;
        let first_epoch = start.epochs;
        let plan =
            TaskDataPlan { job: &job, opened: &input, task_count, tasks, first_epoch, is_survey: false };
        if prepared.is_survey {
            plan.finish_survey(&mut shares)?;
        }
        self.coordinator.measure(prepared.permits.clone());
        let runner = TaskRunner {
            algorithm: &*algorithm,
            plan,
            model: &*model,
            layout,
            functions: &functions,
            begin,
            coordinator: &self.coordinator,
            permits: prepared.permits,
        };
        runner.run(shares, begun)
    }

    fn save(
        &mut self,
        layout: &JobLayout,
        manifest: &Manifest,
        remove: Option<(String, TrainingId)>,
    ) -> Result<(), Error> {
        let mut names = std::mem::take(&mut self.key_names);
        let mut job = self.job()?.clone();
        let algorithm = job.algorithm_job(&self.context().families)?;
        job.overwrite |= self.has_run_before;
        let mut matrices = self.context().parameters.open(layout)?;
        let saved = self.context().families.load(&manifest.model)?;
        if let Some(previous) = self.previous()? {
            names.add_all(&previous.dictionary()?);
        }
        let (names, is_over_limit) = names.finish();
        let specs = &layout.matrices[..saved.matrix_count()];
        let asked = job.model.clone();
        let saved_as = |number| match number {
            1 => asked.clone(),
            number => numbered_path(&asked, "", number),
        };
        let written = save_under(
            (&mut job, &*algorithm),
            saved_as,
            manifest,
            (specs, &mut *matrices),
            &names,
            self.context(),
        )?;
        // Whoever learns that the model is saved may train another one under this name.
        lock(&self.claim).take();
        tracing::info!(job = self.context().job, model = %job.model.display(), "the model is saved");
        if let Some((location, training)) = remove
            && let Err(error) = checkpoints::remove(&location, &training)
        {
            // The model is there; what is left costs only space.
            tracing::warn!(%error, "the checkpoints of a training that has ended cannot be removed");
        }
        let manifest = Box::new(written.manifest);
        let mut notices: Vec<String> = is_over_limit.then(names_notice).into_iter().collect();
        if job.model != asked {
            let path = job.model.display();
            notices.push(format!(
                "{} was not there when the training began, and is there now: this model is saved in {path}",
                asked.display()
            ));
        }
        let beside = (job.model != asked).then_some(job.model);
        let sync_s = written.sync_s;
        self.coordinator.send(FromWorker::ModelSaved { manifest, beside, notices, sync_s });
        Ok(())
    }
}

/// Returns a description of the run for people, printed before the work.
fn greeting(job: &TrainJob, input: &TrainingInput, task_count: u32) -> String {
    let text = format!(
        "training {} on {} as {}: {}, {}, seed {}",
        job.algorithm,
        job.input.data.join(", "),
        input.source.schema().format,
        explain(job, task_count, &input.source),
        consistency_name(job.consistency),
        job.seed
    );
    // Guesses about the data are printed before the work, and again in the report.
    input.notices().iter().fold(text, |text, notice| format!("{notice}\n{text}"))
}
