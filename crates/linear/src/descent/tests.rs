//! The minimizer on an in-process matrix, with one task and objectives given by formulas.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use matrix::{
    Agent, Clock, Error, FunctionCall, Keys, LocalAgent, LocalConfig, LocalStore, MatrixId, Selection,
    Values, ValuesMut,
};

use super::Settings;
use super::line_search::{SearchDecision, WolfeSearch};
use super::minimizer::{DescentCommand, DescentFailure, Minimizer};
use super::proximal::dot;
use super::two_loop::tests::reference_direction;
use super::vectors::{GRADIENT, POINT, VectorLayout};

const COLUMNS: usize = 700;
/// Tolerance after 15 steps; the rounding of the sums grows from step to step.
const TOLERANCE: f64 = 1e-8;

/// Counts the calls of functions.
struct Counting {
    agent: LocalAgent,
    visits: u64,
}

impl Agent for Counting {
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
        self.agent.pull(matrix, part, out)
    }

    fn push(&mut self, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        self.agent.push(matrix, part, values)
    }

    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        self.visits += 1;
        self.agent.pull_function(matrix, call)
    }

    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        self.visits += 1;
        self.agent.push_function(matrix, steps)
    }

    fn tick(&mut self) -> Result<(), Error> {
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

/// Returns value and gradient.
type Objective<'a> = &'a dyn Fn(&[f64]) -> (f64, Vec<f64>);

struct Minimized {
    /// The point after each iteration.
    points: Vec<Vec<f64>>,
    evaluations: u64,
    visits: u64,
    order: DescentCommand,
}

fn settings(history: usize, max_iterations: u64) -> Settings {
    Settings { history, max_iterations, tolerance: 0.0, diagonal: false, l1: 0.0, l2: 0.0 }
}

fn minimize(settings: Settings, f: Objective<'_>) -> Minimized {
    let vectors = VectorLayout::new(MatrixId(0), COLUMNS as u64, settings.history);
    let config = LocalConfig { task_count: 1, wait_limit: Duration::from_secs(5) };
    let mut functions = matrix::FunctionTable::builtin();
    super::function::register(&mut functions).unwrap();
    let mut store = LocalStore::with_functions(config, functions);
    store.create(vectors.spec(3)).unwrap();
    let mut agent = Counting { agent: Arc::new(store).agent(0), visits: 0 };
    let mut minimizer = Minimizer::new(settings, vectors, COLUMNS as u64);
    minimizer.start(&mut agent).unwrap();
    agent.barrier().unwrap();
    let all = |row| Selection::Columns { row, keys: Keys::Range(0, COLUMNS as u64) };
    let mut points = Vec::new();
    agent.visits = 0;
    for evaluations in 1.. {
        let mut z = vec![0.0; COLUMNS];
        agent.pull(MatrixId(0), all(POINT), ValuesMut::F64(&mut z)).unwrap();
        let (value, gradient) = f(&z);
        agent.push(MatrixId(0), all(GRADIENT), Values::F64(&gradient)).unwrap();
        agent.barrier().unwrap();
        let order = minimizer.observe(&mut agent, value).unwrap();
        agent.barrier().unwrap();
        if order.iteration {
            agent.pull(MatrixId(0), all(order.row), ValuesMut::F64(&mut z)).unwrap();
            points.push(z);
        }
        if order.last {
            return Minimized { points, evaluations, visits: agent.visits, order };
        }
    }
    unreachable!("the last order ends the loop")
}

/// `sum of a_j (z_j - b_j)^2 / 2 + sqrt(1 + (sum z)^2)`, with a from 1 to 700.
fn valley(z: &[f64]) -> (f64, Vec<f64>) {
    let b = |j: usize| ((j * 37) % 11) as f64 - 5.0;
    let sum: f64 = z.iter().sum();
    let root = (1.0 + sum * sum).sqrt();
    let value =
        root + z.iter().enumerate().map(|(j, z)| 0.5 * (j + 1) as f64 * (z - b(j)).powi(2)).sum::<f64>();
    let gradient = z.iter().enumerate().map(|(j, z)| (j + 1) as f64 * (z - b(j)) + sum / root).collect();
    (value, gradient)
}

/// Plain L-BFGS on vectors in memory: Nocedal and Wright, algorithm 7.5.
fn reference(history: usize, steps: usize) -> Vec<Vec<f64>> {
    let mut z = vec![0.0; COLUMNS];
    let (mut value, mut g) = valley(&z);
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let mut points = Vec::new();
    while points.len() < steps {
        let direction = reference_direction(&pairs, &g);
        let first = if pairs.is_empty() { 1.0 / dot(&g, &g).sqrt().max(1.0) } else { 1.0 };
        let mut search = WolfeSearch::new(value, dot(&g, &direction), first).unwrap();
        loop {
            let t = search.length();
            let new: Vec<f64> = z.iter().zip(&direction).map(|(z, d)| z + t * d).collect();
            let (new_value, new_g) = valley(&new);
            if search.observe(new_value, dot(&new_g, &direction)) == SearchDecision::Accept {
                let s = new.iter().zip(&z).map(|(a, b)| a - b).collect();
                let y = new_g.iter().zip(&g).map(|(a, b)| a - b).collect();
                pairs.push((s, y));
                if pairs.len() > history {
                    pairs.remove(0);
                }
                (z, value, g) = (new, new_value, new_g);
                break;
            }
        }
        points.push(z.clone());
    }
    points
}

#[test]
fn every_step_is_that_of_plain_lbfgs_in_memory() {
    for history in [1, 3, 8] {
        let found = minimize(settings(history, 15), &valley);
        let expected = reference(history, 15);
        assert_eq!(found.points.len(), 15);
        for (step, (found, expected)) in found.points.iter().zip(&expected).enumerate() {
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found - expected).abs() < TOLERANCE,
                    "history {history}, step {step}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_step_takes_two_visits_for_each_reading_of_the_data_whatever_the_history() {
    for history in [1, 8, 50] {
        let found = minimize(settings(history, 40), &valley);
        // There is no push after the last reading.
        assert_eq!(found.visits, 2 * found.evaluations - 1, "history {history}");
        assert!(found.evaluations < 60, "history {history}: {} readings for 40 steps", found.evaluations);
    }
}

/// Squared differences between the sums over overlapping windows of columns and their targets, like those of one-hot
/// features: columns depend on each other, and many end at 0.
fn windows(z: &[f64]) -> (f64, Vec<f64>) {
    let (mut value, mut gradient) = (0.0, vec![0.0; z.len()]);
    for start in (0..z.len() - 20).step_by(3) {
        let sum: f64 = z[start..start + 20].iter().sum();
        let error = sum - ((start * 37) % 11) as f64 + 5.0;
        value += 0.5 * error * error;
        gradient[start..start + 20].iter_mut().for_each(|g| *g += error);
    }
    for (j, (z, g)) in z.iter().zip(&mut gradient).enumerate() {
        let curvature = 0.02 * (1 + j % 7) as f64;
        value += 0.5 * curvature * z * z;
        *g += curvature * z;
    }
    (value, gradient)
}

#[test]
fn steps_under_l1_go_along_the_minimum_of_the_columns_that_may_move() {
    // The last steps decrease the objective by 1e-9 of it: slopes are about the square root of that.
    const FLAT: f64 = 0.02;
    let settings = Settings { l1: 2.0, tolerance: 1e-9, ..settings(10, 2000) };
    let found = minimize(settings, &windows);
    let z = found.points.last().unwrap();
    let (_, gradient) = windows(z);
    let mut zeros = 0;
    for (z, g) in z.iter().zip(&gradient) {
        zeros += u32::from(*z == 0.0);
        let slope = if *z == 0.0 { (g.abs() - 2.0).max(0.0) } else { g + 2.0 * z.signum() };
        assert!(slope.abs() < FLAT, "{slope} at {z}");
    }
    assert!(zeros > 100 && zeros < 600, "{zeros} zeros");
    // It takes 115 readings. With the changes of the columns that stay at 0 it takes 222; with all columns aligned with
    // the slope, 732.
    assert!(found.evaluations < 160, "{} readings", found.evaluations);
}

#[test]
fn a_line_search_that_cannot_descend_says_why_and_keeps_the_best_point() {
    for l1 in [0.0, 0.01] {
        // After ten readings the slopes are wrong: they have the opposite sign.
        let readings = Cell::new(0);
        let lie = |z: &[f64]| {
            let (value, mut gradient) = valley(z);
            readings.set(readings.get() + 1);
            if readings.get() > 10 {
                for g in &mut gradient {
                    *g = -*g;
                }
            }
            (value, gradient)
        };
        let found = minimize(Settings { l1, ..settings(5, 100) }, &lie);
        let failure = found.order.failure;
        assert!(
            matches!(failure, Some(DescentFailure::LineSearch(_) | DescentFailure::Rounding)),
            "l1 {l1}: {failure:?}"
        );
        let kept = found.points.last().unwrap();
        let best = found.points.iter().map(|z| valley(z).0).fold(f64::INFINITY, f64::min);
        assert_eq!(valley(kept).0, best, "l1 {l1}: the best of all steps is kept");
        assert!(valley(kept).0 < valley(&vec![0.0; COLUMNS]).0);
    }
}
