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

#[cfg(test)]
#[path = "kinds/tests.rs"]
mod tests;
