//! State between frames: an Anthropic stream has the prompt's count at the beginning and the rest at the end; SGLang
//! repeats everything in every frame.

use std::collections::BTreeMap;

use scan::Counts;

/// The facts of the frames of one body so far.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The counts of an Anthropic stream, by their names.
    pub(crate) anthropic: BTreeMap<&'static str, u64>,
    /// The counts of a stream of unknown dialect.
    pub(crate) unknown: Counts,
    /// Answers of a Responses body that have begun, and those that have ended.
    pub(crate) begun: u32,
    pub(crate) ended: u32,
    /// True after its beginning.
    pub(crate) started: bool,
    /// True if an SGLang stream was found to send deltas.
    pub(crate) incremental: bool,
    /// The maximum of each answer of an SGLang stream.
    pub(crate) longest: BTreeMap<u32, Before>,
}

/// The maximum of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub(crate) chars: u32,
    pub(crate) ids: u32,
}
