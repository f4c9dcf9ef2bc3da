//! The facts of a request's tree.

use scan::{KvTransfer, OutputType, ReasoningLevel, Sampling};
use serde_json::Value;

use super::{counts, value};

/// The facts of a request body, as [`scan::Request`] has them.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFacts {
    /// The model's name.
    pub model: String,
    /// True if a stream is requested.
    pub stream: Option<bool>,
    /// Requested answers.
    pub answers: u32,
    /// Token ids in the prompt.
    pub prompt_ids: Option<u64>,
    /// True if usage is requested.
    pub include_usage: Option<bool>,
    /// True if running usage is requested.
    pub continuous_usage: bool,
    /// True if the prompt is part of the answer.
    pub echo: bool,
    /// The sampling parameters.
    pub sampling: Sampling,
    /// True if another server prefills or decodes for this one.
    pub kv_transfer: KvTransfer,
    /// True if a chat, a completion and a response are limited to one token.
    pub is_one_token: [bool; 3],
}

/// The facts of `body`, or `None` if they are undefined.
pub fn read_request(body: &[u8]) -> Option<RequestFacts> {
    let body = value::parse(value::trim(body))?;
    let flag = |path: &str| body.pointer(path).and_then(Value::as_bool);
    let lax = |path: &str| body.pointer(path).and_then(super::edit::lax);
    // Some servers read `MODEL` as `model`, and the tree does not have the order of the two.
    let cased = |name: &String| name.chars().any(|c| c.is_uppercase() || !c.is_ascii());
    let is_cased = |value: &Value| value.as_object().is_some_and(|members| members.keys().any(cased));
    let is_gemini = |name: &String| matches!(name.as_str(), "generationConfig" | "serviceTier");
    if body.as_object().is_some_and(|members| members.keys().any(|name| cased(name) && !is_gemini(name)))
        || body.get("stream_options").is_some_and(is_cased)
    {
        return None;
    }
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    let places = ["/n", "/n_cmpl", "/sampling_params/n", "/generationConfig/candidateCount"];
    let stated_counts: Vec<&Value> = places.iter().filter_map(|path| body.pointer(path)).collect();
    // llama.cpp takes the whole part of a fraction, and the low 32 bits of an integer.
    let wrapped = |value: &Value| value.as_i64().map(|n| n as i32);
    let whole_part =
        |value: &Value| value.as_f64().map(f64::trunc).filter(|n| (1.0..=4294967295.0).contains(n));
    let answers = |value: &Value| match wrapped(value) {
        Some(n) => counts::count(value).or(u64::try_from(n).ok()),
        None => counts::count(value).or_else(|| whole_part(value).map(|n| n as u64)),
    };
    let n = stated_counts.first().copied().and_then(answers);
    // A list with an id in it is one prompt (of ids, or mixed); a list of prompts has none.
    let (prompts, ids) = match body.get("prompt") {
        Some(Value::Array(parts)) => {
            let ids = parts.iter().filter(|part| part.is_number()).count();
            (if ids > 0 { 1 } else { parts.len() }, (ids > 0 && ids == parts.len()).then_some(ids as u64))
        }
        _ => (1, None),
    };
    let sampling = sampling(&body)?;
    let said = |name: &str| body.get(name).and_then(counts::count);
    let [old, new, responses] = ["max_tokens", "max_completion_tokens", "max_output_tokens"].map(said);
    let is_small = LIMITS
        .iter()
        .filter_map(|path| body.pointer(path))
        .all(|limit| limit.is_null() || counts::count(limit).is_some_and(|limit| limit <= 1));
    let is_one_token = [old.or(new), old, responses].map(|limit| limit.is_some() && is_small);
    let is_true = |path: &str| body.pointer(path) == Some(&Value::Bool(true));
    let kv_transfer = KvTransfer {
        remote_decode: is_true("/kv_transfer_params/do_remote_decode"),
        remote_prefill: is_true("/kv_transfer_params/do_remote_prefill"),
    };
    (model.len() <= 40 && stated_counts.len() < 2).then(|| RequestFacts {
        model: model.to_owned(),
        stream: body.get("stream").and_then(super::edit::truth),
        answers: u32::try_from(n.unwrap_or(1).max(1).saturating_mul(prompts.max(1) as u64))
            .unwrap_or(u32::MAX),
        prompt_ids: ids,
        include_usage: lax("/stream_options/include_usage"),
        continuous_usage: lax("/stream_options/continuous_usage_stats") == Some(true),
        echo: flag("/echo") == Some(true),
        sampling,
        kv_transfer,
        is_one_token,
    })
}

/// The members in which the dialects limit an answer's tokens.
const LIMITS: [&str; 13] = [
    "/max_tokens",
    "/max_completion_tokens",
    "/max_output_tokens",
    "/max_new_tokens",
    "/n_predict",
    "/num_predict",
    "/parameters/max_new_tokens",
    "/parameters/max_tokens",
    "/sampling_params/max_new_tokens",
    "/sampling_params/max_tokens",
    "/options/num_predict",
    "/generationConfig/maxOutputTokens",
    "/generation_config/max_output_tokens",
];

/// The sampling parameters, or `None` if two places have them.
fn sampling(body: &Value) -> Option<Sampling> {
    const NESTS: [&str; 4] = ["", "/parameters", "/sampling_params", "/options"];
    let only = |names: &[&str], gemini: &str, others: &[&str]| {
        let nested = NESTS.iter().flat_map(|nest| names.iter().map(move |name| format!("{nest}/{name}")));
        let mut paths: Vec<String> = nested.collect();
        paths.push(format!("/generationConfig/{gemini}"));
        paths.extend(others.iter().map(|path| (*path).to_owned()));
        let mut found = paths.iter().filter_map(|path| body.pointer(path));
        let value = found.next();
        found.next().is_none().then_some(value)
    };
    let float = |value: Option<&Value>| value.and_then(Value::as_f64);
    let seed = only(&["seed"], "seed", &["/sampling_params/sampling_seed"])?;
    if seed.is_some_and(|seed| seed.as_f64() == Some(0.0) && seed.as_i64().is_none()) {
        // Some parsers read `-0` as a whole number.
        return None;
    }
    let newest = body.get("max_completion_tokens").and_then(counts::count);
    let others = &[
        "/n_predict",
        "/num_predict",
        "/max_output_tokens",
        "/max_new_tokens",
        "/max_tokens",
        "/parameters/max_tokens",
    ];
    let nested = &[
        "/parameters/max_new_tokens",
        "/sampling_params/max_tokens",
        "/sampling_params/max_new_tokens",
        "/options/num_predict",
    ];
    let most = only(&[], "maxOutputTokens", &[&others[..], &nested[..]].concat())?;
    Some(Sampling {
        max_tokens: newest.or(most.and_then(counts::count)),
        temperature: float(only(&["temperature"], "temperature", &[])?),
        top_p: float(only(&["top_p"], "topP", &["/p"])?),
        top_k: float(only(&["top_k"], "topK", &["/k"])?),
        seed: seed.and_then(Value::as_i64),
        frequency_penalty: float(only(&["frequency_penalty"], "frequencyPenalty", &[])?),
        presence_penalty: float(only(&["presence_penalty"], "presencePenalty", &[])?),
        ..form(body)?
    })
}

/// The output form, or `None` if two places have it.
fn form(body: &Value) -> Option<Sampling> {
    let only = |paths: &[&str]| {
        let mut found = paths.iter().filter_map(|path| body.pointer(path));
        let value = found.next();
        found.next().is_none().then_some(value)
    };
    let word = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let effort = ["/reasoning_effort", "/reasoning/effort", "/output_config/effort", "/think"];
    let reasoning_level = match &*word(only(&effort)?) {
        "none" => Some(ReasoningLevel::None),
        "minimal" => Some(ReasoningLevel::Minimal),
        "low" => Some(ReasoningLevel::Low),
        "medium" => Some(ReasoningLevel::Medium),
        "high" => Some(ReasoningLevel::High),
        "xhigh" => Some(ReasoningLevel::XHigh),
        "max" => Some(ReasoningLevel::Max),
        _ => None,
    };
    let formats =
        ["/response_format/type", "/text/format/type", "/format", "/generationConfig/responseMimeType"];
    let list = |name: &str| -> Vec<&str> {
        let list = body.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let modalities = list("modalities");
    let format = only(&formats)?;
    let output_type = match (&*word(format), modalities.contains(&"audio"), modalities.contains(&"image")) {
        (_, false, false) if format.is_none() => None,
        ("text" | "text/plain", false, false) => Some(OutputType::Text),
        ("json" | "json_object" | "json_schema" | "application/json", false, false) => Some(OutputType::Json),
        (_, true, false) if format.is_none() => Some(OutputType::Speech),
        (_, false, true) if format.is_none() => Some(OutputType::Image),
        (_, false, false) => None,
        _ => return None,
    };
    let encoding = body.get("encoding_format");
    let types = list("embedding_types");
    if encoding.is_some() && !types.is_empty() {
        return None;
    }
    let written = |format: &str| types.contains(&format) || encoding.and_then(Value::as_str) == Some(format);
    Some(Sampling {
        reasoning_level,
        output_type,
        dimensions: only(&["/dimensions", "/output_dimension"])?
            .and_then(counts::count)
            .and_then(|n| n.try_into().ok()),
        encoding_formats: ["float", "base64", "int8", "uint8", "binary", "ubinary"].map(written),
        ..Sampling::default()
    })
}
