//! What exchanges of one line have in common, and how a line grows.

use std::sync::Arc;

use meter::{Provenance, Role, TokenType};

use crate::line::{Class, Line};
use crate::source::Used;
use crate::{Row, month};

/// The keys of a line; the fields are the line's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Days since 1970-01-01, UTC.
    pub day: i32,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The key or account.
    pub principal: Option<Arc<str>>,
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The requested model.
    pub model: Arc<str>,
    /// The ending.
    pub ending: Arc<str>,
    /// The provenance of the input counts.
    pub input_provenance: Provenance,
    /// The provenance of the output counts.
    pub output_provenance: Provenance,
    /// The id of the rate; `None` without a price.
    pub rate: Option<[u8; 16]>,
    /// The kind of line.
    pub class: Class,
}

impl Key {
    /// Of the line that a row is added to.
    pub fn of_row(row: &Row, class: Class) -> Self {
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
    pub fn of(line: &Line) -> Self {
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
    pub fn line(self) -> Line {
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

/// The line that a row alone would make.
pub fn line_of(row: &Row, used: Option<&Used>) -> Line {
    let mut line = Key::of_row(row, Class::Usage).line();
    line.add_row(row);
    if let Some(used) = used {
        line.add_used(used, row.role);
    }
    line
}

impl Line {
    /// Adds what another line of the same keys says. A count that would pass 2^64 stays there; no store
    /// takes half of that.
    pub fn add(&mut self, other: &Self) {
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
    pub fn add_row(&mut self, row: &Row) {
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
    pub fn add_used(&mut self, used: &Used, role: Role) {
        self.energy_exchanges = self.energy_exchanges.saturating_add(u64::from(role.is_counted()));
        self.energy_nj += i128::from(used.energy_nj.unwrap_or(0));
        self.gpu_ns += i128::from(used.gpu_ns.unwrap_or(0));
        self.gpu_hours_pico += i128::from(used.gpu_hours_pico);
        self.gpu_energy_pico += i128::from(used.gpu_energy_pico);
    }
}
