//! The semantic convention's token usage of one flavour. The law: reported counts only, because a
//! metric never mixes provenances; every ended operation is here, failed ones too, so that one
//! without a report shows a zero and not nothing.

use meter::{Provenance, TokenType, Tokens};

use crate::cell::{Absorb, Count};
use crate::histogram::Histogram;
use crate::table::{Metric, USAGE_TOKENS};

/// Tokens spent.
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

/// The tokens of each operation whose server reported them: the family that the convention had before
/// its counters. An operation without a report is not in it.
#[derive(Debug, Default)]
pub(crate) struct Legacy {
    pub(crate) input: Histogram<{ USAGE_TOKENS.len() + 1 }>,
    pub(crate) output: Histogram<{ USAGE_TOKENS.len() + 1 }>,
}

/// Prompt tokens and generated tokens, as far as the server reported them.
pub(crate) fn reported(tokens: &Tokens) -> [Option<u64>; 2] {
    let of = |provenance, n| (provenance == Provenance::Reported).then_some(n);
    [of(tokens.input_provenance, tokens.input()), of(tokens.output_provenance, tokens.output())]
}

impl Usage {
    /// Adds an ended operation.
    pub(crate) fn end(&self, tokens: &Tokens) {
        let [input, output] = reported(tokens);
        if let Some(all) = input {
            // Of cached tokens no server says the modality.
            let cached =
                tokens.of(TokenType::InputCached).saturating_add(tokens.of(TokenType::InputCacheWrite));
            let named = [TokenType::InputAudio, TokenType::InputImage, TokenType::InputVideo];
            split(&self.input, all, cached, named.map(|kind| tokens.of(kind)));
            self.cache_read.add(tokens.of(TokenType::InputCached));
            self.cache_write.add(tokens.of(TokenType::InputCacheWrite));
        }
        if let Some(all) = output {
            let named = [TokenType::OutputAudio, TokenType::OutputImage, TokenType::OutputVideo];
            split(&self.output, all, 0, named.map(|kind| tokens.of(kind)));
            self.reasoning.add(tokens.of(TokenType::OutputReasoning));
        }
    }
}

/// Adds `all` tokens by modality, of which `unknown` have none. The rest is text where the server
/// names audio, images or videos, and unknown where it names none. The convention has no word for videos.
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

impl Absorb for Usage {
    fn absorb(&self, other: &Self) {
        let Self { input, cache_read, cache_write, output, reasoning } = self;
        input.absorb(&other.input);
        cache_read.absorb(&other.cache_read);
        cache_write.absorb(&other.cache_write);
        output.absorb(&other.output);
        reasoning.absorb(&other.reasoning);
    }
}

impl Legacy {
    /// Adds an ended operation: its prompt tokens and its generated tokens.
    pub(crate) fn end(&self, reported: [Option<u64>; 2]) {
        for (histogram, tokens) in [&self.input, &self.output].into_iter().zip(reported) {
            if let Some(tokens) = tokens {
                histogram.tokens(Metric::ClientTokenUsage, tokens);
            }
        }
    }
}

impl Absorb for Legacy {
    fn absorb(&self, other: &Self) {
        let Self { input, output } = self;
        input.absorb(&other.input);
        output.absorb(&other.output);
    }
}

/// Label values of `gen_ai_token_modality`.
pub(crate) const MODALITIES: [&str; 4] = ["unknown", "text", "audio", "image"];
