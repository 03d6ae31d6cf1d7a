//! Which users have chosen or rated which items, grouped by the rows of one side: the users, or the items.

use data::BatchStream;
use matrix::{
    Agent, ElementType, ListMatrix, ListSelection, MatrixId, MatrixSpec, OwnedValues, PushRule, RowBlock,
    Storage,
};

use super::model::seen;
use super::validation::{self, Validation};
use algo::error::Error;
use algo::job::TrainTask;

algo::choices! {
    /// What counts where a user has the same item several times.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Duplicates {
        Sum = "sum": "their values are added up";
        Last = "last": "the last one in the order of the data";
        Error = "error": "the training ends";
    }
}

/// The pairs of the rows of one side that a task owns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Interactions {
    /// The own rows, ascending.
    pub(super) keys: Vec<u64>,
    /// The pairs of row r are `starts[r]..starts[r + 1]`.
    pub(super) starts: Vec<usize>,
    /// For each pair the position of the other side in `other_keys`; ascending in each row.
    pub(super) others: Vec<u32>,
    /// For each pair its rating or strength.
    pub(super) values: Vec<f32>,
    /// The distinct rows of the other side, ascending.
    pub(super) other_keys: Vec<u64>,
}

impl Interactions {
    /// The rows of a block of lists.
    pub(super) fn of_block(block: RowBlock) -> Self {
        let mut starts = vec![0];
        starts.extend(block.rows().map(|(_, range)| range.end));
        let mut other_keys = block.entries().to_vec();
        other_keys.sort_unstable();
        other_keys.dedup();
        let position = |key: &u64| other_keys.binary_search(key).expect("the keys of all pairs") as u32;
        let others = block.entries().iter().map(position).collect();
        let OwnedValues::F32(values) = block.values else { unreachable!("the lists have such values") };
        Self { keys: block.keys, starts, others, values, other_keys }
    }

    /// The same pairs, grouped by the other side.
    pub(super) fn transposed(&self) -> Self {
        let mut starts = vec![0; self.other_keys.len() + 1];
        self.others.iter().for_each(|&other| starts[other as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let mut next = starts.clone();
        let (mut others, mut values) = (vec![0; self.others.len()], vec![0.0; self.values.len()]);
        for row in 0..self.row_count() {
            for pair in self.row(row) {
                let place = &mut next[self.others[pair] as usize];
                (others[*place], values[*place]) = (row as u32, self.values[pair]);
                *place += 1;
            }
        }
        Self { keys: self.other_keys.clone(), starts, others, values, other_keys: self.keys.clone() }
    }

    /// The pairs as rows of a list matrix.
    fn block(&self) -> RowBlock {
        let mut block = RowBlock::no_lists(ElementType::F32);
        for row in 0..self.row_count() {
            let others = self.row(row).map(|pair| self.other_keys[self.others[pair] as usize]);
            block.push_list(self.keys[row], &others.collect::<Vec<u64>>(), &self.values[self.row(row)]);
        }
        block
    }

    pub(super) fn row_count(&self) -> usize {
        self.keys.len()
    }

    /// The pairs of a row.
    pub(super) fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }
}

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
    let (users, held) = if held_share > 0.0 {
        let [users, held] = validation::split(&all, held_share, task.seed).map(Interactions::of_block);
        (users, Some(held))
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
    let held = match held {
        Some(held) => held,
        None => Interactions::of_block(held_pairs.owned(task.agent)?),
    };
    let validation = Validation::new(task, &held, &by_item)?;
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

/// The user of a record with each of its items.
///
/// # Errors
/// If the record has no user.
pub fn pairs_of(batch: &data::Batch, r: usize) -> Result<impl Iterator<Item = (u64, u64)> + '_, Error> {
    let of_field = move |field: u32| {
        let entries = batch.entries(r).filter(move |&i| batch.fields.get(i) == Some(&field));
        entries.map(|i| batch.columns[batch.indices[i] as usize])
    };
    let Some(user) = of_field(0).next() else {
        return Err(Error::unsuitable(
            "a record has no user: name the columns with --user and --item, or give --format edges or adjacency",
        ));
    };
    Ok(of_field(1).map(move |item| (user, item)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_grouped_by_either_side() {
        let mut block = RowBlock::no_lists(ElementType::F32);
        block.push_list(5, &[20, 30], &[2.0f32, 5.0]);
        block.push_list(7, &[10, 30], &[3.0f32, 4.0]);
        let users = Interactions::of_block(block);
        assert_eq!((&users.keys[..], &users.other_keys[..]), (&[5, 7][..], &[10, 20, 30][..]));
        assert_eq!((&users.starts[..], &users.others[..]), (&[0, 2, 4][..], &[1, 2, 0, 2][..]));
        assert_eq!(users.values, [2.0, 5.0, 3.0, 4.0]);
        let items = users.transposed();
        assert_eq!((&items.starts[..], &items.others[..]), (&[0, 1, 2, 4][..], &[1, 0, 0, 1][..]));
        assert_eq!(items.values, [3.0, 2.0, 5.0, 4.0]);
        assert_eq!(items.transposed(), users);
    }
}
