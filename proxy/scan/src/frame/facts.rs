//! The facts of the current frame, and those that the body keeps from its earlier frames.

use crate::dialect::Dialect;
use crate::event::{Counts, ServerReport};
use crate::frame::choice::{Choice, Choices};
use crate::frame::cumulative::Cumulative;
use crate::frame::typed::Typed;
use crate::frame::usage::{Extra, Timings};
use crate::json::Value;
use crate::name::Names;

/// The facts of one frame. The next one starts with the default.
#[derive(Debug, Default)]
pub(crate) struct FrameFacts {
    pub(crate) subject: Subject,
    pub(crate) nesting: Nesting,
    /// Elements of the frame were frames, and ended.
    pub(crate) has_elements: bool,
    /// The choice that is open.
    pub(crate) choice: Choice,
    /// The choices that ended.
    pub(crate) choices: Choices,
    /// The model's name in the frame is empty.
    pub(crate) is_nameless: bool,
    pub(crate) usage: Option<Counts>,
    pub(crate) extra: Extra,
    pub(crate) timings: Timings,
    pub(crate) times: ServerReport,
    pub(crate) typed: Typed,
}

impl FrameFacts {
    /// Sets the subject, unless the current one takes precedence.
    pub(crate) fn raise(&mut self, subject: Subject) {
        self.subject = self.subject.max(subject);
    }

    /// Returns the counts to which a number belongs: those inside an answer while their object is open.
    pub(crate) fn counts(&mut self) -> Option<&mut Counts> {
        match self.typed.counts_inner {
            true => self.typed.inner.as_mut(),
            false => self.usage.as_mut(),
        }
    }

    /// Returns true if the frame reports an error.
    pub(crate) fn is_error(&self) -> bool {
        self.subject == Subject::Error
    }
}

/// The subject of a frame, in ascending precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Answers and their counts.
    #[default]
    Answers,
    /// Ollama loads or unloads a model, which is not an answer.
    Load,
    /// The server works and has no content yet.
    Progress,
    Error,
}

/// The place of the current value in an array whose elements may be frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// There is no array.
    #[default]
    Single,
    /// In the array, in no element that may be a frame.
    List,
    /// In such an element.
    Element,
}

impl Nesting {
    /// The place within `value`, which is the whole payload or an element of the array.
    pub(crate) fn at_root(self, value: Value<'_>) -> Self {
        match (value, self) {
            (Value::List, _) => Self::List,
            (_, Self::Single) => Self::Single,
            (Value::Object, _) => Self::Element,
            (_, _) => Self::List,
        }
    }
}

/// The facts of a body, over all its frames. Facts that few dialects need are boxed, because each stream keeps all of
/// them until its end.
#[derive(Debug, Default)]
pub(crate) struct BodyFacts {
    pub(crate) names: Names,
    /// In an answer of unknown dialect: the dialect that it names.
    pub(crate) response_dialect: Option<Dialect>,
    /// Counts of earlier frames: Anthropic's, and those of a stream of unknown dialect.
    pub(crate) earlier: Option<Box<Counts>>,
    /// The earlier frames of SGLang.
    pub(crate) cumulative: Option<Box<Cumulative>>,
    /// Answers of a Responses body that began, and that ended.
    pub(crate) begun: u32,
    pub(crate) ended: u32,
}

impl BodyFacts {
    /// Returns the counts of earlier frames.
    pub(crate) fn earlier(&self) -> Counts {
        self.earlier.as_deref().copied().unwrap_or_default()
    }

    /// Sets the counts of earlier frames.
    pub(crate) fn set_earlier(&mut self, counts: Counts) {
        **self.earlier.get_or_insert_default() = counts;
    }
}
