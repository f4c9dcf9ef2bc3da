//! The facts of the current frame, and those that the body keeps from its earlier frames.

use crate::counts::Counts;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::event::ServerReport;
use crate::frame::choice::{Choice, Choices};
use crate::frame::cumulative::Cumulative;
use crate::frame::foreign_counts::Foreign;
use crate::frame::passes::Passes;
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
    /// The passes of the answer, where the usage lists them.
    pub(crate) passes: Option<Box<Passes>>,
    pub(crate) timings: Timings,
    pub(crate) times: ServerReport,
    pub(crate) typed: Typed,
    /// Unknown numbers of tokens that were reported.
    pub(crate) unknown: usize,
}

impl FrameFacts {
    /// Sets the subject, unless the current one takes precedence.
    pub(crate) fn raise(&mut self, subject: Subject) {
        self.subject = self.subject.max(subject);
    }

    /// Returns the counts to which a number belongs: while their object is open, those at another place than the frame's
    /// own, which is inside an answer, beside one of several, or below a vendor's member.
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
    /// The dialect of the answer, if it is another than was expected, or none was.
    pub(crate) response_dialect: Option<Dialect>,
    /// Frames in the shape of another dialect are read as such.
    pub(crate) follows: bool,
    /// Facts of few bodies.
    pub(crate) uncommon: Option<Box<Uncommon>>,
    /// Counts of earlier frames: Anthropic's, and those of a stream of unknown dialect.
    pub(crate) earlier: Option<Box<Counts>>,
    /// Answers of a Responses body that began, and that ended.
    pub(crate) begun: u32,
    pub(crate) ended: u32,
}

/// Facts that few bodies have.
#[derive(Debug, Default)]
pub(crate) struct Uncommon {
    /// The earlier frames of SGLang.
    pub(crate) cumulative: Cumulative,
    /// Members of other dialects than the body's.
    pub(crate) foreign: Foreign,
    /// The id of work whose result is fetched later.
    pub(crate) job: Option<Arc<str>>,
}

impl BodyFacts {
    /// Returns the facts that few bodies have.
    pub(crate) fn uncommon(&mut self) -> &mut Uncommon {
        self.uncommon.get_or_insert_default()
    }

    /// Reads the object type of an answer of unknown dialect.
    pub(crate) fn read_object(&mut self, word: &[u8]) {
        self.response_dialect = Dialect::of_object(word).or(self.response_dialect);
        self.names.is_compacted |= word == b"response.compaction";
    }

    /// Returns the counts of earlier frames.
    pub(crate) fn earlier(&self) -> Counts {
        self.earlier.as_deref().copied().unwrap_or_default()
    }

    /// Sets the counts of earlier frames.
    pub(crate) fn set_earlier(&mut self, counts: Counts) {
        **self.earlier.get_or_insert_default() = counts;
    }
}
