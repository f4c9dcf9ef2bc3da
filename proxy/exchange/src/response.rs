//! The response of an exchange, from its head on.

use meter::Tick;
use scan::Framing;
use usage::UsageFilter;

use crate::response_reader::{BodySummary, ResponseReader};

/// A response of a kind that is metered.
pub(crate) struct Response {
    pub(crate) form: Form,
    /// Reads the body; `None` if it cannot be read.
    pub(crate) reader: Option<ResponseReader>,
    /// Notes the usage in the body, where a client may ask for it or not.
    pub(crate) usage_filter: Option<UsageFilter>,
    /// Effects of added options reach the client if the body is a stream.
    pub(crate) keeps_added: bool,
    /// The time at which the client left, where the rest of the body is read without it.
    pub(crate) left: Option<Tick>,
    /// The names of the answer, if the caller reads its messages.
    pub(crate) summary: Option<Box<BodySummary>>,
}

/// The form of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A stream of frames.
    Frames,
    /// One answer, or a body that is not read. `is_generated`: the server has generated all of it.
    Whole { is_generated: bool },
}

impl Response {
    /// A response whose body is not read yet.
    pub(crate) fn new(form: Form) -> Self {
        Self { form, reader: None, usage_filter: None, keeps_added: false, left: None, summary: None }
    }

    /// Records the framing of the body. It changes if a whole body turns out to be the first of many lines.
    pub(crate) fn begin(&mut self, framing: Framing) {
        if framing != Framing::Json {
            self.form = Form::Frames;
        }
    }

    /// Returns true if the body is a stream of frames.
    #[inline]
    pub(crate) fn is_streamed(&self) -> bool {
        self.form == Form::Frames
    }
}
