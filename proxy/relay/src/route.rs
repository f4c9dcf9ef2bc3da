//! Which requests are metered: the path names the dialect, and only a `POST` infers.
//!
//! Paths are matched by their end, at a slash, because servers are often mounted under a prefix
//! (`/openai/v1/chat/completions`). The first row that fits wins.

use hyper::Method;
use scan::Dialect;

use crate::Passthrough;

/// The dialect that a request for `path` (as the upstream will see it) speaks, or why it passes
/// unmetered.
pub fn route(method: &Method, path: &str) -> Result<Dialect, Passthrough> {
    let (_, dialect) = ROUTES.iter().find(|(end, _)| path.ends_with(end)).ok_or(Passthrough::Path)?;
    if method == Method::POST { Ok(*dialect) } else { Err(Passthrough::Method) }
}

/// `/completions` alone is llama.cpp's own endpoint, hence the order.
const ROUTES: [(&str, Dialect); 5] = [
    ("/chat/completions", Dialect::OpenaiChat),
    ("/v1/completions", Dialect::OpenaiCompletions),
    ("/completions", Dialect::LlamacppCompletion),
    ("/completion", Dialect::LlamacppCompletion),
    ("/infill", Dialect::LlamacppCompletion),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_by_their_end() {
        let rows: [(&str, Result<Dialect, Passthrough>); 12] = [
            ("/v1/chat/completions", Ok(Dialect::OpenaiChat)),
            ("/chat/completions", Ok(Dialect::OpenaiChat)),
            ("/openai/v1/chat/completions", Ok(Dialect::OpenaiChat)),
            ("/v1/completions", Ok(Dialect::OpenaiCompletions)),
            ("/mounted/v1/completions", Ok(Dialect::OpenaiCompletions)),
            ("/completions", Ok(Dialect::LlamacppCompletion)),
            ("/completion", Ok(Dialect::LlamacppCompletion)),
            ("/infill", Ok(Dialect::LlamacppCompletion)),
            ("/v1/models", Err(Passthrough::Path)),
            ("/v1/chat/completions/", Err(Passthrough::Path)),
            ("/xchat/completionsx", Err(Passthrough::Path)),
            ("*", Err(Passthrough::Path)),
        ];
        for (path, expected) in rows {
            assert_eq!(route(&Method::POST, path), expected, "{path}");
        }
    }

    #[test]
    fn a_segment_is_never_cut() {
        assert_eq!(route(&Method::POST, "/autocompletion"), Err(Passthrough::Path));
        assert_eq!(route(&Method::POST, "/v1/my-infill"), Err(Passthrough::Path));
    }

    #[test]
    fn only_post_infers() {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT] {
            assert_eq!(route(&method, "/v1/chat/completions"), Err(Passthrough::Method), "{method}");
        }
    }
}
