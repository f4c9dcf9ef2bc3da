//! The few facts of a request body the meter wants, read as the body passes. Prompts of any size
//! are walked over, never kept.

mod casing;
mod links;
mod places;
mod sampling;
mod shape;
mod transfer;
mod wanted;

use std::sync::{Arc, LazyLock};

use crate::dialect::Dialect;
use crate::dialect::transcription;
use crate::encoding::Transcoder;
use crate::field::{Field, Fields};
use crate::flag;
use crate::frame::count;
use crate::json::{End, Json, Value};
use crate::name::{Name, Tier};

pub use casing::Casing;
use casing::Readings;
pub use links::Links;
pub(crate) use places::Count;
pub use places::Places;
pub(crate) use sampling::Knob;
pub use sampling::{ENCODING_FORMATS, OutputType, ReasoningLevel, Sampling};
pub(crate) use shape::Key;
pub use shape::Shape;
pub(crate) use transfer::LimitName;
pub use transfer::{KvTransfer, OutputLimits};
pub use wanted::{Member, Wanted};

/// What a request asks for. Absent fields have their dialect's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The model's name; empty if it was not said, or said last by something that is no name.
    pub model: Name,
    /// The model was named last by a value that is neither a string nor `null`: some servers make a name of it,
    /// others take their own.
    pub model_is_odd: bool,
    /// True if the request asks for frames, if it has the member; in any value that servers in Python take for it
    /// ([`flag`]).
    pub stream: Option<bool>,
    /// That was said by something else than `true` or `false`, so that servers may differ about it.
    pub stream_is_odd: bool,
    /// Answers asked for: `n`, by whatever name the dialect has for it, times the number of prompts.
    /// This and the two after it are by any dialect's names until [`Request::of`] takes one's.
    pub answers: u32,
    /// Prompts in the request; more than one only where a list was sent.
    pub prompts: u32,
    /// Token ids in the prompt, if it came as one list of ids (`prompt` or `input_ids`).
    pub prompt_ids: Option<u64>,
    /// What those three are made of; `None` of a request that was not read from JSON.
    pub places: Option<Places>,
    /// Whether anything was said of `stream_options`, readable or not.
    pub stream_options: bool,
    /// Whether usage was asked for, if that was said.
    pub include_usage: Option<bool>,
    /// Whether running usage was asked for.
    pub continuous_usage: bool,
    /// Whether the prompt is sent back before the answer.
    pub echo: bool,
    /// Whether the answers are searched for by beams: they come at once, at the end.
    pub beam_search: bool,
    /// Whether the answer is left to a later request (the Responses API).
    pub background: bool,
    /// True if llama.cpp is asked to leave its count of the prompt or of the output out of the answer
    /// (`response_fields`).
    pub hides_counts: bool,
    /// True if vLLM is asked for the octets of an embedding and nothing beside them (`encoding_format`).
    pub octets_only: bool,
    /// True if a transcript is asked for in a form that has no place for a count of tokens (`response_format`).
    pub plain_transcript: bool,
    /// True if TGI is asked for details of the answer, its counts among them (`parameters.details`).
    pub details: bool,
    /// True if TGI is asked for the best of several sequences (`parameters.best_of`).
    pub best_of: bool,
    /// The members that tell apart servers that share an address.
    pub shape: Shape,
    /// How the answers are to be drawn.
    pub sampling: Sampling,
    /// True if another server prefills or decodes for this one.
    pub kv_transfer: KvTransfer,
    /// The limits of output tokens.
    pub output_limits: OutputLimits,
    /// The body was one whole JSON value.
    pub whole: bool,
}

impl Request {
    /// The same request to a server that speaks `dialect`: of prompts and answers only those members say
    /// anything that the dialect has.
    #[must_use]
    pub fn of(self, dialect: Dialect) -> Self {
        self.asking(Some(dialect))
    }

    /// Returns whether every server takes it for a request for frames.
    pub fn streams_in_any_reading(&self) -> bool {
        self.stream == Some(true) && !self.stream_is_odd
    }

    /// The answers asked for by llama.cpp's names, in whatever dialect: it takes them in those of OpenAI that
    /// have no such member, too. At least one.
    pub fn named_answers(&self) -> u32 {
        self.places.map_or(1, |places| places.named_answers())
    }

    fn asking(self, dialect: Option<Dialect>) -> Self {
        let Some(places) = self.places else { return self };
        let places::Said { prompts, answers, prompt_ids } = places.said(dialect);
        Self { prompts, answers, prompt_ids, ..self }
    }
}

/// Reads a request body slice by slice.
#[derive(Debug)]
pub struct RequestScanner {
    encoding: Transcoder,
    json: Json,
    facts: Facts,
    casing: Casing,
    /// The facts as a server in Go reads them, once a member in other letter case makes a difference.
    cased: Option<Box<Facts>>,
    wanted: Option<Arc<Wanted>>,
}

#[derive(Clone, Debug, Default)]
struct Facts {
    request: Request,
    max_completion_tokens: Option<u64>,
    tier: Tier,
    /// What the wanted members say, in their order; empty where they say nothing.
    said: Box<[Name]>,
    /// Bit p: the member at place p is one of `metadata`.
    metadata: u32,
    /// The elements of `response_fields`, where that is a list, and of them those that name a count.
    response_fields: Option<(u32, [bool; NATIVE_COUNTS.len()])>,
    /// Few requests have one.
    links: Option<Box<Links>>,
}

/// llama.cpp's names of the numbers of prompt and output tokens.
const NATIVE_COUNTS: [&[u8]; 2] = [b"tokens_evaluated", b"tokens_predicted"];

static FIELDS: LazyLock<Fields> = LazyLock::new(fields);

fn fields() -> Fields {
    let mut fields = Fields::of(&[FACTS, SAMPLING].concat());
    fields.add_cased(FACTS);
    fields
}

const FACTS: &[(&str, Field)] = &[
    ("model", Field::Model),
    ("stream", Field::Stream),
    ("n", Field::Answers(Count::Top)),
    ("n_cmpl", Field::Answers(Count::Completions)),
    ("sampling_params.n", Field::Answers(Count::SamplingParams)),
    ("generationConfig.candidateCount", Field::Answers(Count::GenerationConfig)),
    ("echo", Field::Echo),
    ("stream_options", Field::StreamOptions),
    ("stream_options.include_usage", Field::IncludeUsage),
    ("stream_options.continuous_usage_stats", Field::ContinuousUsage),
    ("use_beam_search", Field::BeamSearch),
    ("background", Field::Background),
    ("kv_transfer_params", Field::KvTransfer),
    ("kv_transfer_params.do_remote_decode", Field::RemoteDecode),
    ("kv_transfer_params.do_remote_prefill", Field::RemotePrefill),
    ("service_tier", Field::ServiceTier),
    ("serviceTier", Field::ServiceTier),
    ("messages", Field::Key(Key::Messages)),
    ("prompt", Field::Key(Key::Prompt)),
    ("prompt[]", Field::PromptPart(Key::Prompt)),
    ("input", Field::Key(Key::Input)),
    ("inputs", Field::Key(Key::Inputs)),
    ("text", Field::Key(Key::Text)),
    ("text[]", Field::PromptPart(Key::Text)),
    ("input_ids", Field::Key(Key::InputIds)),
    ("input_ids[]", Field::PromptPart(Key::InputIds)),
    ("contents", Field::Key(Key::Contents)),
    ("parameters", Field::Key(Key::Parameters)),
    ("parameters.details", Field::RequestDetails),
    ("parameters.best_of", Field::BestOf),
    ("response_fields", Field::AnswerMembers),
    ("response_fields[]", Field::AnswerMember),
    ("response_format", Field::AnswerFormat),
    ("sampling_params", Field::Key(Key::SamplingParams)),
    ("query", Field::Key(Key::Query)),
    ("queries", Field::Key(Key::Queries)),
    ("documents", Field::Key(Key::Documents)),
    ("items", Field::Key(Key::Items)),
    ("text_1", Field::Key(Key::TextPair)),
    ("data_1", Field::Key(Key::DataPair)),
];

/// Where the dialects say how answers are drawn: OpenAI, Anthropic, llama.cpp, LMDeploy and Triton at
/// the top; Cohere there, too, with `k` and `p`; in objects of their own TGI and Triton
/// (`parameters`), SGLang and vLLM's tokens in, tokens out (`sampling_params`), Ollama (`options`),
/// and Gemini. Then in which form they are wanted: Chat's and Responses' words, Anthropic's effort,
/// Ollama's `think` and `format`, Gemini's type, and those of embeddings.
const SAMPLING: &[(&str, Field)] = &[
    ("previous_response_id", Field::PreviousResponse),
    ("conversation", Field::Conversation),
    ("conversation.id", Field::Conversation),
    ("max_completion_tokens", Field::Knob(Knob::MaxCompletionTokens)),
    ("max_tokens", Field::Limit(LimitName::Plain)),
    ("max_output_tokens", Field::Limit(LimitName::Output)),
    ("max_new_tokens", Field::Limit(LimitName::Foreign)),
    ("n_predict", Field::Limit(LimitName::Foreign)),
    ("num_predict", Field::Limit(LimitName::Foreign)),
    ("temperature", Field::Knob(Knob::Temperature)),
    ("top_p", Field::Knob(Knob::TopP)),
    ("p", Field::Knob(Knob::TopP)),
    ("top_k", Field::Knob(Knob::TopK)),
    ("k", Field::Knob(Knob::TopK)),
    ("seed", Field::Knob(Knob::Seed)),
    ("frequency_penalty", Field::Knob(Knob::FrequencyPenalty)),
    ("presence_penalty", Field::Knob(Knob::PresencePenalty)),
    ("parameters.max_new_tokens", Field::Limit(LimitName::Foreign)),
    ("parameters.max_tokens", Field::Limit(LimitName::Foreign)),
    ("parameters.temperature", Field::Knob(Knob::Temperature)),
    ("parameters.top_p", Field::Knob(Knob::TopP)),
    ("parameters.top_k", Field::Knob(Knob::TopK)),
    ("parameters.seed", Field::Knob(Knob::Seed)),
    ("parameters.frequency_penalty", Field::Knob(Knob::FrequencyPenalty)),
    ("parameters.presence_penalty", Field::Knob(Knob::PresencePenalty)),
    ("sampling_params.max_new_tokens", Field::Limit(LimitName::Foreign)),
    ("sampling_params.max_tokens", Field::Limit(LimitName::Foreign)),
    ("sampling_params.temperature", Field::Knob(Knob::Temperature)),
    ("sampling_params.top_p", Field::Knob(Knob::TopP)),
    ("sampling_params.top_k", Field::Knob(Knob::TopK)),
    ("sampling_params.seed", Field::Knob(Knob::Seed)),
    ("sampling_params.sampling_seed", Field::Knob(Knob::Seed)),
    ("sampling_params.frequency_penalty", Field::Knob(Knob::FrequencyPenalty)),
    ("sampling_params.presence_penalty", Field::Knob(Knob::PresencePenalty)),
    ("options.num_predict", Field::Limit(LimitName::Foreign)),
    ("options.temperature", Field::Knob(Knob::Temperature)),
    ("options.top_p", Field::Knob(Knob::TopP)),
    ("options.top_k", Field::Knob(Knob::TopK)),
    ("options.seed", Field::Knob(Knob::Seed)),
    ("options.frequency_penalty", Field::Knob(Knob::FrequencyPenalty)),
    ("options.presence_penalty", Field::Knob(Knob::PresencePenalty)),
    ("generationConfig.maxOutputTokens", Field::Limit(LimitName::Foreign)),
    ("generationConfig.temperature", Field::Knob(Knob::Temperature)),
    ("generationConfig.topP", Field::Knob(Knob::TopP)),
    ("generationConfig.topK", Field::Knob(Knob::TopK)),
    ("generationConfig.seed", Field::Knob(Knob::Seed)),
    ("generationConfig.frequencyPenalty", Field::Knob(Knob::FrequencyPenalty)),
    ("generationConfig.presencePenalty", Field::Knob(Knob::PresencePenalty)),
    ("reasoning_effort", Field::Knob(Knob::ReasoningLevel)),
    ("reasoning.effort", Field::Knob(Knob::ReasoningLevel)),
    ("output_config.effort", Field::Knob(Knob::ReasoningLevel)),
    ("think", Field::Knob(Knob::ReasoningLevel)),
    ("response_format.type", Field::Knob(Knob::OutputType)),
    ("text.format.type", Field::Knob(Knob::OutputType)),
    ("format", Field::Knob(Knob::OutputType)),
    ("generationConfig.responseMimeType", Field::Knob(Knob::OutputType)),
    ("modalities[]", Field::Knob(Knob::Modality)),
    ("dimensions", Field::Knob(Knob::Dimensions)),
    ("output_dimension", Field::Knob(Knob::Dimensions)),
    ("encoding_format", Field::Knob(Knob::EncodingFormat)),
    ("embedding_types[]", Field::Knob(Knob::EmbeddingType)),
];

impl RequestScanner {
    /// A scanner for one request body to a server of unknown kind.
    pub fn new() -> Self {
        Self {
            encoding: Transcoder::new(),
            json: Json::new(),
            facts: Facts::default(),
            casing: Casing::default(),
            cased: None,
            wanted: None,
        }
    }

    /// The same, which also keeps what `wanted` names.
    pub fn wanting(wanted: Arc<Wanted>) -> Self {
        let facts = Facts { said: wanted.unsaid(), metadata: wanted.metadata(), ..Facts::default() };
        Self { facts, wanted: Some(wanted), ..Self::new() }
    }

    /// The same, for a server that reads the names of members so.
    #[must_use]
    pub fn casing(self, casing: Casing) -> Self {
        Self { casing, ..self }
    }

    /// Reads the next slice.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { encoding, json, facts, casing, cased, wanted } = self;
        let fields = wanted.as_deref().map_or(&*FIELDS, |wanted| &wanted.fields);
        let mut readings = Readings { fields, casing: *casing, exact: facts, cased };
        if encoding.is_utf8() {
            json.feed(fields, bytes, 0, &mut readings);
        } else {
            encoding.feed(bytes, |utf8| json.feed(fields, utf8, 0, &mut readings));
        }
    }

    /// The body is over: what it asked for.
    pub fn end(&mut self) -> Request {
        let Self { encoding, json, facts, casing, cased, wanted } = self;
        let fields = wanted.as_deref().map_or(&*FIELDS, |wanted| &wanted.fields);
        let mut readings = Readings { fields, casing: *casing, exact: facts, cased };
        if !encoding.is_utf8() {
            encoding.end(|utf8| json.feed(fields, utf8, 0, &mut readings));
        }
        let end = match json.end(fields, &mut readings) {
            _ if encoding.is_broken() => End::Broken,
            end => end,
        };
        casing.request(facts, cased.as_deref(), end).asking(None)
    }

    /// The model that a server in Go takes the request to name, where it may be one and reads another name than
    /// the others do; else empty.
    pub fn other_model(&self) -> Name {
        let exact = self.facts.request.model;
        let cased = self.cased.as_ref().map(|facts| facts.request.model);
        let is_other = |name: &Name| self.casing == Casing::Either && !exact.is_empty() && *name != exact;
        cased.filter(is_other).unwrap_or_default()
    }

    /// The service tier asked for; empty if none was, or one longer than a tier.
    pub fn service_tier(&self) -> &Tier {
        &self.facts.tier
    }

    /// Returns the ids by which the request continues earlier ones, as the Responses API has them.
    pub fn links(&self) -> Links {
        self.facts.links.as_deref().copied().unwrap_or_default()
    }

    /// What the wanted members say, each by its place in [`Wanted::members`]; empty where one is not
    /// there, is no string, or is longer than a name.
    pub fn said(&self) -> &[Name] {
        &self.facts.said
    }

    /// The model named so far.
    pub fn model(&self) -> &Name {
        &self.facts.request.model
    }
}

impl Default for RequestScanner {
    fn default() -> Self {
        Self::new()
    }
}

/// A number of answers as llama.cpp reads it: the whole part of a fraction, and of an integer the low 32 bits, so that
/// −4294967292 is 4.
fn answers(number: &[u8]) -> Option<u64> {
    count(number).or_else(|| {
        let number = str::from_utf8(number).ok()?;
        if let Ok(whole) = number.parse::<i64>() {
            return u64::try_from(whole as i32).ok();
        }
        let number: f64 = number.parse().ok()?;
        (1.0..=u32::MAX.into()).contains(&number).then_some(number as u64)
    })
}

/// A flag, as servers in Python take it.
fn lax(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(said) => Some(said),
        Value::Word(word) => flag::word(word),
        Value::Number(_) => flag::number(sampling::number(value)?),
        _ => None,
    }
}

/// The flag `stream`, as the most lenient server takes it. A list or an object may be empty; it is taken for one
/// that is not.
fn truth(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Bool(said) => Some(said),
        Value::Word(word) => Some(flag::word_truth(word)),
        Value::Number(number) => Some(flag::number_truth(number)),
        _ => Some(true),
    }
}

impl Facts {
    fn link(&mut self, value: Value<'_>, slot: impl FnOnce(&mut Links) -> &mut Name) {
        let id = links::id(value);
        if self.links.is_some() || !id.is_empty() {
            *slot(self.links.get_or_insert_default()) = id;
        }
    }

    fn places(&mut self) -> &mut Places {
        self.request.places.get_or_insert_default()
    }

    /// Returns the request of a body that came so far.
    fn request(&self, end: End) -> Request {
        Request {
            places: Some(self.request.places.unwrap_or_default()),
            sampling: Sampling {
                max_tokens: self.max_completion_tokens.or(self.request.sampling.max_tokens),
                ..self.request.sampling
            },
            // The server may read this body otherwise than we do, so the model named last is unknown.
            model: if end == End::Broken { Name::default() } else { self.request.model },
            // An empty list asks for all, as does anything that is no list.
            hides_counts: self
                .response_fields
                .is_some_and(|(elements, named)| elements > 0 && named != [true; 2]),
            whole: end == End::Whole,
            ..self.request
        }
    }

    fn take(&mut self, field: Field, value: Value<'_>) {
        let yes = value == Value::Bool(true);
        match (field, value) {
            // Of two the last counts, as it does for the servers' parsers, though it says nothing: who
            // names a cheap model and then none gets the server's own.
            (Field::Model, value) => {
                self.request.model = match value {
                    Value::Word(word) => Name::cut(word),
                    _ => Name::default(),
                };
                self.request.model_is_odd = !matches!(value, Value::Word(_) | Value::Null);
            }
            (Field::ServiceTier, Value::Word(word)) => self.tier = Tier::of(word).unwrap_or_default(),
            (Field::ServiceTier, _) => self.tier = Tier::default(),
            (Field::Wanted(place), value) => {
                if let Some(said) = self.said.get_mut(usize::from(place)) {
                    *said = match value {
                        Value::Word(word) => Name::whole(word).unwrap_or_default(),
                        _ => Name::default(),
                    };
                }
            }
            (Field::Metadata, _) => {
                // Of two the last counts.
                let places = self.said.iter_mut().enumerate();
                let metadata = self.metadata;
                places
                    .filter(|(place, _)| metadata >> place & 1 == 1)
                    .for_each(|(_, said)| *said = Name::default());
            }
            (Field::Stream, value) => {
                self.request.stream = truth(value);
                self.request.stream_is_odd = !matches!(value, Value::Bool(_) | Value::Null);
            }
            (Field::Answers(place), Value::Number(number)) => self.places().answers(place, answers(number)),
            (Field::Echo, _) => self.request.echo = yes,
            (Field::StreamOptions, value) => {
                self.request.stream_options = value != Value::Null;
                self.request.include_usage = None;
                self.request.continuous_usage = false;
            }
            (Field::IncludeUsage, value) => self.request.include_usage = lax(value),
            (Field::ContinuousUsage, value) => self.request.continuous_usage = lax(value) == Some(true),
            (Field::BeamSearch, _) => self.request.beam_search = yes,
            (Field::RequestDetails, _) => self.request.details = yes,
            (Field::BestOf, value) => {
                self.request.best_of =
                    sampling::number(value).and_then(count).is_some_and(|wanted| wanted > 1);
            }
            (Field::AnswerMembers, value) => {
                self.response_fields = (value == Value::List).then(Default::default);
            }
            (Field::AnswerMember, value) => {
                if let Some((elements, named)) = &mut self.response_fields {
                    *elements = elements.saturating_add(1);
                    for (named, count) in named.iter_mut().zip(NATIVE_COUNTS) {
                        *named |= matches!(value, Value::Word(word) if word == count);
                    }
                }
            }
            (Field::AnswerFormat, value) => {
                self.request.plain_transcript =
                    matches!(value, Value::Word(word) if !transcription::may_count_tokens(word));
            }
            (Field::Background, value) => self.request.background = lax(value) == Some(true),
            (Field::Knob(Knob::MaxCompletionTokens), value) => {
                self.max_completion_tokens = sampling::number(value).and_then(count);
                self.request.output_limits.set(LimitName::Completion, value);
            }
            (Field::Limit(name), value) => {
                self.request.sampling.take(Knob::MaxTokens, value);
                self.request.output_limits.set(name, value);
            }
            (Field::PreviousResponse, value) => self.link(value, |links| &mut links.previous_response),
            (Field::Conversation, value) => self.link(value, |links| &mut links.conversation),
            (Field::KvTransfer, _) => self.request.kv_transfer = KvTransfer::default(),
            (Field::RemoteDecode, value) => self.request.kv_transfer.remote_decode = transfer::is_true(value),
            (Field::RemotePrefill, value) => {
                self.request.kv_transfer.remote_prefill = transfer::is_true(value)
            }
            (Field::Knob(Knob::EncodingFormat), value) => {
                self.request.octets_only = value == Value::Word(b"bytes_only");
                self.request.sampling.take(Knob::EncodingFormat, value);
            }
            (Field::Knob(knob), value) => self.request.sampling.take(knob, value),
            (Field::Key(key), value) => {
                self.request.shape.set(key, value != Value::Null);
                if key == Key::Parameters {
                    (self.request.details, self.request.best_of) = (false, false);
                }
                self.places().begin(key);
            }
            (Field::PromptPart(key), value) => self.places().element(key, matches!(value, Value::Number(_))),
            _ => {}
        }
    }
}
