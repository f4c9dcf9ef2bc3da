//! A report for spreadsheets: CSV, one row for each group; if rounded, also one for each total. A name that a
//! spreadsheet would read as a formula gets an apostrophe before it, and invisible characters are escaped.

use std::io::{self, Write};

use super::cell;
use super::column::Column;
use super::group::Report;
use super::key::Key;

/// Writes it with these columns behind the keys. `round`: digits of money after the point; all if `None`.
///
/// Rounded rows do not sum to the rounded total, so then the first column, `row`, tells `group` from `total`.
///
/// # Errors
/// Returns the writer's error.
pub fn write(report: &Report, columns: &[Column], round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    let mut sheet = csv::Writer::from_writer(to);
    let keys = || report.query.by.iter().filter(|key| **key != Key::Currency);
    let first = round.map(|_| "row".to_owned());
    let names = keys().map(|key| key.name().to_owned()).chain(columns.iter().map(|column| column.name()));
    sheet.write_record(first.into_iter().chain(names))?;
    let totals = round.map_or(&[][..], |_| &report.totals);
    for group in report.groups.iter().chain(totals) {
        let first = round.map(|_| if group.is_total { "total" } else { "group" }.to_owned());
        let mut names = report.query.by.iter().zip(&group.values).filter(|(key, _)| **key != Key::Currency);
        let names =
            keys().map(|_| names.next().map_or_else(String::new, |(_, value)| harmless(&value.to_string())));
        let cells = columns.iter().map(|column| column.cell(group, &report.query, round).to_string());
        sheet.write_record(first.into_iter().chain(names).chain(cells))?;
    }
    sheet.flush()
}

/// Escapes a name, which is text of clients: a spreadsheet would run one that begins like a formula.
fn harmless(name: &str) -> String {
    let name = cell::plain(name);
    // Spreadsheets with East Asian settings read the wide forms, too.
    let mark = if name.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) { "'" } else { "" };
    format!("{mark}{name}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn formulas_are_text() {
        for name in ["=1", "+1", "-1", "@A1", "＝1", "＋1", "－1", "＠A1"] {
            assert_eq!(super::harmless(name), format!("'{name}"));
        }
        assert_eq!(super::harmless("a=1"), "a=1");
    }
}
