//! The primary is lost at any moment of a job of three tasks.

use std::time::Duration;

use matrix::{Consistency, OwnedValues};
use proptest::prelude::*;
use rpc::Message;
use rpc::message::{Push, PushPosition};
use rpc::service::{ConnectionId, Effect, Service};

use super::super::world::*;
use super::{Pair, asked_push};

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(i8),
    Tick,
    Pull,
    Leave,
    Reconnect,
    Deliver,
    Break,
}

fn step() -> impl Strategy<Value = (u32, Step)> {
    let kind = prop_oneof![
        6 => any::<i8>().prop_map(Step::Push),
        4 => Just(Step::Tick),
        2 => Just(Step::Pull),
        1 => Just(Step::Leave),
        1 => Just(Step::Reconnect),
        6 => Just(Step::Deliver),
        1 => Just(Step::Break),
    ];
    (0..3u32, kind)
}

/// A task as its agent sees it.
struct Task {
    id: u32,
    at: ConnectionId,
    clock: u64,
    index: u32,
    sent: Vec<Push>,
    has_left: bool,
}

fn position(push: &Push) -> PushPosition {
    PushPosition { clock: push.clock, index: push.index }
}

/// The pushes below a watermark.
fn below(sent: &[Push], mark: PushPosition) -> usize {
    sent.iter().filter(|push| position(push) < mark).count()
}

struct Run {
    pair: Pair,
    tasks: Vec<Task>,
    next_connection: ConnectionId,
    /// What the primary has sent.
    seen: Vec<Effect>,
}

impl Run {
    fn new(staleness: u64) -> Self {
        let task =
            |id: u32| Task { id, at: u64::from(id), clock: 0, index: 0, sent: Vec::new(), has_left: false };
        let pair = Pair::with_job(3, Consistency::Ssp { staleness });
        Self { pair, tasks: (0..3).map(task).collect(), next_connection: 10, seen: Vec::new() }
    }

    fn step(&mut self, task: usize, step: Step) {
        let Self { pair, tasks, next_connection, seen } = self;
        let task = &mut tasks[task];
        if task.has_left && !matches!(step, Step::Deliver | Step::Break) {
            return;
        }
        match step {
            Step::Push(value) => {
                let message = asked_push(task.id, task.clock, task.index, f64::from(value));
                task.index += 1;
                if let Message::Push(push) = &message {
                    task.sent.push(push.clone());
                }
                seen.extend(pair.tell_primary(task.at, message));
            }
            Step::Tick => {
                (task.clock, task.index) = (task.clock + 1, 0);
                seen.extend(pair.tell_primary(task.at, tick(task.id, task.clock)));
            }
            Step::Pull => {
                seen.extend(pair.tell_primary(task.at, Message::Pull(pull(3, task.id, task.clock))));
            }
            Step::Leave => {
                task.has_left = true;
                seen.extend(pair.tell_primary(task.at, leave(task.id)));
            }
            Step::Reconnect => {
                // What waits at the lane is dropped with the connection, and sent again.
                pair.primary.on_closed(Duration::ZERO, task.at, seen);
                task.at = *next_connection;
                *next_connection += 1;
                seen.extend(pair.tell_primary(task.at, hello(JOB, task.id)));
                let mark = pair.primary.state().jobs[&JOB].mark(task.id);
                for push in task.sent.iter().filter(|push| position(push) >= mark) {
                    seen.extend(pair.tell_primary(task.at, Message::Push(push.clone())));
                }
                seen.extend(pair.tell_primary(task.at, tick(task.id, task.clock)));
            }
            Step::Deliver => {
                pair.deliver_one();
                seen.extend(pair.wake_primary());
            }
            Step::Break => {
                if pair.link.0.lock().unwrap().is_open {
                    let has = pair.open_link().expect("it is the same primary");
                    assert_eq!(has, pair.link.0.lock().unwrap().confirmed);
                }
            }
        }
    }

    /// The number of pushes of a task that were acknowledged over its last connection.
    fn acknowledged(&self, task: &Task) -> usize {
        let marks = self.seen.iter().filter_map(|effect| match effect {
            Effect::Send { message: Message::Done(done), connection } if *connection == task.at => {
                Some(below(&task.sent, done.applied))
            }
            _ => None,
        });
        marks.max().unwrap_or(0)
    }

    /// All tasks go on at the standby, and leave.
    fn go_on_at_standby(&mut self) {
        for task in &self.tasks {
            let at = 20 + u64::from(task.id);
            self.pair.tell_standby(at, hello(JOB, task.id));
            let mark = self.pair.standby.state().jobs[&JOB].mark(task.id);
            for push in task.sent.iter().filter(|push| position(push) >= mark) {
                self.pair.tell_standby(at, Message::Push(push.clone()));
            }
            self.pair.tell_standby(at, tick(task.id, task.clock));
        }
        for task in &self.tasks {
            self.pair.tell_standby(20 + u64::from(task.id), leave(task.id));
        }
    }

    /// The sum of all pushes.
    fn sum(&self) -> f64 {
        let pushes = self.tasks.iter().flat_map(|task| &task.sent);
        let value = |push: &Push| match &push.values {
            rpc::WireValues::Exact(OwnedValues::F64(values)) => values[0],
            other => panic!("{other:?}"),
        };
        pushes.map(value).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The standby has every push whose answer was sent, and no push twice: the tasks send the rest again, and then the rows
    /// are those of a lane that was never disturbed.
    #[test]
    fn whenever_the_primary_is_lost_the_standby_goes_on(
        steps in proptest::collection::vec(step(), 0..80),
        staleness in 0..3u64,
    ) {
        let mut run = Run::new(staleness);
        for (task, step) in steps {
            run.step(task as usize, step);
        }
        run.pair.lose_primary();
        for task in &run.tasks {
            let job = &run.pair.standby.state().jobs[&JOB];
            let (there, acknowledged) = (below(&task.sent, job.mark(task.id)), run.acknowledged(task));
            prop_assert!(there >= acknowledged, "task {}: {there} of {acknowledged} are there", task.id);
            prop_assert!(job.clock_table.last_clock(task.id).unwrap_or(0) <= task.clock);
        }
        run.go_on_at_standby();
        let expected = run.sum();
        prop_assert_eq!(run.pair.rows_of_standby(), vec![expected; 2]);
    }
}
