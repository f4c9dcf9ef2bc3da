//! What is kept from frame to frame: an Anthropic stream says its prompt's length at the beginning
//! and the rest at the end; SGLang says everything again in every frame.

use std::collections::BTreeMap;

use scan::Counts;

/// What the frames of one body have said so far.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The counts of an Anthropic stream, by their names.
    pub(crate) anthropic: BTreeMap<&'static str, u64>,
    /// The counts of a stream of no known dialect.
    pub(crate) unknown: Counts,
    /// Answers of a Responses body that have begun, and that have ended.
    pub(crate) begun: u32,
    pub(crate) ended: u32,
    /// Its beginning was there.
    pub(crate) started: bool,
    /// An SGLang stream has shown that its frames are deltas.
    pub(crate) incremental: bool,
    /// The most each answer of an SGLang stream has said.
    pub(crate) said: BTreeMap<u32, Before>,
}

/// The most an answer has said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub(crate) chars: u32,
    pub(crate) ids: u32,
}
