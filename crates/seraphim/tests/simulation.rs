//! Given lanes and agents in one thread, over a network that delays, reorders between connections, loses and breaks, and
//! members that stand still, crash, come and go; when tasks pull, push, tick and meet; then a checker that sees only what
//! the tasks did and saw finds every promise of the consistency modes kept. The same checker finds every rule that is
//! taken out of the lanes.
//!
//! Everything follows from the seed. `cargo xtask simulate --seeds N --start S` runs any seeds.
#![allow(clippy::print_stdout, reason = "a failing seed says how to replay it")]

#[path = "simulation/checker.rs"]
mod checker;
#[path = "simulation/cluster.rs"]
mod cluster;
#[path = "simulation/history.rs"]
mod history;
#[path = "simulation/lanes.rs"]
mod lanes;
#[path = "simulation/network.rs"]
mod network;
#[path = "simulation/probe.rs"]
mod probe;
#[path = "simulation/scenario.rs"]
mod scenario;
#[path = "simulation/schedule.rs"]
mod schedule;
#[path = "simulation/task.rs"]
mod task;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cluster::Cluster;
use history::Facts;
use scenario::Scenario;
use server::Broken;

/// Seeds of the usual run.
const SEEDS: Range<u64> = 0..1_000;
/// Seeds within which every broken build is found.
const SEEDS_OF_BROKEN: Range<u64> = 0..1_000;
/// Set by `cargo xtask simulate` to other seeds, as `START..END`.
const SEEDS_VARIABLE: &str = "SERAPHIM_SEEDS";
/// Faults of a seed that are printed.
const FAULTS_SHOWN: usize = 5;

/// What is wrong with a run, and what it reached.
fn run(scenario: &Scenario, broken: Option<Broken>) -> (Vec<String>, Facts) {
    let run = || Cluster::new(scenario.clone(), broken).run();
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(history) => checker::check(scenario, &history),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (vec![format!("panicked: {}", text.unwrap_or_default())], Facts::default())
        }
    }
}

/// The seeds that fail, with what is wrong, and what all reached together.
fn run_all(seeds: &Range<u64>) -> (Vec<(u64, Vec<String>)>, Facts) {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let work = || {
            let (mut failed, mut reached) = (Vec::new(), Facts::default());
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return (failed, reached);
                }
                let (found, facts) = run(&Scenario::of(seed), None);
                reached.add(&facts);
                if !found.is_empty() {
                    failed.push((seed, found));
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let (mut failed, mut reached) = (Vec::new(), Facts::default());
        for thread in threads {
            let (more, facts) = thread.join().expect("panics are caught");
            failed.extend(more);
            reached.add(&facts);
        }
        failed.sort();
        (failed, reached)
    })
}

fn wanted_seeds() -> Range<u64> {
    let Ok(text) = std::env::var(SEEDS_VARIABLE) else { return SEEDS };
    let bounds = text.split_once("..").and_then(|(start, end)| Some(start.parse().ok()?..end.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("{SEEDS_VARIABLE} is {text:?}, expected START..END"))
}

#[test]
fn every_seed_keeps_every_promise() {
    let seeds = wanted_seeds();
    let start = Instant::now();
    let (failed, reached) = run_all(&seeds);
    println!("seeds {seeds:?} in {:.1} s: {reached:?}", start.elapsed().as_secs_f64());
    for (seed, found) in failed.iter().take(FAULTS_SHOWN) {
        println!("seed {seed}: {:?}", Scenario::of(*seed).summary());
        for text in found.iter().take(FAULTS_SHOWN) {
            println!("  {text}");
        }
        println!("  replay it: cargo xtask simulate --seeds 1 --start {seed}");
    }
    let list: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(failed.is_empty(), "{} of the seeds {seeds:?} fail: {list:?}", failed.len());
    assert!(seeds != SEEDS || reached.is_whole(), "not all is reached: {reached:?}");
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in 0..50 {
        let history = || format!("{:?}", Cluster::new(Scenario::of(seed), None).run());
        assert!(history() == history(), "seed {seed} cannot be replayed");
    }
}

/// The first seed whose history shows that a rule is taken out.
fn found(broken: Broken) {
    let mut seeds = SEEDS_OF_BROKEN;
    let bites = seeds.find(|seed| !run(&Scenario::of(*seed), Some(broken)).0.is_empty());
    let seed = bites.unwrap_or_else(|| panic!("no seed of {SEEDS_OF_BROKEN:?} shows that {broken:?}"));
    let (faults, _) = run(&Scenario::of(seed), Some(broken));
    println!("{broken:?}: seed {seed}: {}", faults[0].chars().take(400).collect::<String>());
}

#[test]
fn staleness_ignored_is_found() {
    found(Broken::StalenessIgnored);
}

#[test]
fn a_tick_that_overtakes_a_push_is_found() {
    found(Broken::TickOvertakesPush);
}

#[test]
fn duplicates_applied_are_found() {
    found(Broken::DuplicatesApplied);
}

#[test]
fn a_minimum_counted_by_commits_is_found() {
    found(Broken::MinimumByCommits);
}

#[test]
fn waiters_kept_by_a_removed_task_are_found() {
    found(Broken::RemovedTaskKeepsWaiters);
}

#[test]
fn a_cache_that_serves_what_is_too_old_is_found() {
    let broken = |seed: u64| Scenario { stale_cache: true, ..Scenario::of(seed) };
    let mut seeds = SEEDS_OF_BROKEN;
    let bites = seeds.find(|seed| !run(&broken(*seed), None).0.is_empty());
    let seed =
        bites.unwrap_or_else(|| panic!("no seed of {SEEDS_OF_BROKEN:?} shows that freshness is ignored"));
    println!("seed {seed}: {}", run(&broken(seed), None).0[0].chars().take(400).collect::<String>());
}
