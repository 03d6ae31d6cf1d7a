//! The job of a checkpoint from which a training continues.

use std::path::Path;

use driver::Error;
use job::RawJob;
use job::checkpoints::{CheckpointSettings, ResumeFrom, default_location};

/// The job of the checkpoint from which a command continues that names no algorithm; none if it does not continue one.
/// `flags` are its settings.
pub fn saved_job(flags: &RawJob) -> Result<Option<RawJob>, Error> {
    let last = |name: &str| flags.get(name).and_then(|(_, texts)| texts.last()).cloned();
    let Some(resume) = last("resume") else { return Ok(None) };
    let (location, number) = match ResumeFrom::parse(&resume) {
        Some(ResumeFrom::Place(place)) => checkpoint::folder::split_place(&place),
        Some(ResumeFrom::Latest) | None => {
            let beside = |model: String| default_location(Path::new(&model)).display().to_string();
            let Some(location) = last("checkpoints").or_else(|| last("model").map(beside)) else {
                return Err(Error::request(
                    format!("--resume {resume} without --model does not say which training is meant"),
                    "give --model, or name the folder of the checkpoints with --resume",
                ));
            };
            (location, None)
        }
    };
    let folder = checkpoint::Folder::open(&location)?;
    let Some(number) = number.or(folder.numbers()?.last().copied()) else {
        return Err(checkpoint::Error::NoCheckpoint { location }.into());
    };
    let job = saved_job_of(&folder.manifest(number)?, &location)?;
    // What the earlier command printed and replaced says nothing about this one.
    Ok(Some(job.without(&["quiet", "json", "overwrite", "resume"])))
}

/// The job of a checkpoint.
pub fn saved_job_of(manifest: &checkpoint::Manifest, location: &str) -> Result<RawJob, Error> {
    if let Some(title) = manifest.session() {
        return Err(Error::request(
            format!("{location} has the checkpoints of a session ({title}), not of a training"),
            "open a session of the parameter service with them",
        ));
    }
    Ok(RawJob::from_submitted(&manifest.job)?)
}

/// The folder and the number of the checkpoint to continue from; without a number, the newest one.
pub fn resume_place(settings: &CheckpointSettings) -> Option<(String, Option<u64>)> {
    match &settings.resume {
        None => None,
        Some(ResumeFrom::Latest) => Some((settings.location.clone(), None)),
        Some(ResumeFrom::Place(place)) => Some(checkpoint::folder::split_place(place)),
    }
}
