//! [`Push`]: meta is that of [`super::keys`]. Listed keys are in the section of keys, the values in the section of
//! values.

use super::Out;
use super::keys;
use crate::error::Error;
use crate::frame::Frame;
use crate::message::Push;

impl Push {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        (header.clock, header.index, header.matrix) = (self.clock, self.index, self.matrix);
        keys::write(self.table, &self.runs, &self.keys, out.meta);
    }

    pub(super) fn get(mut frame: Frame) -> Result<Self, Error> {
        let (table, runs, keys) = keys::read(&mut frame, 0)?;
        let header = &frame.header;
        Ok(Self {
            request: header.request,
            job: header.job,
            task: header.task,
            clock: header.clock,
            index: header.index,
            matrix: header.matrix,
            table,
            runs,
            keys,
            values: frame.values,
        })
    }
}
