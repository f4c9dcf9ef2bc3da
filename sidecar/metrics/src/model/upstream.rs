//! One worker's cells for one model at one upstream: endings, times and speeds. They are allocated when the model's
//! first exchange at the upstream ends, so that memory depends on the upstreams that serve the model.

use meter::edges::{
    CONCURRENCY, CONCURRENCY_NAMES, DURATION_S, FIRST_TOKEN_S, GAP_S, INPUT_RATE, OUTPUT_RATE, POSITION_NAMES,
};
use meter::record::Timing;
use meter::{Disagreement, Ending, Record, Weight};
use scan::{Dialect, ServerReport};

use crate::cell::{Count, Merge, Sum};
use crate::histogram::{Histogram, TraceRef};
use crate::lazy::{Chain, Lazy};
use crate::model::RateLimitCells;
use crate::table::{CHARACTER_RATE, Metric, NOT_STREAMED};

/// The block of a model at an upstream.
#[derive(Debug, Default)]
pub(crate) struct UpstreamCells {
    /// By dialect, then by ending in the order of [`Ending::ALL`].
    pub(crate) exchanges: Chain<Dialect, [Count; Ending::ALL.len()]>,
    /// By dialect, then in the order of [`Disagreement::ALL`].
    pub(crate) disagreements: Chain<Dialect, [Count; Disagreement::ALL.len()]>,
    /// In the order of [`no_first_token_names`].
    pub(crate) no_first_token: [Count; Ending::ALL.len() + 1],
    pub(crate) timings: Lazy<Timings>,
    pub(crate) server_reports: Lazy<ServerReports>,
    pub(crate) rate_limits: Lazy<RateLimitCells>,
    /// By concurrency, in the order of [`CONCURRENCY_NAMES`].
    pub(crate) by_concurrency: [Lazy<ByConcurrency>; CONCURRENCY_NAMES.len()],
}

/// The times of exchanges.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    pub(crate) first_byte: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) first_visible: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) first_tool: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    /// By weight, in the order of [`WEIGHTS`].
    pub(crate) inter_token: [Lazy<Histogram<{ GAP_S.len() + 1 }>>; WEIGHTS.len()],
    /// By weight, in the order of [`WEIGHTS`].
    pub(crate) chunk_gap: [Lazy<Histogram<{ GAP_S.len() + 1 }>>; WEIGHTS.len()],
    pub(crate) character_rate: Histogram<{ CHARACTER_RATE.len() + 1 }>,
    /// In the order of [`POSITION_NAMES`].
    pub(crate) position: [Position; POSITION_NAMES.len()],
}

/// The values that servers report about their own work.
#[derive(Debug, Default)]
pub(crate) struct ServerReports {
    pub(crate) queue: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) prefill: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) decode: Histogram<{ DURATION_S.len() + 1 }>,
    pub(crate) draft_tokens: Count,
    pub(crate) accepted_draft_tokens: Count,
}

/// Tokens and time at one range of output positions.
#[derive(Debug, Default)]
pub(crate) struct Position {
    pub(crate) tokens: Count,
    pub(crate) ns: Sum,
}

/// The series by concurrency at the upstream.
#[derive(Debug, Default)]
pub(crate) struct ByConcurrency {
    pub(crate) first_token: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) output_rate: Histogram<{ OUTPUT_RATE.len() + 1 }>,
    pub(crate) input_rate: Histogram<{ INPUT_RATE.len() + 1 }>,
}

impl UpstreamCells {
    /// Adds a finished exchange.
    pub(crate) fn end(&self, record: &Record, trace: Option<&TraceRef>) {
        self.exchanges.make(&record.identity.dialect)[record.ending as usize].add(1);
        self.time(&record.timing, trace);
        self.by_concurrency(record, trace);
    }

    /// Adds the disagreement of a finished exchange or leg.
    pub(crate) fn disagree(&self, record: &Record) {
        let counts = self.disagreements.make(&record.identity.dialect);
        if let Some(disagreement) = record.disagreement {
            counts[disagreement as usize].add(1);
        }
    }

    fn time(&self, timing: &Timing, trace: Option<&TraceRef>) {
        // An exchange that ended before its first byte has no times and needs no cells for them.
        if timing.first_byte_ns.is_some() {
            self.timings.make().end(timing, trace);
        }
        if let Some(report) = &timing.server {
            self.server_reports.make().end(report);
        }
    }

    fn by_concurrency(&self, record: &Record, trace: Option<&TraceRef>) {
        let timing = &record.timing;
        let cells = &self.by_concurrency[concurrency(timing.concurrency)];
        match timing.first_token_ns {
            Some(ns) => cells.make().first_token.seconds_traced(Metric::FirstToken, ns, trace),
            None => self.no_first_token[no_first_token(record)].add(1),
        }
        if let Some(rate) = timing.output_rate {
            cells.make().output_rate.rate(Metric::OutputRate, rate);
        }
        if let Some(rate) = timing.input_rate {
            cells.make().input_rate.rate(Metric::InputRate, rate);
        }
    }
}

impl Timings {
    fn end(&self, timing: &Timing, trace: Option<&TraceRef>) {
        if let Some(ns) = timing.first_byte_ns {
            self.first_byte.seconds(Metric::FirstByte, ns);
        }
        if let Some(ns) = timing.first_visible_ns {
            self.first_visible.seconds(Metric::FirstVisible, ns);
        }
        if let Some(ns) = timing.first_tool_ns {
            self.first_tool.seconds(Metric::FirstTool, ns);
        }
        if let Some(rate) = timing.visible_chars_rate {
            self.character_rate.rate(Metric::CharacterRate, rate);
        }
        let Some(pace) = &timing.pace else { return };
        // If the total was spread over the frames, the gap of a single token is unknown.
        let of_token = trace.filter(|_| timing.weight == Weight::Exact);
        let gaps = [
            (Metric::InterToken, &self.inter_token, &pace.inter_token, timing.longest_token_gap_ns, of_token),
            (Metric::ChunkGap, &self.chunk_gap, &pace.chunk_gap, timing.longest_gap_ns, trace),
        ];
        for (metric, cells, gaps, longest, trace) in gaps {
            if gaps.buckets.iter().any(|n| *n > 0) {
                cells[timing.weight as usize].make().gaps(metric, gaps, longest, trace);
            }
        }
        for (position, span) in self.position.iter().zip(pace.position) {
            position.tokens.add(span.tokens);
            position.ns.add(span.ns);
        }
    }
}

impl ServerReports {
    fn end(&self, report: &ServerReport) {
        if let Some(ns) = report.queue_ns {
            self.queue.seconds(Metric::ServerQueue, ns);
        }
        if let Some(ns) = report.prefill_ns {
            self.prefill.seconds(Metric::ServerPrefill, ns);
        }
        if let Some(ns) = report.decode_ns {
            self.decode.seconds(Metric::ServerDecode, ns);
        }
        self.draft_tokens.add(report.draft_tokens.unwrap_or(0));
        self.accepted_draft_tokens.add(report.accepted_draft_tokens.unwrap_or(0));
    }
}

impl Merge for UpstreamCells {
    fn merge(&self, other: &Self) {
        // Destructured, so that the compiler warns of a new cell that is not summed.
        let Self {
            exchanges,
            disagreements,
            no_first_token,
            timings,
            server_reports,
            rate_limits,
            by_concurrency,
        } = self;
        exchanges.merge(&other.exchanges);
        disagreements.merge(&other.disagreements);
        no_first_token.merge(&other.no_first_token);
        timings.merge(&other.timings);
        server_reports.merge(&other.server_reports);
        rate_limits.merge(&other.rate_limits);
        by_concurrency.merge(&other.by_concurrency);
    }
}

impl Merge for Timings {
    fn merge(&self, other: &Self) {
        let Self { first_byte, first_visible, first_tool, inter_token, chunk_gap, character_rate, position } =
            self;
        first_byte.merge(&other.first_byte);
        first_visible.merge(&other.first_visible);
        first_tool.merge(&other.first_tool);
        inter_token.merge(&other.inter_token);
        chunk_gap.merge(&other.chunk_gap);
        character_rate.merge(&other.character_rate);
        position.merge(&other.position);
    }
}

impl Merge for ServerReports {
    fn merge(&self, other: &Self) {
        let Self { queue, prefill, decode, draft_tokens, accepted_draft_tokens } = self;
        queue.merge(&other.queue);
        prefill.merge(&other.prefill);
        decode.merge(&other.decode);
        draft_tokens.merge(&other.draft_tokens);
        accepted_draft_tokens.merge(&other.accepted_draft_tokens);
    }
}

impl Merge for Position {
    fn merge(&self, other: &Self) {
        let Self { tokens, ns } = self;
        tokens.merge(&other.tokens);
        ns.merge(&other.ns);
    }
}

impl Merge for ByConcurrency {
    fn merge(&self, other: &Self) {
        let Self { first_token, output_rate, input_rate } = self;
        first_token.merge(&other.first_token);
        output_rate.merge(&other.output_rate);
        input_rate.merge(&other.input_rate);
    }
}

/// Returns the bucket of a mean concurrency, rounded to the nearest whole number: an exchange that overlapped another
/// only briefly counts as alone.
fn concurrency(mean: f64) -> usize {
    let nearest = mean.round() as u64;
    CONCURRENCY.partition_point(|upper| *upper < nearest)
}

/// Returns the index of the reason for which an exchange has no time to first token.
fn no_first_token(record: &Record) -> usize {
    if record.ending.is_success() && !record.streamed { Ending::ALL.len() } else { record.ending as usize }
}

/// Returns the label values of [`UpstreamCells::no_first_token`], in its order: the endings, then one for a success
/// that was not streamed.
pub(crate) fn no_first_token_names() -> impl Iterator<Item = &'static str> {
    Ending::ALL.into_iter().map(Ending::name).chain([NOT_STREAMED])
}

/// The weights, in the order of declaration.
pub(crate) const WEIGHTS: [Weight; 2] = [Weight::Exact, Weight::Spread];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_rounded_to_its_bucket() {
        for (mean, name) in [
            (0.0, "1"),
            (1.4, "1"),
            (1.5, "2-4"),
            (4.4, "2-4"),
            (4.5, "5-8"),
            (128.4, "65-128"),
            (128.5, "129+"),
            (1e300, "129+"),
            (f64::NAN, "1"),
        ] {
            assert_eq!(CONCURRENCY_NAMES[concurrency(mean)], name, "{mean}");
        }
    }
}
