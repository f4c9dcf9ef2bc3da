//! Detection of the server software. Invariant: the requests cost the server almost nothing and change nothing there,
//! so their order matters:
//!
//! 1. `GET /v1/models` identifies llama.cpp by its `Server` field and most others by `owned_by`, with or without metrics.
//!    `/health` is not used: SGLang by default generates a token for it.
//! 2. `GET /prometheus/metrics`, TensorRT-LLM's page. Its `/metrics` is a queue that a read empties.
//! 3. `GET /metrics`, by the prefix of the names. It comes after 1, because a read resets llama.cpp's averages and would
//!    distort them for another scraper.
//! 4. `GET /info`, `/v2` and `/api/version`, for text-generation-inference before its first request, Triton, whose page is
//!    on another port, and Ollama, which has none.
//!
//! A server may report a false name; then its metrics are absent, without any other effect.

use metrics::ServerKind;

use crate::kinds::KNOWN;
use scrape::Page;
use scrape::{Error, Fetcher, Response};

/// The detected server software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The kind.
    pub kind: ServerKind,
    /// The front end of vLLM, whose frames differ; `None` for other kinds, and if it is unknown.
    pub front_end: Option<FrontEnd>,
}

/// The two HTTP servers of vLLM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontEnd {
    /// FastAPI on uvicorn, which sends its name in the field `Server`.
    Python,
    /// `vllm-rs`, which sends no such field.
    Rust,
}

impl FrontEnd {
    /// Returns its name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }
}

/// The result of a detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detection {
    Known(Detected),
    /// A metrics page without known names, which may appear with the first request.
    UnknownPage,
    /// No metrics page.
    NoPage,
}

/// Detects the server. An error is one of the first request: the server is unreachable.
pub(crate) async fn detect(fetcher: &Fetcher) -> Result<Detection, Error> {
    let models = fetcher.get(MODELS).await?;
    if let Some(kind) = by_models(&models) {
        return Ok(known(kind, &models));
    }
    let mut page = false;
    for path in [TENSORRT_LLM_PAGE, PAGE] {
        if let Some(answer) = ok(fetcher, path).await {
            let read = Page::read(&answer.text);
            if let Some(kind) = by_names(&read) {
                return Ok(known(kind, &models));
            }
            page |= !read.samples.is_empty();
        }
    }
    for (path, mark, kind) in [
        ("/info", "\"max_best_of\"", ServerKind::Tgi),
        ("/v2", "\"name\":\"triton\"", ServerKind::Triton),
        ("/api/version", "\"version\"", ServerKind::Ollama),
    ] {
        if ok(fetcher, path).await.is_some_and(|answer| without_blanks(&answer.text).contains(mark)) {
            return Ok(known(kind, &models));
        }
    }
    Ok(if page { Detection::UnknownPage } else { Detection::NoPage })
}

/// Detects only the front end of a server whose kind is configured.
pub(crate) async fn configured(fetcher: &Fetcher, kind: ServerKind) -> Result<Detected, Error> {
    let front_end = match kind {
        ServerKind::Vllm => front_end(&fetcher.get(MODELS).await?),
        _ => None,
    };
    Ok(Detected { kind, front_end })
}

fn known(kind: ServerKind, models: &Response) -> Detection {
    let front_end = if kind == ServerKind::Vllm { front_end(models) } else { None };
    Detection::Known(Detected { kind, front_end })
}

fn by_models(answer: &Response) -> Option<ServerKind> {
    if answer.server.as_deref() == Some("llama.cpp") {
        return Some(ServerKind::LlamaCpp);
    }
    match owner(&answer.text)? {
        "vllm" => Some(ServerKind::Vllm),
        "sglang" => Some(ServerKind::Sglang),
        "llamacpp" => Some(ServerKind::LlamaCpp),
        "tensorrt_llm" => Some(ServerKind::TensorrtLlm),
        "lmdeploy" => Some(ServerKind::Lmdeploy),
        _ => None,
    }
}

fn front_end(answer: &Response) -> Option<FrontEnd> {
    match answer.server.as_deref() {
        Some("uvicorn") => Some(FrontEnd::Python),
        None => Some(FrontEnd::Rust),
        // The field of an intermediary.
        Some(_) => None,
    }
}

/// Returns the first `owned_by` of a list of models.
fn owner(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\"owned_by\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0)
}

/// Returns the kind whose names are on a page. A front end of other engines comes first in [`KNOWN`], because its
/// page may contain their names too.
pub(crate) fn by_names(page: &Page<'_>) -> Option<ServerKind> {
    KNOWN.iter().find(|vocabulary| vocabulary.is_on(page)).map(|vocabulary| vocabulary.kind)
}

async fn ok(fetcher: &Fetcher, path: &str) -> Option<Response> {
    fetcher.get(path).await.ok().filter(|answer| answer.status == 200)
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_whitespace()).collect()
}

const MODELS: &str = "/v1/models";

/// The path of most servers' pages.
pub(crate) const PAGE: &str = "/metrics";

/// The path of `trtllm-serve`'s page.
pub(crate) const TENSORRT_LLM_PAGE: &str = "/prometheus/metrics";

#[cfg(test)]
mod tests {
    use super::{by_names, owner};
    use metrics::ServerKind;
    use scrape::Page;

    #[test]
    fn owner_is_found_with_any_white_space() {
        for (text, expected) in [
            (r#"{"data":[{"id":"a","owned_by":"vllm"},{"owned_by":"b"}]}"#, Some("vllm")),
            ("{\"data\": [{\"owned_by\" :\n \"sglang\", \"id\": 1}]}", Some("sglang")),
            (r#"{"owned_by":null}"#, None),
            (r#"{"owned_by":"cut"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(owner(text), expected, "{text}");
        }
    }

    #[test]
    fn names_identify_kind_and_front_ends_come_first() {
        for (text, expected) in [
            ("vllm:num_requests_running{engine=\"0\"} 0", Some(ServerKind::Vllm)),
            ("tgi_queue_size 0", Some(ServerKind::Tgi)),
            ("llamacpp:n_decode_total 0", Some(ServerKind::LlamaCpp)),
            ("sglang:token_usage 0", Some(ServerKind::Sglang)),
            ("trtllm_kv_cache_utilization 0", Some(ServerKind::TensorrtLlm)),
            ("lmdeploy:num_requests_running 0", Some(ServerKind::Lmdeploy)),
            ("mistralrs_inter_token_latency_seconds_count 0", Some(ServerKind::MistralRs)),
            ("vllm:x 0\nnv_inference_request_success{model=\"m\"} 0", Some(ServerKind::Triton)),
            ("trtllm_x 0\nvllm:x 0\ndynamo_frontend_inflight_requests 0", Some(ServerKind::Dynamo)),
            ("process_start_time_seconds 1\nvllm 1\nx_vllm:y 1", None),
            ("# vllm:x 1", None),
        ] {
            assert_eq!(by_names(&Page::read(text)), expected, "{text}");
        }
    }
}
