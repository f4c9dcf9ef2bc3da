//! The facts that a dialect may contain in a frame, and the tree of paths to them. A path is written as in
//! the servers' documentation: `choices[].delta.content`; `[]` means each element. A leading `[]` is a
//! top-level array.

use crate::frame::Unit;
use crate::limits::PATH_LEVELS;
use crate::request::{CountMember, Key, LimitName, SamplingParam};

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
    /// Number: prompt tokens, cached ones included.
    InputTokens,
    /// Number: prompt tokens from a cache.
    CachedTokens,
    /// Number: prompt tokens written to a cache.
    CacheWriteTokens,
    /// Number: prompt tokens written to a cache for one hour.
    CacheWrite1hTokens,
    /// Number: prompt tokens of audio.
    InputAudioTokens,
    /// Number: prompt tokens of images.
    InputImageTokens,
    /// Number: prompt tokens of videos.
    InputVideoTokens,
    /// The part of one modality in a prompt.
    Modality,
    /// The part of one modality in an answer.
    OutputModality,
    /// Word in it: the modality.
    ModalityName,
    /// Number: generated tokens.
    OutputTokens,
    /// Number: generated reasoning tokens.
    ReasoningTokens,
    /// Number: generated audio tokens.
    AudioTokens,
    /// Number: generated image tokens.
    OutputImageTokens,
    /// Number: generated video tokens.
    OutputVideoTokens,
    /// Word of a request: the id of the response that it continues.
    PreviousResponse,
    /// Word of a request: the id of its conversation.
    Conversation,
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
    /// Flag or word: its text is reasoning.
    Hidden,
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
    /// Word: the model's name.
    Model,
    /// Request. A field whose path is written in other letter case, by its index among those fields: servers
    /// in Go accept it as the field, others ignore it.
    Cased(u8),
    /// Word: the object type of the frame.
    Object,
    /// An error, of any shape.
    Error,
    /// Word: the service tier, requested or used.
    ServiceTier,
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
        matches!(self, Self::ServiceTier | Self::Selected(_))
    }

    /// Returns true if two frames of one shape may differ in it.
    pub(crate) fn may_vary(self) -> bool {
        self.is_measured()
            || matches!(
                self,
                Self::Varying
                    | Self::Index
                    | Self::InputTokens
                    | Self::CachedTokens
                    | Self::OutputTokens
                    | Self::ReasoningTokens
            )
    }
}

/// The index of no node: nothing below has a field.
pub(crate) const NOWHERE: u8 = u8::MAX;

/// The tree of a dialect's paths, built once per process.
#[derive(Debug)]
pub(crate) struct Fields {
    nodes: Vec<Node>,
    /// The fields of [`Field::Cased`], by index.
    cased: Vec<Field>,
}

#[derive(Debug)]
struct Node {
    field: Field,
    element: u8,
    /// Bit `slot` of each name in `keys` and `cased`.
    name_bits: u64,
    /// Names, in the order of their slots.
    keys: Vec<Member>,
    /// The index in `keys` at which each slot begins, and the length of `keys`; empty without keys.
    slots: Box<[u8]>,
    /// Names in any letter case, used if no entry of `keys` matches.
    cased: Vec<(&'static str, u8)>,
}

/// A member of an object.
#[derive(Debug)]
struct Member {
    /// Few names have an equal beginning, so that most differ without a call.
    beginning: u64,
    name: Box<str>,
    to: u8,
}

/// Returns the first eight bytes of a name, or all and zeros.
#[inline]
fn beginning(name: &[u8]) -> u64 {
    if let Some(first) = name.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    match (name.first_chunk(), name.last_chunk()) {
        // Both halves of four to seven bytes; they overlap in equal bytes.
        (Some(first), Some(last)) => {
            let last = u64::from(u32::from_le_bytes(*last));
            u64::from(u32::from_le_bytes(*first)) | last << ((name.len() - size_of::<u32>()) * 8)
        }
        _ => name.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// The number of slots of names.
const SLOTS: usize = u64::BITS as usize;

/// Returns the slot of the names with this beginning, in any letter case. Most members that a server adds have no
/// field: an empty slot shows that without a comparison of names.
#[inline]
fn slot(beginning: u64) -> usize {
    const LOWER_CASE: u64 = u64::from_ne_bytes([0x20; 8]);
    ((beginning | LOWER_CASE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// Returns true if no name of these bits has this beginning. A beginning with a letter outside ASCII is never missing,
/// because [`is_folded`] accepts two such letters.
#[inline]
fn is_missing(name_bits: u64, beginning: u64, slot: usize) -> bool {
    const NOT_ASCII: u64 = u64::from_ne_bytes([0x80; 8]);
    name_bits & 1 << slot == 0 && beginning & NOT_ASCII == 0
}

impl Fields {
    /// Builds the tree of `paths`.
    pub(crate) fn of(paths: &[(&'static str, Field)]) -> Self {
        let mut fields = Self { nodes: vec![Node::new()], cased: Vec::new() };
        for &(path, field) in paths {
            let mut node = 0;
            for step in steps(path) {
                node = match step {
                    "[]" => fields.element_or_new(node),
                    key => fields.key_or_new(node, key),
                };
            }
            fields.nodes[usize::from(node)].field = field;
        }
        fields
    }

    /// Reads the same paths in each element of a top-level array, too.
    #[must_use]
    pub(crate) fn or_in_list(mut self) -> Self {
        self.nodes[0].element = 0;
        self
    }

    /// Adds `field` at a path of literal keys, which may contain `.` and `[]`.
    pub(crate) fn add_path<const N: usize>(&mut self, keys: [&str; N], field: Field) {
        const { assert!(N <= PATH_LEVELS) };
        let node = keys.into_iter().fold(0, |node, key| self.key_or_new(node, key));
        self.nodes[usize::from(node)].field = field;
    }

    /// The field of a node.
    pub(crate) fn field(&self, node: u8) -> Field {
        self.nodes.get(usize::from(node)).map_or(Field::Intermediate, |n| n.field)
    }

    /// The node of an array's elements.
    pub(crate) fn element(&self, node: u8) -> u8 {
        self.nodes.get(usize::from(node)).map_or(NOWHERE, |n| n.element)
    }

    /// The node of an object's member.
    pub(crate) fn member(&self, node: u8, key: &[u8]) -> u8 {
        let Some(node) = self.nodes.get(usize::from(node)) else { return NOWHERE };
        if node.name_bits == 0 {
            return NOWHERE;
        }
        let beginning = beginning(key);
        let slot = slot(beginning);
        if is_missing(node.name_bits, beginning, slot) {
            return NOWHERE;
        }
        let is_equal = |member: &&Member| {
            member.beginning == beginning
                && member.name.len() == key.len()
                // A name of up to eight bytes is its beginning.
                && (key.len() <= size_of::<u64>() || member.name.as_bytes() == key)
        };
        let exact = node.of_slot(slot).iter().find(is_equal).map(|member| member.to);
        let cased = || node.cased.iter().find(|(name, _)| is_folded(name, key));
        exact.or_else(|| cased().map(|&(_, to)| to)).unwrap_or(NOWHERE)
    }

    /// Adds the same paths with keys in other letter case, as [`Field::Cased`].
    pub(crate) fn add_cased(&mut self, paths: &[(&'static str, Field)]) {
        for &(path, field) in paths {
            // The node of the path with its exact keys, and the node of its other spellings.
            let (mut exact, mut cased) = (0, None);
            for step in steps(path) {
                (exact, cased) = match step {
                    "[]" => (self.element_or_new(exact), cased.map(|node| self.element_or_new(node))),
                    key => {
                        let to = self.cased_or_new(exact, cased, key);
                        (self.key_or_new(exact, key), Some(to))
                    }
                };
            }
            let place = u8::try_from(self.cased.len()).expect("fewer fields than nodes");
            if let Some(node) = cased {
                self.nodes[usize::from(node)].field = Field::Cased(place);
                self.cased.push(field);
            }
        }
    }

    /// The field of a [`Field::Cased`].
    pub(crate) fn cased(&self, place: u8) -> Field {
        self.cased.get(usize::from(place)).copied().unwrap_or(Field::Intermediate)
    }

    /// The node of `key` in other letter case, below the exact node and below the node of other spellings.
    fn cased_or_new(&mut self, exact: u8, cased: Option<u8>, key: &'static str) -> u8 {
        let find = |node: &Node| node.cased.iter().find(|(name, _)| *name == key).map(|&(_, to)| to);
        if let Some(to) = find(&self.nodes[usize::from(exact)]) {
            return to;
        }
        let to = self.add();
        for node in [Some(exact), cased].into_iter().flatten() {
            let node = &mut self.nodes[usize::from(node)];
            node.cased.push((key, to));
            node.name_bits |= 1 << slot(beginning(key.as_bytes()));
        }
        to
    }

    fn element_or_new(&mut self, node: u8) -> u8 {
        if self.nodes[usize::from(node)].element == NOWHERE {
            self.nodes[usize::from(node)].element = self.add();
        }
        self.nodes[usize::from(node)].element
    }

    fn key_or_new(&mut self, node: u8, key: &str) -> u8 {
        match self.member(node, key.as_bytes()) {
            NOWHERE => {
                let to = self.add();
                let member = Member { beginning: beginning(key.as_bytes()), name: key.into(), to };
                self.nodes[usize::from(node)].add(member);
                to
            }
            to => to,
        }
    }

    fn add(&mut self) -> u8 {
        self.nodes.push(Node::new());
        u8::try_from(self.nodes.len() - 1).expect("a dialect's table has fewer than 255 nodes")
    }
}

impl Node {
    fn new() -> Self {
        Self {
            field: Field::Intermediate,
            element: NOWHERE,
            name_bits: 0,
            keys: Vec::new(),
            slots: Box::default(),
            cased: Vec::new(),
        }
    }

    /// Returns the keys in a slot.
    #[inline]
    fn of_slot(&self, slot: usize) -> &[Member] {
        match self.slots.get(slot..slot + 2) {
            Some(&[from, to]) => &self.keys[usize::from(from)..usize::from(to)],
            _ => &[],
        }
    }

    /// Inserts a key as the last of its slot.
    fn add(&mut self, member: Member) {
        let slot = slot(member.beginning);
        self.name_bits |= 1 << slot;
        if self.slots.is_empty() {
            self.slots = [0; SLOTS + 1].into();
        }
        self.keys.insert(usize::from(self.slots[slot + 1]), member);
        for end in &mut self.slots[slot + 1..] {
            *end += 1;
        }
    }
}

/// Returns true if Go's `encoding/json` accepts `key` for the member `name`: letters of any case, and the
/// two characters beyond ASCII that fold to ASCII letters, the long s and the Kelvin sign.
fn is_folded(name: &str, key: &[u8]) -> bool {
    let mut rest = key;
    name.bytes().all(|wanted| {
        let (folded, len) = match *rest {
            [0xC5, 0xBF, ..] => (b's', 2),
            [0xE2, 0x84, 0xAA, ..] => (b'k', 3),
            [byte, ..] => (byte.to_ascii_lowercase(), 1),
            [] => return false,
        };
        rest = &rest[len..];
        folded == wanted.to_ascii_lowercase()
    }) && rest.is_empty()
}

/// Splits a path: `a[].b` → `a`, `[]`, `b`.
fn steps(path: &'static str) -> impl Iterator<Item = &'static str> {
    let steps: Vec<_> = path
        .split('.')
        .flat_map(|part| {
            let key = part.trim_end_matches("[]");
            let elements = (part.len() - key.len()) / 2;
            (!key.is_empty()).then_some(key).into_iter().chain(std::iter::repeat_n("[]", elements))
        })
        .collect();
    assert!(steps.len() <= PATH_LEVELS, "{path}: deeper than PATH_LEVELS");
    steps.into_iter()
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn beginning_is_eight_bytes_or_all_and_zeros() {
        let name = b"abcdefghijk";
        for len in 0..=name.len() {
            let mut padded = [0; 8];
            padded[..len.min(8)].copy_from_slice(&name[..len.min(8)]);
            assert_eq!(beginning(&name[..len]), u64::from_le_bytes(padded), "{len}");
        }
    }
}
