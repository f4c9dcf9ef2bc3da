//! The supported servers, one file each.

mod dynamo;
mod llamacpp;
mod lmdeploy;
mod mistralrs;
mod sglang;
mod tgi;
mod triton;
mod trtllm;
mod vllm;

use metrics::ServerKind;

use crate::vocabulary::Vocabulary;

/// Every vocabulary. Front ends of other engines come first, because their pages may contain the engines' names too.
pub(crate) static KNOWN: [&Vocabulary; 9] = [
    &dynamo::PAGE,
    &triton::PAGE,
    &vllm::PAGE,
    &tgi::PAGE,
    &llamacpp::PAGE,
    &sglang::PAGE,
    &trtllm::PAGE,
    &lmdeploy::PAGE,
    &mistralrs::PAGE,
];

/// Returns the vocabulary of a kind; hosted interfaces and Ollama have no page.
pub(crate) fn of(kind: ServerKind) -> Option<&'static Vocabulary> {
    KNOWN.into_iter().find(|vocabulary| vocabulary.kind == kind)
}

/// Returns the remedy for a server whose usage omits cached tokens, as the end of a sentence.
pub fn hidden_cached_remedy(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Vllm => "; start it with --enable-prompt-tokens-details",
        ServerKind::Sglang => "; start it with --enable-cache-report",
        _ => "",
    }
}

#[cfg(test)]
#[path = "kinds/tests.rs"]
mod tests;
