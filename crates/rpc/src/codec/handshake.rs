//! [`Hello`]: meta is the role (u16: 0 task, 1 tool, 2 member, 3 session), lane (u16), length of the token (u32), the
//! token. [`Welcome`]: meta is incarnation, window, clock, smallest clock (u64 each), lanes (u32), 0 (u32).

use super::bytes::MetaReader;
use super::{Out, set_watermark, watermark};
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::message::{Hello, Role, Welcome};

const TASK: u16 = 0;
const TOOL: u16 = 1;
const MEMBER: u16 = 2;
const SESSION: u16 = 3;

impl Hello {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        out.header.request = self.request;
        let role = match self.role {
            Role::Task { job, task } => {
                (out.header.job, out.header.task) = (job, task);
                TASK
            }
            Role::Session { job } => {
                out.header.job = job;
                SESSION
            }
            Role::Tool => TOOL,
            Role::Member => MEMBER,
        };
        out.meta.extend(role.to_le_bytes());
        out.meta.extend(self.lane.to_le_bytes());
        out.meta.extend((self.token.len() as u32).to_le_bytes());
        out.meta.extend(&self.token);
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let (role, lane) = (meta.u16("role")?, meta.u16("lane")?);
        let length = meta.u32("length of the token")?;
        let token = meta.take("token", length as usize)?.to_vec();
        meta.end("token")?;
        let role = match role {
            TASK => Role::Task { job: header.job, task: header.task },
            SESSION if header.task == 0 => Role::Session { job: header.job },
            SESSION => return Err(field(header.kind, "task", header.task, "0: a session has no tasks")),
            TOOL | MEMBER if header.job != 0 || header.task != 0 => {
                return Err(field(
                    header.kind,
                    "job or task",
                    header.job.max(header.task),
                    "0 in the hello of a tool or a member",
                ));
            }
            TOOL => Role::Tool,
            MEMBER => Role::Member,
            _ => return Err(field(header.kind, "role", role, "0 task, 1 tool, 2 member, 3 session")),
        };
        Ok(Self { request: header.request, token, role, lane })
    }
}

impl Welcome {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        out.header.request = self.request;
        set_watermark(&mut out.header, self.applied);
        for value in [self.incarnation, self.window_bytes, self.clock, self.minimum, u64::from(self.lanes)] {
            out.meta.extend(value.to_le_bytes());
        }
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let (incarnation, window_bytes) = (meta.u64("incarnation")?, meta.u64("window")?);
        let (clock, minimum) = (meta.u64("clock")?, meta.u64("minimum")?);
        let lanes = meta.u32("lanes")?;
        meta.zero("reserved")?;
        meta.end("reserved")?;
        let lanes = u16::try_from(lanes).map_err(|_| field(header.kind, "lanes", lanes, "below 65536"))?;
        let (request, applied) = (header.request, watermark(header));
        Ok(Self { request, incarnation, lanes, window_bytes, applied, clock, minimum })
    }
}
