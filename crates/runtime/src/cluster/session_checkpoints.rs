//! Checkpoints of sessions of the parameter service: all matrices of a session in a folder of the name that its host
//! chose, below the folder of the service. They have the format of the checkpoints of trainings.
//!
//! Invariant: a name belongs to one session at a time. A session that has begun with the newest checkpoint of a name may
//! go on writing there; from its first one on, the earlier owner can write no more.

use std::time::{SystemTime, UNIX_EPOCH};

use checkpoint::folder::Claim;
use checkpoint::{Folder, Manifest, PartFile, RowsOf, TrainingId};
use driver::messages::CheckpointPlace;
use driver::{Error, SnapshotPurpose};
use matrix::{MatrixSpec, RowBlock};
use rpc::message::{Fault, FaultKind};
use serde_json::json;

use crate::cluster::servers::Servers;
use crate::worker::checkpoints::{new_training, restore_rows};

/// Number of checkpoints that are kept under a name.
const KEPT: usize = 2;
/// The file with the rows.
const ROWS: &str = "rows";

/// The checkpoints of one session.
pub(super) struct SessionCheckpoints {
    /// The folder of the service; none: it was started without one.
    location: Option<String>,
    /// The session, unlike any other one.
    identity: TrainingId,
    title: String,
    /// What the session began with.
    restored: Option<Restored>,
}

/// The state of a name when a session began with it.
struct Restored {
    name: String,
    owner: TrainingId,
    /// The number of the newest checkpoint.
    newest: Option<u64>,
}

/// A matrix of a session, by its number.
pub(super) type SessionSpec = (u32, MatrixSpec);

impl SessionCheckpoints {
    pub(super) fn new(location: Option<String>, title: String) -> Self {
        Self { location, identity: new_training(), title, restored: None }
    }

    fn folder(&self, name: &str) -> Result<Folder, Fault> {
        let Some(location) = &self.location else {
            let text =
                "this service has no folder for checkpoints of sessions: start it with --session-checkpoints";
            return Err(fault(FaultKind::Invalid, text.into()));
        };
        Folder::open(&format!("{}/{name}", location.trim_end_matches('/'))).map_err(|error| refused(&error))
    }

    /// The newest whole checkpoint of a name, with which the session begins.
    pub(super) fn find(&mut self, name: &str) -> Result<SavedMatrices, Fault> {
        let folder = self.folder(name)?;
        let claim = folder.claim().map_err(|error| refused(&error))?;
        let newest = newest(&folder).map_err(|error| refused(&error))?;
        let (latest, damages) = folder.latest().map_err(|error| refused(&error))?;
        for damage in &damages {
            tracing::warn!(
                session = self.title,
                checkpoint = name,
                "a newer checkpoint is not used: {damage}"
            );
        }
        let manifest = match (latest, damages.first()) {
            (Some(manifest), _) => manifest,
            (None, Some(damage)) => return Err(refused(damage)),
            (None, None) => {
                let text = format!("there is no checkpoint {name:?} in {}", folder.location());
                return Err(fault(FaultKind::NotFound, text));
            }
        };
        if manifest.session().is_none() {
            let text = format!("{} has the checkpoints of a training, not of a session", folder.location());
            return Err(fault(FaultKind::Invalid, text));
        }
        self.restored = claim.map(|claim| Restored { name: name.to_owned(), owner: claim.training, newest });
        let place = CheckpointPlace { location: folder.location().to_owned(), number: manifest.number };
        Ok(SavedMatrices { place, specs: manifest.matrices })
    }

    /// Writes a checkpoint of these matrices, which `servers` has by their numbers. Whatever happens, the caller drops the
    /// snapshot, over connections of its own: after an error those of `servers` are of no more use.
    pub(super) fn write(
        &self,
        name: &str,
        matrices: &[SessionSpec],
        servers: &mut Servers,
    ) -> Result<(), Fault> {
        let folder = self.folder(name)?;
        self.take(name, &folder)?;
        let is_taken = servers
            .try_take_snapshot(SnapshotPurpose::Checkpoint, false)
            .map_err(|error| failed(error.to_string()))?;
        if !is_taken {
            let text = "the servers have not enough memory for a snapshot: all rows of the session may change while they are \
                        written, so as much as they take must be free (--memory-limit)";
            return Err(fault(FaultKind::TooLarge, text.into()));
        }
        self.write_snapshot(&folder, matrices, servers).map_err(|error| failed(error.to_string()))
    }

    /// Makes the session the owner of a folder.
    fn take(&self, name: &str, folder: &Folder) -> Result<(), Fault> {
        let claim = Claim { training: self.identity.clone(), title: self.title.clone() };
        // A folder that has no complete checkpoint belongs to a session that has probably died before its first one.
        let taken = newest(folder).and_then(|newest| match (folder.claim()?, newest, &self.restored) {
            (Some(owner), None, _) => folder.take_over(&owner.training, &claim),
            (Some(_), _, Some(restored)) if restored.name == name && restored.newest == newest => {
                folder.take_over(&restored.owner, &claim)
            }
            _ => folder.take(&claim),
        });
        taken.map_err(|error| match error {
            checkpoint::Error::OtherTraining { owner, .. } => {
                let text = format!(
                    "the checkpoints {name:?} belong to another one ({owner}), and this session has not begun with the newest \
                     of them: open a session with it, choose another name, or remove {}",
                    folder.location()
                );
                fault(FaultKind::Invalid, text)
            }
            other => refused(&other),
        })
    }

    fn write_snapshot(
        &self,
        folder: &Folder,
        matrices: &[SessionSpec],
        servers: &mut Servers,
    ) -> Result<(), Error> {
        let number = newest(folder)?.map_or(1, |newest| newest + 1);
        let failed = |source| folder.write_error(number, ROWS, source);
        let mut part = folder.create_part(number, ROWS)?;
        let mut row_counts = Vec::new();
        for (place, (matrix, _)) in (0..).zip(matrices) {
            let mut row_count = 0;
            let mut write = |rows: &RowBlock| {
                row_count += rows.keys.len() as u64;
                Ok(part.write_rows(place, RowsOf::Now, rows).map_err(failed)?)
            };
            servers.scan(*matrix, SnapshotPurpose::Checkpoint, false, &mut write)?;
            row_counts.push(row_count);
        }
        let size_bytes = folder.finish_part(number, ROWS, part)?;
        let tasks = std::collections::BTreeSet::new();
        let part = PartFile { name: ROWS.into(), size_bytes, tasks, has_rows: true, row_counts };
        let created_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        folder.commit(&Manifest {
            format_version: checkpoint::manifest::VERSION,
            program_version: env!("CARGO_PKG_VERSION").into(),
            training: self.identity.clone(),
            number,
            created_s,
            job: json!({ Manifest::SESSION: self.title }),
            data: Vec::new(),
            task_count: 0,
            epoch: 0,
            is_within_epoch: false,
            clock: 0,
            base: None,
            matrices: matrices.iter().map(|(_, spec)| spec.clone()).collect(),
            parts: vec![part],
        })?;
        folder.prune(KEPT, number)?;
        Ok(())
    }
}

/// The number of the newest complete checkpoint.
fn newest(folder: &Folder) -> Result<Option<u64>, checkpoint::Error> {
    Ok(folder.numbers()?.last().copied())
}

/// A checkpoint with which a session begins.
pub(super) struct SavedMatrices {
    place: CheckpointPlace,
    /// The matrices, by the numbers that they have in the session too.
    pub specs: Vec<MatrixSpec>,
}

impl SavedMatrices {
    /// Sends the rows to the servers, which have the matrices.
    pub(super) fn restore(&self, servers: &mut Servers) -> Result<(), Error> {
        restore_rows(&self.place, servers)
    }
}

fn fault(kind: FaultKind, text: String) -> Fault {
    Fault { request: 0, kind, text, retry_after_ms: 0 }
}

fn refused(error: &checkpoint::Error) -> Fault {
    failed(error.to_string())
}

fn failed(text: String) -> Fault {
    fault(FaultKind::Internal, text)
}
