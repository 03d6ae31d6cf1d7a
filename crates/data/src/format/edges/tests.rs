//! Tests of `edges.rs`.

use math::hash::named_key;

use crate::FormatOptions;
use crate::format::testing::{Row, bad, check, options, rows};
use crate::source::read_bytes;

fn graph() -> FormatOptions {
    FormatOptions { uses_labels: false, ..options() }
}

fn edge(source: u64, target: u64, weight: f32) -> Row {
    let entries = [(source, 1.0), (target, 1.0)];
    Row { weight, fields: vec![0, 1], ..Row::new(None, &entries) }
}

#[test]
fn good_lines() {
    let name = |text: &str| named_key(b"", text.as_bytes());
    let table = [
        ("1 2", edge(1, 2, 1.0)),
        ("1\t2\t0.5", edge(1, 2, 0.5)),
        (" 7 , 7 , 2", edge(7, 7, 2.0)),
        ("anna bert", edge(name("anna"), name("bert"), 1.0)),
        ("4611686018427387904 1", edge(name("4611686018427387904"), 1, 1.0)),
        ("4611686018427387903 12a", edge(4_611_686_018_427_387_903, name("12a"), 1.0)),
    ];
    check("edges", &graph(), &table);
}

#[test]
fn comments_and_blank_lines_are_skipped_and_times_are_read() {
    let text = "# nodes 3\n% sym\n\n1 2 1 86400\n2 3 0.5 1970-01-03\n";
    let batches = read_bytes("edges", &graph(), text.as_bytes()).unwrap();
    assert_eq!(batches[0].times, [86400.0, 172_800.0]);
    assert_eq!(batches[0].weights, [1.0, 0.5]);
}

#[test]
fn bad_lines_say_where_and_what() {
    let table = [
        ("1", 2, "source target [weight [time]]"),
        ("1 2 x", 5, "a finite weight"),
        ("1 2 -1", 5, "at least 0"),
        ("1 2 1 noon", 7, "a date as in"),
        ("1 2 1 5 6", 9, "the end of the line"),
    ];
    bad("edges", &graph(), &table);
    let error = rows("edges", &graph(), "1 2 1 5\n1 2 1\n").unwrap_err().to_string();
    assert!(error.contains(":2:6") && error.contains("a time after the weight"), "{error}");
    let error = rows("edges", &graph(), "1 2 1\n1 2 1 5\n").unwrap_err().to_string();
    assert!(error.contains(":2:7") && error.contains("no time") && error.contains("'5'"), "{error}");
    let error = rows("edges", &graph(), "1 2\n2 3 1 5\n").unwrap_err().to_string();
    assert!(error.contains(":2:7") && error.contains("'5'"), "{error}");
}

#[test]
fn a_header_is_no_edge() {
    let nodes = |text: &str| {
        let rows = rows("edges", &graph(), text).unwrap();
        rows.iter().map(|row| [row.entries[0].0, row.entries[1].0]).collect::<Vec<_>>()
    };
    let name = |text: &str| named_key(b"", text.as_bytes());
    let pair = [name("a"), name("c")];
    for header in ["source,target", "Source Target Weight", "FromNodeId\tToNodeId", "src,dst"] {
        assert_eq!(nodes(&format!("{header}\na c\n")), [pair], "{header}");
    }
    assert_eq!(nodes("# a comment\nuser,item,rating\na,c,2\n"), [pair], "a weight that is no number");
    assert_eq!(nodes("u v\n1 2\n2 3\n"), [[1, 2], [2, 3]], "names above numbers");
    assert_eq!(nodes("u v\n1 2\nx y\n").len(), 3, "names and numbers");
    assert_eq!(nodes("anna bert\n").len(), 1, "one edge");
    assert_eq!(nodes("x y 1\na c 2\n").len(), 2, "edges of names");
    let batches = read_bytes("edges", &graph(), b"source,target,weight,time\n1,2,1,5\n").unwrap();
    assert_eq!((batches[0].record_count(), &batches[0].times[..]), (1, &[5.0][..]));
}

#[test]
fn a_matrix_market_file_is_refused_with_the_remedy() {
    let text = "%%MatrixMarket matrix coordinate real general\n% by hand\n4 4 1\n1 2 .5\n";
    let error = rows("edges", &graph(), text).unwrap_err().to_string();
    assert!(error.contains("Matrix Market") && error.contains("tail -n +2"), "{error}");
    assert_eq!(rows("edges", &graph(), "% sym unweighted\n% 1 2 2\n1 2\n").unwrap().len(), 1, "KONECT");
}

#[test]
fn an_algorithm_that_needs_labels_is_told_that_there_are_none() {
    let error = rows("edges", &options(), "1 2").unwrap_err().to_string();
    assert!(error.contains("edges have no labels"), "{error}");
}
