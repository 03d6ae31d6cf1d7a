use proptest::prelude::*;

use super::*;

/// Whether the minimum allows this task to pull at its clock.
fn may_pull(table: &ClockTable, task: u32, consistency: Consistency) -> bool {
    let clock = table.clock(task).expect("it has not left");
    table.minimum().is_none_or(|m| m >= consistency.pull_needs(clock))
}

fn may_push(table: &ClockTable, task: u32, consistency: Consistency) -> bool {
    let clock = table.clock(task).expect("it has not left");
    table.minimum().is_none_or(|m| m >= consistency.push_needs(clock))
}

#[test]
fn the_slowest_live_task_is_the_minimum() {
    let mut table = ClockTable::new(3);
    assert_eq!(table.tick(0), Ok(1));
    assert_eq!(table.tick(0), Ok(2));
    assert_eq!(table.tick(1), Ok(1));
    assert_eq!(table.minimum(), Some(0));
    assert_eq!(table.slowest_task(), Some((2, 0)));
    assert!(table.finish(2));
    assert_eq!(table.minimum(), Some(1), "a task that ends leaves the minimum at once");
}

#[test]
fn each_mode_waits_as_it_says() {
    let mut table = ClockTable::new(2);
    for _ in 0..3 {
        table.tick(0).unwrap();
    }
    assert!(!may_pull(&table, 0, Consistency::Bsp));
    assert!(!may_pull(&table, 0, Consistency::Ssp { staleness: 2 }));
    assert!(!may_push(&table, 0, Consistency::Ssp { staleness: 2 }));
    assert!(may_pull(&table, 0, Consistency::Ssp { staleness: 3 }));
    assert!(may_pull(&table, 0, Consistency::Asp));
    assert!(may_pull(&table, 1, Consistency::Bsp), "the slowest never waits");
}

#[test]
fn a_task_at_the_barrier_holds_nobody_back_and_leaves_it_at_the_largest_clock() {
    let mut table = ClockTable::new(3);
    assert_eq!(table.barrier(0), Ok(BarrierArrival::Wait { generation: 0 }));
    for _ in 0..5 {
        table.tick(1).unwrap();
        table.tick(2).unwrap();
    }
    assert_eq!(table.minimum(), Some(5));
    assert_eq!(table.barrier(1), Ok(BarrierArrival::Wait { generation: 0 }));
    assert_eq!(table.barrier(2), Ok(BarrierArrival::Released));
    assert_eq!(table.generation(), 1);
    assert_eq!((table.clock(0), table.minimum()), (Ok(5), Some(5)));
}

#[test]
fn a_barrier_does_not_wait_for_a_task_that_leaves() {
    let mut table = ClockTable::new(2);
    table.barrier(0).unwrap();
    assert_eq!(table.generation(), 0);
    assert!(table.remove(1));
    assert_eq!(table.generation(), 1);
    assert!(may_pull(&table, 0, Consistency::Bsp));
}

#[test]
fn a_barrier_released_by_the_leader_that_leaves_does_not_turn_the_clocks_back() {
    let mut table = ClockTable::new(2);
    table.barrier(0).unwrap();
    table.tick(1).unwrap();
    assert_eq!(table.minimum(), Some(1));
    table.finish(1);
    assert_eq!(table.minimum(), Some(1));
}

#[test]
fn early_late_and_double_calls_have_defined_results() {
    let mut table = ClockTable::new(2);
    table.barrier(0).unwrap();
    assert_eq!(table.barrier(0), Err(ClockFault::AtBarrier));
    assert_eq!(table.tick(0), Err(ClockFault::AtBarrier));
    assert!(table.finish(0));
    assert!(!table.finish(0), "the second time changes nothing");
    assert_eq!(table.tick(0), Err(ClockFault::Left));
    assert_eq!(table.clock(0), Err(ClockFault::Left));
    assert_eq!(table.tick(7), Err(ClockFault::Unknown));
    assert!(!table.remove(7));
    table.finish(1);
    assert_eq!(table.minimum(), None);
}

#[test]
fn a_clock_that_is_told_early_late_or_twice_never_falls() {
    let mut table = ClockTable::new(2);
    assert_eq!(table.advance(0, 3), Ok(3), "later than the next: as it is");
    assert_eq!(table.advance(0, 3), Ok(3));
    assert_eq!(table.advance(0, 1), Ok(3));
    table.barrier(0).unwrap();
    assert_eq!(table.advance(0, 3), Ok(3), "a repeat, while it waits");
    assert_eq!(table.advance(0, 4), Err(ClockFault::AtBarrier));
    assert!(table.is_at_barrier(0) && !table.is_at_barrier(1));
    table.finish(0);
    assert_eq!(table.advance(0, 1), Err(ClockFault::Left));
    assert_eq!((table.last_clock(0), table.last_clock(2)), (Some(3), None));
    assert_eq!(table.advance(2, 1), Err(ClockFault::Unknown));
    assert_eq!(table.task_count(), 2);
}

#[test]
fn a_new_task_starts_at_the_minimum() {
    let mut table = ClockTable::new(2);
    for (task, ticks) in [(0, 5), (1, 3)] {
        for _ in 0..ticks {
            table.tick(task).unwrap();
        }
    }
    assert_eq!(table.join(), 2);
    assert_eq!(table.clock(2), Ok(3));
    for task in 0..3 {
        table.finish(task);
    }
    let last = table.join();
    assert_eq!(table.clock(last), Ok(5), "with nobody live, at the largest clock ever");
}

/// Returns a table of two tasks that have passed a barrier at clock 3, and one that joined late.
fn with_a_late_task() -> ClockTable {
    let mut table = ClockTable::new(2);
    for task in 0..2 {
        table.advance(task, 3).unwrap();
        table.barrier(task).unwrap();
    }
    assert_eq!((table.join_late(), table.generation()), (2, 1));
    table
}

#[test]
fn a_late_task_does_not_wait_for_those_who_wait_for_it_elsewhere() {
    let mut table = with_a_late_task();
    assert_eq!(table.clock(2), Ok(3));
    table.advance(2, 5).unwrap();
    assert_eq!((table.minimum(), table.slowest_task()), (Some(5), Some((2, 5))));
    assert_eq!(table.barrier(2), Ok(BarrierArrival::Released), "the barrier is over here");
    assert!(!table.is_late(2) && !table.is_at_barrier(2));
    assert_eq!((table.generation(), table.minimum()), (1, Some(5)), "the others are told to go on at 5");
    table.advance(2, 6).unwrap();
    table.advance(0, 6).unwrap();
    assert_eq!((table.minimum(), table.slowest_task()), (Some(5), Some((1, 3))), "task 1 counts again");
    table.advance(1, 6).unwrap();
    assert_eq!(table.minimum(), Some(6));
}

#[test]
fn those_who_go_on_before_a_late_task_has_come_wait_for_it() {
    let mut table = with_a_late_task();
    table.advance(0, 7).unwrap();
    assert!(!may_pull(&table, 0, Consistency::Bsp));
    assert_eq!(table.barrier(0), Ok(BarrierArrival::Wait { generation: 1 }));
    assert_eq!(table.barrier(1), Ok(BarrierArrival::Wait { generation: 1 }), "the next one is for all");
    table.barrier(2).unwrap();
    assert_eq!((table.generation(), table.barrier(2)), (1, Ok(BarrierArrival::Released)));
    assert_eq!((table.generation(), table.minimum()), (2, Some(7)));
}

#[test]
fn a_late_task_that_leaves_holds_nobody_back() {
    let mut table = with_a_late_task();
    table.advance(2, 4).unwrap();
    assert!(table.finish(2) && !table.is_late(2));
    table.advance(0, 5).unwrap();
    assert_eq!(table.slowest_task(), Some((1, 3)));
    table.advance(1, 5).unwrap();
    assert_eq!(table.minimum(), Some(5));
}

proptest! {
    /// For any sequence of calls, the minimum never falls while a task is live, and a barrier is never left waiting
    /// without a task to wait for.
    #[test]
    fn the_minimum_never_falls(calls in prop::collection::vec((0u8..5, 0u32..7), 0..200)) {
        let mut table = ClockTable::new(4);
        let mut last = 0;
        for (call, task) in calls {
            match call {
                0 => drop(table.tick(task)),
                1 => drop(table.barrier(task)),
                2 => drop(table.finish(task)),
                3 => if table.tasks.len() < 10 { table.join_late(); },
                _ => if table.tasks.len() < 10 { table.join(); },
            }
            let m = table.minimum();
            let waiting = table.tasks.iter().any(|entry| entry.0 == TaskState::AtBarrier);
            prop_assert!(m.is_some() || !waiting, "all wait and nobody can come");
            if let Some(m) = m {
                prop_assert!(m >= last, "{m} after {last}");
                last = m;
            }
        }
    }
}

#[test]
fn a_prefetched_answer_is_used_if_a_pull_might_have_read_the_same() {
    let fresh = PrefetchedAnswer { clock: 4, minimum: 4, lacks_own_push: false, is_overtaken: false };
    let pushed = PrefetchedAnswer { lacks_own_push: true, ..fresh };
    let overtaken = PrefetchedAnswer { is_overtaken: true, ..fresh };
    let uses = |consistency: Consistency| {
        let at = |answer, c| consistency.may_use_prefetch(answer, c);
        [
            at(fresh, 3),
            at(fresh, 4),
            at(fresh, 5),
            at(fresh, 7),
            at(pushed, 4),
            at(pushed, 5),
            at(overtaken, 4),
        ]
    };
    // Under BSP an answer of its clock has all pushes stamped below the clock, and no others.
    assert_eq!(uses(Consistency::Bsp), [false, true, false, false, true, false, true]);
    let ssp = uses(Consistency::Ssp { staleness: 2 });
    assert_eq!(ssp, [false, true, true, false, false, false, false], "m was 4: too old at clock 7");
    assert_eq!(uses(Consistency::Asp), [false, true, true, true, false, false, false]);
    let old = PrefetchedAnswer { minimum: 1, ..fresh };
    assert!(!Consistency::Ssp { staleness: 2 }.may_use_prefetch(old, 4));
}
