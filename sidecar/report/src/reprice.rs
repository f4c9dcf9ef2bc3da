//! Repricing: charges exchanges again by another price book. An exchange whose charge differs gets a correction with
//! the difference; the exchange itself is never changed.
//!
//! Laws: repricing twice by one book adds nothing the second time; an exchange that cannot be charged again, because
//! its row is deleted or the book has no price for it, is reported and not guessed; money of two currencies is never
//! subtracted.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use ledger::PlannedCorrections;
use ledger::corrections::{ChargeChange, id_of};
use ledger::source::{Correction, Month, Range, Source, SourceError};
use ledger::{Amendment, LedgerFolder};
use ledger::{Class, Row, Store, month};
use price::{Book, Charge, Currency, Rate, Unpriced};
use text::Glob;

use crate::attributes::Attributes;
use crate::contributions::{Contribution, Detail, from_rows};
use crate::first_prices::CorrectionView;
use crate::group::may_be_selected;
use crate::query::{Basis, Filter};

/// Maximum corrections of one transaction: few enough that the ledger's writer waits only briefly, and that memory is
/// bounded.
const TXN_MAX_CORRECTIONS: usize = 5_000;

/// Maximum tenants and models listed in the result, of exchanges that differ and of those that cannot be charged again;
/// the others are counted.
const LISTED_MAX: usize = 1_000;

/// A request to reprice.
#[derive(Clone, Debug)]
pub struct Reprice<'a> {
    /// The time at which exchanges ended.
    pub range: Range,
    /// The filters, by the current price; an exchange must match all of them.
    pub filters: &'a [Filter],
    /// True to reprice only exchanges without a price.
    pub unpriced_only: bool,
    /// The price book.
    pub book: &'a Book,
    /// The actor.
    pub who: &'a str,
    /// The time, microseconds since 1970.
    pub at_us: i64,
}

/// The effect of repricing on some exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Exchanges with another charge.
    pub exchanges: u64,
    /// Of these, exchanges without a price before.
    pub newly_priced: u64,
    /// The charges before, pico-units of the book's currency.
    pub before_pico: i128,
    /// The charges after.
    pub after_pico: i128,
}

/// The effect of repricing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Exchanges that were charged again.
    pub exchanges: u64,
    /// Exchanges whose charge is the same by the book.
    pub unchanged: u64,
    /// Exchanges with another charge.
    pub differing: u64,
    /// Of these, exchanges without a price before.
    pub newly_priced: u64,
    /// The charges before, pico-units of the book's currency.
    pub before_pico: i128,
    /// The charges after.
    pub after_pico: i128,
    /// The same by tenant and model.
    pub changes: BTreeMap<(Arc<str>, Arc<str>), Change>,
    /// The same for tenants and models that are not listed.
    pub other_changes: Change,
    /// The content hashes of the books that charged them.
    pub books: Vec<Arc<str>>,
    /// Exchanges without a price in the book, by model and reason; they stay unchanged.
    pub unpriced: BTreeMap<(Arc<str>, Unpriced), u64>,
    /// Exchanges without rows, by model; they stay unchanged.
    pub gone: BTreeMap<Arc<str>, u64>,
    /// Exchanges of models listed in neither.
    pub unlisted: u64,
    /// Entered corrections, without those entered before.
    pub entered: u64,
}

/// Returns the effect that repricing would have, and enters nothing.
///
/// # Errors
/// If the store cannot be read, or an exchange was charged in another currency than the book's.
pub fn rehearse(source: &dyn Source, request: &Reprice<'_>) -> Result<Outcome, SourceError> {
    let mut outcome = Outcome::default();
    each(source, request, &mut outcome, &mut |_, _| Ok(()))?;
    Ok(outcome)
}

/// Enters the differences into a ledger, into the month of the exchange or, if that is closed, into the open one; also
/// while a proxy writes it: in transactions of a few thousand corrections, each with its audit event. If it is
/// interrupted, a repetition completes it.
///
/// # Errors
/// As [`rehearse`], or if one of these months cannot be written.
pub fn reprice(path: &Path, request: &Reprice<'_>) -> Result<Outcome, SourceError> {
    let ledger = LedgerFolder::open(path);
    ledger.require_unshipped("tokenmeter ledger reprice …")?;
    reprice_by(Store::open_read(path)?, request, &mut |amendment| Ok(ledger.amend(amendment)?))
}

/// Enters the differences into a store by a function that enters amendments, as [`reprice`].
///
/// # Errors
/// As [`rehearse`], or the function's error.
pub fn reprice_by(
    source: impl Source,
    request: &Reprice<'_>,
    amend: &mut dyn FnMut(&Amendment<'_>) -> Result<u64, SourceError>,
) -> Result<Outcome, SourceError> {
    let (mut outcome, mut planned) = (Outcome::default(), PlannedCorrections::new()?);
    // Everything is read before anything is entered, and the source is closed.
    each(&source, request, &mut outcome, &mut |correction, rate| Ok(planned.add(&correction, rate)?))?;
    drop(source);
    let mut waiting: BTreeMap<Month, Part> = BTreeMap::new();
    let (mut part, mut entered) = (0, 0);
    let mut enter = |waiting: &mut Part| -> Result<(), SourceError> {
        part += 1;
        entered += waiting.enter(amend, request, &outcome, part)?;
        Ok(())
    };
    planned.each(|correction, rate| {
        let waiting = waiting.entry(month::of_day(correction.line.key.day)).or_default();
        waiting.add(correction, rate);
        if waiting.corrections.len() == TXN_MAX_CORRECTIONS { enter(waiting) } else { Ok(()) }
    })?;
    waiting.values_mut().filter(|part| !part.corrections.is_empty()).try_for_each(enter)?;
    Ok(Outcome { entered, ..outcome })
}

/// Corrections that are entered together.
#[derive(Default)]
struct Part {
    corrections: Vec<Correction>,
    rates: HashMap<[u8; 16], Arc<Rate>>,
    delta_pico: i128,
}

impl Part {
    fn add(&mut self, correction: Correction, rate: &Arc<Rate>) {
        self.delta_pico += correction.line.sums.cost_pico;
        self.corrections.push(correction);
        self.rates.entry(rate.id).or_insert_with(|| Arc::clone(rate));
    }

    fn enter(
        &mut self,
        amend: &mut dyn FnMut(&Amendment<'_>) -> Result<u64, SourceError>,
        request: &Reprice<'_>,
        planned: &Outcome,
        part: u64,
    ) -> Result<u64, SourceError> {
        let Self { corrections, rates, delta_pico } = std::mem::take(self);
        let rates: Vec<_> = rates.values().map(|rate| &**rate).collect();
        // Sums are text: they may exceed a JSON number.
        let detail = serde_json::json!({
            "since_us": request.range.since_us,
            "until_us": request.range.until_us,
            "where": request.filters.iter().map(filter_detail).collect::<Vec<_>>(),
            "unpriced_only": request.unpriced_only,
            "version": &**request.book.version(),
            "book": &**request.book.hash(),
            "old_books": planned.books.iter().map(|book| &**book).collect::<Vec<_>>(),
            "currency": request.book.currency().code(),
            "part": part,
            "corrections": corrections.len(),
            "delta_pico": delta_pico.to_string(),
            "of_corrections": planned.differing,
            "of_before_pico": planned.before_pico.to_string(),
            "of_after_pico": planned.after_pico.to_string(),
        });
        let amendment = Amendment {
            what: "repriced",
            who: request.who,
            detail: &detail.to_string(),
            at_us: request.at_us,
            rates: &rates,
            corrections: &corrections,
        };
        amend(&amendment)
    }
}

/// The current charge of an exchange: the first, with all corrections.
struct CurrentCharge {
    cost_pico: i128,
    rate: Option<[u8; 16]>,
    /// Corrections so far.
    made: usize,
}

impl CurrentCharge {
    fn of(row: &Row, made: &[ChargeChange]) -> Self {
        let first = Self { cost_pico: row.charge.cost().map_or(0, i128::from), rate: row.rate(), made: 0 };
        made.iter().fold(first, |sum, made| Self {
            cost_pico: sum.cost_pico + made.delta_pico,
            rate: made.rate.or(sum.rate),
            made: sum.made + 1,
        })
    }
}

/// The callback that takes corrections, each with its rate.
type Sink<'a> = dyn FnMut(Correction, &Arc<Rate>) -> Result<(), SourceError> + 'a;

fn each(
    source: &dyn Source,
    request: &Reprice<'_>,
    outcome: &mut Outcome,
    to: &mut Sink<'_>,
) -> Result<(), SourceError> {
    let rates: HashMap<_, _> = source.rates()?.into_iter().map(|rate| (rate.id, rate)).collect();
    let rate_of = |id: Option<[u8; 16]>| -> Result<Option<&Arc<Rate>>, SourceError> {
        let Some(id) = id else { return Ok(None) };
        let rate = rates.get(&id);
        Ok(Some(rate.ok_or("the ledger names a rate that it does not have; run `tokenmeter ledger verify` with the same `--ledger`")?))
    };
    if let Some(filter) = request.filters.iter().find(|filter| filter.key.is_attribute()) {
        let key = filter.key.name();
        return Err(
            format!("`{key}` is an attribute that only reports know; name the tenants instead").into()
        );
    }
    let attributes = Attributes::default();
    let is_selected = |contribution: &Contribution<'_>, rate: Option<&Arc<Rate>>| {
        (rate.is_none() || !request.unpriced_only)
            && may_be_selected(
                request.filters,
                (Basis::Price, &attributes),
                contribution,
                rate.map(|rate| &**rate),
            )
    };
    let mut left_out = 0;
    let mut leave_out = |contribution: Contribution<'_>| {
        left_out += if is_selected(&contribution, rate_of(contribution.line.key.rate)?) {
            contribution.line.sums.exchanges
        } else {
            0
        };
        Ok(())
    };
    from_rows(source, &request.range, None, CorrectionView::Used, &mut leave_out, &mut |contribution| {
        let line = contribution.line;
        if line.key.class == Class::Correction {
            return Ok(());
        }
        let Detail::Row(row, made) = contribution.detail else {
            if line.sums.exchanges > 0 && is_selected(&contribution, rate_of(line.key.rate)?) {
                list(
                    &mut outcome.gone,
                    Arc::clone(&line.key.model),
                    line.sums.exchanges,
                    &mut outcome.unlisted,
                );
            }
            return Ok(());
        };
        let now = CurrentCharge::of(row, made);
        let old = rate_of(now.rate)?;
        if !is_selected(&contribution, old) {
            return Ok(());
        }
        if !row.role.is_counted() {
            return Ok(());
        }
        outcome.exchanges += 1;
        let (rate, cost) = match row.charge_again(request.book) {
            Charge::Priced { rate, cost } => (rate, cost),
            Charge::Unpriced(why) => {
                list(&mut outcome.unpriced, (Arc::clone(&row.model), why), 1, &mut outcome.unlisted);
                return Ok(());
            }
        };
        if let Some(old) = old.filter(|old| old.currency != rate.currency) {
            return Err(other_currency(row, old.currency, rate.currency));
        }
        let delta = i128::from(cost) - now.cost_pico;
        if old.is_some() && delta == 0 {
            outcome.unchanged += 1;
            return Ok(());
        }
        outcome.differing += 1;
        outcome.newly_priced += u64::from(old.is_none());
        outcome.before_pico += now.cost_pico;
        outcome.after_pico += i128::from(cost);
        let place = (Arc::clone(&row.tenant), Arc::clone(&row.model));
        let full = outcome.changes.len() >= LISTED_MAX && !outcome.changes.contains_key(&place);
        let change =
            if full { &mut outcome.other_changes } else { outcome.changes.entry(place).or_default() };
        change.exchanges += 1;
        change.newly_priced += u64::from(old.is_none());
        change.before_pico += now.cost_pico;
        change.after_pico += i128::from(cost);
        if let Some(old) = old
            && !outcome.books.contains(&old.book)
        {
            outcome.books.push(Arc::clone(&old.book));
        }
        to(correction(row, &rate, delta, &now, request), &rate)
    })?;
    outcome.unlisted += left_out;
    Ok(())
}

fn filter_detail(filter: &Filter) -> serde_json::Value {
    let patterns: Vec<_> = filter.patterns.iter().map(Glob::text).collect();
    serde_json::json!({ "key": filter.key.name(), "except": filter.except, "patterns": patterns })
}

fn list<K: Ord>(listed: &mut BTreeMap<K, u64>, key: K, exchanges: u64, unlisted: &mut u64) {
    let full = listed.len() >= LISTED_MAX;
    match listed.get_mut(&key) {
        Some(count) => *count += exchanges,
        None if full => *unlisted += exchanges,
        None => {
            listed.insert(key, exchanges);
        }
    }
}

fn other_currency(row: &Row, old: Currency, new: Currency) -> SourceError {
    format!(
        "exchange {} was charged in {} and the price book is in {}: a difference of two currencies \
         is not an amount; leave it out with --where currency!={}, or price it in {}",
        row.id,
        old.code(),
        new.code(),
        old.code(),
        old.code()
    )
    .into()
}

fn correction(
    row: &Row,
    rate: &Arc<Rate>,
    delta: i128,
    now: &CurrentCharge,
    request: &Reprice<'_>,
) -> Correction {
    let made =
        ChargeChange { billed: 0, rate: Some(rate.id), first_price: now.rate.is_none(), delta_pico: delta };
    let line = made.line(row);
    Correction {
        id: id_of(&row.id, row.ended_us, now.made),
        made_us: request.at_us,
        exchange: row.id,
        line,
        ended_us: row.ended_us,
    }
}

#[cfg(test)]
#[path = "reprice_tests.rs"]
mod tests;
