//! [`Hello`]: meta is the role (u16: 0 task, 1 tool, 2 member, 3 session, 4 tool of a job, 5 primary), lane (u16), length
//! of the token (u32), the token, for a primary its incarnation (u64). [`Welcome`]: meta is incarnation, window, clock, smallest clock (u64 each), lanes (u32), 0 (u32).

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
const JOB_TOOL: u16 = 4;
const PRIMARY: u16 = 5;

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
            Role::JobTool { job } => {
                out.header.job = job;
                JOB_TOOL
            }
            Role::Primary { job, .. } => {
                out.header.job = job;
                PRIMARY
            }
            Role::Tool => TOOL,
            Role::Member => MEMBER,
        };
        out.meta.extend(role.to_le_bytes());
        out.meta.extend(self.lane.to_le_bytes());
        out.meta.extend((self.token.len() as u32).to_le_bytes());
        out.meta.extend(&self.token);
        if let Role::Primary { incarnation, .. } = self.role {
            out.meta.extend(incarnation.to_le_bytes());
        }
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let (role, lane) = (meta.u16("role")?, meta.u16("lane")?);
        let length = meta.u32("length of the token")?;
        let token = meta.take("token", length as usize)?.to_vec();
        let incarnation = if role == PRIMARY { meta.u64("incarnation")? } else { 0 };
        meta.end("token")?;
        let role = match role {
            TASK => Role::Task { job: header.job, task: header.task },
            SESSION | JOB_TOOL | PRIMARY if header.task != 0 => {
                return Err(field(header.kind, "task", header.task, "0: only the role task has one"));
            }
            SESSION => Role::Session { job: header.job },
            JOB_TOOL => Role::JobTool { job: header.job },
            PRIMARY => Role::Primary { job: header.job, incarnation },
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
            _ => {
                let known = "0 task, 1 tool, 2 member, 3 session, 4 tool of a job, 5 primary";
                return Err(field(header.kind, "role", role, known));
            }
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
