//! What a step prefetches when its stream of batches can be looked at.

use data::{BatchStream, LookAhead, MemoryStream};
use matrix::{Agent, Clock, Error, Keys, LocalAgent, MatrixId, PullTicket, Selection, Values, ValuesMut};

use super::HARNESS;
use super::harness::{clicks, f32s};

const BATCH_COUNT: usize = 4;
const EPOCHS: u64 = 2;
/// The largest number of matrices of a linear model: weights, intercept, moments.
const MATRICES: usize = 3;

/// A call between the first step and the last.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Pull(MatrixId),
    /// With the keys that are listed.
    Prefetch(MatrixId, Vec<u64>),
    Wait(MatrixId),
    Push(MatrixId),
    Tick,
}

/// Records the calls of an agent, and checks that a ticket is waited for at its clock.
struct Recording {
    agent: LocalAgent,
    calls: Vec<Call>,
}

impl Agent for Recording {
    fn task(&self) -> u32 {
        self.agent.task()
    }

    fn task_count(&self) -> u32 {
        self.agent.task_count()
    }

    fn clock(&self) -> Clock {
        self.agent.clock()
    }

    fn pull(&mut self, matrix: MatrixId, part: Selection<'_>, out: ValuesMut<'_>) -> Result<(), Error> {
        self.calls.push(Call::Pull(matrix));
        self.agent.pull(matrix, part, out)
    }

    fn prefetch(&mut self, matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> PullTicket {
        let (Selection::Rows(keys) | Selection::Columns { keys, .. }) = selection;
        let listed = if let Keys::Sorted(keys) = keys { keys.to_vec() } else { Vec::new() };
        self.calls.push(Call::Prefetch(matrix, listed));
        self.agent.prefetch(matrix, selection, clock)
    }

    fn wait(&mut self, ticket: &PullTicket, out: ValuesMut<'_>) -> Result<(), Error> {
        assert_eq!(ticket.clock(), self.agent.clock());
        self.calls.push(Call::Wait(ticket.matrix()));
        self.agent.wait(ticket, out)
    }

    fn push(&mut self, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        self.calls.push(Call::Push(matrix));
        self.agent.push(matrix, part, values)
    }

    fn tick(&mut self) -> Result<(), Error> {
        self.calls.push(Call::Tick);
        self.agent.tick()
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.agent.barrier()
    }

    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), Error> {
        self.agent.all_reduce(values)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.agent.finish()
    }
}

/// Trains and returns the weights and the calls of the steps.
fn train(looks_ahead: bool) -> (Vec<f32>, Vec<Call>) {
    let settings = format!("epochs={EPOCHS} shuffle=none standardize=true");
    let single = HARNESS.single_task("lr", &settings);
    let mut agent = Recording { agent: single.store.agent(0), calls: Vec::new() };
    let mut batches = MemoryStream::new(clicks(1, BATCH_COUNT, 20));
    let mut look_ahead;
    let data: &mut dyn BatchStream = if looks_ahead {
        look_ahead = LookAhead::new(&mut batches);
        &mut look_ahead
    } else {
        &mut batches
    };
    single.train(&mut agent, data);
    let first = agent.calls.iter().position(|call| *call == Call::Pull(MatrixId(0))).unwrap();
    (f32s(&single.store, MatrixId(0)), agent.calls.split_off(first))
}

#[test]
fn a_step_asks_for_what_the_next_one_reads_before_it_pushes_and_learns_the_same() {
    let matrices: Vec<MatrixId> = (0..MATRICES as u32).map(MatrixId).collect();
    let pushes_and_tick = [Call::Push(matrices[0]), Call::Push(matrices[1]), Call::Tick];
    let (mut plain, mut ahead) = (Vec::new(), Vec::new());
    for _ in 0..EPOCHS {
        let batches = clicks(1, BATCH_COUNT, 20);
        for i in 0..BATCH_COUNT {
            let read = |call: fn(MatrixId) -> Call| matrices.iter().copied().map(call);
            plain.extend(read(Call::Pull));
            // No step knows the first batch of the next epoch.
            ahead.extend(read(if i == 0 { Call::Pull } else { Call::Wait }));
            if let Some(next) = batches.get(i + 1) {
                let keys = [next.columns.clone(), Vec::new(), next.columns.clone()];
                ahead.extend(matrices.iter().zip(keys).map(|(matrix, keys)| Call::Prefetch(*matrix, keys)));
            }
            plain.extend(pushes_and_tick.clone());
            ahead.extend(pushes_and_tick.clone());
        }
    }
    let (expected, calls) = train(false);
    assert_eq!(calls, plain, "a stream that does not read ahead");
    assert_eq!(train(true), (expected, ahead));
}
