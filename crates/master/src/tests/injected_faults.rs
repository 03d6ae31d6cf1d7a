//! Tests that a disabled rule makes a difference. The simulation shows it for the other rules.

use rpc::message::ControlBody;

use super::test_master::{TestMaster, bytes, worker};
use crate::runner::JobEvent;
use crate::{InjectedFault, Settings};

#[test]
fn what_a_member_says_twice_is_told_twice() {
    let mut world = TestMaster::with(Settings {
        injected_fault: Some(InjectedFault::DuplicatesDelivered),
        ..Settings::default()
    });
    let worker = world.register(1, "w", 10, worker()).unwrap();
    let job = world.submit("j", 0, 1);
    world.take_started();
    for _ in 0..2 {
        world.receive(1, 1, ControlBody::FromTask { job, body: bytes("once") });
    }
    let told = JobEvent::FromTask { worker, body: bytes("once") };
    assert_eq!(world.events_of(job), [told.clone(), told]);
}
