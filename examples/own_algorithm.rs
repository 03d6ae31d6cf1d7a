//! `PageRank` on edges with names: it trains in this process or on servers and workers, and goes on after a loss. Try
//! `cargo run --example own_algorithm -- train pagerank --data edges.txt --format edges --model ranks`.
//! Brin, Page, "The anatomy of a large-scale hypertextual web search engine", Computer Networks 30, 1998.

use algo::algorithm::{Algorithm, ByRounds, Edge, PushRule, Round, Rounds, RowFunctions, Table, Task};
use algo::{DataFacts, Error, Needs};
use serde::{Deserialize, Serialize};

algo::settings! {
    struct PageRankSettings {
        /// Share of the rank of a node that its edges carry on
        damping: f64 = 0.85, 0.0 to 1.0;
        /// Largest number of rounds
        rounds: u64 = 100, 1 to 1_000_000;
        /// A round that changes the ranks by less in total is the last one
        tolerance: f64 = 1e-9, 0.0 to 1.0;
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PageRank {}

/// The edges of a task, and the nodes whose ranks it computes.
struct Share {
    edges: Vec<Edge>,
    own: Vec<u64>,
    node_count: f64,
}

impl Algorithm for PageRank {
    const NAME: &'static str = "pagerank";
    const TITLE: &'static str = "PageRank of the nodes of a graph";
    type Settings = PageRankSettings;
    type Loop = ByRounds;

    fn needs(set: &PageRankSettings) -> Needs {
        Needs::edges().epochs(set.rounds)
    }

    fn new(_: &PageRankSettings, _: &DataFacts, _: Option<&Self>) -> Result<Self, Error> {
        Ok(Self {})
    }

    /// The rank of each node; in training also the weight of its outgoing edges, and the rank that reaches it in a round.
    fn tables(&self, _: Option<&PageRankSettings>) -> Vec<Table> {
        let table = |name, rule| Table::rows(name, 1, rule).doubles();
        let work = |name| table(name, PushRule::Add).work();
        vec![table("rank", PushRule::Assign), work("out"), work("received")]
    }

    fn functions() -> RowFunctions {
        RowFunctions::none().fold("total", |_, _, row| [row[0]]).change("clear", |_, _, row| row[0] = 0.0)
    }
}

impl Rounds for PageRank {
    type Share = Share;

    fn begin(&self, _: &PageRankSettings, task: &mut Task<'_>) -> Result<Share, Error> {
        let edges = task.edges()?;
        let own = task.own(edges.iter().flat_map(|edge| [edge.source, edge.target]))?;
        let [node_count] = task.sum([own.len() as f64])?;
        if task.is_new() {
            task.push_sums("out", edges.iter().map(|edge| (edge.source, edge.weight)))?;
            task.push("rank", &own, &vec![1.0 / node_count; own.len()])?;
        }
        Ok(Share { edges, own, node_count })
    }

    fn round(&self, set: &PageRankSettings, share: &mut Share, task: &mut Task<'_>) -> Result<Round, Error> {
        let sources = || share.edges.iter().map(|edge| edge.source);
        let (rank, out) = (task.look_up("rank", sources())?, task.look_up("out", sources())?);
        let sent = |edge: &Edge| rank.number(edge.source) * edge.weight / out.number(edge.source);
        task.push_sums("received", share.edges.iter().map(|edge| (edge.target, sent(edge))))?;
        let [total] = task.fold("total", "received", &[])?;
        // The ranks of nodes without outgoing edges go to all nodes.
        let jump = (1.0 - set.damping * total) / share.node_count;
        let (old, received) = (task.get("rank", &share.own)?, task.get("received", &share.own)?);
        let new: Vec<f64> = received.iter().map(|received| jump + set.damping * received).collect();
        task.push("rank", &share.own, &new)?;
        task.change("clear", "received", &[])?;
        let [change] = task.sum([old.iter().zip(&new).map(|(old, new)| (new - old).abs()).sum()])?;
        Ok(Round { is_last: change < set.tolerance, shown: vec![("change", change)] })
    }
}

fn main() -> std::process::ExitCode {
    seraphim::cli::run_algorithm::<PageRank>()
}
