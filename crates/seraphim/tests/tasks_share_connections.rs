//! The tasks of a worker reach each server over one connection. No message is lost, applied twice or seen too early
//! when the connection breaks in the middle of calls, a task is slow, or a task leaves before the others. The servers
//! are real, a relay cuts the connections, and the test plays the tasks.
#![cfg(unix)]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::probe::{Probe, SERVERS};
use matrix::{Agent, Consistency, Keys, MatrixId, Selection, Values, ValuesMut};
use worker::{JobLayout, Multiplexer, RemoteAgent};

const TASKS: u32 = 4;
/// The matrix of a job with one matrix.
const ONE: u32 = 0;
/// Computing time of a slow task in a step.
const COMPUTES: Duration = Duration::from_millis(5);

/// Forwards connections to a server and cuts them.
#[derive(Clone)]
struct Relay {
    address: String,
    /// Both ends of every connection that was accepted.
    taken: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let relay = Self { address, taken: Arc::default() };
        let taken = Arc::clone(&relay.taken);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = TcpStream::connect(&target).expect("the server lives");
                for (mut from, mut to) in [(&near, &far), (&far, &near)].map(|(a, b)| (clone(a), clone(b))) {
                    std::thread::spawn(move || {
                        let mut piece = vec![0; 64 << 10];
                        while let Ok(count @ 1..) = from.read(&mut piece) {
                            if to.write_all(&piece[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                taken.lock().expect("nobody panics in it").extend([near, far]);
            }
        });
        relay
    }

    fn cut(&self) {
        for stream in self.taken.lock().expect("nobody panics in it").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn taken_count(&self) -> usize {
        self.taken.lock().expect("nobody panics in it").len() / 2
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("there are files enough")
}

/// Puts relays in front of the servers of a probe.
fn behind_relays(probe: &Probe) -> (JobLayout, Vec<Relay>) {
    let mut layout = probe.layout.clone();
    let relays: Vec<Relay> = layout
        .lanes
        .iter_mut()
        .map(|lane| {
            let tcp = lane.addresses.iter().find_map(|address| address.strip_prefix("tcp:"));
            let relay = Relay::start(tcp.expect("a server has a port").to_owned());
            lane.addresses = vec![relay.address.clone()];
            relay
        })
        .collect();
    (layout, relays)
}

/// Plays all tasks over shared connections, each on a thread.
fn play(layout: &JobLayout, task: impl Fn(u32, RemoteAgent) + Sync) {
    let multiplexer = Multiplexer::default();
    std::thread::scope(|scope| {
        for at in 0..layout.task_count {
            let (multiplexer, layout, task) = (multiplexer.clone(), layout.clone(), &task);
            scope.spawn(move || {
                let agent = RemoteAgent::new(layout, at, Vec::new()).expect("the layout is whole");
                task(at, agent.with_multiplexer(multiplexer));
            });
        }
    });
}

#[test]
fn all_tasks_reach_a_server_over_one_connection() {
    let probe = Probe::start(TASKS, &[Consistency::Bsp]);
    let (layout, relays) = behind_relays(&probe);
    play(&layout, |_, mut agent| {
        for _ in 0..20 {
            probe.look(&mut agent, ONE);
            probe.step(&mut agent, ONE);
        }
        agent.finish().expect("nothing hinders the end");
    });
    assert_eq!(relays.iter().map(Relay::taken_count).collect::<Vec<_>>(), [1; SERVERS as usize]);
    probe.assert_conserved(ONE, &[20; TASKS as usize]);
}

#[test]
fn nothing_is_lost_or_doubled_when_the_shared_connection_breaks() {
    for consistency in [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Asp] {
        let probe = Probe::start(TASKS, &[consistency]);
        let (layout, relays) = behind_relays(&probe);
        play(&layout, |task, mut agent| {
            for step in 0..40u32 {
                // In every second step another task cuts a connection before its pushes are acknowledged.
                probe.push(&mut agent, ONE, 0..common::probe::PARTITIONS);
                if step % 8 == 2 * task {
                    relays[step as usize / 8 % relays.len()].cut();
                }
                agent.tick().expect("a tick waits for nobody");
                let seen = probe.look(&mut agent, ONE);
                assert!(seen.of(task).iter().all(|counts| *counts == (step.into(), step.into())
                    || *counts == (u64::from(step) + 1, u64::from(step) + 1)));
            }
            agent.finish().expect("nothing hinders the end");
        });
        probe.assert_conserved(ONE, &[40; TASKS as usize]);
    }
}

/// Steps of an agent that prefetches, whose ticks wait for those of the other tasks. Task 0 is slow, the last task
/// leaves early, and the connection is cut now and then.
#[test]
fn steps_that_go_out_together_wait_for_the_slow_and_not_for_who_has_left() {
    let probe = Probe::start(TASKS, &[Consistency::Bsp]);
    let (layout, relays) = behind_relays(&probe);
    let steps = |task: u32| if task == TASKS - 1 { 15u32 } else { 30 };
    play(&layout, |task, mut agent| {
        // Every task adds 1 to all keys, so under BSP the values show how many tasks have ended the step.
        let keys: Vec<u64> = (0..probe.rows()).collect();
        let part = Selection::Rows(Keys::Sorted(&keys));
        let mut ticket = agent.prefetch(MatrixId(ONE), part, 0);
        for step in 0..steps(task) {
            let mut values = vec![0.0; keys.len()];
            agent.wait(&ticket, ValuesMut::F32(&mut values)).expect("a pull waits in time");
            ticket = agent.prefetch(MatrixId(ONE), part, agent.clock() + 1);
            let expected: u32 = (0..TASKS).map(|other| steps(other).min(step)).sum();
            assert!(values.iter().all(|value| *value == expected as f32), "task {task} in step {step}");
            agent.push(MatrixId(ONE), part, Values::F32(&vec![1.0; keys.len()])).expect("a push is sent");
            if task == 0 {
                std::thread::sleep(COMPUTES);
                if step % 10 == 5 {
                    relays.iter().for_each(Relay::cut);
                }
            }
            agent.tick().expect("a tick waits for nobody");
        }
        agent.finish().expect("nothing hinders the end");
    });
}
