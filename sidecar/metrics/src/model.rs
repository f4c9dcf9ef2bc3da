//! One worker's cells for one model. The law: written by that worker alone, at an exchange's start
//! and end and at each look of the live counter; nothing here is touched per frame.

use std::sync::Arc;

use meter::edges::{
    CONCURRENCY, CONCURRENCY_NAMES, DURATION_S, FIRST_TOKEN_S, GAP_S, INPUT_RATE, OUTPUT_RATE, PER_TOKEN_S,
    POSITION_NAMES,
};
use meter::record::Timing;
use meter::{Ending, Provenance, Record, TokenType, Weight};
use scan::{Dialect, ServerTimes};

use crate::cell::{Absorb, Count, Sum};
use crate::histogram::{Histogram, Seen};
use crate::lazy::{Chain, Lazy};
use crate::names::OTHER;
use crate::objective::ObjectiveCells;
use crate::table::{CHARACTER_RATE, Metric, NOT_STREAMED};

mod usage;

pub(crate) use usage::{MODALITIES, Usage};

/// A model's block. What most models need lies in it; the rest hangs off it once it happens.
/// A cache line of its own, so that two workers' blocks never share one.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct ModelCells {
    pub(crate) in_flight: Count,
    pub(crate) live_tokens: Count,
    pub(crate) characters: Count,
    pub(crate) stalls: Count,
    pub(crate) stalled_ns: Sum,
    pub(crate) client_wait_ns: Sum,
    /// In the order of [`no_first_token_names`].
    pub(crate) no_first_token: [Count; Ending::ALL.len() + 1],
    /// By dialect, then by ending in the order of [`Ending::ALL`].
    pub(crate) exchanges: Chain<Dialect, [Count; Ending::ALL.len()]>,
    /// By provenance, then by type, each in the order of its `ALL`.
    pub(crate) tokens: [Lazy<[Count; TokenType::ALL.len()]>; Provenance::ALL.len()],
    pub(crate) timed: Lazy<Timed>,
    pub(crate) served: Lazy<Served>,
    /// By concurrency, in the order of [`CONCURRENCY_NAMES`].
    pub(crate) loaded: [Lazy<Loaded>; CONCURRENCY_NAMES.len()],
    pub(crate) gen_ai: Chain<Flavour, GenAi>,
    /// By the objective's place in the list.
    pub(crate) objectives: Chain<usize, ObjectiveCells>,
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

/// What servers say of their own times.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) queue: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) prefill: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) decode: Histogram<{ DURATION_S.len() + 1 }>,
}

/// Tokens and time at one range of output positions.
#[derive(Debug, Default)]
pub(crate) struct Position {
    pub(crate) tokens: Count,
    pub(crate) ns: Sum,
}

/// What depends on how many exchanges the upstream had at once.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) first_token: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) output_rate: Histogram<{ OUTPUT_RATE.len() + 1 }>,
    pub(crate) input_rate: Histogram<{ INPUT_RATE.len() + 1 }>,
}

/// The semantic convention's series of one flavour; the times are of successes only.
#[derive(Debug, Default)]
pub(crate) struct GenAi {
    pub(crate) usage: Usage,
    pub(crate) first_token: Histogram<{ FIRST_TOKEN_S.len() + 1 }>,
    pub(crate) per_token: Histogram<{ PER_TOKEN_S.len() + 1 }>,
    pub(crate) duration: Histogram<{ DURATION_S.len() + 1 }>,
}

/// What the semantic convention tells apart within a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flavour {
    pub(crate) operation: &'static str,
    pub(crate) provider: Arc<str>,
}

impl ModelCells {
    /// Adds an ended exchange. Its place in flight is not given back here.
    pub(crate) fn end(&self, record: &Record) {
        self.exchanges.make(&record.identity.dialect)[record.ending as usize].add(1);
        self.spend(record);
        self.characters.add(record.visible_chars);
        self.stalls.add(u64::from(record.timing.stalls));
        self.stalled_ns.add(record.timing.stalled_ns);
        self.client_wait_ns.add(record.timing.client_wait_ns);
        let seen = Seen::of(record);
        self.time(&record.timing, seen.as_ref());
        self.load(record, seen.as_ref());
        let flavour = self.flavour(record);
        flavour.usage.end(&record.tokens);
        if record.ending.is_success() {
            flavour.end(&record.timing, seen.as_ref());
        }
    }

    fn spend(&self, record: &Record) {
        for kind in TokenType::ALL {
            let n = record.tokens.of(kind);
            if n > 0 {
                self.tokens[record.tokens.provenance(kind) as usize].make()[kind as usize].add(n);
            }
        }
    }

    fn time(&self, timing: &Timing, seen: Option<&Seen>) {
        // An exchange refused before its first byte has no times; it needs no cells for them.
        if timing.first_byte_ns.is_some() {
            self.timed.make().end(timing, seen);
        }
        if timing.server != ServerTimes::default() {
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

    fn flavour(&self, record: &Record) -> &GenAi {
        let operation = record.identity.dialect.operation();
        let flavour = Flavour { operation, provider: Arc::clone(&record.identity.provider) };
        let met = self.gen_ai.iter().any(|(known, _)| *known == flavour);
        if met || self.gen_ai.iter().count() < FLAVOURS {
            return self.gen_ai.make(&flavour);
        }
        self.gen_ai.make(&Flavour { operation, provider: OTHER.into() })
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
    fn end(&self, said: &ServerTimes) {
        if let Some(ns) = said.queue_ns {
            self.queue.seconds(Metric::ServerQueue, ns);
        }
        if let Some(ns) = said.prefill_ns {
            self.prefill.seconds(Metric::ServerPrefill, ns);
        }
        if let Some(ns) = said.decode_ns {
            self.decode.seconds(Metric::ServerDecode, ns);
        }
    }
}

impl GenAi {
    fn end(&self, timing: &Timing, seen: Option<&Seen>) {
        self.duration.seconds(Metric::GenAiDuration, timing.duration_ns);
        if let Some(ns) = timing.first_token_ns {
            self.first_token.seconds_seen(Metric::GenAiFirstToken, ns, seen);
        }
        if let Some(ns) = timing.per_output_token_ns {
            self.per_token.seconds(Metric::GenAiPerToken, ns);
        }
    }
}

impl Absorb for ModelCells {
    fn absorb(&self, other: &Self) {
        // Taken apart, so that a new cell which is not summed is a warning.
        let Self {
            in_flight,
            live_tokens,
            characters,
            stalls,
            stalled_ns,
            client_wait_ns,
            no_first_token,
            exchanges,
            tokens,
            timed,
            served,
            loaded,
            gen_ai,
            objectives,
        } = self;
        in_flight.absorb(&other.in_flight);
        live_tokens.absorb(&other.live_tokens);
        characters.absorb(&other.characters);
        stalls.absorb(&other.stalls);
        stalled_ns.absorb(&other.stalled_ns);
        client_wait_ns.absorb(&other.client_wait_ns);
        no_first_token.absorb(&other.no_first_token);
        exchanges.absorb(&other.exchanges);
        tokens.absorb(&other.tokens);
        timed.absorb(&other.timed);
        served.absorb(&other.served);
        loaded.absorb(&other.loaded);
        gen_ai.absorb(&other.gen_ai);
        objectives.absorb(&other.objectives);
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
        let Self { queue, prefill, decode } = self;
        queue.absorb(&other.queue);
        prefill.absorb(&other.prefill);
        decode.absorb(&other.decode);
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

impl Absorb for GenAi {
    fn absorb(&self, other: &Self) {
        let Self { usage, first_token, per_token, duration } = self;
        usage.absorb(&other.usage);
        first_token.absorb(&other.first_token);
        per_token.absorb(&other.per_token);
        duration.absorb(&other.duration);
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

/// Label values of [`ModelCells::no_first_token`], in its order: the endings, then one for a success
/// in one piece.
pub(crate) fn no_first_token_names() -> impl Iterator<Item = &'static str> {
    Ending::ALL.into_iter().map(Ending::name).chain([NOT_STREAMED])
}

/// The weights, in the order of their declaration.
pub(crate) const WEIGHTS: [Weight; 2] = [Weight::Exact, Weight::Spread];

/// Flavours of one model before the rest is `_other`: providers are configured and operations are
/// a closed list, so this is met by mistake only.
const FLAVOURS: usize = 16;

#[cfg(test)]
mod tests;
