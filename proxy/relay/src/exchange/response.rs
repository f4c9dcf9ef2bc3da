//! The response of an exchange, from its head on.

use exchange::response_reader::ResponseReader;
use meter::Tick;
use usage::UsageFilter;

use crate::capacity::Permit;

/// A response of a kind that is metered.
pub(super) struct Response {
    pub(super) form: Form,
    /// Reads the body; `None` if it cannot be read.
    pub(super) reader: Option<ResponseReader>,
    /// Notes the usage in the body, where a client may ask for it or not.
    pub(super) usage_filter: Option<UsageFilter>,
    /// The capacity taken for the answer's text, if that is kept.
    pub(super) text: Option<Permit>,
    /// The time at which the client left, where the rest of the body is read without it.
    pub(super) left: Option<Tick>,
}

/// The form of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A stream of frames.
    Frames,
    /// One answer, or a body that is not read. `is_generated`: the server has generated all of it.
    Whole { is_generated: bool },
}

impl Response {
    /// A response whose body is not read yet.
    pub(super) fn new(form: Form) -> Self {
        Self { form, reader: None, usage_filter: None, text: None, left: None }
    }

    /// Returns true if the body is a stream of frames.
    pub(super) fn is_streamed(&self) -> bool {
        self.form == Form::Frames
    }
}
