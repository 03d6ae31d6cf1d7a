//! What tools need of a master: one question with its answer, and the news of a job.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::message::{Control, ControlBody, Hello, JobId, JobState, JobStatus, Message, Role};
use crate::transport::{Address, Receiver, Sender, open};

/// A master that watches are quiet on is asked for a sign of life so often.
const SIGN_EVERY: Duration = Duration::from_secs(5);
/// Request number of the question itself.
const QUESTION: u64 = 2;
/// Request number of a question whose answer is only a sign of life.
const SIGN: u64 = 3;

/// Asks the master and waits for the answer, `timeout` in all. A refusal is [`Error::Refused`]. A question that was lost with
/// its connection is not repeated: a job would be submitted twice.
pub fn ask(
    address: &Address,
    token: &[u8],
    question: ControlBody,
    timeout: Duration,
) -> Result<ControlBody, Error> {
    let deadline = Instant::now() + timeout;
    let (mut sender, mut receiver) = call(address, token, timeout)?;
    sender.send(&Message::Control(Control { request: QUESTION, body: question }))?;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(Error::TimedOut { during: "waiting for the answer of the master" });
        }
        receiver.set_timeout(Some(rest))?;
        match receiver.receive()? {
            Message::Control(Control { request: QUESTION, body }) => return Ok(body),
            Message::Fault(fault) => return Err(Error::Refused(fault)),
            _ => {}
        }
    }
}

/// Calls `see` with the job as it is, and at every change, until it has ended or `see` says `false`.
pub fn watch(
    address: &Address,
    token: &[u8],
    job: JobId,
    mut see: impl FnMut(&JobStatus) -> bool,
) -> Result<(), Error> {
    let (mut sender, mut receiver) = call(address, token, SIGN_EVERY)?;
    sender.send(&Message::Control(Control { request: QUESTION, body: ControlBody::Watch { job } }))?;
    receiver.set_timeout(Some(SIGN_EVERY))?;
    let mut is_asked = false;
    loop {
        match receiver.receive() {
            Ok(Message::Control(Control { body: ControlBody::JobNews { status }, .. })) => {
                is_asked = false;
                let goes_on = see(&status);
                let has_ended = match status.state {
                    JobState::Queued | JobState::Running => false,
                    JobState::Done | JobState::Failed | JobState::Cancelled => true,
                };
                if has_ended || !goes_on {
                    return Ok(());
                }
            }
            Ok(Message::Fault(fault)) => return Err(Error::Refused(fault)),
            Ok(_) => is_asked = false,
            Err(Error::TimedOut { .. }) if !is_asked => {
                is_asked = true;
                sender.send(&Message::Control(Control { request: SIGN, body: ControlBody::AskStatus }))?;
            }
            Err(error) => return Err(error),
        }
    }
}

fn call(address: &Address, token: &[u8], timeout: Duration) -> Result<(Sender, Receiver), Error> {
    let hello = Hello { request: 1, token: token.to_vec(), role: Role::Tool, lane: 0 };
    let (sender, receiver, _) = open(address, timeout, &hello)?;
    Ok((sender, receiver))
}
