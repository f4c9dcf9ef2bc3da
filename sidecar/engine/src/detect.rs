//! Which server it is, by what it says of itself. The law: asking costs the server next to nothing
//! and changes nothing there, so the order of the questions matters:
//!
//! 1. `GET /v1/models` tells llama.cpp by its `Server` field and most others by `owned_by`, with or
//!    without metrics. Not `/health`: there SGLang generates a token, unless told otherwise.
//! 2. `GET /prometheus/metrics`, TensorRT-LLM's page. Its `/metrics` is a queue that reading empties.
//! 3. `GET /metrics`, by the first part of the names. Not before 1: reading it resets llama.cpp's
//!    averages, and would spoil them for the scraper they are meant for.
//! 4. `GET /info`, `/v2` and `/api/version`, for text-generation-inference before its first
//!    request, Triton, whose page is on another port, and Ollama, which has none.
//!
//! What a server calls itself may be false; then its numbers will be missing, and no more.

use relay::Kind;

use crate::kinds::KNOWN;
use scrape::Page;
use scrape::{Answer, Asker, Failure};

/// What a server was recognised as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The kind.
    pub kind: Kind,
    /// vLLM's front end, whose frames differ; `None` for other kinds, and if it could not be told.
    pub front_end: Option<FrontEnd>,
}

/// The two HTTP servers of vLLM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontEnd {
    /// FastAPI on uvicorn, which names itself in the field `Server`.
    Python,
    /// `vllm-rs`, which sends no such field.
    Rust,
}

impl FrontEnd {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }
}

/// What came of the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Known(Detected),
    /// It has a metrics page, but none we know; names may come with the first request.
    UnknownPage,
    /// It has no metrics page.
    NoPage,
}

/// Asks until it is known. An error is one of the first question: then nobody is there.
pub(crate) async fn detect(asker: &Asker) -> Result<Verdict, Failure> {
    let models = asker.get(MODELS).await?;
    if let Some(kind) = by_models(&models) {
        return Ok(known(kind, &models));
    }
    let mut page = false;
    for path in [TENSORRT_LLM_PAGE, PAGE] {
        if let Some(answer) = ok(asker, path).await {
            let read = Page::read(&answer.text);
            if let Some(kind) = by_names(&read) {
                return Ok(known(kind, &models));
            }
            page |= !read.samples.is_empty();
        }
    }
    for (path, mark, kind) in [
        ("/info", "\"max_best_of\"", Kind::Tgi),
        ("/v2", "\"name\":\"triton\"", Kind::Triton),
        ("/api/version", "\"version\"", Kind::Ollama),
    ] {
        if ok(asker, path).await.is_some_and(|answer| without_blanks(&answer.text).contains(mark)) {
            return Ok(known(kind, &models));
        }
    }
    Ok(if page { Verdict::UnknownPage } else { Verdict::NoPage })
}

/// The same for a server whose kind a person has named: only the front end is left to ask for.
pub(crate) async fn configured(asker: &Asker, kind: Kind) -> Result<Detected, Failure> {
    let front_end = match kind {
        Kind::Vllm => front_end(&asker.get(MODELS).await?),
        _ => None,
    };
    Ok(Detected { kind, front_end })
}

fn known(kind: Kind, models: &Answer) -> Verdict {
    let front_end = if kind == Kind::Vllm { front_end(models) } else { None };
    Verdict::Known(Detected { kind, front_end })
}

fn by_models(answer: &Answer) -> Option<Kind> {
    if answer.server.as_deref() == Some("llama.cpp") {
        return Some(Kind::LlamaCpp);
    }
    match owner(&answer.text)? {
        "vllm" => Some(Kind::Vllm),
        "sglang" => Some(Kind::Sglang),
        "llamacpp" => Some(Kind::LlamaCpp),
        "tensorrt_llm" => Some(Kind::TensorrtLlm),
        "lmdeploy" => Some(Kind::Lmdeploy),
        _ => None,
    }
}

fn front_end(answer: &Answer) -> Option<FrontEnd> {
    match answer.server.as_deref() {
        Some("uvicorn") => Some(FrontEnd::Python),
        None => Some(FrontEnd::Rust),
        // Something between us and it speaks for itself.
        Some(_) => None,
    }
}

/// The first `owned_by` of a list of models.
fn owner(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\"owned_by\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0)
}

/// The kind whose names are on a page. One that fronts others comes first in [`KNOWN`]: its page
/// may hold theirs too.
pub(crate) fn by_names(page: &Page<'_>) -> Option<Kind> {
    KNOWN.iter().find(|vocabulary| vocabulary.is_on(page)).map(|vocabulary| vocabulary.kind)
}

async fn ok(asker: &Asker, path: &str) -> Option<Answer> {
    asker.get(path).await.ok().filter(|answer| answer.status == 200)
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_whitespace()).collect()
}

const MODELS: &str = "/v1/models";

/// Where most servers have their page.
pub(crate) const PAGE: &str = "/metrics";

/// Where `trtllm-serve` has it.
pub(crate) const TENSORRT_LLM_PAGE: &str = "/prometheus/metrics";

#[cfg(test)]
mod tests {
    use super::{by_names, owner};
    use relay::Kind;
    use scrape::Page;

    #[test]
    fn the_owner_is_read_however_it_is_spaced() {
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
    fn names_tell_the_kind_and_what_fronts_others_first() {
        for (text, expected) in [
            ("vllm:num_requests_running{engine=\"0\"} 0", Some(Kind::Vllm)),
            ("tgi_queue_size 0", Some(Kind::Tgi)),
            ("llamacpp:n_decode_total 0", Some(Kind::LlamaCpp)),
            ("sglang:token_usage 0", Some(Kind::Sglang)),
            ("trtllm_kv_cache_utilization 0", Some(Kind::TensorrtLlm)),
            ("lmdeploy:num_requests_running 0", Some(Kind::Lmdeploy)),
            ("mistralrs_inter_token_latency_seconds_count 0", Some(Kind::MistralRs)),
            ("vllm:x 0\nnv_inference_request_success{model=\"m\"} 0", Some(Kind::Triton)),
            ("trtllm_x 0\nvllm:x 0\ndynamo_frontend_inflight_requests 0", Some(Kind::Dynamo)),
            ("process_start_time_seconds 1\nvllm 1\nx_vllm:y 1", None),
            ("# vllm:x 1", None),
        ] {
            assert_eq!(by_names(&Page::read(text)), expected, "{text}");
        }
    }
}
