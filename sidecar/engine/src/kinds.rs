//! The servers whose pages we read, a file each.

mod dynamo;
mod llamacpp;
mod lmdeploy;
mod mistralrs;
mod sglang;
mod tgi;
mod triton;
mod trtllm;
mod vllm;

use relay::Kind;

use crate::vocabulary::Vocabulary;

/// Every vocabulary. What fronts other engines comes first: its page may hold theirs too.
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

/// The vocabulary of a kind; hosted interfaces and Ollama have no page.
pub(crate) fn of(kind: Kind) -> Option<&'static Vocabulary> {
    KNOWN.into_iter().find(|vocabulary| vocabulary.kind == kind)
}

/// Returns what to do about a server whose usage leaves out cached tokens, as the end of a sentence.
pub fn hidden_cached_remedy(kind: Kind) -> &'static str {
    match kind {
        Kind::Vllm => "; start it with --enable-prompt-tokens-details",
        Kind::Sglang => "; start it with --enable-cache-report",
        _ => "",
    }
}

#[cfg(test)]
#[path = "kinds/tests.rs"]
mod tests;
