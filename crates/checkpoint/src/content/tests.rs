use matrix::{Partitioner, PushRule};
use proptest::prelude::*;

use super::*;

fn specs() -> Vec<MatrixSpec> {
    let adam = PushRule::Adam {
        rate: 0.1,
        l1: 0.0,
        l2: 0.0,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-8,
        schedule: matrix::Schedule::Constant,
    };
    let mut counts = MatrixSpec::sparse("counts", ElementType::I64, 1, PushRule::Add, 2);
    counts.partitioner = Partitioner::Hash { partition_count: 3 };
    let lists = matrix::ListMatrix::spec("lists", ElementType::I32, 1, PushRule::Add, 2);
    let keys = matrix::ListMatrix::spec("keys", ElementType::F32, 0, PushRule::Assign, 2);
    vec![MatrixSpec::sparse("weights", ElementType::F32, 2, adam, 4), counts, lists, keys]
}

fn weights(count: u64) -> RowBlock {
    let floats = |n: u64| OwnedValues::F32((0..n).map(|i| i as f32 / 3.0).collect());
    let slots = specs()[0].rule.slots().iter().map(|slot| {
        let width = slot.width(2) as u64;
        (slot.name.to_owned(), floats(count * width))
    });
    let keys = (0..count).map(|i| i * 7).collect();
    RowBlock { slots: slots.collect(), ..RowBlock::of_values(keys, floats(count * 2)) }
}

fn contents() -> Vec<Content> {
    let task = SavedTask {
        algorithm: "lr".into(),
        task: 1,
        task_count: 3,
        epoch: 2,
        clock: 9,
        bytes: vec![0, 255, 3],
    };
    let counts = RowBlock::of_values(vec![5], OwnedValues::I64(vec![i64::MIN]));
    let (mut lists, mut keys) = (RowBlock::no_lists(ElementType::I32), RowBlock::no_lists(ElementType::F32));
    lists.push_list(3, &[1, 7, 9], &[-1i32, 2, 3]);
    lists.push_list(8, &[4], &[5i32]);
    keys.push_list::<f32>(2, &[6, 7], &[]);
    vec![
        Content::Driver(b"driver".to_vec()),
        Content::Task(task),
        Content::Rows { matrix: 0, of: RowsOf::Now, rows: weights(10) },
        Content::Rows { matrix: 0, of: RowsOf::Best, rows: weights(0) },
        Content::Rows { matrix: 1, of: RowsOf::Best, rows: counts },
        Content::Rows { matrix: 2, of: RowsOf::Now, rows: lists },
        Content::Rows { matrix: 3, of: RowsOf::Now, rows: keys },
    ]
}

fn write(contents: &[Content]) -> Vec<u8> {
    let mut writer = PartWriter::new(Vec::new()).unwrap();
    for content in contents {
        match content {
            Content::Driver(state) => writer.write_driver(state).unwrap(),
            Content::Task(task) => writer.write_task(task).unwrap(),
            Content::Rows { matrix, of, rows } => writer.write_rows(*matrix, *of, rows).unwrap(),
        }
    }
    writer.finish().unwrap().0
}

fn read(bytes: &[u8], specs: &[MatrixSpec]) -> Result<Vec<Content>, Error> {
    let mut reader = PartReader::new(bytes, specs, "folder", "part")?;
    let mut contents = Vec::new();
    while let Some(content) = reader.read()? {
        contents.push(content);
    }
    Ok(contents)
}

#[test]
fn contents_come_back() {
    assert_eq!(read(&write(&contents()), &specs()).unwrap(), contents());
}

#[test]
fn rows_of_a_matrix_that_the_manifest_does_not_have_are_damage() {
    let error = read(&write(&contents()), &specs()[..1]).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let mut wider = specs();
    wider[0].columns = 3;
    let error = read(&write(&contents()), &wider).unwrap_err();
    assert!(error.to_string().contains("does not have the content of its kind"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_in_a_block_give_an_error_and_no_panic(
        kind in 1u32..5,
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut writer = BlockWriter::new(Vec::new()).unwrap();
        writer.write(kind, &[&bytes]).unwrap();
        let _ = read(&writer.finish().unwrap().0, &specs());
    }
}
