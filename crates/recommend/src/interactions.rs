//! Which users have chosen or rated which items, grouped by the rows of one side: the users, or the items.

use matrix::{ElementType, OwnedValues, RowBlock};

use algo::error::Error;

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
    pub(super) fn block(&self) -> RowBlock {
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
