//! Layouts are checked before an agent uses them.

use std::time::Duration;

use matrix::{
    Axis, Consistency, ElementType, FunctionTable, Initializer, MatrixSpec, OwnPartitioner, Partitioner,
    Prefetch, PushRule, Storage,
};
use rpc::WireType;

use crate::state::AgentState;
use rpc::layout::*;

fn layout() -> JobLayout {
    let spec = MatrixSpec {
        name: "w".into(),
        element: ElementType::F32,
        rows: 100,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 4 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Bsp,
        seed: 0,
    };
    let lane = |lane| LaneAddress::new(vec!["tcp:a:1".into()], lane);
    JobLayout {
        job: 1,
        task_count: 2,
        wait_limit: Duration::from_mins(1),
        window_bytes: 1 << 20,
        matrices: vec![spec],
        lanes: vec![lane(0), lane(1)],
        owners: vec![assign_partitions(4, 2)],
        home: 0,
        wire: Vec::new(),
        prefetch: Prefetch::default(),
    }
}

#[test]
fn partitions_lie_in_even_contiguous_blocks() {
    assert_eq!(assign_partitions(5, 2), [0, 0, 0, 1, 1]);
    assert_eq!(assign_partitions(2, 4), [0, 2]);
    for (partitions, lanes) in [(1, 1), (7, 3), (100, 7), (3, 5), (65_536, 65_535)] {
        let owners = assign_partitions(partitions, lanes);
        assert_eq!(owners.len(), partitions as usize);
        assert!(owners.is_sorted());
        let mut counts = vec![0u32; usize::from(lanes)];
        for lane in owners {
            counts[usize::from(lane)] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{partitions} over {lanes}");
    }
}

#[test]
fn a_layout_goes_out_as_json_and_comes_back() {
    let layout = layout();
    assert_eq!(layout.check(&FunctionTable::builtin()), Ok(()));
    assert_eq!(layout.lane_partitions(1), [[2, 3]]);
    let text = serde_json::to_string(&layout).unwrap();
    assert_eq!(serde_json::from_str::<JobLayout>(&text).unwrap(), layout);
}

#[test]
fn an_agent_places_keys_with_the_partitioners_of_its_functions_alone() {
    let blocks = OwnPartitioner { name: "blocks", partition_of: |key, _| (key / 50) as u32 };
    let mut layout = layout();
    layout.matrices[0].partitioner = Partitioner::Own { name: blocks.name.into(), partition_count: 4 };
    let agent = |functions| AgentState::new(Duration::ZERO, layout.clone(), 0, functions);
    let error = agent(FunctionTable::builtin()).unwrap_err().to_string();
    assert!(error.contains("\"blocks\"") && error.contains("with_partitioner"), "{error}");
    let mut functions = FunctionTable::builtin();
    functions.add_partitioner(blocks).unwrap();
    let agent = agent(functions).unwrap();
    assert_eq!([0, 49, 50, 199].map(|key| agent.matrices[0].placement.partition_of(key)), [0, 0, 1, 3]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let refused = |change: fn(&mut JobLayout)| {
        let mut layout = layout();
        change(&mut layout);
        layout.check(&FunctionTable::builtin()).unwrap_err().to_string()
    };
    assert!(refused(|l| l.lanes.clear()).contains("number of lanes is 0, expected 1 to 65535"));
    let many = refused(|l| l.lanes = vec![l.lanes[0].clone(); 65_536]);
    assert!(many.contains("number of lanes is 65536, expected 1 to 65535"), "{many}");
    assert!(refused(|l| l.lanes[1].addresses.clear()).contains("addresses of lane 1"));
    assert!(refused(|l| l.home = 2).contains("home is 2, expected below 2"));
    assert!(refused(|l| l.task_count = 0).contains("task_count"));
    assert!(refused(|l| l.window_bytes = 0).contains("window_bytes"));
    assert!(refused(|l| l.owners[0].truncate(3)).contains("owners of matrix \"w\" is 3, expected 4"));
    assert!(refused(|l| l.owners[0][1] = 9).contains("an owner of matrix \"w\" is 9"));
    assert!(refused(|l| l.owners.clear()).contains("matrices with owners is 0, expected 1"));
    let wide = refused(|l| {
        l.matrices[0].columns = 1 << 23;
        l.matrices[0].rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 };
    });
    let expected = "a row of matrix \"w\" with its slots is 100663296, expected at most 67108864";
    assert!(wide.contains(expected), "{wide}");
    let wire = refused(|l| l.wire = vec![WireType::Bf16; 2]);
    assert!(wire.contains("the number of wire types is 2, expected 1"), "{wire}");
    let largest = JobLayout { lanes: vec![layout().lanes[0].clone(); 65_535], ..layout() };
    assert_eq!(largest.check(&FunctionTable::builtin()), Ok(()));
    assert!(refused(|l| l.matrices[0].rows = 0).contains("rows"));
}
