//! A report: the rows that a query selects, grouped and summed. Money of different currencies is never added: a group
//! has a row for each.

use std::collections::HashMap;
use std::sync::Arc;

use ledger::month;
use ledger::source::{DeviceTotal, Share, Source, SourceError};
use ledger::{Calendar, Class, DailyTotal};
use meter::Provenance;
use price::{Currency, Rate};
use text::{Decimal, money};

use super::allocation::{Allocation, pooled};
use super::attributes::Attributes;
use super::contributions::{self, Contribution, Detail};
use super::first_prices::CorrectionView;
use super::key::{Key, NO_DETAIL, Value};
use super::notes::Notes;
use super::query::{Basis, Filter, Order, Query};
use super::repeats::Repeats;
use super::savings::{Savings, SavingsSums};
use super::sums::{self, In, Sums};
use super::what_if;

/// Maximum groups of a report: names are arbitrary, so memory would have no limit.
pub const GROUPS_MAX: usize = 1_000_000;

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The query.
    pub query: Query,
    /// The groups in the requested order; only the first, with `--top`.
    pub groups: Vec<Group>,
    /// The sum of all groups, a row for each currency.
    pub totals: Vec<Group>,
    /// The savings, and the cost of what had no result, by currency.
    pub savings: Vec<(In, Savings)>,
    /// Notes on what the numbers leave out.
    pub notes: Notes,
}

/// A row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The values of the keys, in the query's order.
    pub values: Box<[Value]>,
    /// The class of GPU time without an exchange; `None` for exchanges.
    pub share: Option<Share>,
    /// The currency of its money; `None` if nothing in it has a price.
    pub currency: In,
    /// True if it is the total of all groups in its currency.
    pub is_total: bool,
    /// Its sums.
    pub sums: Sums,
}

impl Report {
    /// Keeps the first groups only; the totals still cover all.
    pub fn keep_first(&mut self, groups: usize) {
        self.notes.not_listed = self.groups.len().saturating_sub(groups);
        self.groups.truncate(groups);
    }

    /// Returns the notes for a report whose money is rounded to `digits` decimals.
    pub fn sentences(&self, round: Option<u32>) -> Vec<String> {
        let mut said = self.notes.sentences(&self.query.range);
        said.extend(what_if::sentences(self));
        if let Some(places) = round.filter(|_| self.notes.not_listed == 0) {
            said.extend(self.rounded_apart(places));
        }
        said
    }

    /// Returns a note for each currency of which the rounded groups do not add up to the rounded total.
    pub fn rounded_apart(&self, places: u32) -> impl Iterator<Item = String> + '_ {
        self.totals.iter().filter_map(move |total| self.rounded_apart_in(total, places))
    }

    /// Returns the note of the currency of a total.
    fn rounded_apart_in(&self, total: &Group, places: u32) -> Option<String> {
        let of_it = self.groups.iter().filter(|group| group.currency == total.currency);
        let rounded = |group: &Group| group.cost(self.query.basis).map(|pico| money(pico).round(places));
        let rows: i128 = of_it.filter_map(rounded).map(|cost| cost.units).sum();
        let total_cost = rounded(total)?;
        let rows = Decimal { units: rows, ..total_cost };
        (rows != total_cost).then(|| {
            let code = total.currency.map(|is| is.code().to_owned()).unwrap_or_default();
            format!(
                "the rounded rows add up to {rows} {code}, and the total is {total_cost} {code}: each is \
                 rounded from its exact amount, so the total is the one to bill"
            )
        })
    }
}

impl Group {
    /// Returns its cost by a basis, pico-units; `None` if it is unknown.
    pub fn cost(&self, basis: Basis) -> Option<i128> {
        match basis {
            Basis::Price => self.sums.priced.then_some(self.sums.cost_pico),
            Basis::Gpu => {
                // Prefill legs use GPUs and are not counted as exchanges.
                let is_known =
                    self.share.is_some() || self.sums.measured > 0 || self.sums.gpu.cost_pico() != 0;
                is_known.then(|| self.sums.gpu.cost_pico())
            }
        }
    }

    /// Returns the exchanges without a cost.
    pub fn without_cost(&self, basis: Basis) -> i128 {
        match basis {
            Basis::Price => self.sums.unpriced,
            Basis::Gpu => self.sums.exchanges - self.sums.measured,
        }
    }
}

/// The parts of a group by the currency of their money.
type Parts = Vec<((In, Option<Share>), Sums)>;

/// Makes a report.
///
/// # Errors
/// If the store cannot be read, or there are more than [`GROUPS`].
pub fn make(source: &dyn Source, query: &Query) -> Result<Report, SourceError> {
    whole_days_if_gpu(query, &source.calendar())?;
    let rates: HashMap<_, _> = source.rates()?.into_iter().map(|rate| (rate.id, rate)).collect();
    let mut groups: HashMap<Box<[Value]>, Parts> = HashMap::new();
    let mut notes = Notes { calendar: source.calendar(), ..Notes::default() };
    let mut left_out = 0;
    let mut savings = SavingsSums::default();
    let mut repeats = query.repeats.then(Repeats::default);
    let mut values: Vec<Value> = Vec::with_capacity(query.by.len());
    let mut leave_out =
        |contribution: Contribution<'_>| leave_out(query, &contribution, &rates, &mut left_out);
    let view = CorrectionView::of(query);
    let mut allocation = Allocation::read(source, query, view == CorrectionView::Billed)?;
    let rows_for = contributions::each(source, query, view, &mut leave_out, &mut |contribution| {
        let rate = rate_of(&contribution, &rates)?;
        note_rows_gone(&mut notes, &contribution, query, view, rate);
        let is_selected = is_selected(query, &contribution, rate);
        values.clear();
        if is_selected {
            values.extend(query.by.iter().map(|&key| value(query, &contribution, key, rate)));
        }
        if let Some(allocation) = &mut allocation {
            let place = is_selected.then(|| values.as_slice().into());
            allocation.see(contribution.billed, contribution.line, place)?;
        }
        if !is_selected {
            return Ok(());
        }
        note(&mut notes, &contribution, query, rate);
        savings.add(contribution.line, rate, query.basis);
        if let Some(repeats) = &mut repeats {
            repeats.add(&contribution, rate, query.basis);
        }
        let currency = match (query.basis, contribution.line.key.class) {
            (Basis::Price, _) => rate.map(|rate| rate.currency),
            // Corrections and adjustments are money by price. Skipped before a group is made, so they add no row of
            // zeros.
            (Basis::Gpu, Class::Correction) => return Ok(()),
            (Basis::Gpu, _) => Some(Currency::USD),
        };
        let sums = part(&mut groups, &values, (currency, None))?;
        match contribution.line.key.class {
            Class::Correction => sums.correct(contribution.line, view.has_counts(&contribution)),
            _ => sums.add(contribution.line, rate, contribution.is_mixed),
        }
        if let Some(what_if) = &query.what_if {
            sums.what_if.add(what_if, &contribution);
        }
        Ok(())
    })?;
    if query.basis == Basis::Gpu {
        let mark = mark_stands_at(&query.by);
        for device in pooled(source.devices(&query.range)?) {
            if let Some(allocation) = allocation.as_ref().filter(|_| is_billed(query, &device))
                && allocation.allocate(&device, &mut |values: Option<&Box<[Value]>>, used| {
                    let Some(values) = values else { return Ok(()) };
                    part(&mut groups, values, (Some(Currency::USD), None))?.allocate(&used);
                    notes.allocate(query.idle, &used);
                    savings.add_device(device.share, &used);
                    Ok(())
                })?
            {
                continue;
            }
            if !selects_device(query, &device) {
                continue;
            }
            notes.leave_idle(query.idle, &device.sums);
            savings.add_device(device.share, &device.sums);
            let values: Vec<_> = query.by.iter().map(|&key| value_of(&device, key, mark)).collect();
            let sums = part(&mut groups, &values, (Some(Currency::USD), Some(device.share)))?;
            sums.add_device(&device);
        }
    }
    notes.rows_for = rows_for;
    notes.left_out += left_out;
    source.contradicted(&query.range, &mut |billed, row| {
        let line = DailyTotal::of_row(row, None);
        let contribution = Contribution { detail: Detail::Row(row, &[]), ..Contribution::new(&line, billed) };
        if is_selected(query, &contribution, rate_of(&contribution, &rates)?) {
            notes.contradicted += i128::from(line.sums.exchanges);
        }
        Ok(())
    })?;
    notes.missing(source, query)?;
    let totals = totals(&groups);
    let apart = query.by.contains(&Key::Currency);
    let mut groups: Vec<_> =
        groups.into_iter().flat_map(|(values, parts)| rows(values, parts, apart, false)).collect();
    sort(&mut groups, query);
    let repeated = repeats.and_then(Repeats::finish);
    let savings = savings.finish(repeated.as_ref());
    Ok(Report { query: query.clone(), groups, totals, savings, notes })
}

/// Checks that a query by GPU cost covers whole days: GPU use without an exchange is stored by day, and a part of a day
/// has no conserved sum.
pub(crate) fn whole_days_if_gpu(query: &Query, calendar: &Calendar) -> Result<(), SourceError> {
    if query.basis == Basis::Gpu && !query.range.is_whole_days(calendar) {
        return Err(
            "the cost of idle GPUs is stored by day: give --since and --until as days or months".into()
        );
    }
    Ok(())
}

pub(crate) fn rate_of<'a>(
    contribution: &Contribution<'_>,
    rates: &'a HashMap<[u8; 16], Arc<Rate>>,
) -> Result<Option<&'a Rate>, SourceError> {
    let Some(id) = contribution.line.key.rate else { return Ok(None) };
    match rates.get(&id) {
        Some(rate) => Ok(Some(rate)),
        None => Err("the ledger names a rate that it does not have: it was changed by hand or is damaged; run `tokenmeter ledger verify` with the same `--ledger`".into()),
    }
}

pub(crate) fn is_selected(query: &Query, contribution: &Contribution<'_>, rate: Option<&Rate>) -> bool {
    query.billed.is_none_or(|month| month == contribution.billed) && passes_filters(query, contribution, rate)
}

/// Returns true if filters accept a contribution, whatever the month of its bill.
pub(crate) fn passes_filters(query: &Query, contribution: &Contribution<'_>, rate: Option<&Rate>) -> bool {
    query.filters.iter().all(|filter| filter.accepts(&value(query, contribution, filter.key, rate)))
}

fn value(query: &Query, contribution: &Contribution<'_>, key: Key, rate: Option<&Rate>) -> Value {
    value_by(query.basis, &query.attributes, contribution, key, rate)
}

/// The value of a key: by GPU all money is US dollars, whatever the currency of the exchange's charge.
fn value_by(
    basis: Basis,
    attributes: &Attributes,
    contribution: &Contribution<'_>,
    key: Key,
    rate: Option<&Rate>,
) -> Value {
    match (key, basis) {
        (Key::Currency, Basis::Gpu) => Value::Word("USD"),
        _ => contribution.value(key, rate, attributes),
    }
}

/// Returns true if filters accept a contribution, or may: a value known only from its deleted row may be any.
pub(crate) fn may_be_selected(
    filters: &[Filter],
    (basis, attributes): (Basis, &Attributes),
    contribution: &Contribution<'_>,
    rate: Option<&Rate>,
) -> bool {
    filters.iter().all(|filter| {
        let value = value_by(basis, attributes, contribution, filter.key, rate);
        // An unknown reason is a reason, so the filter "none" excludes it.
        let asks_for_none =
            filter.key == Key::Unpriced && filter.patterns.iter().all(|is| is.text().is_empty());
        filter.accepts(&value) || (value == Value::Word(NO_DETAIL) && !filter.except && !asks_for_none)
    })
}

/// Counts a contribution that is left out, if the query may select it: a value known only from its row may be any.
pub(crate) fn leave_out(
    query: &Query,
    contribution: &Contribution<'_>,
    rates: &HashMap<[u8; 16], Arc<Rate>>,
    left_out: &mut i128,
) -> Result<(), SourceError> {
    let rate = rate_of(contribution, rates)?;
    if query.billed.is_none_or(|month| month == contribution.billed)
        && may_be_selected(&query.filters, (query.basis, &query.attributes), contribution, rate)
    {
        *left_out += i128::from(contribution.line.sums.exchanges);
    }
    Ok(())
}

/// Records facts of a total's deleted rows: whether the query selects it, and the current rate of its exchanges.
pub(crate) fn note_rows_gone(
    notes: &mut Notes,
    contribution: &Contribution<'_>,
    query: &Query,
    view: CorrectionView,
    rate: Option<&Rate>,
) {
    let (line, is_billed) =
        (contribution.line, query.billed.is_none_or(|month| month == contribution.billed));
    if !matches!(contribution.detail, Detail::None) || !is_billed {
        return;
    }
    if line.key.class == Class::Correction {
        // An adjustment has no exchange, so no row of it is missing.
        if line.key.is_adjustment() {
            return;
        }
        let mut filters = query.filters.iter().filter(|filter| !filter.key.is_of_rate());
        notes.first_rates |= view.is_by_rate(query)
            && !contribution.with_counts
            && (view == CorrectionView::Used || contribution.billed == month::of_day(line.key.day))
            && filters.all(|filter| filter.accepts(&value(query, contribution, filter.key, rate)));
        return;
    }
    let is_selected = is_selected(query, contribution, rate);
    let is_other = query.other_calendar(&notes.calendar).is_some();
    if is_selected && is_other && query.is_by_day() {
        notes.other_days += i128::from(line.sums.exchanges);
    }
    if !is_selected && may_be_selected(&query.filters, (query.basis, &query.attributes), contribution, rate) {
        notes.left_out += i128::from(line.sums.exchanges);
    }
}

pub(crate) fn note(notes: &mut Notes, contribution: &Contribution<'_>, query: &Query, rate: Option<&Rate>) {
    let (line, basis) = (contribution.line, query.basis);
    let month = if query.billed.is_some() { contribution.billed } else { month::of_day(line.key.day) };
    notes.months.entry(month).or_default();
    if query.asks_for_attributes() && query.attributes.of(&line.key.tenant, line.key.day).is_none() {
        notes.without_attributes(&line.key.tenant);
    }
    let exchanges = i128::from(line.sums.exchanges);
    match (line.key.class, basis) {
        (Class::Correction, _) => return,
        (Class::Shed, _) => notes.shed += exchanges,
        (Class::Usage, _) => {}
    }
    match basis {
        Basis::Price if line.key.rate.is_none() => notes.unpriced(&line.key.model, exchanges),
        Basis::Price if rate.is_some_and(Rate::is_tier_unpriced) => notes.unpriced_tiers += exchanges,
        Basis::Price => {}
        Basis::Gpu => notes.unmeasured += exchanges - i128::from(line.sums.energy_exchanges),
    }
    // Failed exchanges generated nothing; a success without counts is a hole in the bill.
    if line.key.output_provenance == Provenance::None && sums::went_well(line) {
        notes.uncounted += exchanges;
    }
    // A price per request, or of output alone, lacks nothing.
    if rate.is_none_or(Rate::prices_prompts) {
        notes.uncounted_prompts += sums::uncounted_prompts(line);
    }
}

fn part<'a>(
    groups: &'a mut HashMap<Box<[Value]>, Parts>,
    values: &[Value],
    is: (In, Option<Share>),
) -> Result<&'a mut Sums, SourceError> {
    // By the slice first: most contributions fall into an existing group.
    if !groups.contains_key(values) {
        if groups.len() >= GROUPS_MAX {
            return Err(format!(
                "there are more than {GROUPS_MAX} groups; use fewer keys, a shorter period, or --where"
            )
            .into());
        }
        groups.insert(values.into(), Vec::new());
    }
    let Some(parts) = groups.get_mut(values) else { return Err("a group was lost".into()) };
    let at = parts.iter().position(|(has, _)| *has == is).unwrap_or_else(|| {
        parts.push((is, Sums::default()));
        parts.len() - 1
    });
    Ok(&mut parts[at].1)
}

/// The key that shows the class of a GPU share: an owner key if there is one, else the first that is not a time.
fn mark_stands_at(by: &[Key]) -> Option<Key> {
    let tenant = by.iter().copied().find(|key| *key == Key::Tenant);
    tenant.or_else(|| by.iter().copied().find(|key| !key.is_time() && *key != Key::Currency))
}

fn value_of(device: &DeviceTotal, key: Key, mark: Option<Key>) -> Value {
    match key {
        Key::Day => Value::Day(device.day),
        Key::Week => Value::week_of(device.day),
        Key::Month | Key::Billed => Value::Month(month::of_day(device.day)),
        Key::Currency => Value::Word("USD"),
        key if Some(key) == mark => Value::Word(device.share.mark()),
        _ => Value::Null,
    }
}

/// Returns true if GPU use without an exchange is in the month of the bill: it is billed in its own.
pub(crate) fn is_billed(query: &Query, device: &DeviceTotal) -> bool {
    query.billed.is_none_or(|month| month == month::of_day(device.day))
}

pub(crate) fn selects_device(query: &Query, device: &DeviceTotal) -> bool {
    is_billed(query, device)
        && query.filters.iter().all(|filter| filter.accepts(&value_of(device, filter.key, Some(Key::Tenant))))
}

/// The rows of a group. Exchanges without a price join those with one, if these have one currency only.
fn rows(values: Box<[Value]>, mut parts: Parts, apart: bool, is_total: bool) -> impl Iterator<Item = Group> {
    let one_currency = parts.iter().filter(|((currency, _), _)| currency.is_some()).count() == 1;
    if one_currency
        && !apart
        && let Some(at) = parts.iter().position(|((currency, _), _)| currency.is_none())
    {
        let (_, unpriced) = parts.swap_remove(at);
        for (_, sums) in &mut parts {
            sums.merge(&unpriced);
        }
    }
    parts.into_iter().map(move |((currency, share), sums)| Group {
        values: values.clone(),
        share,
        currency,
        is_total,
        sums,
    })
}

fn totals(groups: &HashMap<Box<[Value]>, Parts>) -> Vec<Group> {
    let mut parts: Parts = Vec::new();
    for ((currency, _), sums) in groups.values().flatten() {
        match parts.iter_mut().find(|((has, _), _)| has == currency) {
            Some((_, sum)) => sum.merge(sums),
            None => parts.push(((*currency, None), sums.clone())),
        }
    }
    parts.sort_by_key(|((currency, _), _)| (currency.is_none(), *currency));
    rows(Box::default(), parts, false, true).collect()
}

fn sort(groups: &mut [Group], query: &Query) {
    let keys = |group: &Group| (group.share, group.values.clone(), group.currency.is_none(), group.currency);
    match query.order {
        Order::Keys => groups.sort_unstable_by(|one, two| {
            (one.share, &one.values, one.currency.is_none(), one.currency).cmp(&(
                two.share,
                &two.values,
                two.currency.is_none(),
                two.currency,
            ))
        }),
        Order::Cost => groups.sort_by_cached_key(|group| {
            let cost = group.cost(query.basis);
            (cost.is_none(), -cost.unwrap_or(0), keys(group))
        }),
        Order::Tokens => {
            groups.sort_by_cached_key(|group| (-group.sums.input() - group.sums.output(), keys(group)));
        }
        Order::Exchanges => groups.sort_by_cached_key(|group| (-group.sums.exchanges, keys(group))),
    }
}
