//! A report for programs: an object with the rows, each with the query's keys, their totals, their months, and notes.
//! Money, time and energy are strings, because most programs read a JSON number as a float. Rows are written one by
//! one, so that memory does not grow with the text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ledger::month;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::{Formatter, Serializer as Json};

use super::column::rounded;
use super::column::{Cell, Column, share_of};
use super::group::{Group, Report};
use super::key::{Key, Value};
use super::query::Basis;
use super::savings::{Kind, Savings};
use super::sums::{self, In, PROVENANCES};

/// Writes it. `round`: digits of money after the point; all if `None`.
///
/// # Errors
/// Returns the writer's error.
pub fn write(report: &Report, round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    let months = report.notes.months.iter();
    let document = Document {
        rows: Rows { report, groups: &report.groups, round },
        totals: Rows { report, groups: &report.totals, round },
        savings: report
            .savings
            .iter()
            .map(|(currency, savings)| CurrencySavings {
                basis: report.query.basis,
                currency: *currency,
                savings,
                round,
            })
            .collect(),
        months: months.map(|(month, state)| (month::name(*month), state.name())).collect(),
        notes: report.sentences(round),
    };
    document.serialize(&mut Json::with_formatter(&mut *to, RowALine::default()))?;
    writeln!(to)
}

#[derive(serde::Serialize)]
struct Document<'a> {
    rows: Rows<'a>,
    totals: Rows<'a>,
    savings: Vec<CurrencySavings<'a>>,
    months: BTreeMap<String, &'static str>,
    notes: Vec<String>,
}

struct Rows<'a> {
    report: &'a Report,
    groups: &'a [Group],
    round: Option<u32>,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self { report, groups, round } = self;
        to.collect_seq(groups.iter().map(|group| Row { report, group, round }))
    }
}

struct Row<'a> {
    report: &'a Report,
    group: &'a Group,
    round: Option<u32>,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self { report, group, round } = self;
        let query = &report.query;
        let mut members = to.serialize_map(None)?;
        for (key, value) in
            report.query.by.iter().zip(&group.values).filter(|(key, _)| **key != Key::Currency)
        {
            members.serialize_entry(key.name(), value)?;
        }
        for column in Column::all(query) {
            if !matches!(column, Column::InputKnown(_) | Column::OutputKnown(_)) {
                members.serialize_entry(&column.name(), &column.cell(group, query, round))?;
            }
        }
        let Group { sums, .. } = group;
        let known = Known { input: Shares(&sums.input_known), output: Shares(&sums.output_known) };
        members.serialize_entry("provenance", &known)?;
        members.end()
    }
}

/// The savings in a currency; kinds that a ledger does not have are null.
struct CurrencySavings<'a> {
    basis: Basis,
    currency: In,
    savings: &'a Savings,
    round: Option<u32>,
}

impl Serialize for CurrencySavings<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self { basis, currency, savings, round } = self;
        let mut members = to.serialize_map(None)?;
        members.serialize_entry("currency", &currency.map(|is| is.code().to_owned()))?;
        members.serialize_entry("cost", &rounded(savings.cost_pico, round).to_string())?;
        for kind in Kind::of(basis) {
            let share = savings.share(*kind).map(|share| share.to_string());
            let amount = savings.amount(*kind).map(|pico| rounded(pico, round).to_string());
            members.serialize_entry(kind.name(), &amount.map(|amount| Amount { amount, share }))?;
        }
        members.end()
    }
}

#[derive(serde::Serialize)]
struct Amount {
    amount: String,
    share: Option<String>,
}

#[derive(serde::Serialize)]
struct Known<'a> {
    input: Shares<'a>,
    output: Shares<'a>,
}

struct Shares<'a>(&'a [i128; PROVENANCES]);

impl Serialize for Shares<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let shares = sums::shares(self.0).into_iter();
        to.collect_map(shares.map(|(known, share)| (known.name(), share_of(share).to_string())))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => to.serialize_i128(*number),
            Self::Decimal(_) | Self::Text(_) => to.collect_str(self),
            Self::Unknown => to.serialize_none(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_none(),
            value => to.collect_str(value),
        }
    }
}

/// White space that begins a line for each member of the document and each item of its arrays.
#[derive(Default)]
struct RowALine {
    objects: usize,
    has_item: bool,
}

impl RowALine {
    fn separate<W: ?Sized + Write>(to: &mut W, first: bool, between: &str) -> io::Result<()> {
        write!(to, "{}{between}", if first { "" } else { "," })
    }
}

impl Formatter for RowALine {
    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.objects += 1;
        to.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        Self::separate(
            to,
            first,
            if self.objects == 1 {
                "\n  "
            } else if first {
                ""
            } else {
                " "
            },
        )
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.objects -= 1;
        to.write_all(if self.objects == 0 { b"\n}" } else { b"}" })
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.has_item = false;
        to.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.has_item = true;
        Self::separate(to, first, "\n    ")
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(if self.has_item { b"\n  ]" } else { b"]" })
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::Memory;
    use crate::tests::query;
    use crate::{Key, make};

    fn written(memory: &Memory, by: &[Key]) -> String {
        let report = make(memory, &query(by)).expect("a store in memory is readable");
        let mut text = Vec::new();
        super::write(&report, Some(6), &mut text).expect("memory takes it");
        String::from_utf8(text).expect("it is text")
    }

    #[test]
    fn each_row_is_a_line() {
        let text = written(&Memory::of_chance(3, 3), &[Key::Tenant, Key::Currency]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 15, "{text}");
        assert!(
            lines[2].starts_with(r#"    {"tenant": "beta", "exchanges": 2, "input_tokens": 35758, "#),
            "{text}"
        );
        let end = r#""cost": null, "currency": null, "unpriced_exchanges": 2, "uncounted_prompts": 0, "cost_per_1m_input": null, "cost_per_1m_output": null, "cost_per_1m_tokens": null, "cost_per_exchange": null, "provenance": {"input": {"engine": "0.381676", "frames": "0.618324"}, "output": {"running": "1"}}},"#;
        assert!(lines[2].ends_with(end), "{text}");
        let around = [0, 1, 4, 5, 7, 8, 9, 10, 13].map(|at: usize| lines[at]).join("\n");
        let expected = r#"{
  "rows": [
  ],
  "totals": [
  ],
  "savings": [],
  "months": {"2026-10": "ended"},
  "notes": [
"#;
        assert_eq!(around, format!("{expected}  ]"), "{text}");
    }

    #[test]
    fn empty_report_has_empty_lists() {
        let text = "{\n  \"rows\": [],\n  \"totals\": [],\n  \"savings\": [],\n  \"months\": {},\n  \"notes\": []\n}\n";
        assert_eq!(written(&Memory::default(), &[Key::Tenant]), text);
    }
}
