//! A report for programs: an object with the rows, each with the keys asked for, their totals, the months that they are
//! of, and notes. Money, time and energy are strings, because a number of JSON is a float to most who read it.

use std::io::{self, Write};

use super::column::{Cell, Column, share_of};
use super::group::{Group, Report};
use super::key::{Key, Value};
use super::period;
use super::sums::{self, PROVENANCES};

/// Writes it. `round`: digits of money after the point, all there are if not said.
///
/// # Errors
/// As the writer has them.
pub fn write(report: &Report, round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    let rows = |groups: &[Group]| groups.iter().map(|group| object(report, group, round)).collect::<Vec<_>>();
    let months = report.notes.months.iter();
    let months =
        months.map(|(month, state)| format!("{}: {}", text(&period::month(*month)), text(state.name())));
    let notes = report.sentences(round).iter().map(|sentence| text(sentence)).collect::<Vec<_>>();
    writeln!(
        to,
        "{{\n  \"rows\": {},\n  \"totals\": {},\n  \"months\": {{{}}},\n  \"notes\": {}\n}}",
        list(&rows(&report.groups)),
        list(&rows(&report.totals)),
        months.collect::<Vec<_>>().join(", "),
        list(&notes)
    )
}

/// An array with an item a line.
fn list(items: &[String]) -> String {
    match items {
        [] => "[]".to_owned(),
        items => format!("[\n    {}\n  ]", items.join(",\n    ")),
    }
}

fn object(report: &Report, group: &Group, round: Option<u32>) -> String {
    let basis = report.ask.basis;
    let keys = report.ask.by.iter().zip(&group.values).filter(|(key, _)| **key != Key::Currency);
    let mut members: Vec<String> = keys.map(|(key, value)| member(key.name(), &text_of(value))).collect();
    let is_share = |column: &Column| matches!(column, Column::InputKnown(_) | Column::OutputKnown(_));
    let columns = Column::all(basis).into_iter().filter(|column| !is_share(column));
    members.extend(columns.map(|column| member(&column.name(), &written(&column.cell(group, basis, round)))));
    let known = [("input", &group.sums.input_known), ("output", &group.sums.output_known)];
    let known = known.map(|(side, counts)| member(side, &shares(counts)));
    members.push(member("provenance", &format!("{{{}}}", known.join(", "))));
    format!("{{{}}}", members.join(", "))
}

fn member(name: &str, value: &str) -> String {
    format!("\"{name}\": {value}")
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Number(number) => number.to_string(),
        Cell::Decimal(_) | Cell::Text(_) => text(&cell.to_string()),
        Cell::Unknown => "null".to_owned(),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        value => text(&value.to_string()),
    }
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn shares(counts: &[i128; PROVENANCES]) -> String {
    let shares = sums::shares(counts).into_iter();
    let each = shares.map(|(known, share)| member(known.name(), &text(&share_of(share).to_string())));
    format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
}
