//! How the pairs of the data are dealt to the tasks: read, appended to lists, divided, and sealed.

use algo::error::Error;
use algo::job::TrainTask;
use data::BatchStream;
use matrix::{
    Agent, ElementType, ListMatrix, ListSelection, MatrixId, MatrixSpec, PushRule, RowBlock, Storage,
};

use super::interactions::{Duplicates, Interactions, pairs_of};
use super::model::seen;
use super::validation::{self, Validation};

/// Matrices of [`specs`].
pub(super) const LIST_MATRICES: u32 = 3;

/// The list matrices of a training, after those of the model: the pairs by user, by item, and those of validation data by user.
pub(super) fn specs(duplicates: Duplicates, partition_count: u32) -> [MatrixSpec; LIST_MATRICES as usize] {
    ["pairs_of_users", "pairs_of_items", "validation_pairs"].map(|name| {
        let rule = if duplicates == Duplicates::Sum { PushRule::Add } else { PushRule::Assign };
        let spec = ListMatrix::spec(name, ElementType::F32, 1, rule, partition_count);
        let storage = if duplicates == Duplicates::Error { Storage::UniqueList } else { Storage::List };
        MatrixSpec { storage, ..spec }
    })
}

/// How pairs are read and divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dealing {
    pub(super) are_ratings: bool,
    /// The lists are those of a saved training.
    pub(super) is_saved: bool,
    pub(super) duplicates: Duplicates,
    /// Share of the items of each user that is held out.
    pub(super) held_share: f64,
}

/// The pairs of a training, dealt to its tasks.
pub(super) struct Dealt {
    /// Those of the users that this task owns.
    pub(super) users: Interactions,
    /// Those of its items.
    pub(super) items: Interactions,
    /// All of them, on the servers.
    pub(super) by_user: TrainingPairs,
    pub(super) by_item: ListMatrix,
    /// Of choices that were held out.
    pub(super) validation: Option<Validation>,
}

/// The lists of users as they were read, from which pulls leave out what is held out. The lists `seen` of the model may also have
/// those of an earlier training.
pub(super) struct TrainingPairs {
    lists: ListMatrix,
    held_share: f64,
    seed: u64,
}

impl TrainingPairs {
    /// The pairs of a selection of users.
    pub(super) fn pull(
        &self,
        agent: &mut dyn Agent,
        users: &ListSelection<'_>,
    ) -> Result<Interactions, Error> {
        let all = Interactions::of_block(self.lists.pull(agent, users)?);
        if self.held_share == 0.0 {
            return Ok(all);
        }
        let [training, _] = validation::split(&all, self.held_share, self.seed);
        Ok(Interactions::of_block(training))
    }
}

/// Reads the pairs of the task's share of the data and deals them to tasks. The lists of a saved training have them already: then
/// the data are read only so that the reader counts records and names users and items. A record of weight 0 is not there.
/// Ratings are labels; the strength of a choice is the weight of its record.
pub(super) fn deal(task: &mut TrainTask<'_>, dealing: Dealing) -> Result<Dealt, Error> {
    let Dealing { are_ratings, is_saved, duplicates, held_share } = dealing;
    let first = task.model.matrix_count() as u32;
    let mut lists = Vec::new();
    for (at, spec) in (first..).zip(specs(duplicates, 1)) {
        lists.push(ListMatrix::new(MatrixId(at), &spec)?);
    }
    let [read_pairs, by_item, held_pairs] =
        lists.try_into().unwrap_or_else(|_| unreachable!("there are three"));
    let fill = |task: &mut TrainTask<'_>, lists: &ListMatrix, of_training: bool| {
        let stream = if of_training { Some(&mut *task.data) } else { task.validation.as_deref_mut() };
        if let Some(stream) = stream.filter(|_| of_training || !are_ratings) {
            read(stream, task.agent, are_ratings, (!is_saved).then_some(lists))?;
        }
        if is_saved {
            return Ok(());
        }
        lists.seal(task.agent).map_err(|error| match duplicates {
            Duplicates::Error => Error::unsuitable(format!(
                "a user has the same item twice: {error}. Set duplicates=last or sum, or remove one of the two"
            )),
            Duplicates::Sum | Duplicates::Last => error.into(),
        })
    };
    fill(task, &read_pairs, true)?;
    task.data.release_cache();
    let all = Interactions::of_block(read_pairs.owned(task.agent)?);
    let (users, held_out) = if held_share > 0.0 {
        let [users, held_out] = validation::split(&all, held_share, task.seed).map(Interactions::of_block);
        (users, Some(held_out))
    } else {
        (all, None)
    };
    if !is_saved {
        let seen = seen(task.model)?;
        for (lists, pairs) in [(&by_item, &users.transposed()), (&seen, &users)] {
            lists.append(task.agent, &pairs.block())?;
            lists.seal(task.agent)?;
        }
    }
    let items = Interactions::of_block(by_item.owned(task.agent)?);
    if held_share > 0.0 && task.validation.is_some() {
        return Err(Error::unsuitable(
            "validation_share and --validate or --validate-from both hold data out: leave one of them out",
        ));
    }
    fill(task, &held_pairs, false)?;
    let held_out = match held_out {
        Some(held_out) => held_out,
        None => Interactions::of_block(held_pairs.owned(task.agent)?),
    };
    let validation = Validation::new(task, &held_out, &by_item)?;
    let by_user = TrainingPairs { lists: read_pairs, held_share, seed: task.seed };
    Ok(Dealt { users, items, by_user, by_item, validation })
}

/// Reads a share of the data, and appends its pairs to lists if they are given.
fn read(
    stream: &mut dyn BatchStream,
    agent: &mut dyn Agent,
    are_ratings: bool,
    lists: Option<&ListMatrix>,
) -> Result<(), Error> {
    stream.start_epoch(0)?;
    while let Some(batch) = stream.next()? {
        let mut block = RowBlock::no_lists(ElementType::F32);
        for r in (0..batch.record_count()).filter(|&r| batch.weight(r) != 0.0) {
            let weight = batch.weight(r);
            if are_ratings && weight != 1.0 {
                return Err(Error::unsuitable(
                    "ratings have weights (--weight), which this algorithm does not use: leave --weight out",
                ));
            }
            let value = if are_ratings { batch.labels[r] as f32 } else { weight };
            for (user, item) in pairs_of(batch, r)? {
                block.push_list(user, &[item], &[value]);
            }
        }
        if let Some(lists) = lists {
            lists.append(agent, &block)?;
        }
    }
    Ok(())
}
