//! A statement: the reports of one tenant's bill of a month, from which the page and the CSV are written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use ledger::source::Month;
use ledger::total_key::ADJUSTMENT;
use ledger::{Closure, Range, Source, SourceError, Zone, month};
use price::{Currency, Rate};
use report::{Basis, Column, Filter, Group, Key, Query, Report, Value, make, sheet, statement_number};
use text::{Glob, nearest};

use crate::amount::count;
use crate::page;

/// The subject of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Bill<'a> {
    /// The tenant that is charged.
    pub tenant: &'a str,
    /// The month of the bill.
    pub month: Month,
    /// The name of the issuer.
    pub issuer: &'a str,
    /// The decimals to which each amount is rounded by itself, half to even; `None` for exact amounts.
    pub round: Option<u32>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    pub(crate) number: String,
    pub(crate) month: Month,
    pub(crate) tenant: String,
    pub(crate) issuer: String,
    pub(crate) round: Option<u32>,
    pub(crate) closure: Closure,
    /// The charges by class and by the month of the usage.
    pub(crate) charges: Report,
    pub(crate) by_model: Report,
    pub(crate) by_day: Report,
    /// One row for each day, model and class: the rows of the CSV. Not by price: which price an exchange got is known
    /// only from its row, if there are corrections, so that the bytes would change once retention deletes it.
    items: Report,
    /// The rates of the charges, in the order of their names; none of adjustments.
    pub(crate) rates: Vec<Arc<Rate>>,
    /// The adjustments, by currency, month and reason. They are in `charges`, too, as corrections.
    pub(crate) adjustments: Vec<AdjustmentLine>,
}

/// An adjustment of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdjustmentLine {
    pub(crate) currency: Currency,
    pub(crate) month: Month,
    pub(crate) reason: Arc<str>,
    /// The sum of the adjustments for this reason, in pico-units.
    pub(crate) pico: i128,
}

impl Statement {
    /// Makes the statement of a bill. The time `now_us`, microseconds since 1970, decides only whether a month that is
    /// not closed is over.
    ///
    /// # Errors
    /// If the store cannot be read, or nothing is billed to the tenant in the month.
    pub fn of(source: &dyn Source, bill: Bill<'_>, now_us: i64) -> Result<Self, SourceError> {
        let Bill { tenant, month, issuer, round } = bill;
        let report = |by: &[Key]| make(source, &query(by, Some(tenant), month, now_us));
        let charges = report(&[Key::Class, Key::Month])?;
        if charges.groups.is_empty() {
            return Err(no_charges(source, tenant, month, now_us)?.into());
        }
        let closure = source.closure(month)?;
        let (rates, adjustments) = rates(source, tenant, month)?;
        Ok(Self {
            number: statement_number(month, tenant, closure.digest().map(|digest| &**digest)),
            month,
            tenant: tenant.to_owned(),
            issuer: issuer.to_owned(),
            round,
            closure,
            by_model: by_model(source, &query(&[Key::Model], Some(tenant), month, now_us))?,
            by_day: report(&[Key::Day])?,
            items: report(&[Key::Billed, Key::Tenant, Key::Day, Key::Model, Key::Class])?,
            rates,
            adjustments,
            charges,
        })
    }

    /// Returns the number: `MONTH-TENANT-DIGEST`, with `DRAFT` in the place of the digest until the month is closed. It
    /// can be a file's name.
    pub fn number(&self) -> &str {
        &self.number
    }

    /// Returns the time zone of the month's days.
    pub(crate) fn zone(&self) -> &Zone {
        self.charges.notes.calendar.zone(self.month)
    }

    /// Returns the page.
    pub fn html(&self) -> String {
        page::page(self).into_string()
    }

    /// Writes the CSV: the exact rows of `tokenmeter spend --billed MONTH` for the tenant, by day, model and class.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn csv(&self, to: &mut dyn Write) -> io::Result<()> {
        sheet::write(&self.items, &Column::all(&self.items.query), self.round, to)
    }

    /// Returns the notes on what the numbers leave out. They contain nothing that may change after the month is closed:
    /// neither how later corrections make the reports read the ledger, nor which later files are incomplete.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.charges.notes.clone();
        let end_us = self.charges.notes.calendar.month_begin_us(self.month + 1);
        notes.rows_for = None;
        // The note may change after the month is closed; the page states the zone of the month.
        notes.time_zone = None;
        notes.gaps.retain(|gap| gap.from_us < end_us);
        if self.closure.digest().is_some() {
            notes.without_log.clear();
        }
        // The report's sentence about them names commands of the operator.
        notes.unpriced.clear();
        notes.unpriced_other = 0;
        let unpriced: i128 = self.charges.totals.iter().map(|total| total.sums.unpriced).sum();
        let has = if unpriced == 1 { "exchange has" } else { "exchanges have" };
        let note =
            (unpriced != 0).then(|| format!("{} {has} no price and no part in the amounts", count(unpriced)));
        let mut sentences = notes.sentences(&self.charges.query.range);
        sentences.extend(note);
        if let Some(places) = self.round {
            let tables = [
                ("Charges", &self.charges),
                ("Usage by model", &self.by_model),
                ("Cost by day", &self.by_day),
            ];
            for (table, report) in tables {
                sentences.extend(report.rounded_apart(places).map(|note| format!("{table}: {note}")));
            }
        }
        sentences
    }

    /// Returns the groups of the report by day that have the currency of a total.
    pub(crate) fn days_of(&self, total: &Group) -> BTreeMap<i32, i128> {
        let of_it = self.by_day.groups.iter().filter(|group| group.currency == total.currency);
        let cost = of_it.filter_map(|group| match group.values.first() {
            Some(Value::Day(day)) => Some((*day, group.cost(Basis::Price)?)),
            _ => None,
        });
        cost.collect()
    }
}

/// The query of what is billed in a month, to one tenant or to all.
fn query(by: &[Key], tenant: Option<&str>, month: Month, now_us: i64) -> Query {
    let filter = |name| Filter { key: Key::Tenant, except: false, patterns: vec![Glob::literal(name)] };
    Query {
        billed: Some(month),
        by: by.to_vec(),
        filters: tenant.map(filter).into_iter().collect(),
        ..Query::all(now_us)
    }
}

/// Returns the report by model, with the adjustments in a group of their own. Their provider distinguishes them,
/// because a client chooses the name of a model.
fn by_model(source: &dyn Source, query: &Query) -> Result<Report, SourceError> {
    let adjustments = |except| {
        let filter = Filter { key: Key::Provider, except, patterns: vec![Glob::literal(ADJUSTMENT)] };
        let filters = query.filters.iter().cloned().chain([filter]).collect();
        make(source, &Query { filters, ..query.clone() })
    };
    let (models, mut adjusted) = (adjustments(true)?, adjustments(false)?);
    adjusted.groups.iter_mut().for_each(|group| group.values = Box::new([Value::Word("Adjustments")]));
    let groups = models.groups.into_iter().chain(adjusted.groups).collect();
    Ok(Report { groups, ..make(source, query)? })
}

/// Returns the error of a tenant without charges, with the name that was probably meant.
fn no_charges(source: &dyn Source, tenant: &str, month: Month, now_us: i64) -> Result<String, SourceError> {
    let month_name = month::name(month);
    let all = make(source, &query(&[Key::Tenant], None, month, now_us))?;
    let names: Vec<String> =
        all.groups.iter().filter_map(|group| group.values.first()).map(ToString::to_string).collect();
    let shown = tenant.escape_debug();
    Ok(match nearest(tenant, names.iter().map(String::as_str)) {
        _ if names.is_empty() => format!("nothing is billed in {month_name}"),
        Some(near) => {
            format!("nothing is billed to `{shown}` in {month_name}; did you mean `{}`?", near.escape_debug())
        }
        None => format!(
            "nothing is billed to `{shown}` in {month_name}; `tokenmeter spend --billed {month_name} --by tenant` \
             lists the tenants"
        ),
    })
}

/// Returns the rates by which a tenant's charges of a month were made, by entry, tier, context and version, and the
/// adjustments, whose rates are only their reasons.
fn rates(
    source: &dyn Source,
    tenant: &str,
    month: Month,
) -> Result<(Vec<Arc<Rate>>, Vec<AdjustmentLine>), SourceError> {
    let mut used = BTreeSet::new();
    let mut adjusted: BTreeMap<_, i128> = BTreeMap::new();
    source.daily_totals(&Range::ALL, &mut |billed, line| {
        if billed == month && *line.key.tenant == *tenant {
            if line.key.is_adjustment() {
                *adjusted.entry((line.key.day, line.key.rate)).or_default() += line.sums.cost_pico;
            } else {
                used.extend(line.key.rate);
            }
        }
        Ok(())
    })?;
    let mut rates = source.rates()?;
    let of_adjustment = |((day, id), pico): ((i32, Option<[u8; 16]>), i128)| {
        let rate = rates.iter().find(|rate| Some(rate.id) == id)?;
        let (currency, reason) = (rate.currency, Arc::clone(&rate.entry));
        Some(AdjustmentLine { currency, month: month::of_day(day), reason, pico })
    };
    let mut adjustments: Vec<_> = adjusted.into_iter().filter_map(of_adjustment).collect();
    adjustments.sort();
    rates.retain(|rate| used.contains(&rate.id));
    rates.sort_by(|one, two| {
        let key =
            |rate: &Rate| (rate.currency, rate.entry.clone(), rate.tier.clone(), rate.above_input_tokens);
        key(one).cmp(&key(two)).then_with(|| (&one.version, one.id).cmp(&(&two.version, two.id)))
    });
    Ok((rates, adjustments))
}
