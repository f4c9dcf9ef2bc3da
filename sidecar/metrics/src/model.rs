//! One worker's cells for one model. The law: written by that worker alone, at an exchange's start
//! and end and at each look of the live counter; nothing here is touched per frame.

use std::sync::Arc;

use meter::{Provenance, Record, TokenType};

use crate::cell::{Absorb, Count, Sum};
use crate::histogram::Seen;
use crate::labels::Traffic;
use crate::lazy::{Chain, Lazy};
use crate::leg::{LEGS, LegCells};
use crate::names::OTHER;
use crate::objective::ObjectiveCells;
use crate::semconv::Semconv;
use crate::upstream::Address;

mod gen_ai;
mod upstream;
mod usage;

pub(crate) use gen_ai::{Chunks, Flavour, GenAi, Operations};
pub(crate) use upstream::{Loaded, Position, Served, Timed, UpstreamCells, WEIGHTS, no_first_token_names};
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
    /// By provenance, then by type, each in the order of its `ALL`.
    pub(crate) tokens: [Lazy<[Count; TokenType::ALL.len()]>; Provenance::ALL.len()],
    /// By the upstream's name: as many as are configured, and of those the ones that served the model.
    pub(crate) upstreams: Chain<Arc<str>, UpstreamCells>,
    pub(crate) gen_ai: Chain<Flavour, GenAi>,
    /// By the objective's place in the list.
    pub(crate) objectives: Chain<usize, ObjectiveCells>,
    /// In the order of [`LEGS`].
    pub(crate) legs: [Lazy<LegCells>; LEGS.len()],
}

impl ModelCells {
    /// Adds an ended exchange to the legs, if it is one.
    pub(crate) fn end_leg(&self, record: &Record) {
        if let Some(at) = LEGS.iter().position(|role| *role == record.identity.role) {
            self.legs[at].make().end(record);
        }
    }

    /// Adds an ended exchange. Its place in flight is not given back here.
    pub(crate) fn end(&self, record: &Record, server: Option<Address>, semconv: Semconv) {
        self.spend(record);
        self.characters.add(record.visible_chars);
        self.stalls.add(u64::from(record.timing.stalls));
        self.stalled_ns.add(record.timing.stalled_ns);
        self.client_wait_ns.add(record.timing.client_wait_ns);
        let seen = Seen::of(record);
        self.upstreams.make(&record.identity.upstream).end(record, seen.as_ref());
        let flavour = Flavour {
            operation: record.identity.dialect.operation(),
            provider: Arc::clone(&record.identity.provider),
            server,
        };
        self.flavour(&flavour).end(record, flavour.embeds(), semconv, seen.as_ref());
    }

    fn spend(&self, record: &Record) {
        for kind in TokenType::ALL {
            let n = record.tokens.of(kind);
            if n > 0 {
                self.tokens[record.tokens.provenance(kind) as usize].make()[kind as usize].add(n);
            }
        }
    }

    fn flavour(&self, flavour: &Flavour) -> &GenAi {
        if self.gen_ai.get(flavour).is_some() || self.gen_ai.iter().count() < MAX_FLAVOURS {
            return self.gen_ai.make(flavour);
        }
        self.gen_ai.make(&Flavour { operation: flavour.operation, provider: OTHER.into(), server: None })
    }
}

impl Traffic for ModelCells {
    fn exchanges(&self) -> u64 {
        meter::Ending::ALL.into_iter().map(|ending| self.ended(ending)).fold(0, u64::saturating_add)
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
            tokens,
            upstreams,
            gen_ai,
            objectives,
            legs,
        } = self;
        in_flight.absorb(&other.in_flight);
        live_tokens.absorb(&other.live_tokens);
        characters.absorb(&other.characters);
        stalls.absorb(&other.stalls);
        stalled_ns.absorb(&other.stalled_ns);
        client_wait_ns.absorb(&other.client_wait_ns);
        tokens.absorb(&other.tokens);
        upstreams.absorb(&other.upstreams);
        gen_ai.absorb(&other.gen_ai);
        objectives.absorb(&other.objectives);
        legs.absorb(&other.legs);
    }
}

/// Flavours of one model before the rest is `_other`: providers and addresses are configured and
/// operations are a closed list, so this is met by a model on very many upstreams only.
const MAX_FLAVOURS: usize = 64;

#[cfg(test)]
mod tests;
