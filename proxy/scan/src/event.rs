//! The closed set of events that every dialect is reduced to. The stages after the scanner (the meter, the
//! editor, the C library) know these events and no dialect: a server's peculiarities stop here.

use crate::counts::Counts;
use crate::extent::Extent;
use crate::name::MemberName;

/// One fact of a frame. A frame may yield several events; [`Sink::frame`] ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A delta that names the role only. No token.
    Role {
        /// The answer's index.
        choice: u32,
    },
    /// Visible text of the answer.
    Text(Delta),
    /// Reasoning text, which most clients hide.
    Reasoning(Delta),
    /// A part of a tool call: its name or its arguments.
    Tool(Delta),
    /// Text of a refusal.
    Refusal(Delta),
    /// Audio data.
    Audio(Delta),
    /// A delta without content. It may contain tokens (half a character, a withheld stop string): then
    /// [`Delta::tokens`] has their number, if the frame does.
    Empty(Delta),
    /// The server's own count.
    Usage(Usage),
    /// A usage object has a number of tokens, above zero, at a member that is not read.
    Unknown(MemberName),
    /// The server's own times.
    Server(ServerReport),
    /// One answer is finished.
    Finish {
        /// The answer's index.
        choice: u32,
        /// The reason.
        reason: Finish,
    },
    /// The server reports an error inside the body.
    Error,
    /// Prompt processing continues; no token yet.
    Progress,
    /// A keep-alive: a comment, an empty or `null` payload.
    Ping,
    /// Facts about the exchange, without content.
    Meta,
    /// The dialect's own end mark.
    Done,
    /// A frame unknown to this dialect.
    Other,
}

/// New content of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// The answer's index.
    pub choice: u32,
    /// Its Unicode characters: UTF-8 lead bytes and escapes, counted in place.
    pub chars: u32,
    /// Its tokens, if the frame has token ids or log-probability entries for them. Where a frame has
    /// content of several kinds, the first delta has the count and the others zero.
    pub tokens: Option<u32>,
}

/// The server's own count, as of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The part of the answer that it covers.
    pub scope: Scope,
    /// The numbers.
    pub counts: Counts,
}

/// The part of an exchange that a [`Usage`] covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every choice, at the end.
    Whole,
    /// One choice, at its end; the server sends one for each (llama.cpp). The index, if it is present.
    Choice(Option<u32>),
    /// A running count of one choice; more may follow.
    Running(u32),
}

/// A server's report of its own work on a request. The file of each dialect has the server's names for these
/// values and how it measures them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Time in the queue, nanoseconds.
    pub queue_ns: Option<u64>,
    /// Time for the prompt, up to the first token, nanoseconds.
    pub prefill_ns: Option<u64>,
    /// Time for the tokens after the first, nanoseconds.
    pub decode_ns: Option<u64>,
    /// Tokens proposed by the draft of speculative decoding.
    pub draft_tokens: Option<u64>,
    /// Drafted tokens that the model accepted.
    pub accepted_draft_tokens: Option<u64>,
}

crate::listed_enum! {
    /// The reason an answer ended; unknown words are [`Finish::Other`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Finish {
        /// The model's own end, or a stop string.
        Stop = "stop",
        /// The length limit or the context's end.
        Length = "length",
        /// A tool call.
        ToolCalls = "tool_call",
        /// A content filter.
        ContentFilter = "content_filter",
        /// An abort by the server.
        Abort = "error",
        /// An unknown word.
        Other = "other",
    }
    /// Returns the value of `gen_ai.response.finish_reasons` of the OpenTelemetry convention.
    pub fn name(self);
}

impl Finish {
    /// Reads a dialect's word. `None` for the empty string, which TGI sends in every frame.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"" => return None,
            b"stop" | b"eos_token" | b"stop_sequence" | b"eos" | b"word" => Self::Stop,
            b"end_turn" | b"pause_turn" | b"STOP" | b"COMPLETE" | b"STOP_SEQUENCE" => Self::Stop,
            b"length" | b"limit" | b"max_tokens" | b"MAX_TOKENS" => Self::Length,
            b"max_output_tokens" | b"model_context_window_exceeded" => Self::Length,
            b"tool_calls" | b"function_call" | b"tool_use" | b"TOOL_CALL" => Self::ToolCalls,
            b"content_filter" | b"refusal" | b"content_filtered" | b"guardrail_intervened" => {
                Self::ContentFilter
            }
            b"SAFETY" | b"RECITATION" | b"BLOCKLIST" | b"PROHIBITED_CONTENT" => Self::ContentFilter,
            b"SPII" | b"LANGUAGE" | b"IMAGE_SAFETY" => Self::ContentFilter,
            b"abort" | b"error" | b"canceled" | b"cancelled" | b"ERROR" => Self::Abort,
            _ => Self::Other,
        })
    }
}

/// The receiver of events, in the order of the bytes.
pub trait Sink {
    /// Receives one event of the current frame.
    fn event(&mut self, event: Event);
    /// Receives the extent of the frame that ended.
    fn frame(&mut self, extent: Extent);
}
