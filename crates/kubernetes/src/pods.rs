//! What is wrong with a pod, in words for people.

use serde_json::Value;

/// Reasons for which a container does not start and that do not pass without a person.
const LASTING: [&str; 6] = [
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "CreateContainerConfigError",
    "StartError",
    "ContainerCannotRun",
];
/// Reasons that are no problem: the container begins, or waits before it begins again.
const PASSING: [&str; 3] = ["ContainerCreating", "PodInitializing", "CrashLoopBackOff"];
/// How often a container may end before the cluster is given up.
pub const RESTART_LIMIT: u64 = 10;

/// A problem of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodProblem {
    pub text: String,
    /// It will not pass.
    pub is_lasting: bool,
}

/// The problem of a pod; none if it has none.
pub fn problem(pod: &Value) -> Option<PodProblem> {
    let name = pod["metadata"]["name"].as_str().unwrap_or("a pod");
    let status = &pod["status"];
    let told =
        |text: String, is_lasting: bool| Some(PodProblem { text: format!("pod {name} {text}"), is_lasting });
    let container = &status["containerStatuses"][0];
    let waits = &container["state"]["waiting"];
    let reason = waits["reason"].as_str().unwrap_or_default();
    if !reason.is_empty() && !PASSING.contains(&reason) {
        let message = waits["message"].as_str().unwrap_or_default();
        let text = format!("does not start: {}", joined(reason, message));
        return told(text, LASTING.contains(&reason));
    }
    let ended = [&container["state"]["terminated"], &container["lastState"]["terminated"]];
    if let Some(ended) =
        ended.into_iter().find(|ended| ended["exitCode"].as_i64().is_some_and(|code| code != 0))
    {
        let restarts = container["restartCount"].as_u64().unwrap_or(0);
        let reason = ended["reason"].as_str().unwrap_or_default();
        let why = match reason {
            "OOMKilled" => "more memory was used than its container has".to_owned(),
            "Error" | "" => String::new(),
            _ => reason.to_owned(),
        };
        let message = joined(&why, ended["message"].as_str().unwrap_or_default());
        let colon = if message.is_empty() { "" } else { ": " };
        let text = format!(
            "has ended with exit code {}, {} so far{colon}{message}",
            ended["exitCode"],
            if restarts <= 1 { "once".to_owned() } else { format!("{restarts} times") },
        );
        return told(text, restarts > RESTART_LIMIT || LASTING.contains(&reason));
    }
    if status["phase"] == "Failed" {
        let reason = status["reason"].as_str().unwrap_or("Failed");
        return told(
            format!("has failed: {}", joined(reason, status["message"].as_str().unwrap_or_default())),
            false,
        );
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let unscheduled = conditions
        .filter(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .find_map(|condition| condition["message"].as_str());
    told(format!("has no node: {}", unscheduled?), false)
}

/// Whether the container answers.
pub fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true && pod["metadata"]["deletionTimestamp"].is_null()
}

fn joined(reason: &str, message: &str) -> String {
    // The last line of a log says why a process has ended.
    let message = message.trim().lines().next_back().unwrap_or_default();
    match (reason.is_empty(), message.is_empty()) {
        (_, true) => reason.to_owned(),
        (true, false) => message.to_owned(),
        (false, false) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({"metadata": {"name": "m-0"}, "status": status})
    }

    fn text(status: &Value) -> (String, bool) {
        problem(&pod(status)).map(|problem| (problem.text, problem.is_lasting)).unwrap()
    }

    #[test]
    fn an_image_that_cannot_be_pulled_does_not_pass() {
        let status = |reason: &str| json!({"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "no x:1"}}}]});
        assert_eq!(
            text(&status("ImagePullBackOff")),
            ("pod m-0 does not start: ImagePullBackOff: no x:1".into(), true)
        );
        assert_eq!(
            text(&status("ErrImagePull")),
            ("pod m-0 does not start: ErrImagePull: no x:1".into(), false)
        );
        assert_eq!(problem(&pod(&status("ContainerCreating"))), None);
    }

    #[test]
    fn a_container_that_ends_again_and_again_does_not_pass() {
        let status = |count: u64, reason: &str| {
            let ended = json!({"exitCode": 137, "reason": reason, "message": "a\nlast\n"});
            json!({"containerStatuses": [{"restartCount": count, "state": {"running": {}}, "lastState": {"terminated": ended}}]})
        };
        assert_eq!(
            text(&status(1, "Error")),
            ("pod m-0 has ended with exit code 137, once so far: last".into(), false)
        );
        let (told, is_lasting) = text(&status(11, "OOMKilled"));
        assert!(is_lasting && told.contains("11 times") && told.contains("more memory"), "{told}");
        let done =
            json!({"containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]});
        assert_eq!(problem(&pod(&done)), None);
    }

    #[test]
    fn a_program_of_another_architecture_does_not_pass() {
        let ended =
            json!({"exitCode": 128, "reason": "StartError", "message": "exec /app: exec format error"});
        let status = json!({"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}]});
        let (told, is_lasting) = text(&status);
        assert!(is_lasting && told.contains("StartError: exec /app: exec format error"), "{told}");
    }

    #[test]
    fn a_pod_without_a_node_may_get_one() {
        let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes: Insufficient memory."}]});
        assert_eq!(text(&status), ("pod m-0 has no node: 0/2 nodes: Insufficient memory.".into(), false));
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "disk"});
        assert_eq!(text(&evicted), ("pod m-0 has failed: Evicted: disk".into(), false));
    }
}
