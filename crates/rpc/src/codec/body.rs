//! The sections of a frame after its head.

use matrix::Values;

use super::keys;
use crate::frame::padding;
use crate::message::Message;
use crate::wire::{ALIGN, ValueType, WireValues};

/// The sections of a message that are written from the memory of the message.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    pub(super) keys: &'a [u64],
    pub(super) values: Section<'a>,
}

/// The section of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'a> {
    pub(super) value_type: ValueType,
    pub(super) len: usize,
    bytes: &'a [u8],
}

impl<'a> Section<'a> {
    fn exact(values: Values<'a>) -> Self {
        Self { value_type: values.element_type().into(), len: values.len(), bytes: values.bytes() }
    }

    fn of(values: &'a WireValues) -> Self {
        Self { value_type: values.value_type(), len: values.section_len(), bytes: values.bytes() }
    }
}

impl<'a> Body<'a> {
    pub fn of(message: &'a Message) -> Self {
        let mut keys: &[u64] = &[];
        let mut values = Section::exact(Values::F32(&[]));
        match message {
            Message::Pull(pull) => {
                keys = keys::section(&pull.keys);
                values.value_type = pull.wire.into();
            }
            Message::Push(push) => {
                (keys, values) = (keys::section(&push.keys), Section::of(&push.values));
            }
            Message::PushStaged(push) => {
                (keys, values) = (keys::section(&push.keys), Section::exact(push.values.as_values()));
            }
            Message::Pulled(pulled) => values = Section::of(&pulled.values),
            Message::ExportPage(page) => {
                (keys, values) = (&page.keys, Section::exact(page.values.as_values()));
            }
            Message::Import(import) => {
                (keys, values) = (&import.keys, Section::exact(import.values.as_values()));
            }
            Message::Barrier(barrier) => {
                values = Section::exact(Values::F64(barrier.part.as_deref().unwrap_or(&[])));
            }
            Message::Released(released) => values = Section::exact(Values::F64(&released.sum)),
            Message::Hello(_)
            | Message::Welcome(_)
            | Message::OpenJob(_)
            | Message::CloseJob(_)
            | Message::Tick(_)
            | Message::Leave(_)
            | Message::Join(_)
            | Message::Joined(_)
            | Message::Export(_)
            | Message::KeepRows(_)
            | Message::RestoreRows(_)
            | Message::DropRows(_)
            | Message::ScanRows(_)
            | Message::Stats(_)
            | Message::StatsReply(_)
            | Message::Done(_)
            | Message::Fault(_)
            | Message::Control(_)
            | Message::OpenSession(_)
            | Message::SessionMap(_)
            | Message::CreateMatrix(_)
            | Message::DropMatrix(_)
            | Message::AskMap(_)
            | Message::RenewSession(_)
            | Message::CloseSession(_)
            | Message::AddMatrix(_)
            | Message::CheckpointSession(_)
            | Message::Commit(_)
            | Message::Committed(_)
            | Message::CloseToken(_)
            | Message::Batch(_)
            | Message::PullFunction(_)
            | Message::PulledFunction(_)
            | Message::PushFunction(_)
            | Message::TryFunction(_)
            | Message::CommitFunction(_) => {}
        }
        Self { keys, values }
    }

    /// Keys, values and padding: the bytes after the head.
    pub fn slices(&self) -> [&'a [u8]; 3] {
        let values = self.values.bytes;
        [bytemuck::cast_slice(self.keys), values, &[0; ALIGN][..padding(values.len())]]
    }

    /// Number of bytes of all slices.
    pub fn len(&self) -> usize {
        self.slices().iter().map(|slice| slice.len()).sum()
    }

    /// Whether nothing follows the head.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
