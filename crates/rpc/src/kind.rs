//! The kinds of frames, and which parts of a frame each has.

use crate::error::Error;
use crate::message::Message;

/// The parts of a frame that a kind has. Every kind has `request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses(u16);

#[allow(missing_docs, reason = "named after the fields of the header")]
impl Uses {
    pub const JOB: Self = Self(1);
    pub const CLOCK: Self = Self(1 << 1);
    pub const TASK: Self = Self(1 << 2);
    pub const MATRIX: Self = Self(1 << 3);
    pub const INDEX: Self = Self(1 << 4);
    pub const META: Self = Self(1 << 5);
    pub const KEYS: Self = Self(1 << 6);
    pub const VALUES: Self = Self(1 << 7);
    /// Meta is JSON, and its limit is that of the control plane.
    pub const JSON: Self = Self(1 << 8);
    /// Values are those of an all-reduce, with their own limit.
    pub const SUM: Self = Self(1 << 9);
    /// Values may be rounded, or the frame may ask for rounded values.
    pub const ROUNDED: Self = Self(1 << 10);
    /// Meta consists of whole frames, and its limit is that of a batch.
    pub const FRAMES: Self = Self(1 << 11);
    /// Meta has arguments or answers of functions, with their own limit.
    pub const FUNCTION: Self = Self(1 << 12);

    /// Whether this has all parts of `part`.
    pub fn has(self, part: Self) -> bool {
        self.0 & part.0 == part.0
    }

    const fn of(parts: &[Self]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < parts.len() {
            bits |= parts[i].0;
            i += 1;
        }
        Self(bits)
    }
}

macro_rules! kinds {
    ($($name:ident = $code:literal [$($part:ident)*],)*) => {
        /// The kind of a frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each kind is named after its message, which has the documentation")]
        #[repr(u16)]
        pub enum Kind {
            $($name = $code,)*
        }

        impl Kind {
            /// All kinds, by code.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => stringify!($name),)*
                }
            }

            /// Which parts a frame of this kind has.
            pub fn uses(self) -> Uses {
                match self {
                    $(Kind::$name => const { Uses::of(&[$(Uses::$part,)*]) },)*
                }
            }

            pub fn of(message: &Message) -> Self {
                match message {
                    $(Message::$name(_) => Kind::$name,)*
                }
            }
        }
    };
}

kinds! {
    Hello = 1 [JOB TASK META],
    Welcome = 2 [CLOCK INDEX META],
    OpenJob = 3 [JOB META JSON],
    CloseJob = 4 [JOB META JSON],
    Pull = 5 [JOB CLOCK TASK MATRIX META KEYS ROUNDED],
    Pulled = 6 [CLOCK INDEX META VALUES ROUNDED],
    Push = 7 [JOB CLOCK TASK MATRIX INDEX META KEYS VALUES ROUNDED],
    Tick = 8 [JOB CLOCK TASK],
    Leave = 9 [JOB TASK],
    Join = 10 [JOB TASK INDEX],
    Joined = 11 [CLOCK INDEX],
    Barrier = 12 [JOB CLOCK TASK META VALUES SUM],
    Released = 13 [CLOCK META VALUES SUM],
    Export = 14 [JOB MATRIX META],
    ExportPage = 15 [META KEYS VALUES],
    Import = 16 [JOB MATRIX META KEYS VALUES],
    KeepRows = 17 [JOB INDEX META],
    RestoreRows = 18 [JOB INDEX],
    Stats = 19 [JOB],
    StatsReply = 20 [META JSON],
    Done = 21 [CLOCK INDEX META],
    Fault = 22 [META JSON],
    Control = 23 [META JSON],
    OpenSession = 24 [META JSON],
    SessionMap = 25 [JOB META JSON],
    CreateMatrix = 26 [JOB META JSON],
    DropMatrix = 27 [JOB MATRIX],
    AskMap = 28 [JOB],
    RenewSession = 29 [JOB],
    CloseSession = 30 [JOB],
    AddMatrix = 31 [JOB META JSON],
    PushStaged = 32 [JOB CLOCK TASK MATRIX INDEX META KEYS VALUES],
    Commit = 33 [JOB CLOCK TASK MATRIX INDEX META],
    Committed = 34 [META],
    CloseToken = 35 [JOB CLOCK MATRIX],
    Batch = 36 [META FRAMES],
    PullFunction = 37 [JOB CLOCK TASK MATRIX META FUNCTION],
    PulledFunction = 38 [CLOCK INDEX META FUNCTION],
    PushFunction = 39 [JOB CLOCK TASK MATRIX INDEX META FUNCTION],
    TryFunction = 40 [JOB CLOCK TASK MATRIX INDEX META FUNCTION],
    CommitFunction = 41 [JOB CLOCK TASK MATRIX META FUNCTION],
    DropRows = 42 [JOB INDEX],
    ScanRows = 43 [JOB MATRIX INDEX META],
    CheckpointSession = 44 [JOB META JSON],
}

impl Kind {
    /// The kind with a code.
    pub fn from_code(code: u16) -> Result<Self, Error> {
        let last = Self::ALL.len() as u16;
        let at = usize::from(code).checked_sub(1);
        at.and_then(|at| Self::ALL.get(at)).copied().ok_or(Error::Kind { kind: code, last })
    }
}
