//! Ctrl-C: the first one asks the run to stop at the next step, the second one ends the process at once. [`Interrupt`]
//! knows all temporary outputs, so that an end at any time removes them and never leaves half of an output at its
//! target.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data::StopFlag;
use driver::Error;
use job::Exit;
use store::{TempOutput, TempOutputs};

/// A flag that Ctrl-C or a termination signal raises.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    outputs: TempOutputs,
    messages: Arc<Mutex<InterruptMessages>>,
}

/// The messages of Ctrl-C.
#[derive(Debug, Default)]
struct InterruptMessages {
    /// If set, the first Ctrl-C prints this message and ends the process.
    exit_message: Option<String>,
    /// The message of the first Ctrl-C when the process continues until it can stop.
    stop_message: Option<&'static str>,
}

/// The default message of the first Ctrl-C.
const STOP_MESSAGE_DEFAULT: &str =
    "stopping at the next step; press Ctrl-C again to end at once, without saving";

impl Interrupt {
    /// Creates a flag that no signal raises, for tests and embedding programs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a flag that the signals of this process raise. If the process already has a handler, no signal raises
    /// the flag.
    pub fn install() -> Self {
        let interrupt = Self::new();
        let raised = interrupt.clone();
        let handler = move || {
            if let Some(farewell) = &raised.messages().exit_message {
                let _no_output_is_persisted = raised.outputs.lock();
                write_stderr(farewell);
                std::process::exit(Exit::Interrupted as i32);
            }
            if raised.raised.swap(true, Ordering::SeqCst) {
                raised.end_now();
            }
            let stopping = raised.messages().stop_message.unwrap_or(STOP_MESSAGE_DEFAULT);
            write_stderr(stopping);
        };
        // The only error is a second handler in one process; then the first handler stays in force.
        let _ = ctrlc::set_handler(handler);
        interrupt
    }

    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
    }

    /// Whether the user asked the run to stop.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Makes the first Ctrl-C print `farewell` and end the process: the work that the process waits for is done by
    /// other processes and continues.
    pub fn exit_on_interrupt(&self, farewell: String) {
        self.messages().exit_message = Some(farewell);
    }

    /// Sets the message of the first Ctrl-C.
    pub fn set_stop_message(&self, text: &'static str) {
        self.messages().stop_message = Some(text);
    }

    /// Ends this process when standard input ends, since the parent process holds the other end of it.
    pub fn end_with_parent(&self) {
        let own = self.clone();
        std::thread::spawn(move || {
            // The parent never writes to it, and a read error counts as an end too.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let outputs = own.outputs.lock();
            outputs.remove_temp();
            std::process::exit(Exit::Interrupted as i32);
        });
    }

    /// Returns the same flag in the type that ends a wait for standard input.
    pub fn stop_reading(&self) -> StopFlag {
        StopFlag(Arc::clone(&self.raised))
    }

    /// Returns an error if the user asked to stop; `when` follows "interrupted: " in its text.
    pub fn check(&self, when: &str) -> Result<(), Error> {
        if self.is_raised() { Err(Error::Interrupted { what: when.to_owned() }) } else { Ok(()) }
    }

    /// Creates a temporary output beside its target.
    pub fn temp_output(&self, place: &Path) -> TempOutput {
        self.outputs.temp_output(place)
    }

    /// All temporary outputs.
    pub fn temp_outputs(&self) -> &TempOutputs {
        &self.outputs
    }

    fn messages(&self) -> MutexGuard<'_, InterruptMessages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The second Ctrl-C. The lock is held until the process ends, so that no output is persisted any more.
    fn end_now(&self) {
        let outputs = self.outputs.lock();
        outputs.remove_temp();
        write_stderr(&match outputs.saved_paths() {
            [] => "ended at once; nothing was saved".to_owned(),
            saved => {
                let names: Vec<String> = saved.iter().map(|path| path.display().to_string()).collect();
                format!("ended at once; saved before that: {}", names.join(", "))
            }
        });
        std::process::exit(Exit::Interrupted as i32);
    }
}

/// Writes a message from the signal thread; an error is ignored, since nobody may read it.
fn write_stderr(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "\n{text}");
}
