//! The progress of a running job as lines: its matrices, its tasks, and which task waits for which.

use engine::cluster::plain;
use serde_json::Value;

use crate::progress::{bytes, count, decimal};

/// Maximum length in bytes of a path that is shown.
const PATH_BYTES: usize = 1 << 10;

/// Returns the lines of a job's progress, indented; none when no progress is known.
pub(super) fn lines(progress: &Value) -> String {
    let mut out = String::new();
    for matrix in list(progress, "matrices") {
        let number = |key: &str| matrix[key].as_u64().unwrap_or(0);
        out += &format!(
            "        matrix {}: {}, {} in {}\n",
            matrix["name"].as_str().unwrap_or("?"),
            rounded_count(number("rows"), "row"),
            bytes(number("bytes")),
            rounded_count(number("partitions"), "partition")
        );
    }
    for incident in incidents(progress) {
        out += &format!("        {incident}\n");
    }
    let tasks = list(progress, "tasks");
    for task in tasks {
        out += &format!("        {}\n", line(task, tasks));
    }
    let hidden = progress["task_count"].as_u64().unwrap_or(0).saturating_sub(tasks.len() as u64);
    if hidden > 0 {
        out += &format!("        and {} with higher clocks\n", rounded_count(hidden, "task"));
    }
    out
}

/// Returns the epoch, the number of records and the mean loss of the epoch as text; empty when they are not known.
pub(in crate::cli) fn progress_text(progress: &Value) -> String {
    if let Some(scored) = progress["scored"].as_u64() {
        let number = |key: &str| progress[key].as_u64().unwrap_or(0);
        let (done, all) = (number("chunks"), number("chunk_count"));
        return format!(
            "  {} scored, {done} of {}",
            rounded_count(scored, "record"),
            rounded_count(all, "chunk")
        );
    }
    let (Some(records), Some(epochs)) = (progress["records"].as_u64(), progress["epochs"].as_u64()) else {
        return String::new();
    };
    let count =
        |text: &str| progress["epoch_count"].as_u64().map_or_else(String::new, |n| format!("{text}{n}"));
    let mut out = if progress["ended_by"].is_string() {
        format!("  {}{}", rounded_count(epochs, "whole epoch"), count(" of "))
    } else {
        let epoch = progress["epoch_count"].as_u64().map_or(epochs + 1, |n| n.min(epochs + 1));
        format!("  epoch {epoch}{}", count(" of "))
    };
    out += &format!(", {}", rounded_count(records, "record"));
    if let Some(loss) = progress["loss"].as_f64() {
        out += &format!(", loss {}", decimal(loss, 5));
    }
    if let (Some(number), Some(clock)) =
        (progress["checkpoint"]["number"].as_u64(), progress["checkpoint"]["clock"].as_u64())
    {
        out += &format!(", checkpoint {number} at clock {clock}");
    }
    if progress["ended_by"] == "interrupted"
        && let Some(model) = progress["model"].as_str()
    {
        out += &format!("; the model so far is in {}", plain(model, PATH_BYTES));
    }
    out
}

/// Returns what happened to the job without ending it, a line each, the latest last.
pub(in crate::cli) fn incidents(progress: &Value) -> Vec<String> {
    let lines = list(&progress["incidents"], "last").iter().filter_map(Value::as_str);
    lines.map(|line| plain(line, PATH_BYTES)).collect()
}

/// Returns a number with its noun, as `12.0k records`: a progress needs no more digits.
fn rounded_count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as f64))
}

fn list<'a>(progress: &'a Value, key: &str) -> &'a [Value] {
    progress[key].as_array().map_or(&[], Vec::as_slice)
}

fn line(task: &Value, tasks: &[Value]) -> String {
    let worker = task["worker"].as_str().unwrap_or("?");
    let doing = match (task["state"].as_str(), &task["wait"]) {
        (Some("left"), _) => "has ended".to_owned(),
        _ if task["connected"] == false => "is not connected".to_owned(),
        (_, Value::Null) => "computes".to_owned(),
        (_, wait) => wait_text(wait, tasks),
    };
    format!("task {} on {worker}: clock {}, {doing}", task["task"], task["clock"])
}

fn wait_text(wait: &Value, tasks: &[Value]) -> String {
    let seconds = wait["waited_ms"].as_f64().unwrap_or(0.0) / 1000.0;
    let call = match wait["call"].as_str() {
        Some("barrier") => "at a barrier",
        Some("push") => "to push",
        _ => "to pull",
    };
    let whom = match &wait["waits_for"] {
        Value::Null => "for messages in flight".to_owned(),
        other => {
            let on = tasks.iter().find(|task| task["task"] == *other);
            let on = on.and_then(|task| task["worker"].as_str());
            let on = on.map_or_else(String::new, |worker| format!(" on {worker}"));
            format!("for task {other}{on}")
        }
    };
    format!("waits {seconds:.1} s {call} {whom}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_epoch_the_total_and_the_loss_are_told() {
        let mut progress = json!({"records": 12_000, "epochs": 2, "epoch_count": 60, "loss": 0.4321});
        assert_eq!(progress_text(&progress), "  epoch 3 of 60, 12.0k records, loss 0.43210");
        progress["epoch_count"] = Value::Null;
        assert_eq!(progress_text(&progress), "  epoch 3, 12.0k records, loss 0.43210");
        let ended = json!({"records": 1, "epochs": 1, "epoch_count": 9, "loss": 0.5, "ended_by": "interrupted",
            "model": "/m"});
        let text = "  1 whole epoch of 9, 1 record, loss 0.50000; the model so far is in /m";
        assert_eq!(progress_text(&ended), text);
        assert_eq!(progress_text(&json!({"exit": 5})), "");
    }

    #[test]
    fn the_last_epoch_is_not_passed_and_checkpoints_are_told() {
        let mut progress = json!({"records": 20, "epochs": 3, "epoch_count": 3});
        assert_eq!(
            progress_text(&progress),
            "  epoch 3 of 3, 20 records",
            "between its end and that of the job"
        );
        progress["checkpoint"] = json!({"number": 4, "clock": 70});
        assert_eq!(progress_text(&progress), "  epoch 3 of 3, 20 records, checkpoint 4 at clock 70");
        progress["checkpoint"] = json!({"number": 4});
        progress["ended_by"] = "epochs".into();
        progress["model"] = "/m".into();
        assert_eq!(progress_text(&progress), "  3 whole epochs of 3, 20 records");
        progress["epochs"] = Value::Null;
        assert_eq!(progress_text(&progress), "");
    }

    #[test]
    fn scoring_counts_records_and_chunks() {
        let progress = json!({"scored": 20_000, "chunks": 1, "chunk_count": 3});
        assert_eq!(progress_text(&progress), "  20.0k records scored, 1 of 3 chunks");
        let progress = json!({"scored": 1, "chunks": 0, "chunk_count": 1});
        assert_eq!(progress_text(&progress), "  1 record scored, 0 of 1 chunk");
    }

    #[test]
    fn what_has_happened_is_told_line_by_line() {
        let progress = json!({"incidents": {"count": 5, "last": ["a was\nlost", 7, "b was lost"]}});
        let told = incidents(&progress);
        assert!(told.len() == 2 && told.iter().all(|line| !line.contains('\n')), "{told:?}");
        assert!(told[0].starts_with("a was") && told[1] == "b was lost", "{told:?}");
        assert_eq!(incidents(&Value::Null), [] as [&str; 0]);
    }

    #[test]
    fn a_task_waits_at_a_barrier_for_messages_or_is_gone() {
        let task = |state: &str, connected: bool, wait: Value| {
            let task = json!({"task": 2, "worker": "w", "clock": 5, "state": state, "connected": connected, "wait": wait});
            line(&task, &[])
        };
        let wait = |call: &str, of: Value| json!({"call": call, "waited_ms": 300, "waits_for": of});
        let expected = [
            (task("left", false, Value::Null), "has ended"),
            (task("live", false, wait("pull", Value::Null)), "is not connected"),
            (
                task("live", true, wait("barrier", Value::Null)),
                "waits 0.3 s at a barrier for messages in flight",
            ),
            (task("live", true, wait("push", json!(9))), "waits 0.3 s to push for task 9"),
        ];
        for (told, doing) in expected {
            assert_eq!(told, format!("task 2 on w: clock 5, {doing}"));
        }
        assert_eq!(line(&json!({"task": 1, "clock": 0}), &[]), "task 1 on ?: clock 0, computes");
    }

    #[test]
    fn who_waits_is_told_for_whom_and_how_long() {
        let progress = json!({
            "task_count": 3,
            "incidents": {"count": 30, "last": ["a was lost"]},
            "matrices": [{"name": "weights", "rows": 50, "bytes": 2048, "partitions": 8}],
            "tasks": [
                {"task": 0, "worker": "a", "clock": 8, "state": "live", "connected": true,
                    "wait": {"call": "pull", "waited_ms": 1500, "waits_for": 1}},
                {"task": 1, "worker": "b", "clock": 7, "state": "live", "connected": true, "wait": null},
            ],
        });
        assert_eq!(
            lines(&progress),
            "        matrix weights: 50 rows, 2.0 KiB in 8 partitions\n        a was lost\n        \
             task 0 on a: clock 8, waits 1.5 s to pull for task 1 on b\n        \
             task 1 on b: clock 7, computes\n        and 1 task with higher clocks\n"
        );
        assert_eq!(lines(&Value::Null), "");
    }
}
