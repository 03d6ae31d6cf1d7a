//! Tests of values that are rounded on the wire.

use matrix::{Consistency, ElementType, MatrixSpec, OwnedValues, PushRule};
use rpc::message::*;
use rpc::{WireType, WireValues};

use super::world::{JOB, TOOL, World, config, fault, only, open, pull, push, spec};

fn world() -> World {
    let spec = MatrixSpec { element: ElementType::F32, ..spec("w", Consistency::Asp) };
    World::with(config(), open(1, vec![spec]))
}

fn rounded_push(index: u32, values: &[f32], wire: WireType) -> Push {
    Push {
        values: WireValues::encode(OwnedValues::F32(values.to_vec()), wire),
        request: 9,
        ..push(0, 0, index, 0.0)
    }
}

fn ask(world: &mut World, wire: WireType) -> WireValues {
    match only(world.send(0, Message::Pull(Pull { wire, ..pull(3, 0, 0) }))) {
        Message::Pulled(pulled) => pulled.values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rounded_push_adds_what_it_was_rounded_to_and_an_answer_is_rounded_as_asked() {
    let mut world = world();
    let mut sums = [0.0f32; 2];
    for (index, wire) in (0u32..).zip(WireType::ALL) {
        let push = rounded_push(index, &[1.1, -0.3], wire);
        let OwnedValues::F32(arrives) = push.values.clone().into_values() else { panic!("f32") };
        sums.iter_mut().zip(arrives).for_each(|(sum, value)| *sum += value);
        assert!(matches!(only(world.send(0, Message::Push(push))), Message::Done(_)));
    }
    let exact = OwnedValues::F32(sums.to_vec());
    for wire in WireType::ALL {
        assert_eq!(ask(&mut world, wire), WireValues::encode(exact.clone(), wire));
    }
    let export = Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 };
    let Message::ExportPage(page) = only(world.send(TOOL, Message::Export(export))) else { panic!() };
    let OwnedValues::F32(values) = page.values else { panic!("exports are exact") };
    assert_eq!([values[10], values[60]], sums);
}

#[test]
fn counts_are_packed_in_pushes_and_in_answers_that_ask_for_it() {
    let spec = MatrixSpec { element: ElementType::I32, ..spec("w", Consistency::Asp) };
    let mut world = World::with(config(), open(1, vec![spec]));
    let counts = |values: &[i32], wire| WireValues::encode(OwnedValues::I32(values.to_vec()), wire);
    let counted = |index: u32, values: &[i32]| {
        Message::Push(Push { values: counts(values, WireType::Packed), request: 9, ..push(0, 0, index, 0.0) })
    };
    assert!(matches!(only(world.send(0, counted(0, &[2, -1]))), Message::Done(_)));
    assert!(matches!(only(world.send(0, counted(1, &[-1, 0]))), Message::Done(_)));
    for wire in [WireType::F32, WireType::Packed] {
        assert_eq!(ask(&mut world, wire), counts(&[1, -1], wire));
    }
    assert!(matches!(ask(&mut world, WireType::Packed), WireValues::Packed(_)));
    assert_eq!(fault(&world.send(0, counted(2, &[0, 0, 0]))).kind, FaultKind::Invalid);
    let told = fault(&world.send(0, Message::Pull(Pull { wire: WireType::Int8, ..pull(3, 0, 0) }))).clone();
    assert!(told.kind == FaultKind::Invalid && told.text.contains("only i32 packed"), "{told:?}");
}

#[test]
fn a_rounded_push_that_does_not_fit_is_refused_whole() {
    let mut world = world();
    let mut refused = |push: Push| fault(&world.send(0, Message::Push(push))).kind;
    for wire in [WireType::Bf16, WireType::Int8] {
        assert_eq!(refused(rounded_push(0, &[1.0], wire)), FaultKind::Invalid);
        assert_eq!(refused(rounded_push(0, &[1.0, f32::NAN], wire)), FaultKind::NonFinite);
    }
    assert_eq!(ask(&mut world, WireType::F32), WireValues::Exact(OwnedValues::F32(vec![0.0; 2])));
    let mut doubles = World::new(1, Consistency::Asp);
    let told = fault(&doubles.send(0, Message::Push(rounded_push(0, &[1.0; 2], WireType::Bf16)))).clone();
    assert!(told.kind == FaultKind::Invalid && told.text.contains("elements of type F64"), "{told:?}");
    let asked = Pull { wire: WireType::Bf16, ..pull(3, 0, 0) };
    let told = fault(&doubles.send(0, Message::Pull(asked))).clone();
    assert!(told.kind == FaultKind::Invalid && told.text.contains("\"w\" are requested as bf16"), "{told:?}");
    assert_eq!(doubles.rows(), [0.0; 2]);
}

#[test]
fn a_row_wider_than_the_limit_is_refused_when_the_job_is_opened() {
    let mut world = world();
    let columns = 1 << 23;
    let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 };
    let wide = MatrixSpec { columns, rule, element: ElementType::F32, ..spec("wide", Consistency::Asp) };
    let open = OpenJob { job: 8, ..open(1, vec![wide]) };
    let told = fault(&world.send(TOOL, Message::OpenJob(open))).clone();
    assert_eq!(told.kind, FaultKind::TooLarge);
    let expected = "a row of matrix \"wide\" has 100663296 bytes with its slots, the limit is 67108864";
    assert!(told.text.contains(expected), "{}", told.text);
}
