//! Errors of other processes, in the terms of a command.

use control::Code;
use driver::Error;
use job::Exit;

/// Returns a function for `map_err` that makes an error about the server at `address`.
pub fn server_error(address: &impl std::fmt::Display) -> impl FnOnce(rpc::Error) -> Error {
    let address = address.to_string();
    move |error| Error::of_server(format!("{address}: {error}"), error.is_loss())
}

/// Returns a function for `map_err` that makes an error about a call to the master at `address`.
pub fn master_error(address: &impl std::fmt::Display) -> impl FnOnce(control::Error) -> Error {
    let address = address.to_string();
    move |error| match error.refusal() {
        // The master checks a job as this program does, so its text is enough.
        Some((Code::InvalidArgument, text)) => Error::Cluster {
            text: format!("the master at {address} refuses the request: {text}"),
            exit: Exit::Usage,
        },
        Some((Code::Unauthenticated, text)) => Error::Cluster {
            text: format!("the master at {address} refuses the token of this command: {text}"),
            exit: Exit::Usage,
        },
        Some((Code::NotFound, text)) => {
            Error::Cluster { text: format!("the master at {address}: {text}"), exit: Exit::Usage }
        }
        _ => Error::Cluster { text: format!("the master at {address}: {error}"), exit: Exit::Io },
    }
}
