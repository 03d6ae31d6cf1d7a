//! Messages of sessions without a meta section: request, job and, for [`DropMatrix`], the matrix are in the header.

use super::Out;
use crate::frame::Frame;
use crate::message::{AskMap, CloseSession, DropMatrix, RenewSession};

macro_rules! header_only {
    ($($type:ident),*) => {
        $(impl $type {
            pub(super) fn put(self, out: &mut Out<'_>) {
                (out.header.request, out.header.job) = (self.request, self.job);
            }

            pub(super) fn get(frame: &Frame) -> Self {
                Self { request: frame.header.request, job: frame.header.job }
            }
        })*
    };
}

header_only!(AskMap, RenewSession, CloseSession);

impl DropMatrix {
    pub(super) fn put(self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
    }

    pub(super) fn get(frame: &Frame) -> Self {
        let header = &frame.header;
        Self { request: header.request, job: header.job, matrix: header.matrix }
    }
}
