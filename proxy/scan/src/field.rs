//! The facts that a dialect may contain in a frame, and the tree of paths to them. A path is written as in
//! the servers' documentation: `choices[].delta.content`; `[]` means each element. A leading `[]` is a
//! top-level array.

mod tree;

use crate::counts::Count;
use crate::frame::Unit;
use crate::name::Dimension;
use crate::request::{CountMember, Key, LimitName, SamplingParam};

pub(crate) use tree::{Fields, NOWHERE, UNKNOWN, UNKNOWN_TOKENS, says_answer, says_tokens};

/// One fact of a frame. Its meaning is the same in every dialect; its path is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A node on the path to other fields. A path without an entry in the table is one.
    Intermediate,
    /// A number or word that differs from frame to frame and has no meaning for the meter.
    Varying,
    /// The list of answers.
    Choices,
    /// One answer.
    Choice,
    /// The member of an answer that holds its content.
    Delta,
    /// Number: the index of the answer.
    Index,
    /// Word: the role.
    Role,
    /// Visible text.
    Content,
    /// Visible text, one part of several.
    ContentPart,
    /// Reasoning text.
    Reasoning,
    /// Reasoning text, one part of several.
    ReasoningPart,
    /// Refusal text.
    Refusal,
    /// A tool's name or arguments.
    Tool,
    /// Audio data.
    Audio,
    /// List of the token ids in this frame.
    Ids,
    /// The token ids under a server's second name for them.
    OtherIds,
    /// List of the log-probability entries in this frame.
    Logprobs,
    /// Object: the one token of this frame.
    Token,
    /// Word: the finish reason.
    Finish,
    /// Flag: the answer has ended. Only the dialects in `Choice::native_finish` read it.
    Stop,
    /// The usage object. Not for dialects of the form `Native`: there the object of the counts has no entry, or is
    /// [`Field::Details`].
    Usage,
    /// Number: a count.
    Count(Count),
    /// The part of one modality in a prompt.
    Modality,
    /// The part of one modality in the cached tokens of a prompt.
    CachedModality,
    /// The part of one modality in results of tools, which are counted beside the prompt.
    ToolModality,
    /// The part of one modality in an answer.
    OutputModality,
    /// The part of the tokens written to a cache that has one lifetime.
    CacheLifetime,
    /// Element of a list of numbers that have names.
    Metric,
    /// The number in it.
    MetricValue,
    /// Word in such a part or element: its modality, its lifetime or its name.
    PartName,
    /// Number, or an object of its parts: prompt tokens.
    InputOrParts,
    /// Number, or an object of its parts: generated tokens.
    OutputOrParts,
    /// Number of a usage object at a member without a path. [`Visit::unknown`](crate::json::Visit::unknown) has its name.
    UnknownCount,
    /// One pass of an answer that needed several, with counts of its own.
    Iteration,
    /// Word in it: its type.
    IterationType,
    /// Word of a request: the id of the response that it continues.
    PreviousResponse,
    /// Word of a request: the id of its conversation.
    Conversation,
    /// Word of a request: the id of its stored prompt.
    PromptId,
    /// Word of a request: the version of its stored prompt.
    PromptVersion,
    /// Message of a WebSocket. Word: the id that its sender gave it.
    EventId,
    /// Message of a WebSocket. Word: the id of the client's message that failed.
    ErrorEvent,
    /// Message of a WebSocket. Word: the code of an error beside a text.
    ErrorCode,
    /// Message of a WebSocket. Word: the id of the answer that it belongs to.
    ResponseId,
    /// Message of a WebSocket. Word: the id of the conversation's item that it belongs to.
    ItemId,
    /// Message of a WebSocket. Word: the id of the stream of answers that it belongs to.
    StreamId,
    /// Message of a WebSocket. Word: the model that transcribes the speaker's words.
    TranscriptionModel,
    /// llama.cpp's object of timings.
    Timings,
    /// The same object, repeated for a client that requested `verbose`.
    VerboseTimings,
    /// Flag beside it: timings were requested for each frame.
    VerboseSetting,
    /// Number in it: prompt tokens computed.
    TimingsPrompt,
    /// Number in it: prompt tokens from the cache.
    TimingsCached,
    /// Number in it: tokens generated.
    TimingsPredicted,
    /// Prompt processing in progress.
    Progress,
    /// Object of the facts that a server groups: counts, finish reason. Those read before it
    /// are discarded.
    Details,
    /// Text of a whole answer, repeated in its last frame; visible text where it stands alone.
    Generated,
    /// List of the prompt's tokens.
    PromptList,
    /// Number: generated tokens of one more answer that the client does not receive.
    Addend,
    /// Number that is a count only together with others; each dialect defines its ranks.
    Extra(u8),
    /// Number: a count in the shape of another dialect, by its index among those.
    Foreign(u8),
    /// A member of another dialect only, by its index among those.
    Mark(u8),
    /// Word: the type of a frame of another dialect.
    MarkType,
    /// Number: time spent waiting.
    Queue(Unit),
    /// Number: time spent on the prompt.
    Prefill(Unit),
    /// Number: time spent on the tokens after the first.
    Decode(Unit),
    /// Number: tokens proposed by a draft.
    Drafted,
    /// Number: drafted tokens that were accepted.
    DraftAccepted,
    /// Element of a top-level array that is equivalent to a frame.
    Element,
    /// One part of an answer's content; a member of it defines its kind.
    Part,
    /// Its text.
    PartText,
    /// Flag: its text is reasoning.
    Hidden,
    /// Word: the type of an item of an answer of the Responses API, part of a whole one or of a stream.
    ItemType,
    /// Word: the reason that there is no answer.
    Blocked,
    /// The frame, whose type determines its meaning.
    Root,
    /// Word: the type.
    Type,
    /// Text of the kind that the type defines.
    DeltaText,
    /// The object inside a frame with the members of a whole answer.
    Inner,
    /// The usage object inside it.
    InnerUsage,
    /// Word in it: the status of the answer.
    InnerStatus,
    /// Word in it: the reason that the answer is incomplete.
    InnerReason,
    /// Word: the status of a whole answer.
    Status,
    /// Word: the reason that a whole answer is incomplete.
    Reason,
    /// The list or object of a whole answer's content.
    Whole,
    /// Visible text of a whole answer, one part of several.
    WholeText,
    /// Reasoning text of a whole answer, one part of several.
    WholeReasoning,
    /// Refusal text of a whole answer, one part of several.
    WholeRefusal,
    /// A tool's name or arguments in a whole answer.
    WholeTool,
    /// Word: the finish reason of a whole answer.
    WholeFinish,
    /// Word: the answer's own id.
    Id,
    /// Word of an unstreamed answer: the id of work whose result is fetched later.
    JobId,
    /// Word: the model's name.
    Model,
    /// Request. Word: another name of the model.
    OtherModel,
    /// Request. A field whose path is written in other letter case, by its index among those fields: servers
    /// in Go accept it as the field, others ignore it.
    Cased(u8),
    /// Word: the object type of the frame.
    Object,
    /// An error, of any shape.
    Error,
    /// Word: the service tier, requested or used.
    ServiceTier,
    /// Word: another fact on which the price depends.
    Dimension(Dimension),
    /// Request. The object `metadata`, whose members the client chooses.
    Metadata,
    /// Request. Word: a configured member that identifies a person or account, by its index.
    Selected(u8),
    /// Request. Flag: a stream is requested.
    Stream,
    /// Request. Number: the requested answers, by member.
    Answers(CountMember),
    /// Request. `stream_options`, of any type.
    StreamOptions,
    /// Request. Flag: usage is requested.
    IncludeUsage,
    /// Request to LiteLLM. A member that replaces `stream_options` behind it, or the word of one that it drops.
    UsageDropped,
    /// Request. Flag: running usage is requested.
    ContinuousUsage,
    /// Request. Flag: the prompt is repeated before the answer.
    Echo,
    /// Request. One of several prompts, or one token id of a prompt, in the list of this key.
    PromptPart(Key),
    /// Request. Flag: the answers come from a beam search.
    BeamSearch,
    /// Request. Flag: the answer is generated in the background.
    Background,
    /// Request. Flag: the answer is fetched later, by another provider's name for it.
    Detached,
    /// Request to TGI. Flag: the answer has details.
    RequestDetails,
    /// Request to TGI. Number: sequences of which the best is the answer.
    BestOf,
    /// Request to llama.cpp. List: the members that the answer has.
    AnswerMembers,
    /// Request to llama.cpp. Word: one of them.
    AnswerMember,
    /// Request. Word: the requested format of an answer.
    AnswerFormat,
    /// Request. A member whose presence identifies the server.
    Key(Key),
    /// Request. Number or word: a sampling parameter.
    SamplingParam(SamplingParam),
    /// Number: the limit of output tokens, by its name at the top level.
    Limit(LimitName),
    /// Object: where prefill and decode of the request run.
    KvTransfer,
    /// Flag in it: another server decodes.
    RemoteDecode,
    /// Flag in it: another server has prefilled.
    RemotePrefill,
}

impl Field {
    /// Returns true if its text is measured in place; other strings are captured.
    pub(crate) fn is_measured(self) -> bool {
        matches!(
            self,
            Self::Content
                | Self::ContentPart
                | Self::ReasoningPart
                | Self::Reasoning
                | Self::Refusal
                | Self::Tool
                | Self::Audio
                | Self::PromptPart(_)
                | Self::Generated
                | Self::PartText
                | Self::DeltaText
                | Self::WholeText
                | Self::WholeReasoning
                | Self::WholeRefusal
                | Self::WholeTool
        )
    }

    /// Returns true if only its presence matters: its string is skipped.
    pub(crate) fn is_presence_only(self) -> bool {
        matches!(self, Self::Key(_))
    }

    /// Returns true if a word that does not fit the buffer counts as absent.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::ServiceTier | Self::Dimension(_) | Self::Selected(_))
    }

    /// Returns true if two frames of one shape may differ in it.
    pub(crate) fn may_vary(self) -> bool {
        self.is_measured()
            || matches!(
                self,
                Self::Varying
                    | Self::Index
                    | Self::Count(
                        Count::Input
                            | Count::InputCached
                            | Count::Output
                            | Count::OutputReasoning
                            | Count::Total
                    )
            )
    }
}
