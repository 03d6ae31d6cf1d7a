//! A rule that is taken out makes a difference; the simulation shows it of the others.

use rpc::message::ControlBody;
use serde_json::json;

use super::world::{World, worker};
use crate::runner::Event;
use crate::{Broken, Settings};

#[test]
fn what_a_member_says_twice_is_told_twice() {
    let mut world = World::with(Settings { broken: Some(Broken::RepeatsTaken), ..Settings::default() });
    let worker = world.register(1, "w", 10, worker()).unwrap();
    let job = world.submit("j", 0, 1);
    world.started();
    for _ in 0..2 {
        world.hear(1, 1, ControlBody::FromTask { job, body: json!("once") });
    }
    let told = Event::FromTask { worker, body: json!("once") };
    assert_eq!(world.told(job), [told.clone(), told]);
}
