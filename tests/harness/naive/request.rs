//! What a request's tree asks for.

use serde_json::Value;

use super::{counts, value};

/// The facts of a request body, as [`scan::Request`] has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The model's name.
    pub model: String,
    /// Whether frames are asked for.
    pub stream: Option<bool>,
    /// Answers asked for.
    pub answers: u32,
    /// Token ids in the prompt.
    pub prompt_ids: Option<u64>,
    /// Whether usage was asked for.
    pub include_usage: Option<bool>,
    /// Whether running usage was asked for.
    pub continuous_usage: bool,
    /// Whether the prompt is sent back.
    pub echo: bool,
}

/// What `body` asks for, or `None` if that is a matter of opinion.
pub fn read_request(body: &[u8]) -> Option<Asked> {
    let body = value::parse(value::trim(body))?;
    let flag = |path: &str| body.pointer(path).and_then(Value::as_bool);
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    let n = [body.get("n"), body.get("n_cmpl")].into_iter().flatten().filter_map(counts::count).next();
    // A list with an id in it is one prompt (of ids, or mixed); a list of prompts has none.
    let (prompts, ids) = match body.get("prompt") {
        Some(Value::Array(parts)) => {
            let ids = parts.iter().filter(|part| part.is_number()).count();
            (if ids > 0 { 1 } else { parts.len() }, (ids > 0 && ids == parts.len()).then_some(ids as u64))
        }
        _ => (1, None),
    };
    let both = body.get("n").is_some() && body.get("n_cmpl").is_some();
    (model.len() <= 40 && !both).then(|| Asked {
        model: model.to_owned(),
        stream: flag("/stream"),
        answers: u32::try_from(n.unwrap_or(1).max(1).saturating_mul(prompts.max(1) as u64))
            .unwrap_or(u32::MAX),
        prompt_ids: ids,
        include_usage: flag("/stream_options/include_usage"),
        continuous_usage: flag("/stream_options/continuous_usage_stats") == Some(true),
        echo: flag("/echo") == Some(true),
    })
}
