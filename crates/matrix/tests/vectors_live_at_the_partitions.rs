//! A `ServerVector` computes at the partitions what a plain vector computes. Its row is returned when it is dropped.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use matrix::function::map::{Map, Scalar};
use matrix::function::reduce::Gram;
use matrix::function::zip::Zip;
use matrix::{
    Consistency, ElementType, Error, FunctionFault, LocalAgent, LocalConfig, LocalStore, OwnedValues, Values,
    VectorPool,
};

const COLUMNS: usize = 1_500;

/// Creates two pools of three vectors each.
fn pools() -> (LocalAgent, VectorPool, VectorPool) {
    let config = LocalConfig { task_count: 1, wait_limit: Duration::from_mins(2) };
    let mut store = LocalStore::new(config);
    let mut pool = |name: &str| {
        let spec = VectorPool::spec(name, ElementType::F64, 3, COLUMNS as u64, 4, Consistency::Asp);
        let id = store.create(spec.clone()).unwrap();
        VectorPool::new(id, &spec).unwrap()
    };
    let (first, second) = (pool("first"), pool("second"));
    (Arc::new(store).agent(0), first, second)
}

fn wave(by: f64) -> Vec<f64> {
    (0..COLUMNS).map(|i| (i as f64 * by).sin()).collect()
}

fn fault(result: Result<impl std::fmt::Debug, Error>) -> FunctionFault {
    match result {
        Err(Error::Function { fault, .. }) => *fault,
        other => panic!("not the fault of a function: {other:?}"),
    }
}

#[test]
fn arithmetic_is_that_of_plain_vectors() {
    let (mut agent, pool, _) = pools();
    let agent = &mut agent;
    let (x, y) = (wave(0.1), wave(0.7));
    let mut v = pool.create(agent).unwrap();
    let mut w = pool.create(agent).unwrap();
    v.put(agent, Values::F64(&x)).unwrap();
    w.push(agent, Values::F64(&y)).unwrap();
    assert_eq!(w.pull(agent).unwrap(), OwnedValues::F64(y.clone()), "pushes are added to zeros");
    w.axpy(agent, 0.25, &v).unwrap();
    let mut plain: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 0.25 * x + y).collect();
    assert_eq!(w.pull(agent).unwrap(), OwnedValues::F64(plain.clone()));
    w.push_at(agent, &[3, 1_400], Values::F64(&[1.0, -1.0])).unwrap();
    plain[3] += 1.0;
    plain[1_400] -= 1.0;
    assert_eq!(
        w.pull_at(agent, &[2, 3, 1_400]).unwrap(),
        OwnedValues::F64(vec![plain[2], plain[3], plain[1_400]])
    );
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let dot: f64 = x.iter().zip(&plain).map(|(a, b)| a * b).sum();
    near(v.dot(agent, &w).unwrap(), dot);
    near(w.norm_1(agent).unwrap(), plain.iter().map(|x| x.abs()).sum());
    near(w.norm_2(agent).unwrap(), plain.iter().map(|x| x * x).sum::<f64>().sqrt());
    assert_eq!(w.norm_inf(agent).unwrap(), plain.iter().map(|x| x.abs()).fold(0.0, f64::max));
    assert_eq!(w.count_non_zero(agent).unwrap(), plain.iter().filter(|x| **x != 0.0).count() as u64);
    let gram = pool.gram(agent, &[&v, &w]).unwrap();
    assert_eq!(gram[Gram::index(0, 1, 2)], v.dot(agent, &w).unwrap());
    let mut u = pool.create(agent).unwrap();
    u.combine(agent, &[(2.0, &v), (-1.0, &w)]).unwrap();
    let combined: Vec<f64> = x.iter().zip(&plain).map(|(x, y)| 2.0 * x - y).collect();
    assert_eq!(u.pull(agent).unwrap(), OwnedValues::F64(combined.clone()));
    assert!(!u.equals(agent, &v).unwrap());
    u.copy_from(agent, &v).unwrap();
    assert!(u.equals(agent, &v).unwrap());
    u.zip(agent, Zip::Sub, &w).unwrap();
    u.map(agent, Map::Abs).unwrap();
    u.scalar(agent, Scalar::Mul, 3.0).unwrap();
    let expected: Vec<f64> = x.iter().zip(&plain).map(|(x, y)| 3.0 * (x - y).abs()).collect();
    assert_eq!(u.pull(agent).unwrap(), OwnedValues::F64(expected.clone()));
    near(u.sum(agent).unwrap(), expected.iter().sum());
    let top = u.top_k(agent, 1).unwrap();
    assert_eq!(top[0].1, expected.iter().copied().fold(0.0, f64::max));
}

#[test]
fn a_row_is_given_back_when_its_vector_is_dropped_and_begins_with_zeros_again() {
    let (mut agent, pool, _) = pools();
    let agent = &mut agent;
    let mut vectors: Vec<_> = (0..3).map(|_| pool.create(agent).unwrap()).collect();
    vectors[1].set(agent, 7.0).unwrap();
    assert_eq!(fault(pool.create(agent)), FunctionFault::PoolFull { rows: 3 });
    drop(vectors.remove(1));
    assert_eq!(pool.free_count(), 1);
    let again = pool.create(agent).unwrap();
    assert_eq!(again.row().unwrap(), 1);
    assert_eq!(again.pull(agent).unwrap(), OwnedValues::F64(vec![0.0; COLUMNS]));
}

#[test]
fn a_released_vector_is_refused_also_when_its_row_has_another_owner() {
    let (mut agent, pool, _) = pools();
    let agent = &mut agent;
    let mut v = pool.create(agent).unwrap();
    v.release();
    v.release();
    let mut other = pool.create(agent).unwrap();
    assert_eq!(other.row().unwrap(), 0, "the row of the first");
    let released = FunctionFault::ReleasedVector { row: 0 };
    assert_eq!(fault(v.set(agent, 1.0)), released);
    assert_eq!(fault(v.sum(agent)), released);
    assert_eq!(fault(v.pull(agent)), released);
    assert_eq!(fault(v.push(agent, Values::F64(&wave(1.0)))), released);
    assert_eq!(fault(other.axpy(agent, 1.0, &v)), released);
    drop(v);
    assert_eq!(pool.free_count(), 2, "a row is not given back twice");
}

#[test]
fn vectors_of_different_pools_and_of_a_wrong_length_are_refused() {
    let (mut agent, first, second) = pools();
    let agent = &mut agent;
    let mut v = first.create(agent).unwrap();
    let w = second.create(agent).unwrap();
    let pools = FunctionFault::DifferentPools { first: "first".into(), second: "second".into() };
    assert_eq!(fault(v.dot(agent, &w)), pools);
    assert_eq!(fault(v.axpy(agent, 1.0, &w)), pools);
    assert_eq!(fault(first.gram(agent, &[&v, &w])), pools);
    assert!(matches!(fault(v.put(agent, Values::F64(&[1.0]))), FunctionFault::Argument { .. }));
    assert!(matches!(fault(v.push(agent, Values::F64(&[1.0]))), FunctionFault::Argument { .. }));
    assert!(v.push_at(agent, &[1, 2], Values::F64(&[1.0])).is_err());
    assert!(v.put(agent, Values::F32(&[1.0; COLUMNS])).is_err(), "another element type");
}
