//! A training loop of one's own over parameters: matrix factorization of ratings by two tasks, which pull the rows that a
//! batch needs, push gradients, and tick. The same loop runs on servers when the agents are those of a cluster.
//!
//! ```text
//! cargo run -p matrix --example own_loop
//! ```

#![allow(clippy::print_stdout, reason = "an example")]

use std::sync::Arc;
use std::time::Duration;

use matrix::{
    Agent, Consistency, ElementType, Error, Initializer, Keys, LocalConfig, LocalStore, MatrixId, MatrixSpec,
    PushRule, Schedule, Selection, Values, ValuesMut,
};

const TASKS: u32 = 2;
const FACTORS: usize = 4;
const EPOCHS: usize = 60;
const USERS: MatrixId = MatrixId(0);
const ITEMS: MatrixId = MatrixId(1);

/// A user, an item, and how much the user likes it.
type Rating = (u64, u64, f32);

/// The ratings of a task: it has every second user.
fn ratings(task: u32) -> Vec<Rating> {
    let users = (0..60).filter(|user| user % u64::from(TASKS) == u64::from(task));
    users
        .flat_map(|user| (0..40).map(move |item| (user, item, ((user % 7) * (item % 5)) as f32 / 10.0)))
        .collect()
}

/// A matrix with a row of factors for each key that is ever pushed.
fn factors(name: &str) -> MatrixSpec {
    let rule = PushRule::AdaGrad { rate: 0.2, epsilon: 1.0, schedule: Schedule::Constant, l1: 0.0, l2: 0.0 };
    MatrixSpec {
        initializer: Initializer::Normal { deviation: 0.3 },
        consistency: Consistency::Bsp,
        seed: 1,
        ..MatrixSpec::sparse(name, ElementType::F32, FACTORS as u64, rule, 4)
    }
}

/// The distinct keys, ascending.
fn distinct(keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut keys: Vec<u64> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The loop of one task. Returns the root mean square error of all tasks in each epoch.
fn run(agent: &mut dyn Agent) -> Result<Vec<f64>, Error> {
    let (ratings, mut errors) = (ratings(agent.task()), Vec::new());
    for _ in 0..EPOCHS {
        let mut sums = [0.0, 0.0];
        for batch in ratings.chunks(200) {
            let users = distinct(batch.iter().map(|rating| rating.0));
            let items = distinct(batch.iter().map(|rating| rating.1));
            let [of_users, of_items] = [&users, &items].map(|keys| Selection::Rows(Keys::Sorted(keys)));
            let [mut user_rows, mut item_rows] =
                [&users, &items].map(|keys| vec![0f32; keys.len() * FACTORS]);
            agent.pull(USERS, of_users, ValuesMut::F32(&mut user_rows))?;
            agent.pull(ITEMS, of_items, ValuesMut::F32(&mut item_rows))?;
            let mut user_gradient = vec![0f32; user_rows.len()];
            let mut item_gradient = vec![0f32; item_rows.len()];
            for (user, item, rating) in batch {
                let row =
                    |keys: &[u64], key| keys.binary_search(key).expect("the keys of the batch") * FACTORS;
                let (u, i) = (row(&users, user), row(&items, item));
                let predicted: f32 = (0..FACTORS).map(|f| user_rows[u + f] * item_rows[i + f]).sum();
                let error = predicted - rating;
                for f in 0..FACTORS {
                    user_gradient[u + f] += error * item_rows[i + f];
                    item_gradient[i + f] += error * user_rows[u + f];
                }
                sums[0] += f64::from(error * error);
                sums[1] += 1.0;
            }
            agent.push(USERS, of_users, Values::F32(&user_gradient))?;
            agent.push(ITEMS, of_items, Values::F32(&item_gradient))?;
            // The end of the step: under BSP, the next pull sees the pushes of all tasks up to here.
            agent.tick()?;
        }
        agent.all_reduce(&mut sums)?;
        errors.push((sums[0] / sums[1]).sqrt());
    }
    agent.finish()?;
    Ok(errors)
}

fn main() -> Result<(), Error> {
    let mut store = LocalStore::new(LocalConfig { task_count: TASKS, wait_limit: Duration::from_mins(1) });
    store.create(factors("users"))?;
    store.create(factors("items"))?;
    let store = Arc::new(store);
    let errors = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let mut agent = store.agent(task);
                scope.spawn(move || run(&mut agent))
            })
            .collect();
        let results = tasks.into_iter().map(|task| task.join().expect("a task panicked"));
        results.collect::<Result<Vec<_>, Error>>()
    })?;
    let errors = &errors[0];
    println!(
        "root mean square error: {:.4} in the first epoch, {:.4} in the last",
        errors[0],
        errors[EPOCHS - 1]
    );
    println!("rows: {} users, {} items", store.export(USERS)?.keys.len(), store.export(ITEMS)?.keys.len());
    assert!(errors[EPOCHS - 1] < 0.1 * errors[0], "the tasks have learned the ratings");
    Ok(())
}
