//! The values of a record by number, as C asks for them, and by name, as JSON has them.

use std::borrow::Cow;

use meter::{Provenance, Record};
use price::Charge;

/// A number of a record. Names that end in `_NS` are nanoseconds. A time "to" an event counts from the complete
/// request. "Streams only": absent or 0 if the response is not a stream.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The HTTP status of the response; 0 without a response.
    Status = 0,
    /// All prompt tokens, cached ones included. Absent if nothing counted them.
    InputTokens = 1,
    /// All generated tokens. Absent if nothing counted them.
    OutputTokens = 2,
    /// The start of the request, since 1970: the `unix_ns` of the host.
    StartedUnixNs = 3,
    /// The end of the exchange, since 1970: the start plus `UPLOAD` and `DURATION`.
    EndedUnixNs = 4,
    /// From the start of the request until it was complete.
    UploadNs = 5,
    /// From the complete request to the end.
    DurationNs = 6,
    /// To the first byte of the response's body.
    FirstByteNs = 7,
    /// To the first event that is not a keep-alive. Streams only.
    FirstChunkNs = 8,
    /// To the first token (TTFT), of the body or of the engine's steps. Streams only.
    FirstTokenNs = 9,
    /// To the first visible text. Streams only.
    FirstVisibleNs = 10,
    /// To the first part of a tool call. Streams only.
    FirstToolNs = 11,
    /// From the first to the last token, summed over the first eight answers. Streams only.
    GenerationNs = 12,
    /// The tokens produced in `GENERATION_NS`: the output without the first token of each answer. Streams only.
    GenerationTokens = 13,
    /// The time per output token: (duration − TTFT) ÷ (output − 1). Streams only.
    PerOutputTokenNs = 14,
    /// The longest gap between two events, or steps of the engine, with tokens. Streams only.
    LongestGapNs = 15,
    /// The number of gaps above `stall_ns` of the meter. Streams only.
    Stalls = 16,
    /// The total time of those gaps. Streams only.
    StalledNs = 17,
    /// The time that `tm_exchange_client_wait` added.
    ClientWaitNs = 18,
    /// The number of requested answers.
    Answers = 19,
    /// The number of answers that arrived.
    Choices = 20,
    /// The characters of visible text.
    VisibleChars = 21,
    /// The number of counts above `max_tokens` of the meter, which were rejected.
    UsageRejected = 22,
    /// Cached prompt tokens in excess of the prompt. No count includes them.
    CachedExcess = 23,
    /// The time in the server's queue, as its response reports it.
    ServerQueueNs = 24,
    /// The time of the prefill, as the response reports it.
    ServerPrefillNs = 25,
    /// The time of decoding, as the response reports it.
    ServerDecodeNs = 26,
}

/// A rate of a record.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateKind {
    /// (output − 1) ÷ (last token − first token), in tokens per second: the speed that a user sees. Streams only.
    Output = 0,
    /// (input − cached) ÷ TTFT, in tokens per second. Streams only.
    Input = 1,
    /// Visible characters per second, between the first and the last of them. Streams only.
    VisibleChars = 2,
    /// The mean number of exchanges of the meter in flight during this one.
    Concurrency = 3,
}

/// A text of a record.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// The id of the exchange, a UUID of version 7.
    Id = 0,
    /// The tenant; `default` if no rule identifies one.
    Tenant = 1,
    /// The API key or account of the request: a name of the rules or of the host, or a keyed hash.
    Principal = 2,
    /// The end user that the request names: a keyed hash, unless the rules have `hash_end_users: false`.
    Consumer = 3,
    /// The upstream's name, as given to the meter.
    Upstream = 4,
    /// The provider's name, as given to the meter.
    Provider = 5,
    /// The JSON shape of the endpoint: `anthropic`, `bedrock_converse`, `cohere`, `embeddings`, `gemini`,
    /// `gemini_interactions`, `llamacpp_completion`, `lmdeploy_generate`, `ollama_chat`, `ollama_generate`,
    /// `openai_chat`, `openai_completions`, `openai_responses`, `realtime`, `rerank`, `sglang_generate`, `tgi`,
    /// `transcription`, `triton_generate`, `vllm_generate` or `unknown`.
    Dialect = 6,
    /// The model of the request, else of the response, else `_unknown`.
    Model = 7,
    /// The model of the response.
    ResponseModel = 8,
    /// The id of the response.
    ResponseId = 9,
    /// The id that the client gave the request: `X-Request-Id`, else `Idempotency-Key`.
    RequestId = 10,
    /// The service tier of the response, else of the request.
    ServiceTier = 11,
    /// The ending: `complete`; `length` (the limit of the output was reached); `client_abort` (the client left before the
    /// end); `upstream_cut` (the response ended before its end mark); `error_in_band` (an error under the status 200);
    /// `error_status` (a status of 400 or above); `no_output` (a clean end without output); `detached` (accepted
    /// work whose result is fetched later); or `proxy_error` (`TM_CLOSE_LOCAL`).
    Ending = 12,
    /// The finish reason of the first answer by the OpenTelemetry convention: `stop`, `length`, `tool_call`,
    /// `content_filter`, `error` or `other`.
    FinishReason = 13,
    /// The cost as an exact decimal, as `0.0125`. Absent without a price.
    Cost = 14,
    /// The currency of the cost, three letters. Absent without a price.
    Currency = 15,
    /// The version of the price book by which the exchange was charged. Absent without a price.
    PriceVersion = 16,
    /// The reason why the exchange has no price: `no_book`, `model`, `token_type`, `uncounted` or `overflow`. Absent
    /// with a price.
    Unpriced = 17,
}

scan::listed_enum! {
    impl Number {
        Status = "status",
        InputTokens = "input_tokens",
        OutputTokens = "output_tokens",
        StartedUnixNs = "started_unix_ns",
        EndedUnixNs = "ended_unix_ns",
        UploadNs = "upload_ns",
        DurationNs = "duration_ns",
        FirstByteNs = "first_byte_ns",
        FirstChunkNs = "first_chunk_ns",
        FirstTokenNs = "first_token_ns",
        FirstVisibleNs = "first_visible_ns",
        FirstToolNs = "first_tool_ns",
        GenerationNs = "generation_ns",
        GenerationTokens = "generation_tokens",
        PerOutputTokenNs = "per_output_token_ns",
        LongestGapNs = "longest_gap_ns",
        Stalls = "stalls",
        StalledNs = "stalled_ns",
        ClientWaitNs = "client_wait_ns",
        Answers = "answers",
        Choices = "choices",
        VisibleChars = "visible_chars",
        UsageRejected = "usage_rejected",
        CachedExcess = "cached_excess",
        ServerQueueNs = "server_queue_ns",
        ServerPrefillNs = "server_prefill_ns",
        ServerDecodeNs = "server_decode_ns",
    }
    /// The name in JSON.
    pub(crate) fn name(self);
}

impl Number {
    /// The value with this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u32 == number)
    }

    /// The value in a record.
    pub(crate) fn in_record(self, record: &Record) -> Option<u64> {
        let (timing, tokens) = (&record.timing, &record.tokens);
        let known = |provenance, count| (provenance != Provenance::None).then_some(count);
        match self {
            Self::Status => Some(record.status.into()),
            Self::InputTokens => known(tokens.input_provenance, tokens.input()),
            Self::OutputTokens => known(tokens.output_provenance, tokens.output()),
            Self::StartedUnixNs => Some(record.identity.started_unix_ns),
            Self::EndedUnixNs => Some(record.ended_unix_ns()),
            Self::UploadNs => Some(timing.upload_ns),
            Self::DurationNs => Some(timing.duration_ns),
            Self::FirstByteNs => timing.first_byte_ns,
            Self::FirstChunkNs => timing.first_chunk_ns,
            Self::FirstTokenNs => timing.first_token_ns,
            Self::FirstVisibleNs => timing.first_visible_ns,
            Self::FirstToolNs => timing.first_tool_ns,
            Self::GenerationNs => Some(timing.generation_ns),
            Self::GenerationTokens => Some(timing.generation_tokens),
            Self::PerOutputTokenNs => timing.per_output_token_ns,
            Self::LongestGapNs => Some(timing.longest_gap_ns),
            Self::Stalls => Some(timing.stalls.into()),
            Self::StalledNs => Some(timing.stalled_ns),
            Self::ClientWaitNs => Some(timing.client_wait_ns),
            Self::Answers => Some(record.answers.into()),
            Self::Choices => Some(record.choices.into()),
            Self::VisibleChars => Some(record.visible_chars),
            Self::UsageRejected => Some(record.usage_rejected.into()),
            Self::CachedExcess => Some(record.cached_excess),
            Self::ServerQueueNs => timing.server().queue_ns,
            Self::ServerPrefillNs => timing.server().prefill_ns,
            Self::ServerDecodeNs => timing.server().decode_ns,
        }
    }
}

scan::listed_enum! {
    impl RateKind {
        Output = "output_rate",
        Input = "input_rate",
        VisibleChars = "visible_chars_rate",
        Concurrency = "concurrency",
    }
    /// The name in JSON.
    pub(crate) fn name(self);
}

impl RateKind {
    /// The value with this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u32 == number)
    }

    /// The value in a record.
    pub(crate) fn in_record(self, record: &Record) -> Option<f64> {
        let timing = &record.timing;
        match self {
            Self::Output => timing.output_rate,
            Self::Input => timing.input_rate,
            Self::VisibleChars => timing.visible_chars_rate,
            Self::Concurrency => Some(timing.concurrency),
        }
    }
}

scan::listed_enum! {
    impl TextKind {
        Id = "id",
        Tenant = "tenant",
        Principal = "principal",
        Consumer = "consumer",
        Upstream = "upstream",
        Provider = "provider",
        Dialect = "dialect",
        Model = "model",
        ResponseModel = "response_model",
        ResponseId = "response_id",
        RequestId = "request_id",
        ServiceTier = "service_tier",
        Ending = "ending",
        FinishReason = "finish_reason",
        Cost = "cost",
        Currency = "currency",
        PriceVersion = "price_version",
        Unpriced = "unpriced",
    }
    /// The name in JSON.
    pub(crate) fn name(self);
}

impl TextKind {
    /// The value with this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u32 == number)
    }

    /// The value in a record with this charge.
    pub(crate) fn in_record<'a>(self, record: &'a Record, charge: &'a Charge) -> Option<Cow<'a, str>> {
        let identity = &record.identity;
        let rate = match charge {
            Charge::Priced { rate, .. } => Some(rate),
            Charge::Unpriced(_) => None,
        };
        let text = match self {
            Self::Id => return Some(identity.exchange.to_string().into()),
            Self::Cost => {
                return charge.decimal().map(Into::into);
            }
            Self::Tenant => &*identity.tenant,
            Self::Principal => identity.principal.as_deref()?,
            Self::Consumer => identity.consumer.as_deref()?,
            Self::Upstream => &identity.upstream,
            Self::Provider => &identity.provider,
            Self::Dialect => identity.dialect.name(),
            Self::Model => &identity.model,
            Self::ResponseModel => identity.response_model.as_deref()?,
            Self::ResponseId => identity.response_id.as_deref()?,
            Self::RequestId => identity.request_id.as_deref()?,
            Self::ServiceTier => identity.service_tier.as_deref()?,
            Self::Ending => record.ending.name(),
            Self::FinishReason => record.finishes[0]?.name(),
            Self::Currency => rate?.currency.code(),
            Self::PriceVersion => &rate?.version,
            Self::Unpriced => match charge {
                Charge::Priced { .. } => return None,
                Charge::Unpriced(reason) => reason.name(),
            },
        };
        Some(text.into())
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
