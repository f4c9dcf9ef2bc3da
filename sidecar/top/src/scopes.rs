//! The tables of models and tenants.

use live::Scope;

use crate::dashboard::{Dashboard, Section, TableView};
use crate::number::{count, money, percent, real, time};
use crate::style::Tone;
use crate::table::{Cell, Head, sort};

/// A column of a table of scopes: its heading, its least width, and its cell.
pub(crate) type Column = (&'static str, usize, fn(&Scope) -> Cell);

/// The columns of the models, the most important ones first.
pub(crate) const MODELS: &[Column] = &[
    ("", 8, name),
    ("tokens/s", 8, rate),
    ("in flight", 9, |scope| Cell::of(scope.point.in_flight, real)),
    ("first p50", 9, |scope| Cell::of(scope.point.first_token_p50_seconds, time)),
    ("p99", 7, |scope| Cell::of(scope.point.first_token_p99_seconds, time)),
    ("speed", 6, |scope| Cell::of(scope.point.request_tokens_per_second_p50, real)),
    ("per hour", 8, per_hour),
    ("errors", 6, errors),
    ("aborts", 6, aborts),
    ("output", 7, output),
    ("goodput", 7, goodput),
    ("per 1M", 8, per_million),
    ("spend", 8, spend),
];

/// The columns of the tenants, the most important ones first.
pub(crate) const TENANTS: &[Column] = &[
    ("", 8, name),
    ("tokens/s", 8, rate),
    ("per hour", 8, per_hour),
    ("spend", 8, spend),
    ("budget", 7, used),
    ("forecast", 8, forecast),
    ("exchanges", 9, |scope| Cell::count(scope.totals.exchanges)),
    ("errors", 6, errors),
    ("aborts", 6, aborts),
    ("output", 7, output),
    ("goodput", 7, goodput),
    ("per 1M", 8, per_million),
];

impl Dashboard {
    /// Returns the rows of a section's table in their order; empty for a section without one.
    pub(crate) fn rows(&self, section: Section) -> Vec<&Scope> {
        let (scopes, view, columns) = match section {
            Section::Models => (&self.now.models, &self.models, MODELS),
            Section::Tenants => (&self.now.tenants, &self.tenants, TENANTS),
            _ => return Vec::new(),
        };
        let Some(column) = view.sort else {
            let rows = scopes.iter();
            return if view.is_reversed { rows.rev().collect() } else { rows.collect() };
        };
        let mut rows: Vec<_> = scopes.iter().map(|scope| (scope, cells(columns, scope))).collect();
        sort(&mut rows, column, !view.is_reversed);
        rows.into_iter().map(|(scope, _)| scope).collect()
    }
}

/// Returns the cells of a row.
pub(crate) fn cells(columns: &[Column], scope: &Scope) -> Vec<Cell> {
    columns.iter().map(|(_, _, cell)| cell(scope)).collect()
}

/// Returns the headings.
pub(crate) fn heads(columns: &[Column]) -> Vec<Head> {
    columns.iter().map(|(head, width, _)| (*head, *width)).collect()
}

/// Returns the sorted column, and true if downwards.
pub(crate) fn sorted(view: &TableView) -> Option<(usize, bool)> {
    view.sort.map(|column| (column, !view.is_reversed))
}

/// Returns the share of the output tokens that is estimated; `None` if there is none.
pub(crate) fn estimated(scope: &Scope) -> Option<f64> {
    let by_provenance = scope.totals.output_provenance.as_ref()?;
    let estimated: u64 = ESTIMATES.iter().filter_map(|name| by_provenance.get(*name)).sum();
    let all: u64 = by_provenance.values().sum();
    (estimated > 0).then(|| estimated as f64 / all as f64)
}

/// Returns all output tokens.
pub(crate) fn output_tokens(scope: &Scope) -> u64 {
    let tokens = scope.totals.tokens.iter().filter(|(name, _)| name.starts_with("output"));
    tokens.map(|(_, tokens)| *tokens).sum()
}

fn name(scope: &Scope) -> Cell {
    Cell::text(text::printable(&scope.name))
}

fn rate(scope: &Scope) -> Cell {
    Cell::of(scope.recent.output_tokens_per_second_10s, real)
}

fn per_hour(scope: &Scope) -> Cell {
    Cell::of(scope.recent.spend_per_hour_60s, money)
}

fn errors(scope: &Scope) -> Cell {
    Cell::count(scope.totals.errors).warned()
}

fn aborts(scope: &Scope) -> Cell {
    Cell::count(scope.totals.aborts)
}

fn output(scope: &Scope) -> Cell {
    let tokens = output_tokens(scope);
    let mark = if estimated(scope).is_some() { "~" } else { "" };
    Cell { text: format!("{mark}{}", count(tokens)), ..Cell::count(tokens) }
}

fn goodput(scope: &Scope) -> Cell {
    Cell::of(scope.totals.goodput_ratio, percent)
}

fn per_million(scope: &Scope) -> Cell {
    Cell::of(scope.totals.cost_per_million_tokens, money)
}

/// Returns the spend, with `+` if it lacks exchanges that have no price.
fn spend(scope: &Scope) -> Cell {
    let cell = Cell::of(scope.totals.spend, money);
    match scope.totals.unpriced_exchanges {
        Some(1..) if cell.value.is_some() => {
            Cell { text: format!("{}+", cell.text), tone: Tone::Warn, ..cell }
        }
        _ => cell,
    }
}

fn used(scope: &Scope) -> Cell {
    let Some(budget) = &scope.budget else { return Cell::of(None, percent) };
    let ratio = budget.used / budget.limit;
    Cell::of(Some(ratio), percent).with(tone_of(ratio))
}

fn forecast(scope: &Scope) -> Cell {
    let Some(budget) = &scope.budget else { return Cell::of(None, money) };
    let ratio = budget.forecast.map_or(0.0, |forecast| forecast / budget.limit);
    Cell::of(budget.forecast, money).with(tone_of(ratio))
}

fn tone_of(ratio: f64) -> Tone {
    match ratio {
        over if over >= 1.0 => Tone::Bad,
        near if near >= NEAR_LIMIT => Tone::Warn,
        _ => Tone::Plain,
    }
}

/// Provenances that are estimates.
const ESTIMATES: [&str; 2] = ["frames", "estimated"];

/// The share of a budget from which it is a warning.
const NEAR_LIMIT: f64 = 0.8;
