//! One worker's cells for one model. Invariant: only that worker writes them, when an exchange begins or ends and when
//! the live counter is updated, never per frame.

use std::sync::Arc;

use meter::{Provenance, Record, TokenType};

use crate::cell::{Count, Merge, Sum};
use crate::histogram::TraceRef;
use crate::labels::Traffic;
use crate::lazy::{Chain, Lazy};
use crate::leg::{LEGS, LegCells};
use crate::names::OTHER;
use crate::objective::ObjectiveCells;
use crate::semconv::Semconv;
use crate::upstream::Address;

mod gen_ai;
mod rate_limits;
mod upstream;
mod usage;

pub(crate) use gen_ai::{Chunks, GenAi, GenAiAttributes, Operations};
pub(crate) use rate_limits::{QuotaCells, RateLimitCells};
pub(crate) use upstream::{
    ByConcurrency, Position, ServerReports, Timings, UpstreamCells, WEIGHTS, no_first_token_names,
};
pub(crate) use usage::{MODALITIES, Usage};

/// A model's block. Cells that most models use are inline; the others are allocated on first use. It is aligned to a
/// cache line, so that two workers' blocks never share one.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct ModelCells {
    pub(crate) in_flight: Count,
    pub(crate) live_tokens: Count,
    pub(crate) characters: Count,
    pub(crate) stalls: Count,
    pub(crate) stalled_ns: Sum,
    pub(crate) client_wait_ns: Sum,
    /// By provenance, then by type, each in the order of its `ALL`.
    pub(crate) tokens: [Lazy<[Count; TokenType::ALL.len()]>; Provenance::ALL.len()],
    /// By the name of the upstreams that served the model.
    pub(crate) upstreams: Chain<Arc<str>, UpstreamCells>,
    pub(crate) gen_ai: Chain<GenAiAttributes, GenAi>,
    /// By the objective's index.
    pub(crate) objectives: Chain<usize, ObjectiveCells>,
    /// In the order of [`LEGS`].
    pub(crate) legs: [Lazy<LegCells>; LEGS.len()],
}

impl ModelCells {
    /// Adds a finished exchange to the legs, if it is a leg.
    pub(crate) fn end_leg(&self, record: &Record) {
        if let Some(at) = LEGS.iter().position(|role| *role == record.identity.role) {
            self.legs[at].make().end(record);
        }
    }

    /// Adds the disagreement of a finished exchange or leg.
    pub(crate) fn disagree(&self, record: &Record) {
        self.upstreams.make(&record.identity.upstream).disagree(record);
    }

    /// Adds a finished exchange. It does not change `in_flight`.
    pub(crate) fn end(&self, record: &Record, server: Option<Address>, semconv: Semconv) {
        self.add_tokens(record);
        self.characters.add(record.visible_chars);
        self.stalls.add(u64::from(record.timing.stalls));
        self.stalled_ns.add(record.timing.stalled_ns);
        self.client_wait_ns.add(record.timing.client_wait_ns);
        let trace = TraceRef::of(record);
        self.upstreams.make(&record.identity.upstream).end(record, trace.as_ref());
        let attributes = GenAiAttributes {
            operation: record.identity.dialect.operation(),
            provider: Arc::clone(&record.identity.provider),
            server,
        };
        let is_embedding = attributes.is_embedding();
        self.gen_ai(&attributes).end(record, is_embedding, semconv, trace.as_ref());
    }

    fn add_tokens(&self, record: &Record) {
        for kind in TokenType::ALL {
            let n = record.tokens.of(kind);
            if n > 0 {
                self.tokens[record.tokens.provenance(kind) as usize].make()[kind as usize].add(n);
            }
        }
    }

    fn gen_ai(&self, attributes: &GenAiAttributes) -> &GenAi {
        if let Some(known) = self.gen_ai.get(attributes) {
            return known;
        }
        if self.gen_ai.iter().count() < MAX_ATTRIBUTE_SETS {
            return self.gen_ai.make(attributes);
        }
        let operation = attributes.operation;
        self.gen_ai.make(&GenAiAttributes { operation, provider: OTHER.into(), server: None })
    }
}

impl Traffic for ModelCells {
    fn exchanges(&self) -> u64 {
        let endings = self.upstreams.iter().flat_map(|(_, cells)| cells.exchanges.iter());
        endings.flat_map(|(_, endings)| endings).map(Count::get).fold(0, u64::saturating_add)
    }
}

impl Merge for ModelCells {
    fn merge(&self, other: &Self) {
        // Destructured, so that the compiler warns of a new cell that is not summed.
        let Self {
            in_flight,
            live_tokens,
            characters,
            stalls,
            stalled_ns,
            client_wait_ns,
            tokens,
            upstreams,
            gen_ai,
            objectives,
            legs,
        } = self;
        in_flight.merge(&other.in_flight);
        live_tokens.merge(&other.live_tokens);
        characters.merge(&other.characters);
        stalls.merge(&other.stalls);
        stalled_ns.merge(&other.stalled_ns);
        client_wait_ns.merge(&other.client_wait_ns);
        tokens.merge(&other.tokens);
        upstreams.merge(&other.upstreams);
        gen_ai.merge(&other.gen_ai);
        objectives.merge(&other.objectives);
        legs.merge(&other.legs);
    }
}

/// Maximum number of attribute sets of one model; further ones are `_other`. Providers and addresses are configured and
/// operations are a closed list, so that only a model on very many upstreams reaches it.
const MAX_ATTRIBUTE_SETS: usize = 64;

#[cfg(test)]
mod tests;
