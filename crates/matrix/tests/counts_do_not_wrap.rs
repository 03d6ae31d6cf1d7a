//! Sums of 32-bit integers: exact, and an error that names the row when one leaves the range.

mod common;

use common::{W, spec, store_of};
use matrix::{
    Agent, Consistency, ElementType, Error, Keys, LocalAgent, PushRule, Selection, Values, ValuesMut,
};

fn pull(agent: &mut LocalAgent, keys: &[u64]) -> Result<Vec<i32>, Error> {
    let mut out = vec![0; keys.len()];
    agent.pull(W, Selection::Rows(Keys::Sorted(keys)), ValuesMut::I32(&mut out))?;
    Ok(out)
}

#[test]
fn a_count_that_overflows_is_an_error_that_names_its_row() {
    for consistency in [Consistency::Bsp, Consistency::Asp] {
        let store = store_of(1, [spec(ElementType::I32, PushRule::Add, consistency)]);
        let mut agent = store.agent(0);
        let push = |agent: &mut LocalAgent, value: i32| {
            let rows = Selection::Rows(Keys::Sorted(&[3, 7]));
            agent.push(W, rows, Values::I32(&[1, value])).expect("counts");
            agent.tick().expect("a task alone");
        };
        push(&mut agent, i32::MAX - 1);
        push(&mut agent, -5);
        assert_eq!(pull(&mut agent, &[3, 7]), Ok(vec![2, i32::MAX - 6]), "sums are exact");
        push(&mut agent, 7);
        let error = pull(&mut agent, &[3, 7]).expect_err("the sum is too large");
        assert!(error.to_string().contains("key 7, column 0 has left the range of i32"), "{error}");
        push(&mut agent, -1000);
        assert!(pull(&mut agent, &[7]).is_err(), "it does not come back as another number");
        assert_eq!(pull(&mut agent, &[3]), Ok(vec![4]), "other rows can be read");
    }
}

#[test]
fn integers_of_32_bits_refuse_optimizers_and_the_number_that_stands_for_an_overflow() {
    let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 };
    let refused = spec(ElementType::U32, rule, Consistency::Asp);
    let error = refused.check(&matrix::FunctionTable::builtin()).expect_err("no optimizer");
    assert!(error.to_string().contains("add, assign, min or max on u32"), "{error}");
    let store = store_of(1, [spec(ElementType::U32, PushRule::Assign, Consistency::Asp)]);
    let rows = Selection::Rows(Keys::Sorted(&[1]));
    assert!(store.agent(0).push(W, rows, Values::U32(&[u32::MAX])).is_err());
}
