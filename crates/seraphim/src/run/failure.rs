//! The first failure of a run: it is the cause, what follows in other tasks is its echo.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::exit::Exit;

/// Holds the first failure of any task.
#[derive(Debug, Default)]
pub(super) struct Failure(Mutex<Option<Error>>);

impl Failure {
    /// How `task` ended, a panic included. A failure is answered with a reason for the other tasks.
    pub(super) fn note<T>(&self, task: u32, ended: std::thread::Result<Result<T, Error>>) -> Option<String> {
        let error = match ended {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error,
            Err(panic) => died(task, &*panic),
        };
        let reason = format!("task {task} failed: {error}");
        self.lock().get_or_insert(error);
        Some(reason)
    }

    /// Whether a task has failed.
    pub(super) fn is_there(&self) -> bool {
        self.lock().is_some()
    }

    /// The exit code of the first failure.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.lock().as_ref().map(Error::exit)
    }

    /// The first failure, if there was one.
    pub(super) fn into_result(self) -> Result<(), Error> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn died(task: u32, panic: &(dyn Any + Send)) -> Error {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::Panic { task, message: text.unwrap_or("no message").to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_the_one_that_counts() {
        let failure = Failure::default();
        assert_eq!(failure.note(0, Ok(Ok(()))), None);
        assert!(!failure.is_there());
        let echo: Result<(), Error> = Err(Error::Algo(algo::Error::Coordinator { reason: "echo".into() }));
        let caught = std::panic::catch_unwind(|| -> Result<(), Error> { panic!("broken") });
        assert!(failure.note(1, caught).is_some_and(|reason| reason.contains("task 1")));
        failure.note(2, Ok(echo));
        assert!(failure.is_there());
        assert!(matches!(failure.into_result(), Err(Error::Panic { task: 1, .. })));
    }
}
