//! A task: it keeps its documents and the topics of their tokens, and samples these group by group together with the others.

use matrix::{Agent, Values};
use serde::{Deserialize, Serialize};

use super::coherence::{coherence, top_words};
use super::counts::{DocumentTopics, row_width};
use super::documents::{Bags, Division, Documents};
use super::functions::{
    BETA, CHECK, LIKELIHOOD, beta_argument, check_argument, check_sums, likelihood_argument,
};
use super::job::{EPOCH_SWEEPS, Lda};
use super::model::{Model, TOP_WORDS};
use super::prior::{BETA_STEPS, DocumentCounts, Size, next_beta};
use super::sampler::{DENSE_LIMIT, Draws, Frozen, Group, bits};
use super::table::{StoredRows, WordRows};
use super::vocabulary;
use algo::coordinator::StepDecision;
use algo::error::Error;
use algo::exchange::Exchange;
use algo::job::TrainTask;
use algo::metric::MetricAccumulator;
use algo::metric::named::{MergeRule, NamedAccumulator, NamedMetric};
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::{self, EpochEnd, Learner, TaskState};
use math::elementary::ln_gamma;

/// Blocks of documents of a sweep: the counts of words are late by at most this part of it.
const BLOCKS: u64 = 4;
/// The same for many topics, where the rows of a word cost more. As there is one, a group has all tokens of its words.
const SPARSE_BLOCKS: u64 = 1;
/// Topics of a document at first: few, so that its counts are sparse from the first sweep on. The perplexity is about that of a start
/// from all topics (20 Newsgroups, 20 topics).
const FIRST_TOPICS: u64 = 2;
/// Largest size of the rows of a slice of the vocabulary in bytes.
const SLICE_BYTES: u64 = 64 << 20;

/// One task.
struct Sampling<'a> {
    job: &'a Lda,
    seed: u64,
    size: Size,
    /// Number of words.
    vocabulary: u64,
    documents: Documents,
    /// The topic of each token.
    topics: Vec<u16>,
    rows: WordRows,
    totals: Vec<i64>,
    alpha: Vec<f64>,
    beta: f64,
    /// A message that is still to be shown.
    notice: Option<String>,
}

/// What a task remembers from epoch to epoch.
#[derive(Serialize, Deserialize)]
struct State {
    topics: Vec<u16>,
    alpha: Vec<f64>,
    beta: f64,
}

/// Begins one task.
pub(super) fn begin<'a>(
    job: &'a Lda,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let bags = Bags::read(task.data)?;
    let (own, task_count) = (task.agent.task() as usize, task.agent.task_count() as usize);
    let mut counts = vec![0i64; task_count];
    counts[own] = i64::from(bags.document_count);
    Exchange::new(task.agent).sum(&mut counts)?;
    let document_count = counts.iter().sum::<i64>() as u64;
    if document_count == 0 {
        return Err(Error::NoRecords);
    }
    let words = vocabulary::choose(job.limits, &bags, document_count, task.agent, saved.is_none())?;
    let is_dense = job.topics <= DENSE_LIMIT;
    let blocks = if is_dense { BLOCKS } else { SPARSE_BLOCKS };
    let slices = (words.size * job.topics as u64 * size_of::<i32>() as u64).div_ceil(SLICE_BYTES);
    let before = counts[..own].iter().sum::<i64>() as u64;
    let documents = Documents::new(&bags, &words.is_word, before, Division { blocks, slices });
    let mut tokens = [documents.token_count() as i64];
    Exchange::new(task.agent).sum(&mut tokens)?;
    let stored = match (task_count, is_dense) {
        (1, true) => StoredRows::All,
        (1, false) => StoredRows::Counted,
        _ => StoredRows::Group,
    };
    let rows = WordRows::new(job.topics, row_width(job.topics), stored, &documents);
    let mut learner = Sampling {
        job,
        seed: task.seed,
        size: Size { documents: document_count, tokens: tokens[0] as u64 },
        vocabulary: words.size,
        documents,
        topics: Vec::new(),
        rows,
        totals: vec![0; job.topics],
        alpha: vec![job.alpha; job.topics],
        beta: job.beta,
        notice: None,
    };
    learner.start(task, saved)?;
    learner.notice = learner.start_notice(task.agent, words.notice)?;
    Ok(Box::new(learner))
}

impl Sampling<'_> {
    /// Sets the first topics of the tokens, or those that were saved, and the counts.
    fn start(&mut self, task: &mut TrainTask<'_>, saved: Option<&TaskState>) -> Result<(), Error> {
        match saved {
            Some(saved) => self.restore(saved)?,
            None => self.topics = self.first_topics(),
        }
        let mut totals = vec![0i64; self.job.topics];
        self.topics.iter().for_each(|topic| totals[usize::from(*topic)] += 1);
        Exchange::new(task.agent).sum(&mut totals)?;
        self.totals = totals;
        let is_new = saved.is_none();
        if self.rows.begins_empty(is_new) {
            for group in 0..self.documents.groups.len() {
                self.rows.load(task.agent, &self.documents, group, true)?;
                for (at, word) in self.documents.groups[group].iter().enumerate() {
                    let row = self.rows.row(at, word, &self.topics);
                    self.topics[word.start..word.end].iter().for_each(|topic| row[usize::from(*topic)] += 1);
                }
                if is_new {
                    self.rows.store(task.agent)?;
                }
            }
        }
        task.agent.barrier()?;
        self.check(task.agent)
    }

    fn restore(&mut self, saved: &TaskState) -> Result<(), Error> {
        let state: State = saved.decode()?;
        let (tokens, topics) = (self.documents.token_count(), self.job.topics);
        if state.topics.len() != tokens || state.alpha.len() != topics {
            let reason = format!(
                "it has {} tokens and {} topics, and the data have {tokens} and {topics}",
                state.topics.len(),
                state.alpha.len()
            );
            return Err(saved.misfit(reason));
        }
        if let Some(topic) = state.topics.iter().find(|topic| usize::from(**topic) >= topics) {
            return Err(saved.misfit(format!("a token has the topic {topic} of {topics}")));
        }
        (self.topics, self.alpha, self.beta) = (state.topics, state.alpha, state.beta);
        Ok(())
    }

    /// The first topics of the tokens: each of those of its document, which are drawn before. From topics that all documents
    /// have alike, topics of mixed documents come first, and some of them stay.
    fn first_topics(&self) -> Vec<u16> {
        let draws = Draws::new(self.seed, 0);
        // No word has this key.
        let of_documents = draws.of_word(u64::MAX);
        let mut topics = vec![0; self.documents.token_count()];
        for word in self.documents.groups.iter().flatten() {
            let of_word = draws.of_word(self.documents.keys[word.word as usize]);
            let (mut before, mut copy) = (u32::MAX, 0);
            let tokens = word.start..word.end;
            for (topic, &document) in topics[tokens.clone()].iter_mut().zip(&self.documents.of_tokens[tokens])
            {
                copy = if document == before { copy + 1 } else { 0 };
                before = document;
                let document = self.documents.before + u64::from(document);
                let of_document = bits(of_documents, document, bits(of_word, document, copy) % FIRST_TOPICS);
                *topic = ((u128::from(of_document) * self.job.topics as u128) >> 64) as u16;
            }
        }
        topics
    }

    /// What is known of the documents when the training begins.
    fn start_notice(
        &self,
        agent: &mut dyn Agent,
        vocabulary: Option<String>,
    ) -> Result<Option<String>, Error> {
        let mut empty = [self.documents.lengths.iter().filter(|length| **length == 0).count() as i64];
        Exchange::new(agent).sum(&mut empty)?;
        let documents = (empty[0] > 0).then(|| {
            format!("{} of {} documents have no word of the vocabulary", empty[0], self.size.documents)
        });
        let all: Vec<String> = vocabulary.into_iter().chain(documents).collect();
        Ok((!all.is_empty()).then(|| all.join("; ")))
    }

    /// Refuses counts of words that are not those of the topics of the tokens.
    fn check(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        let argument = check_argument(self.job.topics);
        let sums = self.rows.fold(agent, &self.documents, &self.topics, CHECK, &argument)?;
        check_sums(sums, &self.totals)
    }

    /// Samples every token once.
    fn sweep(
        &mut self,
        agent: &mut dyn Agent,
        of_documents: &mut DocumentTopics,
        sweep: u64,
    ) -> Result<(), Error> {
        let draws = Draws::new(self.seed, 1 + sweep);
        for group in 0..self.documents.groups.len() {
            self.rows.load(agent, &self.documents, group, false)?;
            let frozen = Frozen::new(&self.alpha, self.beta, self.vocabulary, &self.totals);
            let mut changes = vec![0; self.job.topics];
            of_documents.sample(&mut Group {
                documents: &self.documents,
                words: &self.documents.groups[group],
                frozen: &frozen,
                draws,
                topics: &mut self.topics,
                rows: &mut self.rows,
                changes: &mut changes,
            });
            self.rows.store(agent)?;
            Exchange::new(agent).sum(&mut changes)?;
            self.totals.iter_mut().zip(changes).for_each(|(total, change)| *total += change);
        }
        if cfg!(debug_assertions) {
            agent.barrier()?;
            self.check(agent)?;
        }
        Ok(())
    }

    /// Fits beta to the counts of words.
    fn optimize_beta(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        for _ in 0..BETA_STEPS {
            let argument = beta_argument(self.beta);
            let [of_words] = self.rows.fold(agent, &self.documents, &self.topics, BETA, &argument)?;
            self.beta = next_beta(self.beta, of_words, self.vocabulary, &self.totals);
        }
        Ok(())
    }

    /// The two parts of the logarithm of the joint probability of the tokens and their topics: of the tokens given the topics,
    /// and of the topics.
    fn log_likelihood(&mut self, counts: &DocumentCounts, agent: &mut dyn Agent) -> Result<[f64; 2], Error> {
        let argument = likelihood_argument(self.beta);
        let [of_words] = self.rows.fold(agent, &self.documents, &self.topics, LIKELIHOOD, &argument)?;
        let all = self.vocabulary as f64 * self.beta;
        let of_totals: f64 =
            self.totals.iter().map(|total| ln_gamma(*total as f64 + all) - ln_gamma(all)).sum();
        let of_topics = counts.log_likelihood(&self.alpha, self.size, &mut Exchange::new(agent))?;
        Ok([of_words - of_totals, of_topics])
    }

    /// The metrics of the training; their sums are those of all tasks, and task 0 has them.
    fn metrics(
        &mut self,
        agent: &mut dyn Agent,
        likelihood: [f64; 2],
        is_last: bool,
    ) -> Result<MetricAccumulator, Error> {
        let tokens = self.size.tokens as f64;
        let [of_words, of_topics] = likelihood.map(|part| part / tokens);
        let mut shown = vec![
            ("log_likelihood", of_words + of_topics),
            ("log_likelihood_words", of_words),
            ("log_likelihood_topics", of_topics),
        ];
        if is_last {
            let words = top_words(&mut self.rows, agent, &self.documents, &self.topics, self.job.topics)?;
            let mut exchange = Exchange::new(agent);
            let coherence = coherence(&words, &self.documents, self.size.documents, &mut exchange)?;
            shown.extend(coherence.into_iter().flat_map(|mean| [("umass", mean.umass), ("npmi", mean.npmi)]));
        }
        let mut parts = NamedAccumulator::default();
        let is_first = agent.task() == 0;
        if is_first {
            parts.loss.add(-(of_words + of_topics), tokens);
        }
        parts.loss.record_count = self.documents.count() as u64;
        for (name, value) in shown {
            let mut metric = NamedMetric::new(name, MergeRule::Sum);
            metric.add(if is_first { value } else { 0.0 }, 1.0);
            parts.metrics.push(metric);
        }
        Ok(MetricAccumulator::Named(parts))
    }
}

impl Learner for Sampling<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let (job, agent) = (self.job, &mut *task.agent);
        let mut of_documents = DocumentTopics::new(&self.documents, &self.topics, job.topics);
        let end = ((epoch + 1) * EPOCH_SWEEPS).min(job.sweeps);
        for sweep in epoch * EPOCH_SWEEPS..end {
            self.sweep(agent, &mut of_documents, sweep)?;
        }
        let histogram = of_documents.histogram(self.documents.count());
        let counts = DocumentCounts::new(histogram, &self.documents.lengths);
        if job.optimize_alpha {
            counts.optimize(&mut self.alpha, self.size, &mut Exchange::new(agent))?;
        }
        agent.barrier()?;
        if job.optimize_beta {
            self.optimize_beta(agent)?;
        }
        let likelihood = self.log_likelihood(&counts, agent)?;
        let own_loss = if agent.task() == 0 { -likelihood[0] - likelihood[1] } else { 0.0 };
        let flow = task.coordinator.report_progress(agent.task(), self.documents.count() as u64, own_loss);
        let mut stops = [f64::from(u8::from(flow == StepDecision::Stop))];
        agent.all_reduce(&mut stops)?;
        let is_stopped = stops[0] > 0.0;
        let is_last = end == job.sweeps || is_stopped;
        let epoch_count = if is_last { epoch + 1 } else { job.sweeps.div_ceil(EPOCH_SWEEPS) };
        Ok(Some(EpochEnd {
            training: self.metrics(agent, likelihood, is_last)?,
            record_count: self.documents.count() as u64,
            epoch_count,
            is_stopped,
            is_last,
            notice: self.notice.take(),
        }))
    }

    fn write_model(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        let agent = &mut *task.agent;
        let topics = self.job.topics;
        let words = top_words(&mut self.rows, agent, &self.documents, &self.topics, topics)?;
        self.rows.write(agent, &self.documents, &self.topics)?;
        if agent.task() == 0 {
            agent.push(Model::TOTALS, ONE_ROW, Values::I64(&self.totals))?;
            let mut prior = self.alpha.clone();
            prior.extend([self.beta, self.vocabulary as f64]);
            agent.push(Model::PRIOR, ONE_ROW, Values::F64(&prior))?;
            let mut keys = vec![-1i64; topics * TOP_WORDS];
            for (row, words) in keys.chunks_exact_mut(TOP_WORDS).zip(words) {
                row.iter_mut().zip(words).for_each(|(place, key)| *place = key as i64);
            }
            let numbers: Vec<u64> = (0..topics as u64).collect();
            agent.push(Model::TOP_WORDS, rows_of(&numbers), Values::I64(&keys))?;
        }
        agent.tick()?;
        Ok(agent.barrier()?)
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        task_loop::encode(&State { topics: self.topics.clone(), alpha: self.alpha.clone(), beta: self.beta })
    }
}
