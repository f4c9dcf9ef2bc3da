//! The naive twin of a report: the rows, totals and corrections of a store in memory, added up one by one. Tests only.

use std::collections::BTreeMap;

use ledger::{Class, DailyTotal, Row, TotalKey};
use ledger::{month, period};
use meter::{ExchangeId, TokenType};

use super::memory::Memory;
use super::{Group, Key, Report};

/// Exchanges, tokens by type, cost and unpriced exchanges of each (keys, currency), added up one by one.
pub(crate) type Twin = BTreeMap<(Vec<String>, String), (i128, Vec<i128>, i128, i128)>;

fn word(memory: &Memory, line: &DailyTotal, billed: i32, key: Key) -> String {
    let rate = line.key.rate.map(|id| memory.rates.iter().find(|rate| rate.id == id).expect("one of them"));
    let maybe = |name: Option<&std::sync::Arc<str>>| name.map(|name| name.to_string()).unwrap_or_default();
    match key {
        Key::Tenant => line.key.tenant.to_string(),
        Key::CostCenter | Key::Department | Key::Owner | Key::Tag(_) => {
            let is_late = period::day(line.key.day).as_str() >= "2026-10-31";
            let value = match (&*line.key.tenant, key.name()) {
                ("acme", "cost_center") if is_late => "00418",
                ("acme", "cost_center") => "00417",
                ("acme", "department") if !is_late => "Search",
                ("acme", "owner") if is_late => "ann",
                ("acme", "tag.env") if !is_late => "prod",
                ("beta", "department") => "Search",
                ("beta", "owner") => "bob",
                _ => "",
            };
            value.to_owned()
        }
        Key::Principal => maybe(line.key.principal.as_ref()),
        Key::Model => line.key.model.to_string(),
        Key::Upstream => line.key.upstream.to_string(),
        Key::Provider => line.key.provider.to_string(),
        Key::Ending => line.key.ending.to_string(),
        Key::Tier => maybe(rate.map(|rate| &rate.tier)),
        Key::Version => maybe(rate.map(|rate| &rate.version)),
        Key::Entry => maybe(rate.map(|rate| &rate.entry)),
        Key::Currency => rate.map(|rate| rate.currency.code().to_owned()).unwrap_or_default(),
        Key::Day => period::day(line.key.day),
        Key::Week => {
            let monday =
                (0..7).map(|back| line.key.day - back).find(|day| day.rem_euclid(7) == 4).expect("in a week");
            period::week(monday)
        }
        Key::Month => period::day(line.key.day)[..7].to_owned(),
        Key::Billed => month::name(billed),
        Key::Class => line.key.class.name().to_owned(),
        Key::InputProvenance => line.key.input_provenance.name().to_owned(),
        Key::OutputProvenance => line.key.output_provenance.name().to_owned(),
        Key::Consumer | Key::ResponseModel | Key::Dialect | Key::Unpriced => {
            unreachable!("daily totals lack the key")
        }
    }
}

pub(crate) fn twin(memory: &Memory, by: &[Key], keep: impl Fn(&DailyTotal) -> bool) -> Twin {
    let mut twin = Twin::new();
    let is_billed = by.contains(&Key::Billed);
    // A repriced exchange counts by the last price, if it has a row; the bill of a month stays unchanged.
    let last = |exchange: &ExchangeId, month: i32, ended_us: i64| {
        let mut made = memory.corrections.iter().rev().filter(|(at, _)| !is_billed || *at == month);
        made.find(|(_, made)| made.exchange == *exchange && ended_us >= memory.kept_since_us)
            .and_then(|(_, made)| made.line.key.rate)
    };
    let rows = memory.rows.iter().map(|(billed, row, used)| {
        let mut line = DailyTotal::of_row(row, used.as_ref());
        let first = memory.corrections.iter().find(|(at, made)| {
            made.exchange == row.id && made.line.sums.exchanges > 0 && (at == billed || !is_billed)
        });
        line.key.rate = line.key.rate.or(first.and_then(|(_, made)| made.line.key.rate));
        line.key.rate = line.key.rate.map(|rate| last(&row.id, *billed, row.ended_us).unwrap_or(rate));
        (*billed, line)
    });
    let corrections = memory.corrections.iter().map(|(billed, made)| {
        let rate = last(&made.exchange, *billed, made.ended_us).or(made.line.key.rate);
        (*billed, DailyTotal { key: TotalKey { rate, ..made.line.key.clone() }, sums: made.line.sums })
    });
    for (billed, line) in rows.chain(memory.shed.iter().cloned()).chain(corrections) {
        if !keep(&line) {
            continue;
        }
        let values = by.iter().map(|&key| word(memory, &line, billed, key)).collect();
        let sums = twin.entry((values, word(memory, &line, billed, Key::Currency))).or_default();
        let exchanges = i128::from(line.sums.exchanges);
        sums.1.resize(TokenType::ALL.len(), 0);
        for (sum, count) in sums.1.iter_mut().zip(line.sums.tokens) {
            *sum += i128::from(count);
        }
        sums.2 += line.sums.cost_pico;
        match line.key.class {
            Class::Correction => {}
            _ => {
                sums.0 += exchanges;
                sums.3 += if line.key.rate.is_none() { exchanges } else { 0 };
            }
        }
    }
    // Exchanges without a price join those with one, if these have one currency only.
    if !by.contains(&Key::Currency) {
        let alone: Vec<_> = twin.keys().filter(|(_, currency)| currency.is_empty()).cloned().collect();
        for key in alone {
            let others: Vec<_> = twin
                .keys()
                .filter(|(values, currency)| *values == key.0 && !currency.is_empty())
                .cloned()
                .collect();
            if let [only] = others.as_slice() {
                let from = twin.remove(&key).expect("it was there");
                let to = twin.get_mut(only).expect("it is there");
                to.0 += from.0;
                to.1.iter_mut().zip(from.1).for_each(|(to, from)| *to += from);
                to.2 += from.2;
                to.3 += from.3;
            }
        }
    }
    twin
}

pub(crate) fn seen(report: &Report) -> Twin {
    let words = |group: &Group| group.values.iter().map(ToString::to_string).collect();
    let code = |group: &Group| group.currency.map(|is| is.code().to_owned()).unwrap_or_default();
    let sums = |group: &Group| {
        let sums = &group.sums;
        (sums.exchanges, sums.tokens.to_vec(), sums.cost_pico, sums.unpriced)
    };
    report.groups.iter().map(|group| ((words(group), code(group)), sums(group))).collect()
}

/// Returns true if an exchange without a row was priced while another one of its total was not: the tokens of both stay
/// without a price, because they cannot be separated.
pub(crate) fn has_tokens_that_stay(memory: &Memory) -> bool {
    let unpriced = || memory.rows.iter().filter(|(_, row, _)| row.rate().is_none());
    let is_priced = |row: &Row| memory.corrections.iter().any(|(_, made)| made.exchange == row.id);
    let key = |row: &Row| TotalKey::of_row(row, Class::Usage);
    let mut gone = unpriced().filter(|(_, row, _)| row.ended_us < memory.kept_since_us && is_priced(row));
    gone.any(|(_, gone, _)| unpriced().any(|(_, row, _)| !is_priced(row) && key(row) == key(gone)))
}
