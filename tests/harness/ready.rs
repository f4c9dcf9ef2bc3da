//! The switch: which dialects the scanner is held to. Twin, maker, recordings, vectors and fuzzers
//! know them all; what the scanner cannot read yet is left out here and nowhere else.

use scan::Dialect;

/// Whether the scanner reads every dialect of [`ALL_MADE`], and what came with them to the first
/// three: server times, `output_ids`, Ollama's swallowed error, a usage without counts, JSON lines
/// in an event stream.
pub const ALL_READY: bool = true;

/// Every dialect that has a twin and a maker. A line taken out switches one off.
pub const ALL_MADE: &[Dialect] = &[
    Dialect::OpenaiChat,
    Dialect::OpenaiCompletions,
    Dialect::LlamacppCompletion,
    Dialect::OpenaiResponses,
    Dialect::Anthropic,
    Dialect::Tgi,
    Dialect::Sglang,
    Dialect::Lmdeploy,
    Dialect::OllamaChat,
    Dialect::OllamaGenerate,
    Dialect::Triton,
    Dialect::VllmGenerate,
    Dialect::Gemini,
    Dialect::Cohere,
    Dialect::Embeddings,
    Dialect::Rerank,
    Dialect::Transcription,
    Dialect::Unknown,
];

/// Those the scanner has always read.
const FIRST: &[Dialect] = &[Dialect::OpenaiChat, Dialect::OpenaiCompletions, Dialect::LlamacppCompletion];

/// The dialects that are compared.
pub const MADE: &[Dialect] = if ALL_READY { ALL_MADE } else { FIRST };

/// Whether a dialect is compared.
pub fn is_made(dialect: Dialect) -> bool {
    MADE.contains(&dialect)
}
