//! Which vintage of OpenTelemetry's GenAI convention is spoken: its token metrics were replaced in
//! 2026, and dashboards of either kind exist. What the server itself measured is in both.

use crate::table::Metric;

/// A vintage of the GenAI convention's token metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semconv {
    /// `gen_ai.client.inference.*`: counters of what was spent, and one distribution a direction.
    #[default]
    Latest,
    /// `gen_ai.client.token.usage`, as until semantic conventions 1.41.
    Legacy,
    /// Both.
    Both,
}

impl Semconv {
    /// Whether a metric is spoken of.
    pub(crate) fn has(self, metric: Metric) -> bool {
        match metric {
            Metric::ClientTokenUsage => self != Self::Latest,
            Metric::UsageInput
            | Metric::UsageOutput
            | Metric::UsageCacheRead
            | Metric::UsageCacheWrite
            | Metric::UsageReasoning
            | Metric::OperationInput
            | Metric::OperationOutput => self != Self::Legacy,
            _ => true,
        }
    }
}
