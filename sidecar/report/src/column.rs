//! The columns of a report for programs, beside its keys: one for each fact of a row.

use std::fmt;

use meter::{Provenance, TokenType};
use text::{Decimal, money, nano};

use super::group::Group;
use super::query::{Basis, Idle, Query};
use super::sums;
use super::units::{self, Direction};

/// A column of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The class of GPU time and energy: `used` by exchanges, or idle.
    Share,
    /// Exchanges.
    Exchanges,
    /// All prompt tokens.
    InputTokens,
    /// All generated tokens.
    OutputTokens,
    /// Tokens of a kind.
    Tokens(TokenType),
    /// Seconds of GPU time.
    GpuSeconds,
    /// Joules.
    EnergyJoules,
    /// The cost of the GPU time.
    GpuHoursCost,
    /// The cost of the energy.
    EnergyCost,
    /// The cost by the report's basis.
    Cost,
    /// The part of the cost that is idle GPU cost, allocated to the tenant.
    Allocated,
    /// The currency of the cost.
    Currency,
    /// Exchanges without a cost in the report.
    UnpricedExchanges,
    /// Answered exchanges whose prompt is not counted.
    UncountedPrompts,
    /// The cost of a million prompt tokens.
    CostPerInput,
    /// The cost of a million generated tokens.
    CostPerOutput,
    /// The cost of a million tokens of both.
    CostPerTokens,
    /// The cost of an exchange.
    CostPerExchange,
    /// The cost by another price book.
    WhatIfCost,
    /// The currency of that book.
    WhatIfCurrency,
    /// Exchanges without a cost by that book.
    WhatIfUnpriced,
    /// The share of input tokens with this provenance.
    InputKnown(Provenance),
    /// The share of output tokens with this provenance.
    OutputKnown(Provenance),
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A whole number.
    Number(i128),
    /// A decimal number.
    Decimal(Decimal),
    /// A word.
    Text(String),
    /// Unknown.
    Unknown,
}

impl fmt::Display for Cell {
    /// Returns [`Cell::Null`] for an unknown value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Decimal(decimal) => decimal.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Unknown => Ok(()),
        }
    }
}

impl Column {
    /// Returns every column of the report of a query.
    pub fn all(query: &Query) -> Vec<Self> {
        let gpu = query.basis == Basis::Gpu;
        let mut columns = Vec::new();
        columns.extend(gpu.then_some(Self::Share));
        columns.extend([Self::Exchanges, Self::InputTokens, Self::OutputTokens]);
        columns.extend(TokenType::ALL.map(Self::Tokens));
        if gpu {
            columns.extend([Self::GpuSeconds, Self::EnergyJoules, Self::GpuHoursCost, Self::EnergyCost]);
        }
        columns.push(Self::Cost);
        columns.extend((gpu && query.idle != Idle::None).then_some(Self::Allocated));
        columns.extend([Self::Currency, Self::UnpricedExchanges, Self::UncountedPrompts]);
        if query.what_if.is_some() {
            columns.extend([Self::WhatIfCost, Self::WhatIfCurrency, Self::WhatIfUnpriced]);
        }
        // GPU cost is not divided by the direction of tokens.
        columns.extend([Self::CostPerInput, Self::CostPerOutput].into_iter().filter(|_| !gpu));
        columns.extend([Self::CostPerTokens, Self::CostPerExchange]);
        columns.extend(Provenance::ALL.map(Self::InputKnown));
        columns.extend(Provenance::ALL.map(Self::OutputKnown));
        columns
    }

    /// Returns the default columns of a spreadsheet: all without types of token, costs of a unit, and shares of
    /// provenances.
    pub fn usual(query: &Query) -> Vec<Self> {
        let is_special = |column: &Self| {
            matches!(
                column,
                Self::Tokens(_)
                    | Self::CostPerInput
                    | Self::CostPerOutput
                    | Self::CostPerTokens
                    | Self::CostPerExchange
                    | Self::InputKnown(_)
                    | Self::OutputKnown(_)
            )
        };
        Self::all(query).into_iter().filter(|column| !is_special(column)).collect()
    }

    /// Returns true if its values are words.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Share | Self::Currency | Self::WhatIfCurrency)
    }

    /// The name of the column.
    pub fn name(self) -> String {
        match self {
            Self::Share => "share",
            Self::Exchanges => "exchanges",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Tokens(kind) => kind.name(),
            Self::GpuSeconds => "gpu_seconds",
            Self::EnergyJoules => "energy_joules",
            Self::GpuHoursCost => "gpu_hours_cost",
            Self::EnergyCost => "energy_cost",
            Self::Cost => "cost",
            Self::Allocated => "allocated",
            Self::Currency => "currency",
            Self::UnpricedExchanges => "unpriced_exchanges",
            Self::UncountedPrompts => "uncounted_prompts",
            Self::CostPerInput => "cost_per_1m_input",
            Self::CostPerOutput => "cost_per_1m_output",
            Self::CostPerTokens => "cost_per_1m_tokens",
            Self::CostPerExchange => "cost_per_exchange",
            Self::WhatIfCost => "what_if_cost",
            Self::WhatIfCurrency => "what_if_currency",
            Self::WhatIfUnpriced => "what_if_unpriced_exchanges",
            Self::InputKnown(known) => return format!("input_{}", known.name()),
            Self::OutputKnown(known) => return format!("output_{}", known.name()),
        }
        .to_owned()
    }

    /// Returns the cell of a group in this column. `round`: digits of money after the point; all if `None`.
    pub fn cell(self, group: &Group, query: &Query, round: Option<u32>) -> Cell {
        let (sums, basis) = (&group.sums, query.basis);
        let cost = group.cost(basis);
        let measured = cost.filter(|_| group.without_cost(basis) == 0);
        let decimal = |decimal: Option<Decimal>| decimal.map_or(Cell::Unknown, Cell::Decimal);
        let of_gpu = |decimal| if cost.is_some() { Cell::Decimal(decimal) } else { Cell::Unknown };
        match self {
            // A total covers all shares.
            Self::Share if group.is_total => Cell::Unknown,
            Self::Share => Cell::Text(group.share.map_or("used", |share| share.mark()).to_owned()),
            Self::Exchanges => Cell::Number(sums.exchanges),
            Self::InputTokens => Cell::Number(sums.input()),
            Self::OutputTokens => Cell::Number(sums.output()),
            Self::Tokens(kind) => Cell::Number(sums.tokens[kind as usize]),
            Self::GpuSeconds => of_gpu(nano(sums.gpu.gpu_ns)),
            Self::EnergyJoules => of_gpu(nano(sums.gpu.energy_nj)),
            Self::GpuHoursCost => of_gpu(rounded(sums.gpu.gpu_hours_pico, round)),
            Self::EnergyCost => of_gpu(rounded(sums.gpu.gpu_energy_pico, round)),
            Self::Cost => cost.map_or(Cell::Unknown, |cost| Cell::Decimal(rounded(cost, round))),
            Self::Allocated => of_gpu(rounded(sums.allocated_pico, round)),
            Self::Currency => group.currency.map_or(Cell::Unknown, |is| Cell::Text(is.code().to_owned())),
            Self::UnpricedExchanges => Cell::Number(group.without_cost(basis)),
            Self::UncountedPrompts => Cell::Number(sums.uncounted_prompts),
            Self::CostPerInput => decimal(sums.units.of(Direction::Input, sums.cost_pico, round)),
            Self::CostPerOutput => decimal(sums.units.of(Direction::Output, sums.cost_pico, round)),
            Self::CostPerTokens => decimal(match basis {
                Basis::Price => sums.units.of_tokens(sums.cost_pico, round),
                Basis::Gpu => {
                    measured.and_then(|cost| units::million(cost, sums.input() + sums.output(), round))
                }
            }),
            Self::CostPerExchange => decimal(match basis {
                Basis::Price => units::each(sums.cost_pico, sums.exchanges - sums.unpriced, round),
                Basis::Gpu => measured.and_then(|cost| units::each(cost, sums.exchanges, round)),
            }),
            Self::WhatIfCost => decimal(group.what_if().map(|cost| rounded(cost, round))),
            Self::WhatIfCurrency => match (&query.what_if, group.what_if()) {
                (Some(what_if), Some(_)) => Cell::Text(what_if.book.currency().code().to_owned()),
                _ => Cell::Unknown,
            },
            Self::WhatIfUnpriced => Cell::Number(group.without_what_if()),
            Self::InputKnown(known) => share(&sums.input_known, known),
            Self::OutputKnown(known) => share(&sums.output_known, known),
        }
    }
}

/// Formats money of pico-units, rounded to `digits` decimals if given.
pub(crate) fn rounded(pico: i128, round: Option<u32>) -> Decimal {
    round.map_or(money(pico), |places| money(pico).round(places))
}

fn share(counts: &[i128; sums::PROVENANCES], known: Provenance) -> Cell {
    let share = sums::shares(counts).into_iter().find(|(is, _)| *is == known);
    share.map_or(Cell::Unknown, |(_, millionths)| Cell::Decimal(share_of(millionths)))
}

/// Formats a share in millionths.
pub(crate) fn share_of(millionths: u32) -> Decimal {
    Decimal { units: i128::from(millionths), digits: 6, least: 0 }
}
