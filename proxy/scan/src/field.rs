//! The facts a dialect may look for in a frame, and the tree of paths that lead to them. A path is
//! written as in the documentation of the servers: `choices[].delta.content`; `[]` is "each
//! element". A leading `[]` stands for a top-level array.

use crate::frame::Unit;
use crate::limits::PATH_LEVELS;
use crate::request::{Count, Key, Knob, LimitName};

/// One fact of a frame. What it means is the same in every dialect; where it stands is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Nothing is looked for here; the path leads on.
    Passage,
    /// A number or word that differs from frame to frame and means nothing to the meter.
    Varying,
    /// The list of answers.
    Choices,
    /// One answer.
    Choice,
    /// The part of an answer that holds its content.
    Delta,
    /// Number of the answer.
    Index,
    /// Word: who speaks.
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
    /// The same under a server's second name for them.
    OtherIds,
    /// List of the log-probability entries in this frame.
    Logprobs,
    /// Object: the one token this frame is about.
    Token,
    /// Word: why the answer ended.
    Finish,
    /// Flag: the answer has ended.
    Stop,
    /// The usage object.
    Usage,
    /// Number: prompt tokens, cached ones included.
    InputTokens,
    /// Number: prompt tokens from a cache.
    CachedTokens,
    /// Number: prompt tokens written to a cache.
    CacheWriteTokens,
    /// Number: prompt tokens of audio.
    InputAudioTokens,
    /// Number: prompt tokens of images.
    InputImageTokens,
    /// Number: prompt tokens of videos.
    InputVideoTokens,
    /// Of a prompt in parts. The part of one modality.
    Modality,
    /// Of an answer in parts. The part of one modality.
    OutputModality,
    /// Word in it: which.
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
    /// llama.cpp's object of timings.
    Timings,
    /// The same, repeated for a client that asked for all.
    VerboseTimings,
    /// Flag beside it: timings were asked for in each frame.
    VerboseSetting,
    /// Number in it: prompt tokens computed.
    TimingsPrompt,
    /// Number in it: prompt tokens from the cache.
    TimingsCached,
    /// Number in it: tokens generated.
    TimingsPredicted,
    /// Prompt processing in progress.
    Progress,
    /// Object of the facts about an answer that a server puts apart: counts, why it ended.
    Details,
    /// Text of a whole answer, repeated in its last frame; visible text where it stands alone.
    Generated,
    /// List of the prompt's tokens.
    PromptList,
    /// Number: generated tokens of one more answer that nobody sees.
    Addend,
    /// Number that is a count only together with others; each dialect says what its ranks are.
    Extra(u8),
    /// Number: time spent waiting.
    Queue(Unit),
    /// Number: time spent on the prompt.
    Prefill(Unit),
    /// Number: time spent on the tokens after the first.
    Decode(Unit),
    /// Number: tokens that a draft proposed.
    Drafted,
    /// Number: those of them that were accepted.
    DraftAccepted,
    /// Element of a top-level array that means what a frame means.
    Element,
    /// One part of an answer's content, of a kind that the part itself says.
    Part,
    /// Its text.
    PartText,
    /// Flag or word: its text is reasoning.
    Hidden,
    /// Word: why there is no answer at all.
    Blocked,
    /// The frame, whose type says what it means.
    Root,
    /// Word: the type.
    Type,
    /// Text of the kind that the type says.
    DeltaText,
    /// The object inside a frame that has what the whole answer has.
    Inner,
    /// The usage object inside it.
    InnerUsage,
    /// Word in it: how the answer stands.
    InnerStatus,
    /// Word in it: why the answer is incomplete.
    InnerReason,
    /// Word: how a whole answer stands.
    Status,
    /// Word: why a whole answer is incomplete.
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
    /// Word: why a whole answer ended.
    WholeFinish,
    /// Word: the answer's own id.
    Id,
    /// Word: the model's name.
    Model,
    /// Of a request. A field whose path is written in other letter case, by its place among those that are
    /// looked for so: servers in Go take it for the field, others ignore it.
    Cased(u8),
    /// Word: what kind of object the frame is.
    Object,
    /// An error, of any shape.
    Error,
    /// Word: how fast, and at which price, the answer was or is to be made.
    ServiceTier,
    /// Of a request. The object of what the client notes for itself.
    Metadata,
    /// Of a request. Word: a member that names somebody, by its place among those wanted.
    Wanted(u8),
    /// Of a request. Flag: frames are asked for.
    Stream,
    /// Of a request. Number: answers asked for, by the place that says so.
    Answers(Count),
    /// Of a request. What a stream shall be like, said in whatever form.
    StreamOptions,
    /// Of a request. Flag: usage is asked for.
    IncludeUsage,
    /// Of a request. Flag: running usage is asked for.
    ContinuousUsage,
    /// Of a request. Flag: the prompt is sent back before the answer.
    Echo,
    /// Of a request. One of several prompts, or one token id of a prompt, in the list that this is.
    PromptPart(Key),
    /// Of a request. Flag: the answers are searched for by beams.
    BeamSearch,
    /// Of a request. Flag: the answer is not waited for.
    Background,
    /// Of a request to TGI. Flag: the answer shall have details.
    RequestDetails,
    /// Of a request to TGI. Number: sequences of which the best is the answer.
    BestOf,
    /// Of a request to llama.cpp. List of the members that the answer shall have.
    AnswerMembers,
    /// Of a request to llama.cpp. Word: one of them.
    AnswerMember,
    /// A request's wanted form of an answer.
    AnswerFormat,
    /// Of a request. A member whose presence says which server is meant.
    Key(Key),
    /// Of a request. Number or word: how its answers are to be drawn.
    Knob(Knob),
    /// Number: the most output tokens, by a name at the top.
    Limit(LimitName),
    /// Object: where prefill and decode of the request run.
    KvTransfer,
    /// Flag in it: another server decodes.
    RemoteDecode,
    /// Flag in it: another server has prefilled.
    RemotePrefill,
}

impl Field {
    /// Whether its text is measured where it stands; other strings are captured.
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

    /// Whether only its presence matters: its string is walked over.
    pub(crate) fn is_noted(self) -> bool {
        matches!(self, Self::Key(_))
    }

    /// Whether a word that is not all there is none.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::ServiceTier | Self::Wanted(_))
    }

    /// Whether two frames of one shape may differ in it.
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

/// Index of "no node": nothing below is looked for.
pub(crate) const NOWHERE: u8 = u8::MAX;

/// The tree of a dialect's paths. Built once per process.
#[derive(Debug)]
pub(crate) struct Fields {
    nodes: Vec<Node>,
    /// The fields of [`Field::Cased`].
    cased: Vec<Field>,
}

#[derive(Debug)]
struct Node {
    field: Field,
    element: u8,
    keys: Vec<(Box<str>, u8)>,
    /// Names in any letter case, where a key is none of `keys`.
    cased: Vec<(&'static str, u8)>,
}

impl Fields {
    /// Builds the tree of `paths`.
    pub(crate) fn of(paths: &[(&'static str, Field)]) -> Self {
        let mut fields = Self { nodes: vec![Node::passage()], cased: Vec::new() };
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

    /// Looks for the same paths in each element of a top-level array, too.
    #[must_use]
    pub(crate) fn or_in_list(mut self) -> Self {
        self.nodes[0].element = 0;
        self
    }

    /// Looks for `field` at the member of that path, whatever characters its keys have.
    pub(crate) fn add_path<const N: usize>(&mut self, keys: [&str; N], field: Field) {
        const { assert!(N <= PATH_LEVELS) };
        let node = keys.into_iter().fold(0, |node, key| self.key_or_new(node, key));
        self.nodes[usize::from(node)].field = field;
    }

    /// What is looked for at a node.
    pub(crate) fn field(&self, node: u8) -> Field {
        self.nodes.get(usize::from(node)).map_or(Field::Passage, |n| n.field)
    }

    /// The node of an array's elements.
    pub(crate) fn element(&self, node: u8) -> u8 {
        self.nodes.get(usize::from(node)).map_or(NOWHERE, |n| n.element)
    }

    /// The node of an object's member.
    pub(crate) fn member(&self, node: u8, key: &[u8]) -> u8 {
        let Some(node) = self.nodes.get(usize::from(node)) else { return NOWHERE };
        let exact = node.keys.iter().find(|(name, _)| name.as_bytes() == key).map(|&(_, to)| to);
        let cased = || node.cased.iter().find(|(name, _)| is_folded(name, key));
        exact.or_else(|| cased().map(|&(_, to)| to)).unwrap_or(NOWHERE)
    }

    /// Looks for the same paths where some key of theirs is written in other letter case, too: as
    /// [`Field::Cased`].
    pub(crate) fn add_cased(&mut self, paths: &[(&'static str, Field)]) {
        for &(path, field) in paths {
            // The node of the path so far as it is written, and the one of its other spellings.
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
        self.cased.get(usize::from(place)).copied().unwrap_or(Field::Passage)
    }

    /// The node of `key` in other letter case, below a node and below its own other spelling.
    fn cased_or_new(&mut self, exact: u8, cased: Option<u8>, key: &'static str) -> u8 {
        let find = |node: &Node| node.cased.iter().find(|(name, _)| *name == key).map(|&(_, to)| to);
        if let Some(to) = find(&self.nodes[usize::from(exact)]) {
            return to;
        }
        let to = self.add();
        for node in [Some(exact), cased].into_iter().flatten() {
            self.nodes[usize::from(node)].cased.push((key, to));
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
                self.nodes[usize::from(node)].keys.push((key.into(), to));
                to
            }
            to => to,
        }
    }

    fn add(&mut self) -> u8 {
        self.nodes.push(Node::passage());
        u8::try_from(self.nodes.len() - 1).expect("a dialect's table has fewer than 255 nodes")
    }
}

impl Node {
    fn passage() -> Self {
        Self { field: Field::Passage, element: NOWHERE, keys: Vec::new(), cased: Vec::new() }
    }
}

/// Returns whether `encoding/json` of Go takes `key` for the member `name`: letters of any case, and the two characters
/// beyond ASCII that fold to letters within it, the long s and the Kelvin sign.
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

/// `a[].b` → `a`, `[]`, `b`.
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
