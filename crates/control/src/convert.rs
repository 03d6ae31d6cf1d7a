//! Converts between messages of `proto/` and plain values. An invalid message is refused with the name of its field.

use rpc::message::control::{Member, MemberKind};
use serde_json::Value;
use tonic::Status as Refusal;

use crate::pb;
use crate::request::{JobState, JobStatus, JobSubmission, Status, SubmissionId};

pub(crate) fn submission(request: pb::SubmitRequest) -> Result<(SubmissionId, JobSubmission), Refusal> {
    let pb::SubmitRequest { submission_id, title, job_json, servers, workers, worker_group } = request;
    let id = submission_id.try_into().map_err(|bytes: Vec<u8>| {
        Refusal::invalid_argument(format!(
            "submission_id has {} bytes, expected 16: generate 16 random bytes for each job, and repeat a request \
             with the same bytes",
            bytes.len()
        ))
    })?;
    let spec = serde_json::from_str(&job_json)
        .map_err(|error| Refusal::invalid_argument(format!("job_json cannot be read as JSON: {error}")))?;
    Ok((SubmissionId(id), JobSubmission { title, spec, servers, workers, worker_group }))
}

pub(crate) fn submit_request(id: SubmissionId, submission: &JobSubmission) -> pb::SubmitRequest {
    pb::SubmitRequest {
        submission_id: id.0.to_vec(),
        title: submission.title.clone(),
        job_json: submission.spec.to_string(),
        servers: submission.servers,
        workers: submission.workers,
        worker_group: submission.worker_group.clone(),
    }
}

pub(crate) fn status_reply(status: Status) -> pb::StatusReply {
    pb::StatusReply {
        members: status.members.into_iter().map(|(member, report)| from_member(member, &report)).collect(),
        jobs: status.jobs.into_iter().map(from_job).collect(),
    }
}

/// The error describes the invalid field of the reply.
pub(crate) fn status(reply: pb::StatusReply) -> Result<Status, String> {
    Ok(Status {
        members: reply.members.into_iter().map(member).collect::<Result<_, _>>()?,
        jobs: reply.jobs.into_iter().map(job).collect::<Result<_, _>>()?,
    })
}

fn from_member(member: Member, report: &Value) -> pb::Member {
    let kind = match member.kind {
        MemberKind::Server { addresses, lanes, memory_limit_bytes } => {
            pb::member::Kind::Server(pb::Server { addresses, lanes: lanes.into(), memory_limit_bytes })
        }
        MemberKind::Worker { slots, group } => pb::member::Kind::Worker(pb::Worker { slots, group }),
    };
    pb::Member {
        id: member.id,
        name: member.name,
        incarnation: member.incarnation,
        host: member.host,
        report_json: report.to_string(),
        kind: Some(kind),
    }
}

fn member(member: pb::Member) -> Result<(Member, Value), String> {
    let pb::Member { id, name, incarnation, host, report_json, kind } = member;
    let kind = match kind {
        Some(pb::member::Kind::Server(pb::Server { addresses, lanes, memory_limit_bytes })) => {
            let lanes = lanes.try_into().map_err(|_| format!("server {name:?} has {lanes} lanes"))?;
            MemberKind::Server { addresses, lanes, memory_limit_bytes }
        }
        Some(pb::member::Kind::Worker(pb::Worker { slots, group })) => MemberKind::Worker { slots, group },
        None => return Err(format!("member {name:?} is neither server nor worker")),
    };
    let report = json("report_json", &report_json)?;
    Ok((Member { id, name, incarnation, kind, host }, report))
}

pub(crate) fn from_job(status: JobStatus) -> pb::JobStatus {
    let state = match status.state {
        JobState::Queued => pb::JobState::Queued,
        JobState::Running => pb::JobState::Running,
        JobState::Done => pb::JobState::Done,
        JobState::Failed => pb::JobState::Failed,
        JobState::Cancelled => pb::JobState::Cancelled,
    };
    pb::JobStatus {
        job: status.id,
        title: status.title,
        state: state.into(),
        progress_json: status.progress.to_string(),
        error: status.error,
    }
}

pub(crate) fn job(status: pb::JobStatus) -> Result<JobStatus, String> {
    let state = match status.state() {
        pb::JobState::Queued => JobState::Queued,
        pb::JobState::Running => JobState::Running,
        pb::JobState::Done => JobState::Done,
        pb::JobState::Failed => JobState::Failed,
        pb::JobState::Cancelled => JobState::Cancelled,
        pb::JobState::Unspecified => return Err(format!("job {} has state {}", status.job, status.state)),
    };
    let progress = json("progress_json", &status.progress_json)?;
    Ok(JobStatus { id: status.job, title: status.title, state, progress, error: status.error })
}

fn json(field: &str, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{field} cannot be read as JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_comes_back_as_it_was() {
        let member =
            |id, kind| Member { id, name: format!("m{id}"), incarnation: u64::MAX, kind, host: "h:1".into() };
        let server = MemberKind::Server {
            addresses: vec!["tcp:a:1".into()],
            lanes: 300,
            memory_limit_bytes: u64::MAX,
        };
        let states =
            [JobState::Queued, JobState::Running, JobState::Done, JobState::Failed, JobState::Cancelled];
        let jobs = states.into_iter().zip(1..).map(|(state, id)| JobStatus {
            id,
            title: "lr on ü".into(),
            state,
            progress: json!({ "records": u64::MAX, "loss": 0.1 }),
            error: (state == JobState::Failed).then(String::new),
        });
        let status = Status {
            members: vec![
                (member(1, server), json!(null)),
                (member(2, MemberKind::Worker { slots: 3, group: "g".into() }), json!({ "a": [1] })),
            ],
            jobs: jobs.collect(),
        };
        assert_eq!(super::status(status_reply(status.clone())), Ok(status));
    }

    #[test]
    fn an_order_comes_back_as_it_was() {
        let wanted = JobSubmission {
            title: "t".into(),
            spec: json!({ "seed": u64::MAX }),
            servers: 1,
            workers: u32::MAX,
            worker_group: "g".into(),
        };
        let id = SubmissionId([7; 16]);
        assert_eq!(
            submission(submit_request(id, &wanted)).map_err(|status| status.to_string()),
            Ok((id, wanted))
        );
    }

    #[test]
    fn an_order_that_cannot_be_is_refused_with_its_field() {
        let good =
            pb::SubmitRequest { submission_id: vec![0; 16], job_json: "{}".into(), ..Default::default() };
        assert!(submission(good.clone()).is_ok());
        let short = pb::SubmitRequest { submission_id: vec![0; 15], ..good.clone() };
        let text = submission(short).unwrap_err().message().to_owned();
        assert!(text.contains("submission_id has 15 bytes, expected 16"), "{text}");
        let broken = pb::SubmitRequest { job_json: "{\"a\":".into(), ..good };
        let text = submission(broken).unwrap_err().message().to_owned();
        assert!(text.contains("job_json") && text.contains("line 1"), "{text}");
    }

    #[test]
    fn a_reply_of_another_release_is_an_error_that_names_what_is_unknown() {
        let odd = pb::JobStatus { job: 3, state: 77, progress_json: "null".into(), ..Default::default() };
        assert!(job(odd).unwrap_err().contains("job 3 has state 77"));
        let odd = pb::StatusReply { members: vec![pb::Member::default()], jobs: Vec::new() };
        assert!(status(odd).unwrap_err().contains("neither server nor worker"));
    }
}
