//! A report for spreadsheets: CSV, one row for each group and none for the total. A name that a
//! spreadsheet would take for a formula gets an apostrophe before it.

use std::io::{self, Write};

use meter::{Provenance, TokenType};

use super::ask::Basis;
use super::group::{Group, Report};
use super::json::share_of;
use super::key::Key;
use super::money::{money, nano};
use super::sums::{self, PROVENANCES};

/// Writes it. `round`: digits of money after the point, all there are if not said.
///
/// # Errors
/// As the writer has them.
pub fn write(report: &Report, round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    let mut sheet = csv::Writer::from_writer(to);
    sheet.write_record(header(report))?;
    for group in &report.groups {
        sheet.write_record(record(report, group, round))?;
    }
    sheet.flush()
}

fn header(report: &Report) -> Vec<String> {
    let mut names: Vec<String> =
        report.ask.by.iter().filter(|key| **key != Key::Currency).map(|key| key.name().to_owned()).collect();
    let gpu = report.ask.basis == Basis::Gpu;
    if gpu {
        names.push("share".to_owned());
    }
    names.extend(["exchanges", "input_tokens", "output_tokens"].map(str::to_owned));
    names.extend(TokenType::ALL.iter().map(|kind| kind.name().to_owned()));
    if gpu {
        names.extend(["gpu_seconds", "energy_joules", "gpu_hours_cost", "energy_cost"].map(str::to_owned));
    }
    names.extend(["cost", "currency", "unpriced_exchanges"].map(str::to_owned));
    for side in ["input", "output"] {
        names.extend(Provenance::ALL.iter().map(|known| format!("{side}_{}", known.name())));
    }
    names
}

fn record(report: &Report, group: &Group, round: Option<u32>) -> Vec<String> {
    let rounded = |pico| round.map_or(money(pico), |places| money(pico).round(places)).to_string();
    let (basis, sums) = (report.ask.basis, &group.sums);
    let keys = report.ask.by.iter().zip(&group.values).filter(|(key, _)| **key != Key::Currency);
    let mut cells: Vec<String> = keys.map(|(_, value)| harmless(value.to_string())).collect();
    if basis == Basis::Gpu {
        cells.push(group.share.map_or("used", |share| share.mark()).to_owned());
    }
    cells.extend([sums.exchanges, sums.input(), sums.output()].map(|count| count.to_string()));
    cells.extend(sums.tokens.iter().map(ToString::to_string));
    let cost = group.cost(basis);
    if basis == Basis::Gpu {
        let each = [
            nano(sums.gpu_ns).to_string(),
            nano(sums.energy_nj).to_string(),
            rounded(sums.gpu_hours_pico),
            rounded(sums.gpu_energy_pico),
        ];
        cells.extend(each.map(|cell| if cost.is_some() { cell } else { String::new() }));
    }
    cells.push(cost.map(rounded).unwrap_or_default());
    cells.push(group.currency.map(|currency| currency.code().to_owned()).unwrap_or_default());
    cells.push(group.without_cost(basis).to_string());
    cells.extend(shares(&sums.input_known));
    cells.extend(shares(&sums.output_known));
    cells
}

fn shares(counts: &[i128; PROVENANCES]) -> impl Iterator<Item = String> {
    let shares = sums::shares(counts);
    Provenance::ALL.into_iter().map(move |provenance| {
        let share = shares.iter().find(|(known, _)| *known == provenance);
        share.map(|(_, share)| share_of(*share).to_string()).unwrap_or_default()
    })
}

/// Names are other people's text; one that begins like a formula would be run by whoever opens the file.
fn harmless(name: String) -> String {
    if name.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{name}") } else { name }
}
