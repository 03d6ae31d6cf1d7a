//! Given lanes and agents in one thread, over a network that delays and loses messages, reorders them between
//! connections and breaks connections, and members that pause, crash, join and leave; when tasks pull, push, tick and
//! wait at barriers; then a checker that sees only what the tasks did and read finds every promise of the consistency
//! modes kept. The same checker finds every fault that is injected into the lanes.
//!
//! The master is simulated in the same way on its own (`control`), and together with all other members
//! (`whole_cluster`): it places jobs on servers and workers that send heartbeats, pause, die, come back and leave while
//! their lanes and tasks work.
//!
//! Checkpoints are written to a disk that fails (`disk`).
//!
//! Everything depends on the seed only. `cargo xtask simulate --seeds N --start S` runs any seeds.

mod checker;
mod cluster;
mod control;
mod disk;
mod driver;
mod functions;
mod history;
mod lanes;
mod neighbours;
mod network;
mod probe;
mod pulls;
mod replicas;
mod rows;
mod scenario;
mod schedule;
mod seeds;
mod task;
mod whole_cluster;

use history::Facts;
use scenario::{Disturbance, Scenario};
use server::InjectedFault;

/// End of the search for rare seeds.
const FAR_OUT: u64 = 6_000;

/// Returns the faults of a run, and the counts of what happened.
fn run(
    seed: u64,
    injected_fault: Option<InjectedFault>,
    agent_fault: Option<worker::InjectedFault>,
) -> (Vec<String>, Facts) {
    let (mut faults, mut facts) = (Vec::new(), Facts::default());
    for (scenario, history) in neighbours::run(&Scenario::of(seed), injected_fault, agent_fault) {
        let (found, reached) = checker::check(&scenario, &history);
        faults.extend(found.into_iter().map(|text| format!("job {}: {text}", scenario.job)));
        facts.add(&reached);
    }
    (faults, facts)
}

#[test]
fn every_seed_keeps_every_promise() {
    let summary = |seed| {
        let scenario = Scenario::of(seed);
        let second = scenario.second().map(|second| format!("; beside it {}", second.summary()));
        scenario.summary() + &second.unwrap_or_default()
    };
    seeds::check_all(|seed| run(seed, None, None), summary, Facts::add, |facts| facts.is_whole());
}

#[test]
fn every_seed_keeps_every_promise_of_the_master() {
    let (of, whole) = (control::Scenario::of, control::Facts::is_whole);
    seeds::check_all(
        |seed| control::run(&of(seed), None),
        |seed| of(seed).summary(),
        control::Facts::add,
        whole,
    );
}

#[test]
fn every_seed_keeps_checkpoints_on_a_disk_that_fails() {
    seeds::check_all(|seed| disk::run(seed, None), disk::summary, disk::Facts::add, disk::Facts::is_whole);
}

#[test]
fn rules_taken_out_of_checkpoints_are_found() {
    for injected_fault in [
        disk::InjectedFault::NewestIsTaken,
        disk::InjectedFault::EarlierRunsCount,
        disk::InjectedFault::BasesAreRemoved,
    ] {
        seeds::find(injected_fault, |seed| disk::run(seed, Some(injected_fault)));
    }
}

#[test]
fn every_seed_keeps_every_promise_of_all_together() {
    seeds::check_all(
        |seed| whole_cluster::run(seed, None),
        |seed| whole_cluster::scenario(seed).summary(),
        whole_cluster::Facts::add,
        whole_cluster::Facts::is_whole,
    );
}

#[test]
fn every_job_ends_with_its_result_or_its_first_failure() {
    seeds::check_all(
        |seed| driver::run(seed, None),
        |seed| driver::Scenario::of(seed).summary(),
        driver::Facts::add,
        driver::Facts::is_whole,
    );
}

fn found_in_driver(injected_fault: driver::InjectedFault) {
    seeds::find(injected_fault, |seed| driver::run(seed, Some(injected_fault)));
}

#[test]
fn rows_that_are_not_restored_are_found() {
    found_in_driver(driver::InjectedFault::RowsAreNotRestored);
}

#[test]
fn a_worker_that_is_not_ended_is_found() {
    found_in_driver(driver::InjectedFault::OneWorkerIsNotEnded);
}

#[test]
fn a_first_failure_that_is_not_awaited_is_found() {
    found_in_driver(driver::InjectedFault::FirstFailureIsNotAwaited);
}

#[test]
fn a_stop_that_is_not_sent_is_found() {
    found_in_driver(driver::InjectedFault::StopIsNotSent);
}

#[test]
fn a_decision_that_is_repeated_is_found() {
    found_in_driver(driver::InjectedFault::DecisionIsRepeated);
}

#[test]
fn plans_that_are_always_accepted_are_found() {
    found_in_driver(driver::InjectedFault::EveryPlanIsAccepted);
}

#[test]
fn a_snapshot_that_is_not_taken_is_found() {
    found_in_driver(driver::InjectedFault::SnapshotIsNotTaken);
}

#[test]
fn forgotten_states_are_found() {
    found_in_driver(driver::InjectedFault::StatesAreForgotten);
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in 0..50 {
        let history = || format!("{:?}", neighbours::run(&Scenario::of(seed), None, None));
        assert!(history() == history(), "seed {seed} cannot be replayed");
        let told = || control::history_text(&control::Scenario::of(seed));
        assert!(told() == told(), "seed {seed} of the master cannot be replayed");
        let reached = || format!("{:?}", whole_cluster::run(seed, None));
        assert!(reached() == reached(), "seed {seed} of all together cannot be replayed");
        let driven = || driver::history_text(seed);
        assert!(driven() == driven(), "seed {seed} of the driver cannot be replayed");
    }
}

fn found(injected_fault: InjectedFault) {
    seeds::find(injected_fault, |seed| run(seed, Some(injected_fault), None));
}

fn found_in_agent(injected_fault: worker::InjectedFault) {
    seeds::find(injected_fault, |seed| run(seed, None, Some(injected_fault)));
}

fn found_in_master(injected_fault: master::InjectedFault) {
    seeds::find(injected_fault, |seed| control::run(&control::Scenario::of(seed), Some(injected_fault)));
}

#[test]
fn staleness_ignored_is_found() {
    found(InjectedFault::StalenessIgnored);
}

#[test]
fn a_tick_that_overtakes_a_push_is_found() {
    found(InjectedFault::TickOvertakesPush);
}

#[test]
fn duplicates_applied_are_found() {
    found(InjectedFault::DuplicatesApplied);
}

#[test]
fn a_minimum_counted_by_commits_is_found() {
    found(InjectedFault::MinimumByCommits);
}

#[test]
fn waiters_kept_by_a_removed_task_are_found() {
    found(InjectedFault::RemovedTaskKeepsWaiters);
}

/// Seeds in which a task joins a job with barriers. They are rare, so the search range is large.
fn seeds_with_joins_and_barriers() -> impl Iterator<Item = u64> {
    (0..FAR_OUT).filter(|seed| {
        let scenario = Scenario::of(*seed);
        scenario.disturbance == Disturbance::Join && scenario.stretch_count > 1
    })
}

#[test]
fn a_task_that_joins_between_barriers_keeps_every_promise() {
    let mut join_count = 0;
    for seed in seeds_with_joins_and_barriers() {
        let (faults, facts) = seeds::caught(|| run(seed, None, None));
        assert!(faults.is_empty(), "seed {seed}: {faults:?}");
        join_count += facts.joins;
    }
    assert!(join_count > 0, "no task has joined");
}

#[test]
fn late_tasks_that_wait_for_those_who_wait_for_them_are_found() {
    let injected_fault = InjectedFault::LateTasksWait;
    seeds::find_among(seeds_with_joins_and_barriers(), injected_fault, |seed| {
        run(seed, Some(injected_fault), None)
    });
}

#[test]
fn what_is_heard_and_kept_all_the_same_is_found() {
    found_in_master(master::InjectedFault::AcknowledgementsIgnored);
}

#[test]
fn repeats_that_are_taken_again_is_found() {
    found_in_master(master::InjectedFault::DuplicatesDelivered);
}

#[test]
fn what_is_not_said_again_after_a_reset_is_found() {
    found_in_master(master::InjectedFault::NoRetransmission);
}

#[test]
fn a_lease_that_never_ends_is_found() {
    found_in_master(master::InjectedFault::LeaseNeverExpires);
}

#[test]
fn members_that_pay_for_the_sleep_of_the_master_is_found() {
    found_in_master(master::InjectedFault::OwnPauseCounted);
}

#[test]
fn members_that_stay_without_a_connection_are_found() {
    found_in_master(master::InjectedFault::DisconnectedMembersStay);
}

#[test]
fn connected_members_that_lose_their_names_are_found() {
    found_in_master(master::InjectedFault::ConnectedMembersLoseNames);
}

#[test]
fn a_queue_that_starts_from_behind_is_found() {
    found_in_master(master::InjectedFault::QueueReversed);
}

#[test]
fn requests_that_overtake_an_unfinished_log_are_found() {
    found_in_agent(worker::InjectedFault::RequestsOvertakeLog);
}

#[test]
fn ticks_that_are_not_awaited_are_found() {
    found_in_agent(worker::InjectedFault::TicksAreNotAwaited);
}

#[test]
fn attempts_that_begin_at_the_highest_clock_are_found() {
    found_in_agent(worker::InjectedFault::AttemptsBeginAtTheHighestClock);
}

#[test]
fn pulls_asked_ahead_and_kept_at_barriers_are_found() {
    found_in_agent(worker::InjectedFault::PrefetchesSurviveBarriers);
}

#[test]
fn jobs_that_stay_open_on_a_server_are_found() {
    seeds::find("ClosesTheFirstOnly", |seed| {
        whole_cluster::run(seed, Some(whole_cluster::InjectedFault::ClosesTheFirstOnly))
    });
}

#[test]
fn tasks_that_outlive_their_job_are_found() {
    seeds::find("TasksOutliveTheirJob", |seed| {
        whole_cluster::run(seed, Some(whole_cluster::InjectedFault::TasksOutliveTheirJob))
    });
}

#[test]
fn rules_taken_out_of_lanes_or_master_are_found_in_all_together_too() {
    for rule in [
        whole_cluster::InjectedFault::Lane(InjectedFault::StalenessIgnored),
        whole_cluster::InjectedFault::Lane(InjectedFault::DuplicatesApplied),
        whole_cluster::InjectedFault::Master(master::InjectedFault::LeaseNeverExpires),
    ] {
        seeds::find(rule, |seed| whole_cluster::run(seed, Some(rule)));
    }
}

#[test]
fn answers_before_the_standby_has_the_change_are_found() {
    found(InjectedFault::AnswerBeforeStandby);
}

#[test]
fn a_primary_that_is_not_refused_after_a_takeover_is_found() {
    found(InjectedFault::PrimaryIsNotRefused);
}

#[test]
fn an_import_that_keeps_old_rows_is_found() {
    found(InjectedFault::ImportKeepsOldRows);
}
