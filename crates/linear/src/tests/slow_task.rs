//! Training under SSP(2) with a task that is always as slow as the bound allows.

use std::sync::{Condvar, Mutex};

use matrix::Consistency;

use super::HARNESS;
use super::harness::{Run, WAIT_LIMIT, clicks};
use algo::coordinator::{EpochDecision, StepDecision};

const STALENESS: u64 = 2;
const BATCH_COUNT: u64 = 20;

/// Steps of the slow task 0 and the fast task 1, and the largest lead of the fast one.
#[derive(Default)]
struct Pace {
    steps: Mutex<([u64; 2], u64)>,
    moved: Condvar,
}

impl Pace {
    /// Runs after a step: the slow task waits until the fast one cannot continue without it. The fast task, at clock c,
    /// may make its step when the slow one has ticked c - 2 times: it makes 3 more steps, unless its epoch ends before.
    fn step(&self, task: u32) -> StepDecision {
        let mut state = self.steps.lock().unwrap();
        state.0[task as usize] += 1;
        state.1 = state.1.max(state.0[1].saturating_sub(state.0[0]));
        self.moved.notify_all();
        if task == 0 {
            let mine = state.0[0];
            let reach = (mine + STALENESS + 1).min(mine.div_ceil(BATCH_COUNT) * BATCH_COUNT);
            let waited =
                self.moved.wait_timeout_while(state, WAIT_LIMIT, |state| state.0[1] < reach).unwrap().1;
            assert!(
                !waited.timed_out(),
                "the fast task did not come to {reach} while the slow one stood at {mine}"
            );
        }
        StepDecision::Continue
    }
}

#[test]
fn a_slow_task_under_ssp_is_waited_for_and_the_objective_is_reached() {
    // Both runs reach the optimum of a convex objective, up to the convergence of 60 passes.
    const TOLERANCE: f64 = 1e-3;
    let settings = "epochs=60 shuffle=none learning_rate=0.3 l2=1";
    let (slow, fast) = (clicks(1, BATCH_COUNT as usize, 20), clicks(2, BATCH_COUNT as usize, 20));
    let all = [slow.clone(), fast.clone()].concat();
    let serial = HARNESS.train("lr", settings, vec![all.clone()], Some(&all), Consistency::Bsp).unwrap();
    let pace = Pace::default();
    let consistency = Consistency::Ssp { staleness: STALENESS };
    let flow = |task: u32, _: u64| pace.step(task);
    let run =
        HARNESS.run("lr", settings, vec![slow, fast], Some(&all), consistency, EpochDecision::Continue, flow);
    let loss = |run: &Run| run.validation[59]["loss"];
    let (expected, actual) = (loss(&serial), loss(&run.unwrap()));
    assert!((actual - expected).abs() < TOLERANCE, "{actual}, serial {expected}");
    // The lead may be one more than the bound plus the current step: the slow task may have ticked without being
    // counted yet.
    let lead = pace.steps.lock().unwrap().1;
    assert!((STALENESS + 1..=STALENESS + 2).contains(&lead), "the fast task was ahead by {lead} steps");
}
