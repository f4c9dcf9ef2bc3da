//! Requests that start detached work: the answer is fetched later, by a request that is not metered as one that runs a
//! model. Providers name such endpoints alike: batches, jobs, runs, or asynchronous forms of others.

use http::HeaderMap;

use crate::path::{plain, slashed, split_last};
use crate::query::parameters;
use crate::route::is_endpoint;
use crate::word_list;

/// Returns true if a POST to `path` (as the upstream will see it) with this query and these header fields starts detached
/// work.
pub fn begins_detached(path: &str, query: Option<&str>, headers: &HeaderMap) -> bool {
    is_detached(&plain(path))
        || slashed(path).is_some_and(|path| is_detached(&path))
        || query
            .into_iter()
            .flat_map(parameters)
            .any(|(name, value)| word_list::has(&PARAMETERS, &name) && is_true(&value))
        || headers.iter().any(|(name, value)| {
            let value = value.as_bytes();
            match name.as_str() {
                "prefer" => {
                    value.split(|byte| *byte == b',').any(|wish| word_list::has(&["respond-async"], wish))
                }
                // DashScope's is `X-DashScope-Async: enable`.
                name => name.ends_with("-async") && is_true(value),
            }
        })
}

/// Returns true for a path of such work.
fn is_detached(path: &str) -> bool {
    let Some((before, last)) = split_last(path) else { return false };
    // Perplexity, Zhipu: `/async/chat/completions`.
    if before.as_bytes().split(|byte| *byte == b'/').any(|segment| segment.eq_ignore_ascii_case(b"async")) {
        return true;
    }
    let method = last.bytes().rposition(|byte| byte == b':').map_or(last, |at| &last[at + 1..]);
    let is_named = WHOLE.iter().any(|name| name.eq_ignore_ascii_case(method));
    (is_named || words(method).any(|word| word_list::has(&WORDS, word.as_bytes()))) && !is_endpoint(path)
}

/// The words of a name in any style: `embed-jobs`, `batchPredictionJobs`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['-', '_']);
        let mut before = b'A';
        let end = rest.bytes().position(|byte| {
            let is_end =
                matches!(byte, b'-' | b'_') || byte.is_ascii_uppercase() && before.is_ascii_lowercase();
            before = byte;
            is_end
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Returns true unless a flag is off.
fn is_true(value: &[u8]) -> bool {
    !word_list::has(&["false", "0", "no", "off", "disable", "disabled"], value)
}

/// Words of the last part of such a path.
const WORDS: [&str; 9] =
    ["batch", "batches", "job", "jobs", "runs", "async", "asynchronous", "deferred", "queue"];

/// Last parts of such paths without one of these words: OpenAI's assistants, Vertex AI.
const WHOLE: [&str; 4] =
    ["submit_tool_outputs", "predictLongRunning", "batchGenerateContent", "asyncBatchEmbedContent"];

/// Parameters of a query that ask for it; Cloudflare's is `queueRequest`.
const PARAMETERS: [&str; 5] = ["queueRequest", "async", "background", "deferred", "_async"];

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn begins(target: &str, field: Option<(&'static str, &'static str)>) -> bool {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let headers = field.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        begins_detached(path, query, &headers.into_iter().collect())
    }

    /// The endpoints of the providers in `proxy/relay/providers.md`.
    #[test]
    fn every_providers_detached_work_is_known() {
        for target in [
            "/v1/batches",
            "/v1/threads/runs",
            "/v1/threads/t/runs",
            "/v1/threads/t/runs/r/submit_tool_outputs",
            "/v1/fine_tuning/jobs",
            "/v1/messages/batches",
            "/v1/batch/jobs",
            "/v1/embed-jobs",
            "/async/chat/completions",
            "/api/paas/v4/async/chat/completions",
            "/v1beta/models/m:batchGenerateContent",
            "/v1beta/models/m:asyncBatchEmbedContent",
            "/V1BETA/MODELS/M:BATCHGENERATECONTENT",
            "/v1/projects/p/locations/l/batchPredictionJobs",
            "/v1/projects/p/locations/l/publishers/google/models/m:predictLongRunning",
            "/async-invoke",
            "/model-invocation-job",
            "/v1/accounts/a/batchInferenceJobs",
            "/ml/v4/deployment_jobs",
            "/openai/v1/video/generations/jobs",
            "/v1%2fbatch%2Fjobs",
            "/v1/batch/job%73/",
            "/client/v4/accounts/a/ai/run/@cf/m?queueRequest=true",
        ] {
            assert!(begins(target, None), "{target}");
        }
        let services = "/api/v1/services/aigc/text-generation/generation";
        assert!(begins(services, Some(("x-dashscope-async", "enable"))));
        assert!(begins("/v1/predictions", Some(("prefer", "wait=5, respond-async"))));
    }

    #[test]
    fn other_work_is_not_detached() {
        for target in [
            "/v1/chat/completions",
            "/v1/chat/completions/batch",
            "/v1beta/models/m:batchEmbedContents",
            "/v1beta/models/async:generateContent",
            "/v1/batches/b/cancel",
            "/v1/threads/t/runs/r",
            "/v1/mybatches",
            "/v1/responses?background=false",
            "/ml/v1/text/generation",
            "",
            "*",
        ] {
            assert!(!begins(target, None), "{target}");
        }
        assert!(!begins("/v1/predictions", Some(("prefer", "wait"))));
        assert!(!begins("/v1/x", Some(("x-dashscope-async", "disable"))));
    }
}
