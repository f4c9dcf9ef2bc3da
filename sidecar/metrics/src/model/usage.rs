//! The semantic convention's token usage of one flavour. The law: reported counts only, because a
//! metric never mixes provenances; every ended operation is here, failed ones too, so that one
//! without a report shows a zero and not nothing.

use meter::{Provenance, TokenType, Tokens};

use crate::cell::{Absorb, Count};
use crate::histogram::Histogram;
use crate::table::{Metric, USAGE_TOKENS};

/// Tokens spent, and how many each operation spent.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Prompt tokens, cached ones included.
    pub(crate) input: Count,
    pub(crate) cache_read: Count,
    pub(crate) cache_write: Count,
    /// Generated tokens, those of reasoning included; in the order of [`MODALITIES`].
    pub(crate) output: [Count; MODALITIES.len()],
    pub(crate) reasoning: Count,
    pub(crate) operation_input: Histogram<{ USAGE_TOKENS.len() + 1 }>,
    pub(crate) operation_output: Histogram<{ USAGE_TOKENS.len() + 1 }>,
}

impl Usage {
    /// Adds an ended operation.
    pub(crate) fn end(&self, tokens: &Tokens) {
        if tokens.input_provenance == Provenance::Reported {
            let all = tokens.input();
            self.input.add(all);
            self.cache_read.add(tokens.of(TokenType::InputCached));
            self.cache_write.add(tokens.of(TokenType::InputCacheWrite));
            self.operation_input.tokens(Metric::OperationInput, all);
        }
        if tokens.output_provenance == Provenance::Reported {
            let all = tokens.output();
            let [unknown, text, audio] = &self.output;
            // Who tells audio apart tells the rest to be text; nobody else says what it was.
            match tokens.of(TokenType::OutputAudio) {
                0 => unknown.add(all),
                heard => {
                    audio.add(heard);
                    text.add(all - heard);
                }
            }
            self.reasoning.add(tokens.of(TokenType::OutputReasoning));
            self.operation_output.tokens(Metric::OperationOutput, all);
        }
    }
}

impl Absorb for Usage {
    fn absorb(&self, other: &Self) {
        let Self { input, cache_read, cache_write, output, reasoning, operation_input, operation_output } =
            self;
        input.absorb(&other.input);
        cache_read.absorb(&other.cache_read);
        cache_write.absorb(&other.cache_write);
        output.absorb(&other.output);
        reasoning.absorb(&other.reasoning);
        operation_input.absorb(&other.operation_input);
        operation_output.absorb(&other.operation_output);
    }
}

/// Label values of `gen_ai_token_modality`.
pub(crate) const MODALITIES: [&str; 3] = ["unknown", "text", "audio"];
