//! The contributions that a report sums: daily totals if they have all keys of the query, else rows. The part of a
//! total whose rows are deleted is a contribution without detail, so that both ways give the same sum.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ledger::corrections::{ChargeChange, Corrections};
use ledger::source::{Month, Range, Source, SourceError};
use ledger::{Calendar, Class, DailyTotal, Row, Sums, TotalKey};
use ledger::{month, period};
use meter::Provenance;
use price::{Charge, Rate, Unpriced};

use super::attributes::Attributes;
use super::first_prices::{CorrectionView, FirstPrices};
use super::key::{Key, NO_DETAIL, Value};
use super::query::{Query, RowsFor};

/// A contribution to a report: a daily total, a row as a total, or the part of totals without rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contribution<'a> {
    /// The key and the sums.
    pub(crate) line: &'a DailyTotal,
    /// The month of its bill.
    pub(crate) billed: Month,
    /// The day on which it is reported: by the time zone of the query, if that has one and the row exists.
    pub(crate) day: i32,
    /// The facts that only rows have.
    pub(crate) detail: Detail<'a>,
    /// True for a contribution without detail that was first charged without a price: moved counts, and the money of
    /// their corrections.
    pub(crate) first_price: bool,
    /// True if some tokens of the counts may belong to another price: without rows, the tokens of exchanges with
    /// several prices cannot be divided.
    pub(crate) is_mixed: bool,
    /// True for a correction if the counts of its exchange are under the same rate and month, so that its money is part
    /// of their cost.
    pub(crate) with_counts: bool,
}

/// The facts that only rows have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail<'a> {
    /// A total, if the query needs no others; or a contribution without a row.
    None,
    /// A row, and its corrections in the order of entry.
    Row(&'a Row, &'a [ChargeChange]),
}

impl<'a> Contribution<'a> {
    /// Returns a contribution without detail.
    pub(crate) fn new(line: &'a DailyTotal, billed: Month) -> Self {
        Self {
            line,
            billed,
            day: line.key.day,
            detail: Detail::None,
            first_price: false,
            is_mixed: false,
            with_counts: false,
        }
    }

    /// Returns the value of a key.
    pub(crate) fn value(&self, key: Key, rate: Option<&Rate>, attributes: &Attributes) -> Value {
        let line = self.line;
        match key {
            Key::Tenant => Value::Text(Arc::clone(&line.key.tenant)),
            Key::CostCenter | Key::Department | Key::Owner | Key::Tag(_) => {
                attributes.of(&line.key.tenant, line.key.day).map_or(Value::Null, |entry| entry.value(key))
            }
            Key::Principal => Value::maybe(line.key.principal.as_ref()),
            Key::Model => Value::Text(Arc::clone(&line.key.model)),
            Key::Upstream => Value::Text(Arc::clone(&line.key.upstream)),
            Key::Provider => Value::Text(Arc::clone(&line.key.provider)),
            Key::Ending => Value::Text(Arc::clone(&line.key.ending)),
            Key::Tier => Value::maybe(rate.map(|rate| &rate.tier)),
            Key::Version => Value::maybe(rate.map(|rate| &rate.version)),
            Key::Entry => Value::maybe(rate.map(|rate| &rate.entry)),
            Key::Currency => rate.map_or(Value::Null, |rate| Value::Text(rate.currency.code().into())),
            Key::Day => Value::Day(self.day),
            Key::Week => Value::week_of(self.day),
            Key::Month => Value::Month(month::of_day(self.day)),
            Key::Billed => Value::Month(self.billed),
            Key::Class => Value::Word(line.key.class.name()),
            Key::InputProvenance => Value::Word(line.key.input_provenance.name()),
            Key::OutputProvenance => Value::Word(line.key.output_provenance.name()),
            Key::Unpriced => match (self.detail, line.key.class) {
                // A correction has the value of its exchange, so that both are in one group.
                (Detail::Row(row, _), _) => match &row.charge {
                    Charge::Priced { .. } => Value::Null,
                    // A leg is charged with its decode leg.
                    Charge::Unpriced(Unpriced::Leg) => Value::Null,
                    Charge::Unpriced(why) => Value::Word(why.name()),
                },
                (Detail::None, _) if line.key.rate.is_some() && !self.first_price => Value::Null,
                (Detail::None, _) => Value::Word(NO_DETAIL),
            },
            Key::Consumer | Key::ResponseModel | Key::Dialect => match self.detail {
                Detail::None => Value::Word(NO_DETAIL),
                Detail::Row(row, _) => match key {
                    Key::Consumer => Value::maybe(row.consumer.as_ref()),
                    Key::ResponseModel => Value::maybe(row.response_model.as_ref()),
                    _ => Value::Text(Arc::clone(&row.dialect)),
                },
            },
        }
    }
}

/// The callback that takes contributions.
pub(crate) type Sink<'a> = dyn FnMut(Contribution<'_>) -> Result<(), SourceError> + 'a;

/// Passes on each contribution of a report once; and to `left_out` each total, or part of one, for which only deleted
/// rows had the time within the day. Returns the reason why rows were read, if they were.
pub(crate) fn each(
    source: &dyn Source,
    query: &Query,
    view: CorrectionView,
    left_out: &mut Sink<'_>,
    to: &mut Sink<'_>,
) -> Result<Option<RowsFor>, SourceError> {
    // The total of prefill legs with unknown GPU use makes no group of zeros.
    let mut to = |contribution: Contribution<'_>| match contribution.line.key.class {
        _ if contribution.line.sums != Sums::default() => to(contribution),
        // A price of zero is a price.
        Class::Correction if view != CorrectionView::Charged => to(contribution),
        _ => Ok(()),
    };
    let calendar = source.calendar();
    let rows_for = match query.rows_for(&calendar) {
        // A daily total does not distinguish its exchanges that were repriced.
        None if view.is_by_rate(query) && source.has_repriced(&query.range)? => Some(RowsFor::Rates),
        rows_for => rows_for,
    };
    if rows_for.is_some() {
        from_rows(source, &query.range, query.other_calendar(&calendar).as_ref(), view, left_out, &mut to)?;
        return Ok(rows_for);
    }
    // Totals of exchanges that were priced later wait in `first_prices`: a source returns the parts of a total in any
    // order, and how many counts move is known only from all of them.
    let mut first_prices = FirstPrices::read(source, &query.range, view)?;
    source.daily_totals(&query.range, &mut |billed, line| {
        if first_prices.take(billed, line) {
            return Ok(());
        }
        to(Contribution::new(line, billed))
    })?;
    first_prices.settle(source, &query.range, false, &mut to)?;
    Ok(None)
}

/// The key of a daily total of rows or corrections, and the month of its bill.
type Place = (Month, TotalKey);

/// Passes on each row as a contribution, on its day by `other` if that is a calendar; leaves out as [`each`].
pub(crate) fn from_rows(
    source: &dyn Source,
    range: &Range,
    other: Option<&Calendar>,
    view: CorrectionView,
    left_out: &mut Sink<'_>,
    to: &mut Sink<'_>,
) -> Result<(), SourceError> {
    let corrections = Corrections::read(source, range)?;
    let mut first_prices = FirstPrices::read(source, range, view)?;
    // The sums of rows of whole days and of their corrections, by day: there are many more daily totals than days.
    let mut days: HashMap<Place, Sums> = HashMap::new();
    let day = Day::default();
    let calendar = source.calendar();
    // In a central store, a file of another time zone has other instants of a day, so its rows are compared by day.
    let whole_days = range.is_whole_days(&calendar).then(|| range.days(&calendar));
    let is_within = |row: &Row| match &whole_days {
        Some(days) => days.contains(&row.day()),
        None => range.holds(row.ended_us),
    };
    // The first pass covers whole days, also those of which the range has only a part, because totals can be compared
    // with the rows of a whole day only. It passes on the rows of the range.
    source.rows(&range.to_whole_days(&calendar), &mut |billed, row, used| {
        let reported = other.map_or(row.day(), |other| other.day(row.ended_us));
        let mut line = DailyTotal::of_row(row, used);
        add(&mut days, billed, day.of(&line.key), &line.sums);
        if !is_within(row) {
            return Ok(());
        }
        let made = corrections.of(row)?;
        if !made.is_empty() {
            corrections.see(&row.id)?;
        }
        let detail = Detail::Row(row, &made);
        let first = made.iter().find(|made| made.first_price && view.moves(made.billed, billed));
        // Only counts without a rate move to that of a first price, and to the month of its bill.
        let (mut at, first) = (billed, first.filter(|_| line.key.rate.is_none()));
        if line.key.rate.is_none() {
            first_prices.see(billed, &line, first);
        }
        if let Some(first) = first {
            (line.key.rate, at) = (first.rate, first.billed);
        }
        // Counts are under the rate that holds, as are the corrections below: tokens and all their money in one group.
        line.key.rate = line.key.rate.and_then(|rate| view.rate_in(at, &made).or(Some(rate)));
        let first_price = first.is_some();
        to(Contribution { day: reported, detail, first_price, ..Contribution::new(&line, at) })?;
        for correction in &made {
            let billed = correction.billed;
            let mut line = correction.line(row);
            add(&mut days, billed, day.of(&line.key), &line.sums);
            line.key.rate = view.rate_in(billed, &made);
            let with_counts = billed == at;
            to(Contribution {
                day: reported,
                detail,
                first_price,
                with_counts,
                ..Contribution::new(&line, billed)
            })?;
        }
        Ok(())
    })?;
    // Corrections of exchanges without rows: their days, and for exchanges that were first charged without a price
    // their first prices and the later corrections.
    let mut uncovered: HashSet<Place> = HashSet::new();
    let mut unpriced: [HashMap<Place, Sums>; 2] = Default::default();
    if corrections.has_unseen()? {
        source.corrections(range, &mut |billed, made| {
            let Some(is_unpriced) = corrections.unseen_unpriced(made)? else { return Ok(()) };
            uncovered.insert((billed, day.of(&made.line.key)));
            if is_unpriced {
                let sums = &mut unpriced[usize::from(made.line.sums.exchanges == 0)];
                add(sums, billed, made.line.key.clone(), &made.line.sums);
            }
            Ok(())
        })?;
    }
    // The part of daily totals beyond the rows. Corrections that sum to zero do not show in sums.
    let mut beyond: HashMap<Place, Sums> = HashMap::new();
    source.daily_totals(range, &mut |billed, line| {
        add(&mut beyond, billed, day.of(&line.key), &line.sums);
        Ok(())
    })?;
    beyond.retain(|place, sums| uncovered.contains(place) || days.get(place) != Some(sums));
    if beyond.is_empty() {
        return Ok(());
    }
    let is_beyond = |billed: Month, line: &DailyTotal| beyond.contains_key(&(billed, day.of(&line.key)));
    // The second pass is needed only for a day of which some rows exist and others do not. Only there are sums by whole
    // keys kept: of a ledger with all its rows they would take as much memory as its daily totals.
    let mut summed: HashMap<Place, Sums> = HashMap::new();
    if beyond.keys().any(|place| days.contains_key(place)) {
        source.rows(&range.to_whole_days(&calendar), &mut |billed, row, used| {
            let line = DailyTotal::of_row(row, used);
            if is_beyond(billed, &line) {
                add(&mut summed, billed, line.key, &line.sums);
            }
            let made = if is_within(row) { corrections.of(row)? } else { Vec::new() };
            for made in made {
                let line = made.line(row);
                if is_beyond(made.billed, &line) {
                    add(&mut summed, made.billed, line.key, &line.sums);
                }
            }
            Ok(())
        })?;
    }
    let whole = range.whole_days(&calendar);
    // An adjustment keeps its date in every time zone, and counts at the beginning of that day.
    let begins_in_range = |day| range.holds(other.unwrap_or(&calendar).begin_us(day));
    // A total without rows is passed on unchanged; one with rows waits, because a store may return it in parts.
    let mut waiting: HashMap<Place, Sums> = HashMap::new();
    let mut settled =
        |billed: Month, line: &DailyTotal, first_price: bool, first_prices: &mut FirstPrices| {
            let contribution = Contribution { first_price, ..Contribution::new(line, billed) };
            // For a part of a day, only rows have the time within it. A correction of an exchange without a row is left
            // out together with its exchange.
            match (whole.contains(&line.key.day), line.key.class) {
                (true, _) if first_prices.take(billed, line) => Ok(()),
                (true, _) => to(contribution),
                (false, _) if line.key.is_adjustment() && begins_in_range(line.key.day) => to(contribution),
                (false, Class::Correction) => Ok(()),
                (false, _) => left_out(contribution),
            }
        };
    source.daily_totals(range, &mut |billed, line| {
        if !is_beyond(billed, line) {
            return Ok(());
        }
        let place = (billed, line.key.clone());
        if [&summed, &unpriced[0], &unpriced[1]].iter().any(|sums| sums.contains_key(&place)) {
            add(&mut waiting, place.0, place.1, &line.sums);
            return Ok(());
        }
        settled(billed, line, false, &mut first_prices)
    })?;
    for (place, sums) in waiting {
        let mut line = DailyTotal { key: place.1.clone(), sums };
        // Rows, corrections and the rest sum to the total. If the rows alone are more, the ledger is damaged: the report
        // fails, because its sum would not be that of the totals.
        if let Some(summed) = summed.get(&place) {
            line.sums = line.sums.without(summed).ok_or_else(|| disagree(&line))?;
        }
        // Corrections of exchanges that had no price at first are apart from the others, because the key `unpriced` has
        // no value for them.
        for unpriced in unpriced.iter().filter_map(|sums| sums.get(&place)) {
            line.sums = line.sums.without(unpriced).ok_or_else(|| disagree(&line))?;
            let unpriced = DailyTotal { key: place.1.clone(), sums: *unpriced };
            settled(place.0, &unpriced, true, &mut first_prices)?;
        }
        if line.sums != Sums::default() {
            settled(place.0, &line, false, &mut first_prices)?;
        }
    }
    first_prices.settle(source, range, true, to)
}

/// Keys without names: all totals of a day and a class.
#[derive(Default)]
struct Day {
    name: Arc<str>,
}

impl Day {
    fn of(&self, key: &TotalKey) -> TotalKey {
        let name = || Arc::clone(&self.name);
        TotalKey {
            day: key.day,
            tenant: name(),
            principal: None,
            upstream: name(),
            provider: name(),
            model: name(),
            ending: name(),
            input_provenance: Provenance::None,
            output_provenance: Provenance::None,
            rate: None,
            class: key.class,
        }
    }
}

fn add(sums: &mut HashMap<Place, Sums>, billed: Month, key: TotalKey, more: &Sums) {
    sums.entry((billed, key)).or_default().add(more);
}

fn disagree(line: &DailyTotal) -> SourceError {
    format!(
        "the ledger's rows of {} for tenant `{}` and model `{}` sum to more than its daily totals: it was changed by hand or is damaged; run `tokenmeter ledger verify` with the same `--ledger`",
        period::day(line.key.day),
        line.key.tenant.escape_debug(),
        line.key.model.escape_debug()
    )
    .into()
}
