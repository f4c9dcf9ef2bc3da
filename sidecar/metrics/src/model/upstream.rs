//! One worker's cells for one model at one upstream: endings, times and speeds. The law: made when the
//! first exchange of the model ends there, so that a model costs what the upstreams that serve it need.

use meter::edges::{
    CONCURRENCY, CONCURRENCY_NAMES, DURATION_S, FIRST_TOKEN_S, GAP_S, INPUT_RATE, OUTPUT_RATE, POSITION_NAMES,
};
use meter::record::Timing;
use meter::{Ending, Record, Weight};
use scan::{Dialect, ServerReport};

use crate::cell::{Absorb, Count, Sum};
use crate::histogram::{Histogram, Seen};
use crate::lazy::{Chain, Lazy};
use crate::table::{CHARACTER_RATE, Metric, NOT_STREAMED};

/// The block of a model at an upstream.
#[derive(Debug, Default)]
pub(crate) struct UpstreamCells {
    /// By dialect, then by ending in the order of [`Ending::ALL`].
    pub(crate) exchanges: Chain<Dialect, [Count; Ending::ALL.len()]>,
    /// In the order of [`no_first_token_names`].
    pub(crate) no_first_token: [Count; Ending::ALL.len() + 1],
    pub(crate) timed: Lazy<Timed>,
    pub(crate) served: Lazy<Served>,
    /// By concurrency, in the order of [`CONCURRENCY_NAMES`].
    pub(crate) loaded: [Lazy<Loaded>; CONCURRENCY_NAMES.len()],
}

/// How long the parts of an exchange took.
#[derive(Debug, Default)]
pub(crate) struct Timed {
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

/// The reports of servers on their own work.
#[derive(Debug, Default)]
pub(crate) struct Served {
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
pub(crate) struct Loaded {
    pub(crate) first_token: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) output_rate: Histogram<{ OUTPUT_RATE.len() + 1 }>,
    pub(crate) input_rate: Histogram<{ INPUT_RATE.len() + 1 }>,
}

impl UpstreamCells {
    /// Adds an ended exchange.
    pub(crate) fn end(&self, record: &Record, seen: Option<&Seen>) {
        self.exchanges.make(&record.identity.dialect)[record.ending as usize].add(1);
        self.time(&record.timing, seen);
        self.load(record, seen);
    }

    fn time(&self, timing: &Timing, seen: Option<&Seen>) {
        // An exchange refused before its first byte has no times; it needs no cells for them.
        if timing.first_byte_ns.is_some() {
            self.timed.make().end(timing, seen);
        }
        if timing.server != ServerReport::default() {
            self.served.make().end(&timing.server);
        }
    }

    fn load(&self, record: &Record, seen: Option<&Seen>) {
        let timing = &record.timing;
        let loaded = &self.loaded[concurrency(timing.concurrency)];
        match timing.first_token_ns {
            Some(ns) => loaded.make().first_token.seconds_seen(Metric::FirstToken, ns, seen),
            None => self.no_first_token[no_first_token(record)].add(1),
        }
        if let Some(rate) = timing.output_rate {
            loaded.make().output_rate.rate(Metric::OutputRate, rate);
        }
        if let Some(rate) = timing.input_rate {
            loaded.make().input_rate.rate(Metric::InputRate, rate);
        }
    }
}

impl Timed {
    fn end(&self, timing: &Timing, seen: Option<&Seen>) {
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
        // Where a total was spread over the frames, no token's own gap is known.
        let of_token = seen.filter(|_| timing.weight == Weight::Exact);
        let gaps = [
            (
                Metric::InterToken,
                &self.inter_token,
                &timing.inter_token,
                timing.longest_token_gap_ns,
                of_token,
            ),
            (Metric::ChunkGap, &self.chunk_gap, &timing.chunk_gap, timing.longest_gap_ns, seen),
        ];
        for (metric, cells, gaps, longest, seen) in gaps {
            if gaps.buckets.iter().any(|n| *n > 0) {
                cells[timing.weight as usize].make().gaps(metric, gaps, longest, seen);
            }
        }
        for (position, span) in self.position.iter().zip(timing.position) {
            position.tokens.add(span.tokens);
            position.ns.add(span.ns);
        }
    }
}

impl Served {
    fn end(&self, said: &ServerReport) {
        if let Some(ns) = said.queue_ns {
            self.queue.seconds(Metric::ServerQueue, ns);
        }
        if let Some(ns) = said.prefill_ns {
            self.prefill.seconds(Metric::ServerPrefill, ns);
        }
        if let Some(ns) = said.decode_ns {
            self.decode.seconds(Metric::ServerDecode, ns);
        }
        self.draft_tokens.add(said.draft_tokens.unwrap_or(0));
        self.accepted_draft_tokens.add(said.accepted_draft_tokens.unwrap_or(0));
    }
}

impl Absorb for UpstreamCells {
    fn absorb(&self, other: &Self) {
        // Taken apart, so that a new cell which is not summed is a warning.
        let Self { exchanges, no_first_token, timed, served, loaded } = self;
        exchanges.absorb(&other.exchanges);
        no_first_token.absorb(&other.no_first_token);
        timed.absorb(&other.timed);
        served.absorb(&other.served);
        loaded.absorb(&other.loaded);
    }
}

impl Absorb for Timed {
    fn absorb(&self, other: &Self) {
        let Self { first_byte, first_visible, first_tool, inter_token, chunk_gap, character_rate, position } =
            self;
        first_byte.absorb(&other.first_byte);
        first_visible.absorb(&other.first_visible);
        first_tool.absorb(&other.first_tool);
        inter_token.absorb(&other.inter_token);
        chunk_gap.absorb(&other.chunk_gap);
        character_rate.absorb(&other.character_rate);
        position.absorb(&other.position);
    }
}

impl Absorb for Served {
    fn absorb(&self, other: &Self) {
        let Self { queue, prefill, decode, draft_tokens, accepted_draft_tokens } = self;
        queue.absorb(&other.queue);
        prefill.absorb(&other.prefill);
        decode.absorb(&other.decode);
        draft_tokens.absorb(&other.draft_tokens);
        accepted_draft_tokens.absorb(&other.accepted_draft_tokens);
    }
}

impl Absorb for Position {
    fn absorb(&self, other: &Self) {
        let Self { tokens, ns } = self;
        tokens.absorb(&other.tokens);
        ns.absorb(&other.ns);
    }
}

impl Absorb for Loaded {
    fn absorb(&self, other: &Self) {
        let Self { first_token, output_rate, input_rate } = self;
        first_token.absorb(&other.first_token);
        output_rate.absorb(&other.output_rate);
        input_rate.absorb(&other.input_rate);
    }
}

/// The bucket of a mean concurrency: of the whole number nearest to it, since an exchange that
/// overlapped another for a moment had the server to itself.
fn concurrency(mean: f64) -> usize {
    let nearest = mean.round() as u64;
    CONCURRENCY.partition_point(|upper| *upper < nearest)
}

/// Why an exchange has no time to first token.
fn no_first_token(record: &Record) -> usize {
    if record.ending.is_success() && !record.streamed { Ending::ALL.len() } else { record.ending as usize }
}

/// Label values of [`UpstreamCells::no_first_token`], in its order: the endings, then one for a success
/// in one piece.
pub(crate) fn no_first_token_names() -> impl Iterator<Item = &'static str> {
    Ending::ALL.into_iter().map(Ending::name).chain([NOT_STREAMED])
}

/// The weights, in the order of their declaration.
pub(crate) const WEIGHTS: [Weight; 2] = [Weight::Exact, Weight::Spread];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_concurrency_is_rounded_before_it_is_put_in_a_bucket() {
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
