//! A report for programs: an array of objects, each with the keys asked for. Money, time and energy are
//! strings, because a number of JSON is a float to most who read it.

use std::io::{self, Write};

use meter::TokenType;

use super::ask::Basis;
use super::group::{Group, Report};
use super::key::{Key, Value};
use super::money::{Decimal, money, nano};
use super::sums::{self, PROVENANCES};

/// Writes it. `round`: digits of money after the point, all there are if not said.
///
/// # Errors
/// As the writer has them.
pub fn write(report: &Report, round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"[")?;
    for (at, group) in report.groups.iter().enumerate() {
        to.write_all(if at == 0 { b"\n  " } else { b",\n  " })?;
        object(report, group, round, to)?;
    }
    to.write_all(if report.groups.is_empty() { b"]\n" } else { b"\n]\n" })
}

fn object(report: &Report, group: &Group, round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    let rounded = |pico| round.map_or(money(pico), |places| money(pico).round(places));
    let basis = report.ask.basis;
    let sums = &group.sums;
    to.write_all(b"{")?;
    for (key, value) in report.ask.by.iter().zip(&group.values) {
        if *key != Key::Currency {
            write!(to, "\"{}\": {}, ", key.name(), text_of(value))?;
        }
    }
    if basis == Basis::Gpu {
        write!(to, "\"share\": \"{}\", ", group.share.map_or("used", |share| share.mark()))?;
    }
    write!(
        to,
        "\"exchanges\": {}, \"input_tokens\": {}, \"output_tokens\": {}",
        sums.exchanges,
        sums.input(),
        sums.output()
    )?;
    for (kind, count) in TokenType::ALL.iter().zip(sums.tokens) {
        write!(to, ", \"{}\": {count}", kind.name())?;
    }
    let cost = group.cost(basis).map(rounded);
    if basis == Basis::Gpu {
        let known = cost.is_some();
        let each = [
            ("gpu_seconds", nano(sums.gpu_ns)),
            ("energy_joules", nano(sums.energy_nj)),
            ("gpu_hours_cost", rounded(sums.gpu_hours_pico)),
            ("energy_cost", rounded(sums.gpu_energy_pico)),
        ];
        for (name, decimal) in each {
            write!(to, ", \"{name}\": {}", quoted(known.then_some(decimal)))?;
        }
    }
    write!(to, ", \"cost\": {}, \"currency\": ", quoted(cost))?;
    match group.currency {
        Some(currency) => write!(to, "\"{}\"", currency.code())?,
        None => to.write_all(b"null")?,
    }
    write!(
        to,
        ", \"unpriced_exchanges\": {}, \"provenance\": {{\"input\": {}, \"output\": {}}}}}",
        group.without_cost(basis),
        shares(&sums.input_known),
        shares(&sums.output_known)
    )
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        value => serde_json::Value::String(value.to_string()).to_string(),
    }
}

fn quoted(decimal: Option<Decimal>) -> String {
    decimal.map_or("null".to_owned(), |decimal| format!("\"{decimal}\""))
}

fn shares(counts: &[i128; PROVENANCES]) -> String {
    let each: Vec<_> = sums::shares(counts)
        .into_iter()
        .map(|(provenance, share)| format!("\"{}\": \"{}\"", provenance.name(), share_of(share)))
        .collect();
    format!("{{{}}}", each.join(", "))
}

/// A share of so many millionths.
pub(crate) fn share_of(millionths: u32) -> Decimal {
    Decimal { units: i128::from(millionths), digits: 6, least: 0 }
}
