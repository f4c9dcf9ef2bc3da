//! The semantic convention's series of one flavour. The laws: durations and tokens are of all ended
//! operations, told apart by `error.type`, so that a share of failures can be asked of them; times to
//! and between tokens are of successes only.

use std::sync::Arc;

use meter::edges::{DURATION_S, FIRST_TOKEN_S, GAP_S, PER_TOKEN_S};
use meter::record::Timing;
use meter::{ErrorType, Record};

use super::usage::{Legacy, Usage, reported};
use crate::cell::Absorb;
use crate::histogram::{Histogram, Seen};
use crate::lazy::{Chain, Lazy};
use crate::semconv::Semconv;
use crate::table::{Metric, USAGE_TOKENS};
use crate::upstream::Address;

/// The attributes by which the semantic convention splits a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flavour {
    pub(crate) operation: &'static str,
    pub(crate) provider: Arc<str>,
    /// The address of the upstream; `None` for one that is not configured.
    pub(crate) server: Option<Address>,
}

impl Flavour {
    /// Returns whether its operations are embeddings, for which the convention has families of their own.
    pub(crate) fn embeds(&self) -> bool {
        self.operation == EMBEDDINGS
    }
}

/// The cells of a flavour.
#[derive(Debug, Default)]
pub(crate) struct GenAi {
    pub(crate) usage: Usage,
    pub(crate) first_token: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) per_token: Histogram<{ PER_TOKEN_S.len() + 1 }>,
    /// By how it failed; `None` of successes.
    pub(crate) operations: Chain<Option<ErrorType>, Operations>,
    /// Only where they are asked for.
    pub(crate) chunks: Lazy<Chunks>,
    /// Only where it is asked for.
    pub(crate) legacy: Lazy<Legacy>,
}

/// Ended operations of one `error.type`.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) duration: Histogram<{ DURATION_S.len() + 1 }>,
    /// Tokens that the server reported; 0 where it reported none.
    pub(crate) input: Histogram<{ USAGE_TOKENS.len() + 1 }>,
    pub(crate) output: Histogram<{ USAGE_TOKENS.len() + 1 }>,
}

/// The chunks of streams as a client receives them.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    pub(crate) first: Histogram<{ DURATION_S.len() + 1 }>,
    pub(crate) gaps: Histogram<{ GAP_S.len() + 1 }>,
}

impl GenAi {
    /// Adds an ended operation.
    pub(crate) fn end(&self, record: &Record, embeds: bool, semconv: Semconv, seen: Option<&Seen>) {
        let error = record.error_type();
        let [input, output] = reported(&record.tokens);
        let operation = self.operation(error);
        operation.duration.seconds(Metric::GenAiDuration, record.timing.duration_ns);
        operation.input.tokens(Metric::OperationInput, input.unwrap_or_default());
        if !embeds {
            operation.output.tokens(Metric::OperationOutput, output.unwrap_or_default());
            self.usage.end(&record.tokens);
        }
        if error.is_none() {
            self.time(&record.timing, seen);
        }
        if !embeds && record.streamed && semconv.has(Metric::ClientFirstChunk) {
            self.chunks.make().end(&record.timing);
        }
        if semconv.has(Metric::ClientTokenUsage) {
            self.legacy.make().end([input, output]);
        }
    }

    /// The cells of an `error.type`; those of `_OTHER` where there are enough.
    fn operation(&self, error: Option<ErrorType>) -> &Operations {
        let met = self.operations.get(&error).is_some();
        if met || error.is_none() || self.operations.iter().count() < MAX_ERROR_TYPES {
            return self.operations.make(&error);
        }
        self.operations.make(&Some(ErrorType::Other))
    }

    fn time(&self, timing: &Timing, seen: Option<&Seen>) {
        if let Some(ns) = timing.first_token_ns {
            self.first_token.seconds_seen(Metric::GenAiFirstToken, ns, seen);
        }
        if let Some(ns) = timing.per_output_token_ns {
            self.per_token.seconds(Metric::GenAiPerToken, ns);
        }
    }
}

impl Chunks {
    fn end(&self, timing: &Timing) {
        if let Some(ns) = timing.first_chunk_ns {
            self.first.seconds(Metric::ClientFirstChunk, ns);
        }
        self.gaps.gaps(Metric::ClientPerChunk, &timing.chunk_gap, timing.longest_gap_ns, None);
    }
}

impl Absorb for GenAi {
    fn absorb(&self, other: &Self) {
        // Taken apart, so that a new cell which is not summed is a warning.
        let Self { usage, first_token, per_token, operations, chunks, legacy } = self;
        usage.absorb(&other.usage);
        first_token.absorb(&other.first_token);
        per_token.absorb(&other.per_token);
        operations.absorb(&other.operations);
        chunks.absorb(&other.chunks);
        legacy.absorb(&other.legacy);
    }
}

impl Absorb for Operations {
    fn absorb(&self, other: &Self) {
        let Self { duration, input, output } = self;
        duration.absorb(&other.duration);
        input.absorb(&other.input);
        output.absorb(&other.output);
    }
}

impl Absorb for Chunks {
    fn absorb(&self, other: &Self) {
        let Self { first, gaps } = self;
        first.absorb(&other.first);
        gaps.absorb(&other.gaps);
    }
}

/// `gen_ai.operation.name` of embeddings.
const EMBEDDINGS: &str = "embeddings";

/// Values of `error.type` within a flavour, successes among them, before the rest is `_OTHER`: the
/// closed list and the statuses that servers send. A server can invent hundreds more.
const MAX_ERROR_TYPES: usize = 24;
