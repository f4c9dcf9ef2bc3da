//! The semantic convention's series of one attribute set. Invariants: durations and tokens cover all finished
//! operations, by `error.type`, so that a query can compute the share of failures; times to and between tokens cover
//! successes only.

use std::sync::Arc;

use meter::edges::{DURATION_S, FIRST_TOKEN_S, PER_TOKEN_S};
use meter::record::Timing;
use meter::{ErrorType, Record};

use super::usage::{Legacy, Usage, reported};
use crate::cell::Merge;
use crate::histogram::{Histogram, TraceRef};
use crate::lazy::{Chain, Lazy};
use crate::semconv::Semconv;
use crate::table::{Metric, USAGE_TOKENS};
use crate::upstream::Address;

/// The attributes by which the semantic convention splits a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GenAiAttributes {
    pub(crate) operation: &'static str,
    pub(crate) provider: Arc<str>,
    /// The address of the upstream; `None` for one that is not configured.
    pub(crate) server: Option<Address>,
}

impl GenAiAttributes {
    /// Returns true for embeddings, which have families of their own in the convention.
    pub(crate) fn is_embedding(&self) -> bool {
        self.operation == EMBEDDINGS
    }
}

/// The cells of one attribute set.
#[derive(Debug, Default)]
pub(crate) struct GenAi {
    pub(crate) usage: Usage,
    pub(crate) first_token: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) per_token: Histogram<{ PER_TOKEN_S.len() + 1 }>,
    /// By `error.type`; `None` for successes.
    pub(crate) operations: Chain<Option<ErrorType>, Operations>,
    /// Allocated only if enabled.
    pub(crate) chunks: Lazy<Chunks>,
    /// Allocated only if enabled.
    pub(crate) legacy: Lazy<Legacy>,
}

/// The finished operations of one `error.type`.
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
    pub(crate) gaps: Histogram<{ DURATION_S.len() + 1 }>,
}

impl GenAi {
    /// Adds a finished operation.
    pub(crate) fn end(
        &self,
        record: &Record,
        is_embedding: bool,
        semconv: Semconv,
        trace: Option<&TraceRef>,
    ) {
        let error = record.error_type();
        let [input, output] = reported(&record.tokens);
        let operation = self.operation(error);
        operation.duration.seconds(Metric::GenAiDuration, record.timing.duration_ns);
        operation.input.tokens(Metric::OperationInput, input.unwrap_or_default());
        if !is_embedding {
            operation.output.tokens(Metric::OperationOutput, output.unwrap_or_default());
            self.usage.end(&record.tokens);
        }
        if error.is_none() {
            self.time(&record.timing, trace);
        }
        if !is_embedding && record.streamed && semconv.has(Metric::ClientFirstChunk) {
            self.chunks.make().end(&record.timing);
        }
        if semconv.has(Metric::ClientTokenUsage) {
            self.legacy.make().end([input, output]);
        }
    }

    /// Returns the cells of an `error.type`, or those of `_OTHER` beyond [`MAX_ERROR_TYPES`].
    fn operation(&self, error: Option<ErrorType>) -> &Operations {
        if let Some(known) = self.operations.get(&error) {
            return known;
        }
        if error.is_none() || self.operations.iter().count() < MAX_ERROR_TYPES {
            return self.operations.make(&error);
        }
        self.operations.make(&Some(ErrorType::Other))
    }

    fn time(&self, timing: &Timing, trace: Option<&TraceRef>) {
        if let Some(ns) = timing.first_token_ns {
            self.first_token.seconds_traced(Metric::GenAiFirstToken, ns, trace);
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
        if let Some(pace) = &timing.pace {
            self.gaps.gaps(Metric::ClientPerChunk, &pace.output_chunk, 0, None);
        }
    }
}

impl Merge for GenAi {
    fn merge(&self, other: &Self) {
        // Destructured, so that the compiler warns of a new cell that is not summed.
        let Self { usage, first_token, per_token, operations, chunks, legacy } = self;
        usage.merge(&other.usage);
        first_token.merge(&other.first_token);
        per_token.merge(&other.per_token);
        operations.merge(&other.operations);
        chunks.merge(&other.chunks);
        legacy.merge(&other.legacy);
    }
}

impl Merge for Operations {
    fn merge(&self, other: &Self) {
        let Self { duration, input, output } = self;
        duration.merge(&other.duration);
        input.merge(&other.input);
        output.merge(&other.output);
    }
}

impl Merge for Chunks {
    fn merge(&self, other: &Self) {
        let Self { first, gaps } = self;
        first.merge(&other.first);
        gaps.merge(&other.gaps);
    }
}

/// `gen_ai.operation.name` of embeddings.
const EMBEDDINGS: &str = "embeddings";

/// Maximum number of `error.type` values per attribute set, successes included; further ones are `_OTHER`. It is enough
/// for the closed list and the usual statuses; a server can invent hundreds more.
const MAX_ERROR_TYPES: usize = 24;
