//! POST requests that run no model, by their whole path: behind a prefix that is not known, the same end could be that of
//! a request that runs one. Some of them stream. llama.cpp's `/chat/completions/control` ends the reasoning of another
//! request, which is metered itself, and `/streams/lookup` lists the caller's streams.

use crate::path::{plain, slashed, split_last};

/// Returns true if a POST to this path, which [`plain`](crate::path::plain) returned, runs no model.
pub(crate) fn is_control(path: &str) -> bool {
    let Some((before, last)) = split_last(path) else { return false };
    CONTROL.iter().any(|(end, segments)| {
        end.eq_ignore_ascii_case(last) && mount(before, segments).is_some_and(is_mount)
    })
}

/// Returns true if a POST to `path` (as the upstream will see it) gives a model another name: Ollama's. Behind a cheap name
/// a dear model would run.
pub fn renames_model(path: &str) -> bool {
    let is = |path: &str| {
        let last = split_last(path).map_or("", |(_, last)| last);
        is_control(path) && ["copy", "create"].iter().any(|name| name.eq_ignore_ascii_case(last))
    };
    is(&plain(path)) || slashed(path).is_some_and(|path| is(&path))
}

/// Returns what stands before these segments at the end of a path; `None` if others stand there.
fn mount<'p>(path: &'p str, segments: &[&str]) -> Option<&'p str> {
    segments.iter().rev().try_fold(path, |path, wanted| {
        let (before, segment) = split_last(path)?;
        let is_equal = if *wanted == "*" { is_id(segment) } else { segment.eq_ignore_ascii_case(wanted) };
        is_equal.then_some(before)
    })
}

/// Returns true if known servers have their endpoints behind this prefix.
fn is_mount(prefix: &str) -> bool {
    MOUNTS.iter().any(|mount| mount.eq_ignore_ascii_case(prefix))
}

fn is_id(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

/// The prefixes of known servers and providers.
const MOUNTS: [&str; 12] = [
    "",
    "/v1",
    "/v1beta",
    "/v1beta1",
    "/v2",
    "/api",
    "/api/v1",
    "/openai",
    "/openai/v1",
    "/anthropic",
    "/anthropic/v1",
    "/inference/v1",
];

/// The last segments of such paths, each with the segments before it, behind a prefix; `*` is an id.
const CONTROL: [(&str, &[&str]); 25] = [
    ("tokenize", &[]),
    ("detokenize", &[]),
    ("apply-template", &[]),
    ("abort_request", &[]),
    ("abort_requests", &[]),
    ("pull", &[]),
    ("push", &[]),
    ("create", &[]),
    ("copy", &[]),
    ("show", &[]),
    ("lookup", &["streams"]),
    ("count_tokens", &["messages"]),
    ("input_tokens", &["responses"]),
    ("input_tokens", &["chat", "completions"]),
    ("control", &["chat", "completions"]),
    ("cancel", &["responses", "*"]),
    ("cancel", &["interactions", "*"]),
    ("cancel", &["batches", "*"]),
    ("cancel", &["messages", "batches", "*"]),
    ("cancel", &["batch", "jobs", "*"]),
    ("cancel", &["fine_tuning", "jobs", "*"]),
    ("cancel", &["threads", "*", "runs", "*"]),
    ("cancel", &["uploads", "*"]),
    ("cancel", &["vector_stores", "*", "file_batches", "*"]),
    ("cancel", &["predictions", "*"]),
];

#[cfg(test)]
mod tests {
    use super::is_control;

    #[test]
    fn control_is_known_by_its_whole_path() {
        for path in [
            "/tokenize",
            "/V1/Tokenize",
            "/v1/messages/count_tokens",
            "/anthropic/v1/messages/count_tokens",
            "/openai/v1/responses/resp_1/cancel",
            "/v1/threads/thread_1/runs/run_1/cancel",
            "/api/pull",
        ] {
            assert!(is_control(path), "{path}");
        }
        for path in [
            "",
            "/",
            "tokenize",
            "/v1/chat/completions/cancel",
            "/v1/responses/cancel",
            "/v1/responses//cancel",
            "/v1/responses/%00/cancel",
            "/v1/responses/a%2Fb/cancel",
            "/%00/tokenize",
            "/v1/%00/tokenize",
            "/v1/chat/completions/tokenize",
            "/x/v1/messages/count_tokens",
            "/v1/generate/api/pull",
            "/v1/messages/count_tokensx",
        ] {
            assert!(!is_control(path), "{path}");
        }
    }
}
