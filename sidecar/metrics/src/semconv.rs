//! The enabled families of OpenTelemetry's GenAI convention: its token metrics were replaced in 2026, and dashboards of
//! both kinds exist. `gen_ai.server.*` is always enabled.

use crate::table::Metric;

/// The families of the GenAI convention that are enabled besides `gen_ai.server.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semconv {
    /// The current ones: counters of tokens, and distributions of tokens and durations by operation.
    #[default]
    Latest,
    /// `Latest`, and the times a client measures: `gen_ai.client.inference.duration`,
    /// `time_to_first_chunk` and `time_per_output_chunk`.
    Client,
    /// `gen_ai.client.token.usage`, as in the semantic conventions until 1.41.
    Legacy,
    /// `Latest` and `Legacy`.
    Both,
}

impl Semconv {
    /// Returns true if a metric is enabled.
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
