//! The columns of a report for programs, beside its keys: one for each fact of a row.

use std::fmt;

use meter::{Provenance, TokenType};
use text::{Decimal, money, nano};

use super::group::Group;
use super::query::Basis;
use super::sums;

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
    /// The currency of the cost.
    Currency,
    /// Exchanges without a cost in the report.
    UnpricedExchanges,
    /// Answered exchanges whose prompt is not counted.
    UncountedPrompts,
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
    /// Returns every column of reports by a basis.
    pub fn all(basis: Basis) -> Vec<Self> {
        let gpu = basis == Basis::Gpu;
        let mut columns = Vec::new();
        columns.extend(gpu.then_some(Self::Share));
        columns.extend([Self::Exchanges, Self::InputTokens, Self::OutputTokens]);
        columns.extend(TokenType::ALL.map(Self::Tokens));
        if gpu {
            columns.extend([Self::GpuSeconds, Self::EnergyJoules, Self::GpuHoursCost, Self::EnergyCost]);
        }
        columns.extend([Self::Cost, Self::Currency, Self::UnpricedExchanges, Self::UncountedPrompts]);
        columns.extend(Provenance::ALL.map(Self::InputKnown));
        columns.extend(Provenance::ALL.map(Self::OutputKnown));
        columns
    }

    /// Returns the default columns of a spreadsheet: all without types of token and shares of provenances.
    pub fn usual(basis: Basis) -> Vec<Self> {
        let is_special =
            |column: &Self| matches!(column, Self::Tokens(_) | Self::InputKnown(_) | Self::OutputKnown(_));
        Self::all(basis).into_iter().filter(|column| !is_special(column)).collect()
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
            Self::Currency => "currency",
            Self::UnpricedExchanges => "unpriced_exchanges",
            Self::UncountedPrompts => "uncounted_prompts",
            Self::InputKnown(known) => return format!("input_{}", known.name()),
            Self::OutputKnown(known) => return format!("output_{}", known.name()),
        }
        .to_owned()
    }

    /// Returns the cell of a group in this column. `round`: digits of money after the point; all if `None`.
    pub fn cell(self, group: &Group, basis: Basis, round: Option<u32>) -> Cell {
        let sums = &group.sums;
        let cost = group.cost(basis);
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
            Self::Currency => group.currency.map_or(Cell::Unknown, |is| Cell::Text(is.code().to_owned())),
            Self::UnpricedExchanges => Cell::Number(group.without_cost(basis)),
            Self::UncountedPrompts => Cell::Number(sums.uncounted_prompts),
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
