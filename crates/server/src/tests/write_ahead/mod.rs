//! A lane that is made again from its write-ahead log is the lane that has died.

mod lists;
mod sessions;

use matrix::{Consistency, OwnedValues};
use proptest::prelude::*;
use rpc::message::*;
use rpc::service::{ConnectionId, Effect, Service};
use rpc::{Message, WireValues};

use super::world::*;
use crate::LaneState;
use crate::write_ahead::files::WriteAheadLog;
use crate::write_ahead::image::{self, LaneImage};

impl World {
    /// A world whose lane records its changes.
    fn recorded(task_count: u32, consistency: Consistency) -> Self {
        let mut lane = LaneState::new(config());
        lane.start_recording();
        let mut world = Self { lane, now: std::time::Duration::ZERO, effects: Vec::new() };
        world.send(TOOL, hello_of(Role::Tool));
        world.send(TOOL, Message::OpenJob(open(task_count, vec![spec("w", consistency)])));
        (0..task_count).for_each(|task| drop(world.send(u64::from(task), hello(JOB, task))));
        world
    }

    /// The lane dies, and another one reads the image, if there is one, and `log`. Tasks connect to it again.
    fn restarted(image: Option<&[u8]>, log: &[u8]) -> Self {
        let mut lane = LaneState::new(config());
        if let Some(image) = image {
            image::restore(image, &mut lane).expect("the image is whole");
        }
        lane.replay(log).expect("the log is whole");
        lane.start_recording();
        let mut world = Self { lane, now: std::time::Duration::ZERO, effects: Vec::new() };
        world.send(TOOL, hello_of(Role::Tool));
        world
    }
}

fn hello_of(role: Role) -> Message {
    Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 0 })
}

/// One step of a test: the task, and what it does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push {
        value: i8,
        is_cached: bool,
    },
    Tick,
    Pull,
    Barrier,
    Leave,
    /// The connection of the task ends, and it opens another one.
    Reconnect,
    /// The lane dies and is made again.
    Restart,
    /// The log begins anew with an image.
    Image,
    Snapshot,
    Restore,
}

fn step() -> impl Strategy<Value = (u32, Step)> {
    let kind = prop_oneof![
        6 => (any::<i8>(), any::<bool>()).prop_map(|(value, is_cached)| Step::Push { value, is_cached }),
        4 => Just(Step::Tick),
        2 => Just(Step::Pull),
        1 => Just(Step::Barrier),
        1 => Just(Step::Leave),
        1 => Just(Step::Reconnect),
        2 => Just(Step::Restart),
        2 => Just(Step::Image),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Restore),
    ];
    (0..3u32, kind)
}

/// Three tasks that do what the steps say, each with its own clock, on a lane that dies at the restarts; or on one that
/// lives, for which a restart is the end of all connections.
struct Actors {
    world: World,
    dies: bool,
    image: Option<Vec<u8>>,
    log: Vec<u8>,
    positions: [(u64, u32); 3],
    has_left: [bool; 3],
    /// The connection of each task, and the last one of all.
    connections: [ConnectionId; 3],
    last_connection: ConnectionId,
}

impl Actors {
    fn new(dies: bool, consistency: Consistency) -> Self {
        let world = World::recorded(3, consistency);
        Self {
            world,
            dies,
            image: None,
            log: Vec::new(),
            positions: [(0, 0); 3],
            has_left: [false; 3],
            connections: [0, 1, 2],
            last_connection: 2,
        }
    }

    /// Opens another connection of a task, and returns what the lane tells it.
    fn connect(&mut self, task: u32) -> Option<Welcome> {
        self.last_connection += 1;
        self.connections[task as usize] = self.last_connection;
        let effects = self.world.send(self.last_connection, hello(JOB, task));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send { message: Message::Welcome(welcome), .. } => Some(welcome),
            _ => None,
        })
    }

    fn restart(&mut self) -> Vec<Option<Welcome>> {
        if self.dies {
            self.log.extend(self.world.lane.take_recorded());
            self.world = World::restarted(self.image.as_deref(), &self.log);
        }
        (0..3).map(|task| self.connect(task)).collect()
    }

    fn make_image(&mut self) {
        let image = LaneImage::of(&self.world.lane).expect("no function waits");
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        self.image = Some(bytes);
        self.log.clear();
        self.world.lane.take_recorded();
        self.world.lane.forget_recorded_key_lists();
    }

    fn act(&mut self, task: u32, step: Step) {
        let index = task as usize;
        let at = self.connections[index];
        if self.has_left[index]
            && !matches!(step, Step::Restart | Step::Image | Step::Snapshot | Step::Restore)
        {
            return;
        }
        let (clock, number) = self.positions[index];
        match step {
            Step::Push { value, is_cached } => {
                let mut message = push(task, clock, number, f64::from(value));
                if is_cached {
                    let digest = KeyList::digest(&message.runs, &[10, 60]);
                    message.keys = KeyList::Cached { digest, count: 2 };
                }
                let values = message.values.clone();
                let effects = self.world.send(at, Message::Push(message));
                if closes(&effects, at) {
                    // The list is not known on this connection.
                    self.connect(task);
                    let again = Push { values, ..push(task, clock, number, 0.0) };
                    self.world.send(self.connections[index], Message::Push(again));
                }
                self.positions[index].1 += 1;
            }
            Step::Tick => {
                self.world.send(at, tick(task, clock + 1));
                self.positions[index] = (clock + 1, 0);
            }
            Step::Pull => drop(self.world.send(at, Message::Pull(pull(9, task, clock)))),
            Step::Barrier => {
                let part = Some(vec![f64::from(task), 0.1]);
                let Message::Barrier(message) = barrier(8, task, 0, part) else { unreachable!() };
                self.world.send(at, Message::Barrier(Barrier { clock, ..message }));
            }
            Step::Leave => {
                self.world.send(at, leave(task));
                self.has_left[index] = true;
            }
            Step::Reconnect => drop(self.connect(task)),
            Step::Restart => drop(self.restart()),
            Step::Image => self.make_image(),
            Step::Snapshot => {
                self.world.send(
                    TOOL,
                    Message::KeepRows(KeepRows { request: 1, job: JOB, snapshot: 0, records_changes: false }),
                );
            }
            Step::Restore => {
                self.world
                    .send(TOOL, Message::RestoreRows(RestoreRows { request: 1, job: JOB, snapshot: 0 }));
            }
        }
    }
}

proptest! {
    #[test]
    fn a_lane_that_has_died_goes_on_as_if_it_had_lived(
        steps in prop::collection::vec(step(), 1..60),
        kind in 0..3,
    ) {
        let consistency = [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Asp][kind as usize];
        let (mut dying, mut living) = (Actors::new(true, consistency), Actors::new(false, consistency));
        for (task, step) in steps {
            dying.act(task, step);
            living.act(task, step);
        }
        prop_assert_eq!(dying.restart(), living.restart());
        for actors in [&mut dying, &mut living] {
            (0..3).for_each(|task| drop(actors.world.send(TOOL, leave(task))));
        }
        prop_assert_eq!(dying.world.rows(), living.world.rows());
    }
}

#[test]
fn a_push_names_its_keys_by_their_digest_when_the_log_has_them() {
    let mut world = World::recorded(1, Consistency::Asp);
    world.lane.take_recorded();
    world.push(0, 0, 0);
    let listed = world.lane.take_recorded().len();
    let mut again = push(0, 0, 1, 1.0);
    again.keys = KeyList::Cached { digest: KeyList::digest(&again.runs, &[10, 60]), count: 2 };
    world.send(0, Message::Push(again));
    let cached = world.lane.take_recorded().len();
    assert!(cached <= listed, "{cached} bytes against {listed}");
    world.pull(1, 0, 0);
    assert!(world.lane.take_recorded().is_empty(), "a pull changes nothing");
}

#[test]
fn what_is_refused_is_not_recorded() {
    let mut world = World::recorded(1, Consistency::Asp);
    world.push(0, 0, 0);
    world.lane.take_recorded();
    let wrong = Push { values: OwnedValues::F64(vec![1.0]).into(), ..push(0, 0, 1, 1.0) };
    fault(&world.send(0, Message::Push(wrong)));
    fault(&world.send(TOOL, Message::RestoreRows(RestoreRows { request: 1, job: JOB, snapshot: 0 })));
    let unknown = Message::Tick(Tick { request: 5, job: JOB + 1, task: 0, clock: 3 });
    fault(&world.send(0, unknown));
    assert!(world.lane.take_recorded().is_empty());
}

#[test]
fn the_end_of_a_job_whose_tasks_wait_is_recorded() {
    let mut world = World::recorded(2, Consistency::Bsp);
    world.tick(0, 1);
    assert_eq!(world.pull(1, 0, 1), [], "it waits for the other task");
    let ended = CloseJob { request: 1, job: JOB, reason: "it was cancelled".into() };
    let effects = world.send(TOOL, Message::CloseJob(ended));
    assert_eq!(fault(&effects).kind, FaultKind::Stopped);
    let log = world.lane.take_recorded();
    let mut world = World::restarted(None, &log);
    assert!(world.lane.jobs.is_empty());
    let out = world.send(0, hello(JOB, 0));
    assert!(fault(&out).text.contains("it was cancelled"), "{}", fault(&out).text);
}

#[test]
fn a_push_that_was_sent_before_the_death_counts_once() {
    let mut world = World::recorded(1, Consistency::Asp);
    world.push(0, 0, 0);
    let log = world.lane.take_recorded();
    let mut world = World::restarted(None, &log);
    world.send(0, hello(JOB, 0));
    let repeated = Push { request: 3, ..push(0, 0, 0, 1.0) };
    let Message::Done(done) = only(world.send(0, Message::Push(repeated))) else { panic!("it is answered") };
    assert_eq!(done.applied, PushPosition { clock: 0, index: 1 });
    assert_eq!(world.rows(), [1.0, 1.0]);
}

/// Serves the messages of a training on a logged lane; the folder then has its log.
fn logged_training(log: &WriteAheadLog) {
    let mut lanes = log.restore(vec![LaneState::new(config())]).expect("the folder is new");
    let mut out = Vec::new();
    let lane = &mut lanes[0];
    let mut send = |at, message| lane.on_message(std::time::Duration::ZERO, at, message, &mut out);
    send(TOOL, hello_of(Role::Tool));
    send(TOOL, Message::OpenJob(open(1, vec![spec("w", Consistency::Asp)])));
    send(0, hello(JOB, 0));
    for index in 0..3 {
        send(0, Message::Push(push(0, 0, index, 1.0)));
    }
    lane.persist();
}

/// The values that a process finds that opens the folder; none if it does not go on.
fn found(folder: &std::path::Path) -> Result<Option<Vec<f64>>, String> {
    let log = WriteAheadLog::open(folder, 1, 9, false).map_err(|error| error.to_string())?;
    let mut lanes = log.restore(vec![LaneState::new(config())]).map_err(|error| error.to_string())?;
    assert_eq!(log.incarnation() == 5, log.is_restored());
    if !log.is_restored() {
        return Ok(None);
    }
    let mut out = Vec::new();
    let now = std::time::Duration::ZERO;
    lanes[0].on_message(now, 0, hello(JOB, 0), &mut out);
    lanes[0].on_message(now, 0, Message::Pull(pull(1, 0, 0)), &mut out);
    match out.pop() {
        Some(Effect::Send { message: Message::Pulled(pulled), .. }) => match pulled.values {
            WireValues::Exact(OwnedValues::F64(values)) => Ok(Some(values)),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_files_of_a_process_that_has_died_are_read_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(folder.path(), 1, 5, false).unwrap();
    logged_training(&log);
    assert!(found(folder.path()).unwrap_err().contains("another process uses it"));
    drop(log);
    assert_eq!(found(folder.path()), Ok(Some(vec![3.0, 3.0])));
    let path = folder.path().join("lane-0.0.log");
    let whole = std::fs::read(&path).unwrap();
    // The process was killed while it wrote the last push.
    std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
    assert_eq!(found(folder.path()), Ok(Some(vec![2.0, 2.0])));
    assert!(std::fs::read(&path).unwrap().len() < whole.len() - 10, "the rest of the push is cut off");
}

#[test]
fn the_jobs_of_a_log_that_have_ended_meanwhile_are_closed_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    logged_training(&WriteAheadLog::open(folder.path(), 1, 5, false).unwrap());
    let restored = |continued: Option<Vec<JobId>>| {
        let mut log = WriteAheadLog::open(folder.path(), 1, 9, false).unwrap();
        if let Some(jobs) = continued {
            log.set_continued(jobs);
        }
        log.restore(vec![LaneState::new(config())]).unwrap().remove(0)
    };
    let pulled = |lane: &mut dyn Service| {
        let mut out = Vec::new();
        lane.on_message(std::time::Duration::ZERO, 0, hello(JOB, 0), &mut out);
        out.pop().expect("it is answered")
    };
    let welcomed = |effect| matches!(effect, Effect::Send { message: Message::Welcome(_), .. });
    assert!(welcomed(pulled(&mut restored(Some(vec![JOB, JOB + 1])))), "it goes on");
    let closed = |effect| match effect {
        Effect::Close { .. } => true,
        Effect::Send { message: Message::Fault(fault), .. } => fault.kind == FaultKind::Stopped,
        _ => false,
    };
    let mut lane = restored(Some(vec![JOB + 1]));
    // Another master may give its number to another job, at once.
    let mut out = Vec::new();
    for message in [hello_of(Role::Tool), Message::OpenJob(open(2, vec![spec("other", Consistency::Bsp)]))] {
        lane.on_message(std::time::Duration::ZERO, TOOL, message, &mut out);
    }
    assert!(matches!(out.last(), Some(Effect::Send { message: Message::Done(_), .. })), "{out:?}");
    drop(lane);
    assert!(
        closed(pulled(&mut restored(None))),
        "the end is in the log, the other job is not: it was not persisted"
    );
}

#[test]
fn a_damaged_log_does_not_count_and_a_changed_byte_anywhere_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lane-0.0.log");
    let log = WriteAheadLog::open(folder.path(), 1, 5, false).unwrap();
    logged_training(&log);
    drop(log);
    let (whole, identity) = (std::fs::read(&path).unwrap(), folder.path().join("identity.json"));
    let own = std::fs::read(&identity).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, damaged).unwrap();
        std::fs::write(&identity, &own).unwrap();
        let error = found(folder.path()).expect_err("the byte is noticed");
        assert!(error.contains("lane-0.0.log: byte "), "{error}");
        assert!(!path.exists() && !identity.exists(), "the next process begins anew");
    }
    assert_eq!(found(folder.path()), Ok(None));
}

#[test]
fn the_log_of_another_start_of_the_machine_or_of_other_lanes_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let identity = folder.path().join("identity.json");
    for (field, value) in [("boot", "another".into()), ("lanes", 2.into()), ("format", 99.into())] {
        let _ = std::fs::remove_file(&identity);
        let log = WriteAheadLog::open(folder.path(), 1, 5, false).unwrap();
        logged_training(&log);
        drop(log);
        let mut own: serde_json::Value = serde_json::from_slice(&std::fs::read(&identity).unwrap()).unwrap();
        own[field] = value;
        std::fs::write(&identity, own.to_string()).unwrap();
        assert_eq!(found(folder.path()), Ok(None), "{field}");
    }
}

#[test]
fn nothing_is_kept_after_the_last_job() {
    let folder = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(folder.path(), 1, 5, false).unwrap();
    logged_training(&log);
    let mut lanes = log.restore(vec![LaneState::new(config())]).unwrap();
    let close = CloseJob { request: 1, job: JOB, reason: "the job has ended".into() };
    let (now, mut out) = (std::time::Duration::ZERO, Vec::new());
    lanes[0].on_message(now, TOOL, hello_of(Role::Tool), &mut out);
    lanes[0].on_message(now, TOOL, Message::CloseJob(close), &mut out);
    lanes[0].persist();
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["identity.json", "lane-0.1.image", "lane-0.1.log", "lock"]);
    assert_eq!(std::fs::metadata(folder.path().join("lane-0.1.log")).unwrap().len(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_log_and_not_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(folder.path(), 1, 5, false).unwrap();
    let mut lanes = log.restore(vec![LaneState::new(config())]).unwrap();
    // The next segment will be on a disk that is full.
    std::os::unix::fs::symlink("/dev/full", folder.path().join("lane-0.1.log")).unwrap();
    let (lane, now) = (&mut lanes[0], std::time::Duration::ZERO);
    let mut send = |at, message| {
        let mut out = Vec::new();
        lane.on_message(now, at, message, &mut out);
        lane.persist();
        out
    };
    let asking = |job| {
        let open = open(1, vec![spec("w", Consistency::Asp)]);
        Message::OpenJob(OpenJob { job, durability: Durability::Log, ..open })
    };
    send(TOOL, hello_of(Role::Tool));
    send(TOOL, asking(JOB));
    send(TOOL, Message::CloseJob(CloseJob { request: 1, job: JOB, reason: "it has ended".into() }));
    assert!(folder.path().join("lane-0.1.image").exists(), "the next segment has begun");
    assert!(matches!(only(send(TOOL, asking(JOB + 1))), Message::Done(_)));
    send(0, hello(JOB + 1, 0));
    send(0, Message::Push(Push { request: 3, job: JOB + 1, ..push(0, 0, 0, 2.0) }));
    let seen = only(send(0, Message::Pull(Pull { job: JOB + 1, ..pull(4, 0, 0) })));
    assert!(matches!(seen, Message::Pulled(_)), "the server goes on: {seen:?}");
    let refused = send(TOOL, asking(JOB + 2));
    assert!(fault(&refused).text.contains("durability=log"), "{}", fault(&refused).text);
    drop(lanes);
    drop(log);
    assert_eq!(found(folder.path()), Ok(None), "what is left does not count");
}

#[test]
fn a_job_that_asks_for_a_synced_log_is_opened_only_where_the_log_is_synced() {
    for is_synced in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = WriteAheadLog::open(folder.path(), 1, 5, is_synced).unwrap();
        let mut lane = log.restore(vec![LaneState::new(config())]).unwrap().remove(0);
        let mut out = Vec::new();
        let now = std::time::Duration::ZERO;
        lane.on_message(now, TOOL, hello_of(Role::Tool), &mut out);
        let asked =
            OpenJob { durability: Durability::SyncedLog, ..open(1, vec![spec("w", Consistency::Bsp)]) };
        lane.on_message(now, TOOL, Message::OpenJob(asked), &mut out);
        let is_opened = matches!(out.last(), Some(Effect::Send { message: Message::Done(_), .. }));
        assert_eq!(is_opened, is_synced, "{out:?}");
        drop(lane);
        drop(log);
        let again = WriteAheadLog::open(folder.path(), 1, 9, is_synced).unwrap();
        assert!(again.is_restored());
    }
}
