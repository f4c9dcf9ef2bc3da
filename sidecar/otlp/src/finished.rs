//! The attributes of a finished exchange for its spans and its log record. Invariants: no text of a prompt or a
//! response; the convention's usage names contain only counts, never estimates, and always with their provenance.

use std::sync::Arc;

use meter::{Gaps, Provenance, Record, TokenType};
use metrics::Upstream;
use scan::{Dialect, ENCODING_FORMATS, Finish, Links, OutputType, ReasoningLevel, Sampling};

use crate::attributes::Attributes;
use crate::charge::Charge;
use crate::limits::MODEL_MAX_BYTES;
use crate::text::cut;

/// A finished exchange with its energy and its charge.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exchange.
    pub record: Arc<Record>,
    /// Its share of the GPUs' work, if known.
    pub energy: Option<Energy>,
    /// Its charge, if there is a price book.
    pub charge: Option<Charge>,
}

/// An exchange's share of the GPUs' work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Nanojoules, if the devices report energy.
    pub joules_nano: Option<u64>,
    /// GPU time, nanoseconds.
    pub gpu_ns: u64,
    /// Mean utilisation of the GPUs during the exchange, 0 to 1, if they report it.
    pub utilization: Option<f64>,
}

/// Returns the model, if the request named one.
pub(crate) fn model(record: &Record) -> Option<&str> {
    let model = cut(&record.identity.model, MODEL_MAX_BYTES);
    (!model.is_empty() && model != metrics::UNKNOWN).then_some(model)
}

/// Adds the attributes of the request and its target.
pub(crate) fn request(record: &Record, upstreams: &[Upstream], list: &mut Attributes) {
    let identity = &record.identity;
    list.text("gen_ai.operation.name", identity.dialect.operation());
    list.text("gen_ai.provider.name", &identity.provider);
    if let Some(model) = model(record) {
        list.text("gen_ai.request.model", model);
    }
    if let Some(upstream) = upstreams.iter().find(|upstream| upstream.name == identity.upstream) {
        list.text("server.address", &upstream.host);
        if let Some(port) = upstream.port {
            list.count("server.port", port.into());
        }
    }
    if record.answers > 1 {
        list.count("gen_ai.request.choice.count", record.answers.into());
    }
    if record.streamed {
        list.truth("gen_ai.request.stream", true);
    }
    if let Some(links) = &identity.links {
        self::links(links, list);
    }
    openai(record, list);
    let sampling = &record.sampling;
    if let Some(max_tokens) = sampling.max_tokens {
        list.count("gen_ai.request.max_tokens", max_tokens);
    }
    if let Some(seed) = sampling.seed {
        list.int("gen_ai.request.seed", seed);
    }
    output_form(sampling, list);
    // The convention defines it as an integer.
    if let Some(top_k) = sampling.top_k.filter(|top_k| top_k.fract() == 0.0) {
        list.int("gen_ai.request.top_k", top_k as i64);
    }
    let numbers = [
        ("gen_ai.request.temperature", sampling.temperature),
        ("gen_ai.request.top_p", sampling.top_p),
        ("gen_ai.request.frequency_penalty", sampling.frequency_penalty),
        ("gen_ai.request.presence_penalty", sampling.presence_penalty),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            list.number(name, number);
        }
    }
}

/// Adds the ids in the request of what the server keeps.
fn links(links: &Links, list: &mut Attributes) {
    let has_prompt = !links.prompt.is_empty();
    let version = Some(links.prompt_version).filter(|_| has_prompt).unwrap_or_default();
    for (name, id) in [
        ("gen_ai.request.previous_response.id", &links.previous_response),
        ("gen_ai.conversation.id", &links.conversation),
        ("gen_ai.prompt.name", &links.prompt),
        ("gen_ai.prompt.version", &version),
    ] {
        if !id.is_empty() {
            list.text(name, id.as_str());
        }
    }
}

/// Adds the attributes that the convention has for OpenAI only.
fn openai(record: &Record, list: &mut Attributes) {
    let identity = &record.identity;
    if &*identity.provider != "openai" {
        return;
    }
    match identity.dialect {
        Dialect::OpenaiChat => list.text("openai.api.type", "chat_completions"),
        Dialect::OpenaiResponses => list.text("openai.api.type", "responses"),
        _ => {}
    }
    if let Some(tier) = identity.requested_tier.as_deref().filter(|tier| *tier != "auto") {
        list.text("openai.request.service_tier", tier);
    }
    if let Some(tier) = identity.service_tier.as_deref().filter(|_| identity.is_tier_reported) {
        list.text("openai.response.service_tier", tier);
    }
}

/// Adds the requested form of the output.
fn output_form(sampling: &Sampling, list: &mut Attributes) {
    let words = [
        ("gen_ai.output.type", sampling.output_type.map(OutputType::name)),
        ("gen_ai.request.reasoning.level", sampling.reasoning_level.map(ReasoningLevel::name)),
    ];
    for (name, word) in words {
        if let Some(word) = word {
            list.text(name, word);
        }
    }
    if let Some(dimensions) = sampling.dimensions {
        list.count("gen_ai.embeddings.dimension.count", dimensions.into());
    }
    if sampling.encoding_formats.contains(&true) {
        let formats = ENCODING_FORMATS.into_iter().zip(sampling.encoding_formats);
        let requested = formats.filter_map(|(format, is_requested)| is_requested.then_some(format));
        list.texts("gen_ai.request.encoding_formats", requested);
    }
}

/// Adds the attributes of the response.
pub(crate) fn outcome(record: &Record, list: &mut Attributes) {
    if let Some(error) = record.error_type() {
        list.text("error.type", &error.to_string());
    }
    if let Some(id) = &record.identity.response_id {
        list.text("gen_ai.response.id", id);
    }
    if let Some(model) = &record.identity.response_model {
        list.text("gen_ai.response.model", cut(model, MODEL_MAX_BYTES));
    }
    if record.is_compacted {
        list.truth("gen_ai.conversation.compacted", true);
    }
    finish_reasons(record, list);
    list.seconds("gen_ai.response.time_to_first_chunk", record.timing.first_chunk_ns);
    usage(record, list);
}

/// Adds one finish reason for each answer; `error` for an answer without one. The attribute is absent if no answer
/// began, or if a successful exchange has no finish reasons, as in some dialects.
fn finish_reasons(record: &Record, list: &mut Attributes) {
    let answers = &record.finishes[..(record.choices as usize).min(record.finishes.len())];
    let has_none = answers.iter().all(Option::is_none) && record.ending.is_success();
    if record.identity.dialect.generates() && !answers.is_empty() && !has_none {
        list.texts(
            "gen_ai.response.finish_reasons",
            answers.iter().map(|finish| finish.map_or("error", Finish::name)),
        );
    }
}

/// Returns true for a count, false for an estimate.
fn is_counted(provenance: Provenance) -> bool {
    !matches!(provenance, Provenance::Frames | Provenance::None)
}

fn usage(record: &Record, list: &mut Attributes) {
    let tokens = &record.tokens;
    list.text("tokenmeter.usage.input.provenance", tokens.input_provenance.name());
    list.text("tokenmeter.usage.output.provenance", tokens.output_provenance.name());
    if is_counted(tokens.input_provenance) {
        list.count("gen_ai.usage.input_tokens", tokens.input());
        some(tokens.cached(), "gen_ai.usage.cache_read.input_tokens", list);
        let cached_text = tokens.cached_text();
        some(cached_text.unwrap_or(0), "gen_ai.usage.text.cache_read.input_tokens", list);
        for (kind, name) in [
            (TokenType::InputCachedAudio, "gen_ai.usage.audio.cache_read.input_tokens"),
            (TokenType::InputCachedImage, "gen_ai.usage.image.cache_read.input_tokens"),
        ] {
            subset(record, &[kind], name, list);
        }
        let written = [TokenType::InputCacheWrite, TokenType::InputCacheWrite1h];
        subset(record, &written, "gen_ai.usage.cache_write.input_tokens", list);
        let audio = [TokenType::InputAudio, TokenType::InputCachedAudio];
        subset(record, &audio, "gen_ai.usage.audio.input_tokens", list);
        let image = [TokenType::InputImage, TokenType::InputCachedImage];
        subset(record, &image, "gen_ai.usage.image.input_tokens", list);
        subset(record, &[TokenType::InputVideo], "tokenmeter.usage.video.input_tokens", list);
        // Cached tokens without a modality, and those written to a cache, may be of text or not.
        let has_unknown = cached_text.is_none() && tokens.of(TokenType::InputCached) > 0;
        if !has_unknown && sum(record, &written) == 0 {
            let named = sum(record, &audio) + sum(record, &image) + tokens.of(TokenType::InputVideo);
            text(tokens.input(), named, "gen_ai.usage.text.input_tokens", list);
        }
    }
    if is_counted(tokens.output_provenance) {
        list.count("gen_ai.usage.output_tokens", tokens.output());
        subset(record, &[TokenType::OutputReasoning], "gen_ai.usage.reasoning.output_tokens", list);
        subset(record, &[TokenType::OutputAudio], "gen_ai.usage.audio.output_tokens", list);
        subset(record, &[TokenType::OutputImage], "gen_ai.usage.image.output_tokens", list);
        subset(record, &[TokenType::OutputVideo], "tokenmeter.usage.video.output_tokens", list);
        let named = [TokenType::OutputAudio, TokenType::OutputImage, TokenType::OutputVideo];
        text(tokens.output(), sum(record, &named), "gen_ai.usage.text.output_tokens", list);
    } else if tokens.output_provenance == Provenance::Frames {
        list.count("tokenmeter.estimate.output_tokens", tokens.output());
    }
}

/// Returns the tokens of several types together.
fn sum(record: &Record, kinds: &[TokenType]) -> u64 {
    kinds.iter().fold(0, |sum, kind| sum.saturating_add(record.tokens.of(*kind)))
}

/// Adds the tokens of text, if the server reported other modalities.
fn text(all: u64, named: u64, name: &str, list: &mut Attributes) {
    if named > 0 && all > named {
        list.count(name, all - named);
    }
}

/// Adds the tokens of these types, if there are any.
fn subset(record: &Record, kinds: &[TokenType], name: &str, list: &mut Attributes) {
    some(sum(record, kinds), name, list);
}

/// Adds a count above zero.
fn some(count: u64, name: &str, list: &mut Attributes) {
    if count > 0 {
        list.count(name, count);
    }
}

/// Adds tokenmeter's own attributes.
pub(crate) fn own(finished: &Finished, list: &mut Attributes) {
    let record = &*finished.record;
    let (identity, timing) = (&record.identity, &record.timing);
    list.text("tokenmeter.exchange.id", &identity.exchange.to_string());
    list.text("tokenmeter.tenant", &identity.tenant);
    for (name, text) in [
        ("tokenmeter.principal", &identity.principal),
        ("tokenmeter.consumer", &identity.consumer),
        ("tokenmeter.service_tier", &identity.service_tier),
        ("tokenmeter.request.id", &identity.request_id),
    ] {
        if let Some(text) = text {
            list.text(name, text);
        }
    }
    list.text("tokenmeter.upstream", &identity.upstream);
    if identity.role.is_leg() {
        list.text("tokenmeter.role", identity.role.name());
    }
    if !identity.role.is_counted() {
        list.count("tokenmeter.leg.prompt_tokens", record.tokens.input());
    }
    if record.upstream_attempts > 1 {
        list.count("tokenmeter.upstream_attempts", record.upstream_attempts.into());
    }
    if record.cached_excess > 0 {
        list.count("tokenmeter.cached_excess", record.cached_excess);
    }
    if let Some(disagreement) = record.disagreement {
        list.text("tokenmeter.usage_disagreement", disagreement.name());
    }
    list.text("tokenmeter.dialect", identity.dialect.name());
    list.text("tokenmeter.ending", record.ending.name());
    list.number("tokenmeter.concurrency", timing.concurrency);
    list.seconds("tokenmeter.time_to_first_token", timing.first_token_ns);
    list.seconds("tokenmeter.time_per_output_token", timing.per_output_token_ns);
    if let Some(rate) = timing.output_rate {
        list.number("tokenmeter.output_token_rate", rate);
    }
    list.seconds("tokenmeter.longest_gap", Some(timing.longest_gap_ns).filter(|&ns| ns > 0));
    if timing.stalls > 0 {
        list.count("tokenmeter.stalls", timing.stalls.into());
    }
    list.seconds("tokenmeter.upstream_queue", timing.server().queue_ns);
    list.seconds("tokenmeter.upstream_prefill", timing.server().prefill_ns);
    list.seconds("tokenmeter.upstream_decode", timing.server().decode_ns);
    for (name, tokens) in [
        ("tokenmeter.draft_tokens", timing.server().draft_tokens),
        ("tokenmeter.draft_tokens.accepted", timing.server().accepted_draft_tokens),
    ] {
        if let Some(tokens) = tokens {
            list.count(name, tokens);
        }
    }
    if let Some(charge) = &finished.charge {
        charge.add_to(list);
    }
    if let Some(energy) = finished.energy {
        if let Some(nanojoules) = energy.joules_nano {
            list.number("tokenmeter.energy.joules", nanojoules as f64 / 1e9);
        }
        list.seconds("tokenmeter.gpu.seconds", Some(energy.gpu_ns));
        if let Some(ratio) = energy.utilization {
            list.number("tokenmeter.gpu.utilization", ratio);
        }
    }
}

/// Adds the other values of the record, for the log record only.
pub(crate) fn details(record: &Record, list: &mut Attributes) {
    let timing = &record.timing;
    if record.status > 0 {
        list.count("http.response.status_code", record.status.into());
    }
    if record.usage_rejected > 0 {
        list.count("tokenmeter.usage_rejected", record.usage_rejected.into());
    }
    list.seconds("tokenmeter.upload", Some(timing.upload_ns));
    list.seconds("tokenmeter.duration", Some(timing.duration_ns));
    list.seconds("tokenmeter.time_to_first_byte", timing.first_byte_ns);
    list.seconds("tokenmeter.time_to_first_visible_token", timing.first_visible_ns);
    list.seconds("tokenmeter.time_to_first_tool_call", timing.first_tool_ns);
    if let Some(rate) = timing.input_rate {
        list.number("tokenmeter.input_token_rate", rate);
    }
    list.seconds("tokenmeter.client_wait", Some(timing.client_wait_ns));
}

/// Adds the sums and buckets from which histograms and shares are made, for the log record in full detail only.
pub(crate) fn internals(record: &Record, list: &mut Attributes) {
    let timing = &record.timing;
    list.count("tokenmeter.choices", record.choices.into());
    list.count("tokenmeter.visible_characters", record.visible_chars);
    if let Some(rate) = timing.visible_chars_rate {
        list.number("tokenmeter.visible_character_rate", rate);
    }
    list.seconds("tokenmeter.generation", Some(timing.generation_ns));
    list.count("tokenmeter.generation_tokens", timing.generation_tokens);
    list.text("tokenmeter.weight", timing.weight.name());
    list.seconds("tokenmeter.stalled", Some(timing.stalled_ns));
    if let Some(pace) = &timing.pace {
        gaps("tokenmeter.inter_token", &pace.inter_token, list);
        gaps("tokenmeter.chunk_gap", &pace.chunk_gap, list);
        if pace.position.iter().any(|span| span.tokens > 0) {
            list.counts("tokenmeter.position.tokens", pace.position.iter().map(|span| span.tokens));
            let seconds = pace.position.iter().map(|span| span.ns as f64 / 1e9);
            list.numbers("tokenmeter.position.seconds", seconds);
        }
    }
    let load = &record.load;
    list.count("tokenmeter.load.entered", load.entered.in_flight);
    list.count("tokenmeter.load.left", load.left.in_flight);
    let busy = load.left.busy_ns.saturating_sub(load.entered.busy_ns);
    list.seconds("tokenmeter.load.busy", Some(busy));
    list.seconds("tokenmeter.load.share", Some(load.share_ns()));
}

fn gaps(name: &str, gaps: &Gaps, list: &mut Attributes) {
    if gaps.sum_ns > 0 {
        list.counts(&format!("{name}.buckets"), gaps.buckets.iter().copied());
        list.seconds(&format!("{name}.sum"), Some(gaps.sum_ns));
    }
}
