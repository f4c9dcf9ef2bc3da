//! The facts of a request body that the meter needs, read as it passes. Prompts of any size are skipped, never kept.

mod casing;
mod links;
mod other_models;
mod requested_counts;
mod sampling;
mod selected_members;
mod shape;
mod transfer;

use std::sync::{Arc, LazyLock};

use crate::dialect::Dialect;
use crate::dialect::may_count_tokens;
use crate::encoding::Transcoder;
use crate::field::{Field, Fields};
use crate::flag;
use crate::frame::count;
use crate::json::{End, Json, Value};
use crate::limits::CARRY_BYTES;
use crate::name::{self, Name, Tier};

pub use casing::Casing;
use casing::Readings;
pub use links::Links;
pub use other_models::OtherModels;
pub use requested_counts::RequestedCounts;
pub(crate) use requested_counts::{ALL_COUNTS, ALL_LISTS, CountMember, TOP_COUNTS};
pub(crate) use sampling::SamplingParam;
pub use sampling::{ENCODING_FORMATS, OutputType, ReasoningLevel, Sampling};
pub use selected_members::{Member, SelectedMembers};
pub(crate) use shape::Key;
pub use shape::Shape;
pub(crate) use transfer::LimitName;
pub use transfer::{KvTransfer, OutputLimits};

/// The facts of a request. Absent members have their dialect's default.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The model's name, cut to the length of a [`Name`]; `None` if it is absent, or if its last value is not a name.
    pub model: Option<Arc<str>>,
    /// Further names of the model: by another reading of the body, those of other members (`models`, `fallbacks`, …), and the parts of a
    /// name that is a list. Boxed, since few requests have one.
    pub other_models: Option<Box<OtherModels>>,
    /// True if the model's last value is neither a string nor `null`: some servers convert it to a name,
    /// others use their default.
    pub is_model_invalid: bool,
    /// True if a stream is requested, `None` if absent; in any value that servers in Python accept
    /// ([`flag`]).
    pub stream: Option<bool>,
    /// True if that value is neither `true` nor `false`, so that servers may read it differently.
    pub is_stream_invalid: bool,
    /// The requested answers: `n`, by the dialect's name for it, times the number of prompts. This and the
    /// next two consider every dialect's names until [`Request::of`] selects one.
    pub answers: u32,
    /// The number of prompts; above one only for a list.
    pub prompts: u32,
    /// The token ids of the prompt, if it is one list of ids (`prompt` or `input_ids`).
    pub prompt_ids: Option<u64>,
    /// The source of these three; `None` if the request was not read from JSON.
    pub counts: Option<RequestedCounts>,
    /// True if `stream_options` is present, readable or not.
    pub stream_options: bool,
    /// True if usage is requested; `None` if absent.
    pub include_usage: Option<bool>,
    /// True if running usage is requested.
    pub continuous_usage: bool,
    /// True if a gateway would drop or replace the request for usage (LiteLLM), and then estimates the counts.
    pub drops_usage: bool,
    /// True if the prompt is repeated before the answer.
    pub echo: bool,
    /// True for a beam search: all answers come at the end.
    pub beam_search: bool,
    /// True if the answer is generated in the background (Responses, Gemini's interactions).
    pub background: bool,
    /// True if the request asks for an answer that is fetched later, by another name than `background` (xAI's `deferred`).
    pub detached: bool,
    /// True if the request removes a token count from llama.cpp's answer (`response_fields`).
    pub hides_counts: bool,
    /// True if the request to vLLM wants only the bytes of an embedding (`encoding_format`).
    pub is_embedding_bytes_only: bool,
    /// True if a transcript is requested in a format without a token count (`response_format`).
    pub plain_transcript: bool,
    /// True if the request to TGI wants the details of the answer, with its counts (`parameters.details`).
    pub details: bool,
    /// True if the request to TGI wants the best of several sequences (`parameters.best_of`).
    pub best_of: bool,
    /// The members that identify servers that share a path.
    pub shape: Shape,
    /// The sampling parameters.
    pub sampling: Sampling,
    /// The division of prefill and decode between servers.
    pub kv_transfer: KvTransfer,
    /// The limits of output tokens.
    pub output_limits: OutputLimits,
    /// True if the body was one complete JSON value.
    pub whole: bool,
}

impl Request {
    /// The same request to a server of `dialect`: only that dialect's members count prompts and answers.
    #[must_use]
    pub fn of(mut self, dialect: Dialect) -> Self {
        self.count_as(Some(dialect));
        self
    }

    /// The model's name; empty if there is none.
    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// Returns true if every server reads it as a request for a stream.
    pub fn streams_in_any_reading(&self) -> bool {
        self.stream == Some(true) && !self.is_stream_invalid
    }

    /// The answers requested by llama.cpp's names, in any dialect: llama.cpp reads them in OpenAI dialects
    /// without such a member, too. At least one.
    pub fn named_answers(&self) -> u32 {
        self.counts.map_or(1, |counts| counts.named_answers())
    }

    /// Counts prompts and answers by the members of this dialect; `None`: of any dialect.
    pub fn count_as(&mut self, dialect: Option<Dialect>) {
        let Some(counts) = self.counts else { return };
        requested_counts::CountTotals {
            prompts: self.prompts,
            answers: self.answers,
            prompt_ids: self.prompt_ids,
        } = counts.totals(dialect);
    }
}

/// Reads a request body slice by slice.
#[derive(Debug)]
pub struct RequestScanner {
    encoding: Transcoder,
    json: Json,
    facts: Facts,
    casing: Casing,
    /// The facts as a server in Go reads them; present once a member in other letter case differs.
    cased: Option<Box<Facts>>,
    selected: Option<Arc<SelectedMembers>>,
}

#[derive(Clone, Debug, Default)]
struct Facts {
    request: Request,
    max_completion_tokens: Option<u64>,
    tier: Tier,
    /// The first of several models.
    first_model: Option<Arc<str>>,
    /// The values of the configured members, in their order; empty where absent.
    selected_values: Box<[Name]>,
    /// Bit p: the member at index p is one of `metadata`.
    metadata: u32,
    /// The number of elements in `response_fields`, if it is a list, and the counts it names.
    response_fields: Option<(u32, [bool; NATIVE_COUNTS.len()])>,
    /// Boxed, since few requests have one.
    links: Option<Box<Links>>,
}

/// llama.cpp's names of the prompt and output token counts.
const NATIVE_COUNTS: [&[u8]; 2] = [b"tokens_evaluated", b"tokens_predicted"];

static FIELDS: LazyLock<Fields> = LazyLock::new(fields);

fn fields() -> Fields {
    let mut fields = Fields::of(&[FACTS, SAMPLING, FALLBACKS].concat());
    fields.add_cased(FACTS);
    fields
}

const FACTS: &[(&str, Field)] = &[
    ("model", Field::Model),
    // Other members by which gateways and providers choose the model.
    ("model[]", Field::OtherModel),
    ("models", Field::OtherModel),
    ("models[]", Field::OtherModel),
    ("model_id", Field::OtherModel),
    ("modelId", Field::OtherModel),
    ("model_name", Field::OtherModel),
    ("modelUri", Field::OtherModel),
    ("engine", Field::OtherModel),
    ("deployment", Field::OtherModel),
    ("deployment_id", Field::OtherModel),
    ("extra_body.model", Field::OtherModel),
    ("extra_body.models[]", Field::OtherModel),
    ("fallbacks", Field::OtherModel),
    ("fallbacks[]", Field::OtherModel),
    ("fallbacks[].model", Field::OtherModel),
    ("fallback_models[]", Field::OtherModel),
    ("stream", Field::Stream),
    ("n", Field::Answers(CountMember::Top)),
    ("n_cmpl", Field::Answers(CountMember::Completions)),
    ("sampling_params.n", Field::Answers(CountMember::SamplingParams)),
    ("generationConfig.candidateCount", Field::Answers(CountMember::GenerationConfig)),
    ("echo", Field::Echo),
    ("stream_options", Field::StreamOptions),
    ("stream_options.include_usage", Field::IncludeUsage),
    ("stream_options.continuous_usage_stats", Field::ContinuousUsage),
    ("extra_body.stream_options", Field::UsageDropped),
    ("additional_drop_params[]", Field::UsageDropped),
    ("use_beam_search", Field::BeamSearch),
    ("background", Field::Background),
    ("deferred", Field::Detached),
    ("async", Field::Detached),
    ("is_async", Field::Detached),
    ("asynchronous", Field::Detached),
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

/// LiteLLM's fallbacks by model.
const FALLBACKS: &[(&str, Field)] = &[
    ("fallbacks[].*", Field::OtherModel),
    ("fallbacks[].*[]", Field::OtherModel),
    ("context_window_fallbacks[].*[]", Field::OtherModel),
    ("content_policy_fallbacks[].*[]", Field::OtherModel),
];

/// The sampling parameters of all dialects. OpenAI, Anthropic, llama.cpp, LMDeploy and Triton have them at the top
/// level, Cohere too, as `k` and `p`; others in objects: TGI and Triton (`parameters`), SGLang and vLLM's tokens in,
/// tokens out (`sampling_params`), Ollama (`options`), and Gemini (of interactions: `generation_config`). Then the
/// requested form of the answer: the words of Chat and Responses, Anthropic's effort, Ollama's `think` and `format`,
/// Gemini's type, and those of embeddings.
const SAMPLING: &[(&str, Field)] = &[
    ("previous_response_id", Field::PreviousResponse),
    ("previous_interaction_id", Field::PreviousResponse),
    ("conversation", Field::Conversation),
    ("conversation.id", Field::Conversation),
    ("prompt.id", Field::PromptId),
    ("prompt.version", Field::PromptVersion),
    ("max_completion_tokens", Field::SamplingParam(SamplingParam::MaxCompletionTokens)),
    ("max_tokens", Field::Limit(LimitName::Plain)),
    ("max_output_tokens", Field::Limit(LimitName::Output)),
    ("max_new_tokens", Field::Limit(LimitName::Foreign)),
    ("n_predict", Field::Limit(LimitName::Foreign)),
    ("num_predict", Field::Limit(LimitName::Foreign)),
    ("temperature", Field::SamplingParam(SamplingParam::Temperature)),
    ("top_p", Field::SamplingParam(SamplingParam::TopP)),
    ("p", Field::SamplingParam(SamplingParam::TopP)),
    ("top_k", Field::SamplingParam(SamplingParam::TopK)),
    ("k", Field::SamplingParam(SamplingParam::TopK)),
    ("seed", Field::SamplingParam(SamplingParam::Seed)),
    ("frequency_penalty", Field::SamplingParam(SamplingParam::FrequencyPenalty)),
    ("presence_penalty", Field::SamplingParam(SamplingParam::PresencePenalty)),
    ("parameters.max_new_tokens", Field::Limit(LimitName::Foreign)),
    ("parameters.max_tokens", Field::Limit(LimitName::Foreign)),
    ("parameters.temperature", Field::SamplingParam(SamplingParam::Temperature)),
    ("parameters.top_p", Field::SamplingParam(SamplingParam::TopP)),
    ("parameters.top_k", Field::SamplingParam(SamplingParam::TopK)),
    ("parameters.seed", Field::SamplingParam(SamplingParam::Seed)),
    ("parameters.frequency_penalty", Field::SamplingParam(SamplingParam::FrequencyPenalty)),
    ("parameters.presence_penalty", Field::SamplingParam(SamplingParam::PresencePenalty)),
    ("sampling_params.max_new_tokens", Field::Limit(LimitName::Foreign)),
    ("sampling_params.max_tokens", Field::Limit(LimitName::Foreign)),
    ("sampling_params.temperature", Field::SamplingParam(SamplingParam::Temperature)),
    ("sampling_params.top_p", Field::SamplingParam(SamplingParam::TopP)),
    ("sampling_params.top_k", Field::SamplingParam(SamplingParam::TopK)),
    ("sampling_params.seed", Field::SamplingParam(SamplingParam::Seed)),
    ("sampling_params.sampling_seed", Field::SamplingParam(SamplingParam::Seed)),
    ("sampling_params.frequency_penalty", Field::SamplingParam(SamplingParam::FrequencyPenalty)),
    ("sampling_params.presence_penalty", Field::SamplingParam(SamplingParam::PresencePenalty)),
    ("options.num_predict", Field::Limit(LimitName::Foreign)),
    ("options.temperature", Field::SamplingParam(SamplingParam::Temperature)),
    ("options.top_p", Field::SamplingParam(SamplingParam::TopP)),
    ("options.top_k", Field::SamplingParam(SamplingParam::TopK)),
    ("options.seed", Field::SamplingParam(SamplingParam::Seed)),
    ("options.frequency_penalty", Field::SamplingParam(SamplingParam::FrequencyPenalty)),
    ("options.presence_penalty", Field::SamplingParam(SamplingParam::PresencePenalty)),
    ("generationConfig.maxOutputTokens", Field::Limit(LimitName::Foreign)),
    ("generationConfig.temperature", Field::SamplingParam(SamplingParam::Temperature)),
    ("generationConfig.topP", Field::SamplingParam(SamplingParam::TopP)),
    ("generationConfig.topK", Field::SamplingParam(SamplingParam::TopK)),
    ("generationConfig.seed", Field::SamplingParam(SamplingParam::Seed)),
    ("generationConfig.frequencyPenalty", Field::SamplingParam(SamplingParam::FrequencyPenalty)),
    ("generationConfig.presencePenalty", Field::SamplingParam(SamplingParam::PresencePenalty)),
    ("generation_config.max_output_tokens", Field::Limit(LimitName::Foreign)),
    ("generation_config.temperature", Field::SamplingParam(SamplingParam::Temperature)),
    ("generation_config.top_p", Field::SamplingParam(SamplingParam::TopP)),
    ("generation_config.seed", Field::SamplingParam(SamplingParam::Seed)),
    ("reasoning_effort", Field::SamplingParam(SamplingParam::ReasoningLevel)),
    ("reasoning.effort", Field::SamplingParam(SamplingParam::ReasoningLevel)),
    ("output_config.effort", Field::SamplingParam(SamplingParam::ReasoningLevel)),
    ("think", Field::SamplingParam(SamplingParam::ReasoningLevel)),
    ("response_format.type", Field::SamplingParam(SamplingParam::OutputType)),
    ("text.format.type", Field::SamplingParam(SamplingParam::OutputType)),
    ("format", Field::SamplingParam(SamplingParam::OutputType)),
    ("generationConfig.responseMimeType", Field::SamplingParam(SamplingParam::OutputType)),
    ("modalities[]", Field::SamplingParam(SamplingParam::Modality)),
    ("dimensions", Field::SamplingParam(SamplingParam::Dimensions)),
    ("output_dimension", Field::SamplingParam(SamplingParam::Dimensions)),
    ("encoding_format", Field::SamplingParam(SamplingParam::EncodingFormat)),
    ("embedding_types[]", Field::SamplingParam(SamplingParam::EmbeddingType)),
];

impl RequestScanner {
    /// A scanner for one request body to an unknown server.
    pub fn new() -> Self {
        Self {
            encoding: Transcoder::new(),
            json: Json::new(),
            facts: Facts::default(),
            casing: Casing::default(),
            cased: None,
            selected: None,
        }
    }

    /// The same, with the values of the `selected` members.
    pub fn selecting(selected: Arc<SelectedMembers>) -> Self {
        let facts = Facts {
            selected_values: selected.empty_values(),
            metadata: selected.metadata(),
            ..Facts::default()
        };
        Self { facts, selected: Some(selected), ..Self::new() }
    }

    /// Sets how the server reads the names of members. Must be called before the first slice.
    pub fn set_casing(&mut self, casing: Casing) {
        self.casing = casing;
    }

    /// Reads the next slice.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { encoding, json, facts, casing, cased, selected } = self;
        let fields = selected.as_deref().map_or(&*FIELDS, |selected| &selected.fields);
        let mut readings = Readings { fields, casing: *casing, exact: facts, cased };
        if encoding.is_utf8() {
            json.feed(fields, bytes, 0, &mut readings);
        } else {
            encoding.feed(bytes, |utf8| _ = json.feed(fields, utf8, 0, &mut readings));
        }
    }

    /// Ends the body. Returns the request.
    pub fn end(&mut self) -> Request {
        let Self { encoding, json, facts, casing, cased, selected } = self;
        let fields = selected.as_deref().map_or(&*FIELDS, |selected| &selected.fields);
        let mut readings = Readings { fields, casing: *casing, exact: facts, cased };
        if !encoding.is_utf8() {
            encoding.end(|utf8| _ = json.feed(fields, utf8, 0, &mut readings));
        }
        let end = match json.end(fields, &mut readings) {
            _ if encoding.is_broken() => End::Broken,
            end => end,
        };
        let mut request = casing.request(facts, cased.as_deref(), end);
        request.count_as(None);
        request
    }

    /// The requested service tier; empty if it is absent or too long.
    pub fn service_tier(&self) -> &Tier {
        &self.facts.tier
    }

    /// The ids of what the server keeps, in the Responses API.
    pub fn links(&self) -> Option<&Links> {
        self.facts.links.as_deref()
    }

    /// The values of the configured members, in the order of [`SelectedMembers::members`]; empty where one is absent,
    /// no string, or longer than a name.
    pub fn selected_values(&self) -> &[Name] {
        &self.facts.selected_values
    }

    /// The model named so far.
    pub fn model(&self) -> Option<&Arc<str>> {
        self.facts.request.model.as_ref()
    }
}

impl Default for RequestScanner {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of answers as llama.cpp reads it: the integer part of a fraction, and the low 32 bits of an
/// integer, so that −4294967292 is 4.
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

/// A flag, as servers in Python read it.
fn lax(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(flag),
        Value::Word(word) => flag::word(word),
        Value::Number(_) => flag::number(sampling::number(value)?),
        _ => None,
    }
}

/// The flag `stream`, as the most lenient server reads it. A list or an object may be empty, but is treated
/// as not empty.
fn truth(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(flag),
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

    fn other_models(&mut self) -> &mut OtherModels {
        self.request.other_models.get_or_insert_default()
    }

    fn counts(&mut self) -> &mut RequestedCounts {
        self.request.counts.get_or_insert_default()
    }

    /// Returns the request that was read, for this end of the body.
    fn request(&self, end: End) -> Request {
        Request {
            counts: Some(self.request.counts.unwrap_or_default()),
            sampling: Sampling {
                max_tokens: self.max_completion_tokens.or(self.request.sampling.max_tokens),
                ..self.request.sampling
            },
            // The server may parse this body differently, so its model is unknown.
            model: self.request.model.clone().filter(|_| end != End::Broken),
            // An empty list or another value requests all members.
            hides_counts: self
                .response_fields
                .is_some_and(|(elements, named)| elements > 0 && named != [true; 2]),
            whole: end == End::Whole,
            ..self.request.clone()
        }
    }

    fn take(&mut self, field: Field, value: Value<'_>) {
        let yes = value == Value::Bool(true);
        match (field, value) {
            // The last of two members counts, as in the servers' parsers, even if it is no name: then the
            // server uses its default, not a cheap model that was named first.
            (Field::Model, value) => {
                let model = match value {
                    Value::Word(word) => {
                        if other_models::is_list(word) {
                            self.other_models().add_parts(word);
                        }
                        if word.len() >= CARRY_BYTES {
                            self.other_models().mark_incomplete();
                        }
                        name::shared(Name::cut_str(word))
                    }
                    _ => None,
                };
                let earlier = std::mem::replace(&mut self.request.model, model);
                if self.first_model.is_none() {
                    self.first_model = earlier;
                }
                self.request.is_model_invalid = !matches!(value, Value::Word(_) | Value::Null);
            }
            (Field::OtherModel, Value::Word(word)) => self.other_models().add(word),
            (Field::ServiceTier, Value::Word(word)) => self.tier = Tier::of(word).unwrap_or_default(),
            (Field::ServiceTier, _) => self.tier = Tier::default(),
            (Field::Selected(place), value) => {
                if let Some(slot) = self.selected_values.get_mut(usize::from(place)) {
                    *slot = match value {
                        Value::Word(word) => Name::whole(word).unwrap_or_default(),
                        _ => Name::default(),
                    };
                }
            }
            (Field::Metadata, _) => {
                // The last of two objects counts.
                let values = self.selected_values.iter_mut().enumerate();
                let metadata = self.metadata;
                values
                    .filter(|(place, _)| metadata >> place & 1 == 1)
                    .for_each(|(_, slot)| *slot = Name::default());
            }
            (Field::Stream, value) => {
                self.request.stream = truth(value);
                self.request.is_stream_invalid = !matches!(value, Value::Bool(_) | Value::Null);
            }
            (Field::Answers(member), Value::Number(number)) => self.counts().answers(member, answers(number)),
            (Field::Echo, _) => self.request.echo = yes,
            (Field::StreamOptions, value) => {
                self.request.stream_options = value != Value::Null;
                self.request.include_usage = None;
                self.request.continuous_usage = false;
            }
            (Field::IncludeUsage, value) => self.request.include_usage = lax(value),
            (Field::ContinuousUsage, value) => self.request.continuous_usage = lax(value) == Some(true),
            (
                Field::UsageDropped,
                Value::Object | Value::Word(b"stream_options" | b"stream_options.include_usage"),
            ) => self.request.drops_usage = true,
            (Field::BeamSearch, _) => self.request.beam_search = yes,
            (Field::RequestDetails, _) => self.request.details = yes,
            (Field::BestOf, value) => {
                self.request.best_of =
                    sampling::number(value).and_then(count).is_some_and(|selected| selected > 1);
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
                self.request.plain_transcript = matches!(value, Value::Word(word) if !may_count_tokens(word));
            }
            // Any of several names counts.
            (Field::Detached, value) => self.request.detached |= lax(value) == Some(true),
            (Field::Background, value) => self.request.background = lax(value) == Some(true),
            (Field::SamplingParam(SamplingParam::MaxCompletionTokens), value) => {
                self.max_completion_tokens = sampling::number(value).and_then(count);
                self.request.output_limits.set(LimitName::Completion, value);
            }
            (Field::Limit(name), value) => {
                self.request.sampling.take(SamplingParam::MaxTokens, value);
                self.request.output_limits.set(name, value);
            }
            (Field::PreviousResponse, value) => self.link(value, |links| &mut links.previous_response),
            (Field::Conversation, value) => self.link(value, |links| &mut links.conversation),
            (Field::PromptId, value) => self.link(value, |links| &mut links.prompt),
            (Field::PromptVersion, value) => self.link(value, |links| &mut links.prompt_version),
            (Field::KvTransfer, _) => self.request.kv_transfer = KvTransfer::default(),
            (Field::RemoteDecode, value) => self.request.kv_transfer.remote_decode = transfer::is_true(value),
            (Field::RemotePrefill, value) => {
                self.request.kv_transfer.remote_prefill = transfer::is_true(value)
            }
            (Field::SamplingParam(SamplingParam::EncodingFormat), value) => {
                self.request.is_embedding_bytes_only = value == Value::Word(b"bytes_only");
                self.request.sampling.take(SamplingParam::EncodingFormat, value);
            }
            (Field::SamplingParam(param), value) => self.request.sampling.take(param, value),
            (Field::Key(key), value) => {
                self.request.shape.set(key, value != Value::Null);
                match (key, &mut self.links) {
                    (Key::Parameters, _) => (self.request.details, self.request.best_of) = (false, false),
                    (Key::Prompt, Some(links)) => (links.prompt, links.prompt_version) = Default::default(),
                    _ => {}
                }
                self.counts().begin(key);
            }
            (Field::PromptPart(key), value) => self.counts().element(key, matches!(value, Value::Number(_))),
            _ => {}
        }
    }
}
