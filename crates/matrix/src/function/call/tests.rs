use super::*;
use crate::element::OwnedValues;
use crate::function::map::Scalar;
use crate::function::vector_op::VectorOp;

#[test]
fn a_partition_is_sent_what_its_columns_need_of_a_vector() {
    let table = FunctionTable::builtin();
    let argument = (10, OwnedValues::F64(vec![1.0, 2.0, 3.0, 4.0]), 0.5);
    let whole = FunctionCall::push(&VectorOp::AddScaled, &[], &[3], &argument);
    let of = |columns| whole.split(&table, columns).expect("a built-in function");
    let expected = (11, OwnedValues::F64(vec![2.0, 3.0]), 0.5);
    assert_eq!(of(11..13), FunctionCall::push(&VectorOp::AddScaled, &[], &[3], &expected));
    assert_eq!(of(0..20), whole);
}

#[test]
fn a_call_whose_argument_is_for_all_columns_stays_as_it_is() {
    let call = FunctionCall::push(&Scalar::Add, &[1], &[2], &0.5);
    assert_eq!(call.split(&FunctionTable::builtin(), 3..5), Ok(call));
}
