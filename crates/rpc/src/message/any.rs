//! Any message, and several of them in one frame.

use super::{
    AddMatrix, AskMap, Barrier, CheckpointSession, CloseJob, CloseSession, CloseToken, Commit,
    CommitFunction, Committed, Control, CreateMatrix, Done, DropMatrix, DropRows, Export, ExportPage, Fault,
    Hello, Import, JobId, Join, Joined, KeepRows, Leave, OpenJob, OpenSession, Pull, PullFunction, Pulled,
    PulledFunction, Push, PushFunction, PushStaged, Released, RenewSession, RequestId, RestoreRows, ScanRows,
    SessionMap, Stats, StatsReply, Tick, TryFunction, Welcome,
};

/// Any message between processes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is named after its type, which has the documentation")]
pub enum Message {
    Hello(Hello),
    Welcome(Welcome),
    OpenJob(OpenJob),
    CloseJob(CloseJob),
    Pull(Pull),
    Pulled(Pulled),
    Push(Push),
    Tick(Tick),
    Leave(Leave),
    Join(Join),
    Joined(Joined),
    Barrier(Barrier),
    Released(Released),
    Export(Export),
    ExportPage(ExportPage),
    Import(Import),
    KeepRows(KeepRows),
    RestoreRows(RestoreRows),
    Stats(Stats),
    StatsReply(StatsReply),
    Done(Done),
    Fault(Fault),
    Control(Control),
    OpenSession(OpenSession),
    SessionMap(SessionMap),
    CreateMatrix(CreateMatrix),
    DropMatrix(DropMatrix),
    AskMap(AskMap),
    RenewSession(RenewSession),
    CloseSession(CloseSession),
    AddMatrix(AddMatrix),
    PushStaged(PushStaged),
    Commit(Commit),
    Committed(Committed),
    CloseToken(CloseToken),
    Batch(Batch),
    PullFunction(PullFunction),
    PulledFunction(PulledFunction),
    PushFunction(PushFunction),
    TryFunction(TryFunction),
    CommitFunction(CommitFunction),
    DropRows(DropRows),
    ScanRows(ScanRows),
    CheckpointSession(CheckpointSession),
}

impl Message {
    /// The job that a request to a lane names, and the number of the request. None for answers, for messages of the
    /// master, and for a batch, whose parts name them.
    pub fn request_of_job(&self) -> Option<(JobId, RequestId)> {
        macro_rules! of {
            ($($kind:ident),+) => {
                match self {
                    $(Message::$kind(message) => Some((message.job, message.request)),)+
                    _ => None,
                }
            };
        }
        of!(
            OpenJob,
            CloseJob,
            Pull,
            Push,
            Tick,
            Leave,
            Join,
            Barrier,
            Export,
            Import,
            KeepRows,
            RestoreRows,
            DropRows,
            ScanRows,
            Stats,
            AddMatrix,
            DropMatrix,
            PushStaged,
            Commit,
            CloseToken,
            PullFunction,
            PushFunction,
            TryFunction,
            CommitFunction
        )
    }
}

/// Several small requests in one frame, or the answers to them. The lane handles the requests in their order and returns
/// all answers in one frame, in the same order; a request that wants no answer has none there. Batches are for sessions
/// only, where no request waits. A batch may be repeated if each request in it may be repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub request: RequestId,
    /// None of them is a batch.
    pub messages: Vec<Message>,
}
