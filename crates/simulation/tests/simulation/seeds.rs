//! Runs many seeds on all cores and collects the failures and the counts of all runs.
#![allow(clippy::print_stdout, reason = "a failing seed says how to replay it")]

use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seeds of the usual run; every injected fault must be found within them.
pub(crate) const SEEDS: Range<u64> = 0..1_000;
/// `cargo xtask simulate` sets the variable to other seeds, as `START..END`.
const SEEDS_VARIABLE: &str = "SERAPHIM_SEEDS";
/// Maximum number of faults that are printed per seed.
const FAULTS_SHOWN: usize = 5;

/// Returns the faults of a run, and the counts of what happened. A panic is a fault too.
pub(crate) fn caught<F: Default>(run: impl FnOnce() -> (Vec<String>, F)) -> (Vec<String>, F) {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        (vec![format!("panicked: {}", text.unwrap_or_default())], F::default())
    })
}

/// Returns the failing seeds with their faults, and the sum of all counts.
fn run_all<F: Default + Send>(
    seeds: &Range<u64>,
    run: &(impl Fn(u64) -> (Vec<String>, F) + Sync),
    add: fn(&mut F, &F),
) -> (Vec<(u64, Vec<String>)>, F) {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let work = || {
            let (mut failed, mut reached) = (Vec::new(), F::default());
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return (failed, reached);
                }
                let (found, facts) = caught(|| run(seed));
                add(&mut reached, &facts);
                if !found.is_empty() {
                    failed.push((seed, found));
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let (mut failed, mut reached) = (Vec::new(), F::default());
        for thread in threads {
            let (more, facts) = thread.join().expect("panics are caught");
            failed.extend(more);
            add(&mut reached, &facts);
        }
        failed.sort();
        (failed, reached)
    })
}

fn wanted_seeds() -> Range<u64> {
    let Ok(text) = std::env::var(SEEDS_VARIABLE) else { return SEEDS };
    let bounds = text.split_once("..").and_then(|(start, end)| Some(start.parse().ok()?..end.parse().ok()?));
    let bounds = bounds.filter(|bounds: &Range<u64>| !bounds.is_empty());
    bounds.unwrap_or_else(|| panic!("{SEEDS_VARIABLE} is {text:?}, expected START..END with START below END"))
}

/// Runs the seeds and prints those that fail. Fails if one does, or if the usual seeds leave a count at zero.
pub(crate) fn check_all<F: Default + Send + Debug + Copy>(
    run: impl Fn(u64) -> (Vec<String>, F) + Sync,
    summary: impl Fn(u64) -> String,
    add: fn(&mut F, &F),
    is_whole: impl Fn(F) -> bool,
) {
    let seeds = wanted_seeds();
    let start = Instant::now();
    let (failed, reached) = run_all(&seeds, &run, add);
    println!("seeds {seeds:?} in {:.1} s: {reached:?}", start.elapsed().as_secs_f64());
    for (seed, found) in failed.iter().take(FAULTS_SHOWN) {
        println!("seed {seed}: {}", summary(*seed));
        for text in found.iter().take(FAULTS_SHOWN) {
            println!("  {text}");
        }
        println!("  replay it: cargo xtask simulate --seeds 1 --start {seed}");
    }
    let list: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(failed.is_empty(), "{} of the seeds {seeds:?} fail: {list:?}", failed.len());
    assert!(seeds != SEEDS || is_whole(reached), "not all is reached: {reached:?}");
}

/// Returns the first seed whose history shows that a rule is missing.
pub(crate) fn find<F: Default>(injected_fault: impl Debug, run: impl Fn(u64) -> (Vec<String>, F)) {
    find_among(SEEDS, injected_fault, run);
}

/// Searches the given seeds.
pub(crate) fn find_among<F: Default>(
    seeds: impl Iterator<Item = u64>,
    injected_fault: impl Debug,
    run: impl Fn(u64) -> (Vec<String>, F),
) {
    let mut found = seeds.map(|seed| (seed, caught(|| run(seed)).0));
    let found = found.find(|(_, faults)| !faults.is_empty());
    let (seed, faults) = found.unwrap_or_else(|| panic!("no seed shows that {injected_fault:?}"));
    println!("{injected_fault:?}: seed {seed}: {}", faults[0].chars().take(400).collect::<String>());
}
