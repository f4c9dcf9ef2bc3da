//! Which families of OpenTelemetry's GenAI convention are kept: its token metrics were replaced in
//! 2026, and dashboards of either kind exist. What the server itself measured is always there.

use crate::table::Metric;

/// The families of the GenAI convention that are kept beside `gen_ai.server.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semconv {
    /// The newest: counters of tokens spent, and distributions of tokens and durations by operation.
    #[default]
    Latest,
    /// `Latest`, and the times a client measures: `gen_ai.client.inference.duration`,
    /// `time_to_first_chunk` and `time_per_output_chunk`.
    Client,
    /// `gen_ai.client.token.usage`, as until semantic conventions 1.41.
    Legacy,
    /// `Latest` and `Legacy`.
    Both,
}

impl Semconv {
    /// Returns whether a metric is kept.
    pub(crate) fn has(self, metric: Metric) -> bool {
        match metric {
            Metric::ClientDuration | Metric::ClientFirstChunk | Metric::ClientPerChunk => {
                self == Self::Client
            }
            Metric::ClientTokenUsage => matches!(self, Self::Legacy | Self::Both),
            Metric::UsageInput
            | Metric::UsageOutput
            | Metric::UsageCacheRead
            | Metric::UsageCacheWrite
            | Metric::UsageReasoning
            | Metric::OperationInput
            | Metric::OperationOutput
            | Metric::EmbeddingsDuration
            | Metric::EmbeddingsInput => self != Self::Legacy,
            _ => true,
        }
    }
}
