//! EASE^R: the weights B of items, with zeros on the diagonal, that minimize `|X - X B|^2 + lambda |B|^2`, where X has a row for each
//! user. With `P = (X'X + lambda I)^-1`, `B_ji = -P_ji / P_ii` (Steck, 2019, eq. 8).
//!
//! The first task inverts the matrix with all cores of its machine, and the others wait.

use math::solve::invert;
use matrix::{ListMatrix, ListSelection};

use super::dealing::TrainingPairs;
use super::interactions::Interactions;
use algo::error::Error;
use algo::job::TrainTask;

/// Most items: their matrix has 3.2 GB.
const ITEM_LIMIT: u64 = 20_000;
/// Rows that are appended at once.
const APPENDED_ROWS: usize = 256;

/// Refuses more items than a matrix of them has place for.
pub(super) fn check_item_count(count: u64) -> Result<(), Error> {
    if count <= ITEM_LIMIT {
        return Ok(());
    }
    Err(Error::unsuitable(format!(
        "the data have {count} items, and ease inverts a matrix of all pairs of items: it takes at most {ITEM_LIMIT}. Train ials or \
         itemknn, or leave rare items out"
    )))
}

/// Finds the `limit` neighbors of the largest weights of each item, and appends them to `lists`.
pub(super) fn find(
    task: &mut TrainTask<'_>,
    by_user: &TrainingPairs,
    lists: &ListMatrix,
    (lambda, limit): (f64, usize),
) -> Result<(), Error> {
    if task.agent.task() != 0 {
        return Ok(());
    }
    let users = by_user.pull(task.agent, &ListSelection::Range(0, u64::MAX))?;
    let n = users.other_keys.len();
    let mut matrix = products(&users);
    (0..n).for_each(|i| matrix[i * n + i] += lambda);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    invert(&mut matrix, n, threads).map_err(|fault| {
        Error::unsuitable(format!(
            "the matrix of items is not positive definite at the item with the key {}: raise lambda (now {lambda})",
            users.other_keys[fault.column]
        ))
    })?;
    for rows in (0..n).collect::<Vec<usize>>().chunks(APPENDED_ROWS) {
        let mut block = lists.block();
        for &i in rows {
            let row = &matrix[i * n..][..n];
            let mut others: Vec<(usize, f64)> =
                (0..n).filter(|&j| j != i).map(|j| (j, -row[j] / row[i])).collect();
            if others.len() > limit {
                others.select_nth_unstable_by(limit, |a, b| {
                    b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0))
                });
                others.truncate(limit);
                others.sort_unstable_by_key(|(j, _)| *j);
            }
            let keys: Vec<u64> = others.iter().map(|(j, _)| users.other_keys[*j]).collect();
            let weights: Vec<f32> = others.iter().map(|(_, weight)| *weight as f32).collect();
            block.push_list(users.other_keys[i], &keys, &weights);
        }
        lists.append(task.agent, &block)?;
    }
    Ok(())
}

/// The lower triangle of `X'X`.
fn products(users: &Interactions) -> Vec<f64> {
    let n = users.other_keys.len();
    let mut matrix = vec![0.0; n * n];
    for row in 0..users.row_count() {
        for a in users.row(row) {
            let line = &mut matrix[users.others[a] as usize * n..][..n];
            for b in users.row(row).start..=a {
                line[users.others[b] as usize] += f64::from(users.values[a]) * f64::from(users.values[b]);
            }
        }
    }
    matrix
}
