//! The semantic convention's token usage of one attribute set. Invariants: it contains the server's own totals only,
//! because a metric never mixes them with counts of what was delivered; and every finished operation, failed ones
//! included, so that one without a report adds a zero.

use meter::{Provenance, TokenType, Tokens};

use crate::cell::{Count, Merge};
use crate::histogram::Histogram;
use crate::table::{Metric, USAGE_TOKENS};

/// The token counters.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Prompt tokens, cached ones included; in the order of [`MODALITIES`].
    pub(crate) input: [Count; MODALITIES.len()],
    pub(crate) cache_read: Count,
    pub(crate) cache_write: Count,
    /// Generated tokens, those of reasoning included; in the order of [`MODALITIES`].
    pub(crate) output: [Count; MODALITIES.len()],
    pub(crate) reasoning: Count,
}

/// The tokens of each operation with a report: the former family of the convention. Operations without a report are
/// omitted.
#[derive(Debug, Default)]
pub(crate) struct Legacy {
    pub(crate) input: Histogram<{ USAGE_TOKENS.len() + 1 }>,
    pub(crate) output: Histogram<{ USAGE_TOKENS.len() + 1 }>,
}

/// Returns prompt tokens and generated tokens, each if the server itself counted it.
pub(crate) fn reported(tokens: &Tokens) -> [Option<u64>; 2] {
    let of = |provenance: Provenance, n| provenance.is_server_total().then_some(n);
    [of(tokens.input_provenance, tokens.input()), of(tokens.output_provenance, tokens.output())]
}

impl Usage {
    /// Adds a finished operation.
    pub(crate) fn end(&self, tokens: &Tokens) {
        let [input, output] = reported(tokens);
        if let Some(all) = input {
            let written =
                tokens.of(TokenType::InputCacheWrite).saturating_add(tokens.of(TokenType::InputCacheWrite1h));
            let [cached_audio, cached_image] =
                [TokenType::InputCachedAudio, TokenType::InputCachedImage].map(|kind| tokens.of(kind));
            let cached = tokens.of(TokenType::InputCached);
            let unknown = if tokens.cached_text().is_some() { 0 } else { cached };
            let audio = tokens.of(TokenType::InputAudio).saturating_add(cached_audio);
            let image = tokens.of(TokenType::InputImage).saturating_add(cached_image);
            let named = [audio, image, tokens.of(TokenType::InputVideo)];
            split(&self.input, all, unknown.saturating_add(written), named);
            self.cache_read.add(tokens.cached());
            self.cache_write.add(written);
        }
        if let Some(all) = output {
            let named = [TokenType::OutputAudio, TokenType::OutputImage, TokenType::OutputVideo];
            split(&self.output, all, 0, named.map(|kind| tokens.of(kind)));
            self.reasoning.add(tokens.of(TokenType::OutputReasoning));
        }
    }
}

/// Adds `all` tokens by modality, of which `unknown` have none. The rest is text if the server reports audio, images or
/// videos, else unknown. The convention has no modality for videos, which count as unknown.
fn split(cells: &[Count; MODALITIES.len()], all: u64, unknown: u64, [audio, image, video]: [u64; 3]) {
    let [unknown_cell, text_cell, audio_cell, image_cell] = cells;
    let named = audio.saturating_add(image).saturating_add(video);
    if named == 0 {
        return unknown_cell.add(all);
    }
    unknown_cell.add(unknown.saturating_add(video));
    text_cell.add(all.saturating_sub(unknown).saturating_sub(named));
    audio_cell.add(audio);
    image_cell.add(image);
}

impl Merge for Usage {
    fn merge(&self, other: &Self) {
        let Self { input, cache_read, cache_write, output, reasoning } = self;
        input.merge(&other.input);
        cache_read.merge(&other.cache_read);
        cache_write.merge(&other.cache_write);
        output.merge(&other.output);
        reasoning.merge(&other.reasoning);
    }
}

impl Legacy {
    /// Adds a finished operation: its prompt tokens and its generated tokens.
    pub(crate) fn end(&self, reported: [Option<u64>; 2]) {
        for (histogram, tokens) in [&self.input, &self.output].into_iter().zip(reported) {
            if let Some(tokens) = tokens {
                histogram.tokens(Metric::ClientTokenUsage, tokens);
            }
        }
    }
}

impl Merge for Legacy {
    fn merge(&self, other: &Self) {
        let Self { input, output } = self;
        input.merge(&other.input);
        output.merge(&other.output);
    }
}

/// Label values of `gen_ai_token_modality`.
pub(crate) const MODALITIES: [&str; 4] = ["unknown", "text", "audio", "image"];
