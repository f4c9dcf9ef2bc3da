//! What exchanges of one line have in common, and how a line grows.

use std::sync::Arc;

use meter::{Provenance, Role, TokenType};

use crate::line::{Class, Line};
use crate::report::source::Used;
use crate::{Row, month};

/// The keys of a line; the fields are the line's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub day: i32,
    pub tenant: Arc<str>,
    pub principal: Option<Arc<str>>,
    pub upstream: Arc<str>,
    pub provider: Arc<str>,
    pub model: Arc<str>,
    pub ending: Arc<str>,
    pub input_provenance: Provenance,
    pub output_provenance: Provenance,
    pub rate: Option<[u8; 16]>,
    pub class: Class,
}

impl Key {
    /// Of the line that a row is added to.
    pub(crate) fn of_row(row: &Row, class: Class) -> Self {
        Self {
            day: month::day(row.ended_us),
            tenant: Arc::clone(&row.tenant),
            principal: row.principal.clone(),
            upstream: Arc::clone(&row.upstream),
            provider: Arc::clone(&row.provider),
            model: Arc::clone(&row.model),
            ending: Arc::clone(&row.ending),
            input_provenance: row.tokens.input_provenance,
            output_provenance: row.tokens.output_provenance,
            rate: row.rate(),
            class,
        }
    }

    /// Of a line.
    pub(crate) fn of(line: &Line) -> Self {
        Self {
            day: line.day,
            tenant: Arc::clone(&line.tenant),
            principal: line.principal.clone(),
            upstream: Arc::clone(&line.upstream),
            provider: Arc::clone(&line.provider),
            model: Arc::clone(&line.model),
            ending: Arc::clone(&line.ending),
            input_provenance: line.input_provenance,
            output_provenance: line.output_provenance,
            rate: line.rate,
            class: line.class,
        }
    }

    /// The line with these keys and nothing in it.
    pub(crate) fn line(self) -> Line {
        Line {
            day: self.day,
            tenant: self.tenant,
            principal: self.principal,
            upstream: self.upstream,
            provider: self.provider,
            model: self.model,
            ending: self.ending,
            input_provenance: self.input_provenance,
            output_provenance: self.output_provenance,
            rate: self.rate,
            class: self.class,
            exchanges: 0,
            tokens: [0; TokenType::ALL.len()],
            cost_pico: 0,
            energy_exchanges: 0,
            energy_nj: 0,
            gpu_ns: 0,
            gpu_hours_pico: 0,
            gpu_energy_pico: 0,
        }
    }
}

impl Line {
    /// Adds what another line of the same keys says. A count that would pass 2^64 stays there; no store
    /// takes half of that.
    pub(crate) fn add(&mut self, other: &Self) {
        self.exchanges = self.exchanges.saturating_add(other.exchanges);
        for (sum, count) in self.tokens.iter_mut().zip(&other.tokens) {
            *sum = sum.saturating_add(*count);
        }
        self.cost_pico += other.cost_pico;
        self.energy_exchanges = self.energy_exchanges.saturating_add(other.energy_exchanges);
        self.energy_nj += other.energy_nj;
        self.gpu_ns += other.gpu_ns;
        self.gpu_hours_pico += other.gpu_hours_pico;
        self.gpu_energy_pico += other.gpu_energy_pico;
    }

    /// Adds one exchange; of a prefill leg nothing, because its decode leg is counted.
    pub(crate) fn add_row(&mut self, row: &Row) {
        if !row.role.is_counted() {
            return;
        }
        self.exchanges = self.exchanges.saturating_add(1);
        for (sum, count) in self.tokens.iter_mut().zip(&row.tokens.by_type) {
            *sum = sum.saturating_add(*count);
        }
        self.cost_pico += row.charge.cost().map_or(0, i128::from);
    }

    /// Adds what one exchange or leg used of the GPUs.
    pub(crate) fn add_used(&mut self, used: &Used, role: Role) {
        self.energy_exchanges = self.energy_exchanges.saturating_add(u64::from(role.is_counted()));
        self.energy_nj += i128::from(used.energy_nj.unwrap_or(0));
        self.gpu_ns += i128::from(used.gpu_ns.unwrap_or(0));
        self.gpu_hours_pico += i128::from(used.gpu_hours_pico);
        self.gpu_energy_pico += i128::from(used.gpu_energy_pico);
    }
}
