//! Messages whose meta is JSON: jobs, statistics, faults, the control plane. The meta has the whole message; request
//! and job are in the header too, so that a frame can be routed without parsing its JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Out;
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::message::{
    AddMatrix, CheckpointSession, CloseJob, Control, CreateMatrix, Fault, OpenJob, OpenSession, SessionMap,
    StatsReply,
};

/// The fields of a message that its header repeats.
pub(super) trait Named: Serialize + DeserializeOwned {
    fn request(&self) -> u64;
    fn job(&self) -> u32;
}

macro_rules! named {
    ($type:ident, $message:ident => $job:expr) => {
        impl Named for $type {
            fn request(&self) -> u64 {
                self.request
            }

            fn job(&self) -> u32 {
                let $message = self;
                $job
            }
        }
    };
}

named!(OpenJob, message => message.job);
named!(CloseJob, message => message.job);
named!(StatsReply, _message => 0);
named!(Fault, _message => 0);
named!(OpenSession, _message => 0);
named!(SessionMap, message => message.job);
named!(CreateMatrix, message => message.job);
named!(AddMatrix, message => message.job);
named!(CheckpointSession, message => message.job);

pub(super) fn put<T: Named>(message: &T, out: &mut Out<'_>) -> Result<(), Error> {
    (out.header.request, out.header.job) = (message.request(), message.job());
    put_json(message, out)
}

pub(super) fn get<T: Named>(frame: &Frame) -> Result<T, Error> {
    let header = &frame.header;
    let message: T = get_json(frame)?;
    if (message.request(), message.job()) != (header.request, header.job) {
        let actual = format!("{} and {}", message.request(), message.job());
        let expected = format!("{} and {}, as in the header", header.request, header.job);
        return Err(field(header.kind, "request and job", actual, expected));
    }
    Ok(message)
}

impl Control {
    pub(super) fn put(&self, out: &mut Out<'_>) -> Result<(), Error> {
        out.header.request = self.request;
        put_json(&self.body, out)
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        Ok(Self { request: frame.header.request, body: get_json(frame)? })
    }
}

fn put_json<T: Serialize>(message: &T, out: &mut Out<'_>) -> Result<(), Error> {
    let kind = out.header.kind.name();
    serde_json::to_writer(&mut *out.meta, message)
        .map_err(|error| Error::Json { kind, problem: error.to_string() })
}

fn get_json<T: DeserializeOwned>(frame: &Frame) -> Result<T, Error> {
    let kind = frame.header.kind.name();
    serde_json::from_slice(&frame.meta).map_err(|error| Error::Json { kind, problem: error.to_string() })
}
