//! What a step costs when all tasks of a worker wait for each other.

use std::sync::Barrier;

use anyhow::Result;
use matrix::{Agent, Axis, Consistency, Keys, MatrixId, Selection, Storage, ValuesMut};
use serde_json::json;
use worker::RemoteAgent;

use super::{ChildServer, Figures, RawTransfer, Transport, close, median, open_job, spec, timed};

const STEP_TASKS: u32 = 4;
const STEPS: u32 = 500;

/// Returns the seconds of the steps of one task, measured once all tasks are connected.
fn small_steps(mut agent: RemoteAgent, start: &Barrier) -> Result<f64> {
    let selection = Selection::Rows(Keys::Sorted(&[0]));
    let mut ticket = agent.prefetch(MatrixId(0), selection, 0);
    let mut step = || -> Result<()> {
        agent.wait(&ticket, ValuesMut::F32(&mut [0.0]))?;
        // Like a worker, it sends the pull of the next step with the tick of this one.
        ticket = agent.prefetch(MatrixId(0), selection, agent.clock() + 1);
        Ok(agent.tick()?)
    };
    let connected = step();
    start.wait();
    connected?;
    let seconds = timed(|| (0..STEPS).try_for_each(|_| step()))?;
    agent.finish()?;
    Ok(seconds)
}

/// Measures BSP steps of four tasks that read one key each.
pub(super) fn steps(
    servers: &[ChildServer],
    raw: &mut RawTransfer<'_>,
    (name, first_job, over): (&str, u32, Transport),
    figures: &mut Figures,
) -> Result<()> {
    let one = &servers[..1];
    let mut matrix = spec("sparse", Storage::Sparse, 1 << 63, 1, Axis::Row);
    matrix.consistency = Consistency::Bsp;
    let mut ratios = Vec::new();
    let (mut step_times, mut pings) = (Vec::new(), Vec::new());
    for round in 0..5u32 {
        let job = first_job + round;
        let mut layout = open_job(job, one, vec![matrix.clone()], STEP_TASKS)?;
        over.set_addresses(&mut layout, one);
        let start = Barrier::new(STEP_TASKS as usize);
        let seconds = std::thread::scope(|scope| {
            let tasks: Vec<_> = (0..STEP_TASKS)
                .map(|task| {
                    let (agent, start) = (RemoteAgent::new(layout.clone(), task, &[]), &start);
                    scope.spawn(move || small_steps(agent?, start))
                })
                .collect();
            let mut slowest = 0.0f64;
            for task in tasks {
                slowest = slowest.max(task.join().expect("a task does not panic")?);
            }
            anyhow::Ok(slowest)
        })?;
        let mut round_pings = Vec::new();
        for _ in 0..STEPS {
            round_pings.push(raw(8)?);
        }
        let (step, ping) = (seconds / f64::from(STEPS), median(round_pings));
        ratios.push(step / ping);
        step_times.push(step);
        pings.push(ping);
        close(job, one)?;
    }
    figures.insert(name.into(), json!([median(step_times), median(pings), median(ratios)]));
    Ok(())
}
