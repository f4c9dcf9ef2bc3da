//! A report for people: aligned, with a total, the provenance of the counts, and notes below.

use std::io::{self, Write};

use ledger::{month, period};
use text::{Decimal, group_thousands, nano, table};

use super::column::{self, Cell, rounded};
use super::group::{Group, Report};
use super::key::{Key, Value};
use super::query::{Basis, Idle, Query};
use super::savings::{Kind, Savings, UNKNOWN};
use super::sums::{self, In, PROVENANCES};

/// Maximum characters of a shown name; longer ones are cut.
const NAME: usize = 48;

/// A column, and the alignment of its cells.
struct Column {
    name: String,
    right: bool,
    cells: Vec<String>,
}

/// The content of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout<'a> {
    /// Digits of money after the point; all if `None`.
    pub round: Option<u32>,
    /// The columns after the keys; the default ones if `None`.
    pub columns: Option<&'a [column::Column]>,
    /// True to add the savings.
    pub savings: bool,
}

/// Writes it. `round`: digits of money after the point; all if `None`.
///
/// # Errors
/// Returns the writer's error.
pub fn write(report: &Report, round: Option<u32>, to: &mut dyn Write) -> io::Result<()> {
    write_with(report, &Layout { round, ..Layout::default() }, to)
}

/// Writes a report with a layout.
///
/// # Errors
/// Returns the writer's error.
pub fn write_with(report: &Report, layout: &Layout<'_>, to: &mut dyn Write) -> io::Result<()> {
    let (query, round) = (&report.query, layout.round);
    writeln!(to, "{}", title(query))?;
    if report.groups.is_empty() {
        writeln!(to, "No exchange of this period matches.")?;
    } else {
        let columns = match layout.columns {
            Some(named) => chosen(report, named, round),
            None => columns(report, round),
        };
        grid(&columns, report.groups.len(), to)?;
    }
    if layout.savings {
        report.savings.iter().try_for_each(|(currency, savings)| {
            writeln!(to)?;
            grid(&of_savings(query.basis, *currency, savings, round), Kind::of(query.basis).len(), to)
        })?;
        writeln!(to, "Note: the ledger does not have {}.", UNKNOWN.join(" and "))?;
    }
    for sentence in report.sentences(round) {
        writeln!(to, "Note: {sentence}.")?;
    }
    Ok(())
}

/// Returns the query as a title, so that an archived page identifies its content.
fn title(query: &Query) -> String {
    let Query { range, billed, filters, basis, idle, .. } = query;
    let by = match (basis, idle) {
        (Basis::Price, _) => "Spend by price",
        (Basis::Gpu, Idle::None) => "Spend by GPU time and energy",
        (Basis::Gpu, Idle::Proportional) => "Spend by GPU time and energy, idle in proportion",
        (Basis::Gpu, Idle::Even) => "Spend by GPU time and energy, idle evenly",
    };
    let time = match (range.since_us, range.until_us) {
        (i64::MIN, i64::MAX) => "all time".to_owned(),
        (i64::MIN, until) => format!("until {}", period::time(until)),
        (since, i64::MAX) => format!("since {}", period::time(since)),
        (since, until) => format!("from {} until {}", period::time(since), period::time(until)),
    };
    let billed = billed.map_or_else(String::new, |month| format!(", billed in {}", month::name(month)));
    let only: String = filters.iter().map(|filter| format!(", only {filter}")).collect();
    format!("{by}, {time} (UTC){billed}{only}")
}

/// Writes the totals, unless there is nothing to add up.
fn totals(report: &Report) -> &[Group] {
    if report.groups.len() + report.notes.not_listed > report.totals.len() { &report.totals } else { &[] }
}

/// Returns the groups and the totals.
fn rows(report: &Report) -> impl Iterator<Item = &Group> {
    report.groups.iter().chain(totals(report))
}

/// Returns the columns of the keys.
fn keys(report: &Report) -> Vec<Column> {
    let by = &report.query.by;
    let first = by.iter().position(|key| *key != Key::Currency);
    by.iter()
        .enumerate()
        .filter(|(_, key)| **key != Key::Currency)
        .map(|(at, key)| {
            let total = if Some(at) == first { "total" } else { "" };
            let cells =
                rows(report).map(|group| group.values.get(at).map_or(total.to_owned(), name)).collect();
            Column { name: key.name().to_owned(), right: false, cells }
        })
        .collect()
}

/// Returns the keys and the chosen columns.
fn chosen(report: &Report, named: &[column::Column], round: Option<u32>) -> Vec<Column> {
    let mut columns = keys(report);
    columns.extend(named.iter().map(|column| {
        let cells = || rows(report).map(|group| column.cell(group, &report.query, round));
        let decimals = cells().map(|cell| match cell {
            Cell::Decimal(decimal) => Some(decimal),
            Cell::Number(units) => Some(Decimal { units, digits: 0, least: 0 }),
            Cell::Text(_) | Cell::Unknown => None,
        });
        let right = !column.is_text();
        let cells = if right { aligned(decimals) } else { cells().map(|cell| cell.to_string()).collect() };
        Column { name: column.name(), right, cells }
    }));
    columns
}

/// Returns the table of the savings in a currency.
fn of_savings(basis: Basis, currency: In, savings: &Savings, round: Option<u32>) -> Vec<Column> {
    let kinds = Kind::of(basis);
    let amounts = kinds.iter().map(|kind| savings.amount(*kind));
    let names = kinds.iter().map(|kind| kind.name()).chain(["cost"]).map(str::to_owned);
    let all = amounts.chain([Some(savings.cost_pico)]);
    let shares = kinds.iter().map(|kind| savings.share(*kind).map_or("?".to_owned(), percent));
    let code = currency.map(|is| is.code().to_owned()).unwrap_or_default();
    vec![
        Column { name: "worth".to_owned(), right: false, cells: names.collect() },
        Column {
            name: "amount".to_owned(),
            right: true,
            cells: aligned(all.map(|pico| pico.map(|pico| rounded(pico, round)))),
        },
        Column { name: "currency".to_owned(), right: false, cells: vec![code; kinds.len() + 1] },
        Column {
            name: "of cost".to_owned(),
            right: true,
            cells: shares.chain(["100.0%".to_owned()]).collect(),
        },
    ]
}

/// Formats a share as a percentage with one digit.
fn percent(share: Decimal) -> String {
    format!("{}%", Decimal { digits: share.digits - 2, least: 1, ..share }.round(1))
}

fn columns(report: &Report, round: Option<u32>) -> Vec<Column> {
    let (query, basis) = (&report.query, report.query.basis);
    let rows = || rows(report);
    let mut columns = keys(report);
    let has_keys = !columns.is_empty();
    let mut push = |name: &str, right, cells| columns.push(Column { name: name.to_owned(), right, cells });
    if basis == Basis::Gpu {
        let total = if has_keys { "" } else { "total" };
        let share = |(at, group): (usize, &Group)| match group.share {
            Some(share) => share.mark().to_owned(),
            None if at < report.groups.len() => "used".to_owned(),
            None => total.to_owned(),
        };
        push("share", false, rows().enumerate().map(share).collect());
    }
    let counts =
        |of: &dyn Fn(&Group) -> i128| rows().map(|group| group_thousands(&of(group).to_string())).collect();
    push("exchanges", true, counts(&|group| group.sums.exchanges));
    push("input", true, counts(&|group| group.sums.input()));
    push("output", true, counts(&|group| group.sums.output()));
    if basis == Basis::Gpu {
        // A GPU hour is 3,600 seconds of 10^9 nanoseconds, no finite decimal, so it is rounded only here.
        let hours = |group: &Group| {
            Some(Decimal { units: group.sums.gpu.gpu_ns / 3_600_000, digits: 6, least: 0 }.round(4))
        };
        push("gpu_hours", true, aligned(rows().map(hours)));
        push(
            "energy_kj",
            true,
            aligned(rows().map(|group| Some(nano(group.sums.gpu.energy_nj / 1000).round(3)))),
        );
    }
    push("cost", true, aligned(rows().map(|group| group.cost(basis).map(|pico| rounded(pico, round)))));
    if basis == Basis::Gpu && query.idle != Idle::None {
        let allocated = |group: &Group| Some(rounded(group.sums.allocated_pico, round));
        push("allocated", true, aligned(rows().map(allocated)));
    }
    push(
        "currency",
        false,
        rows().map(|group| group.currency.map(|is| is.code().to_owned()).unwrap_or_default()).collect(),
    );
    let unpriced = match basis {
        Basis::Price => "unpriced",
        Basis::Gpu => "unmeasured",
    };
    push(unpriced, true, counts(&|group| group.without_cost(basis)));
    push("uncounted", true, counts(&|group| group.sums.uncounted_prompts));
    if let Some(what_if) = &query.what_if {
        let costs = rows().map(|group| group.what_if().map(|pico| rounded(pico, round)));
        push(&format!("what_if {}", what_if.book.currency().code()), true, aligned(costs));
        push("not charged", true, counts(&Group::without_what_if));
    }
    push("input known", false, rows().map(|group| known(&group.sums.input_known)).collect());
    push("output known", false, rows().map(|group| known(&group.sums.output_known)).collect());
    columns
}

/// Escapes a name: text of clients may contain control characters of a terminal.
fn name(value: &Value) -> String {
    let text = match value {
        Value::Null => return "-".to_owned(),
        value => value.to_string(),
    };
    let shown: String = text.escape_debug().collect();
    match shown.char_indices().nth(NAME) {
        Some((at, _)) => format!("{}…", &shown[..at]),
        None => shown,
    }
}

/// Returns the provenance of counts: `reported`, or `reported 98.2%, frames 1.8%`.
pub fn known(counts: &[i128; PROVENANCES]) -> String {
    match sums::shares(counts).as_slice() {
        [] => "-".to_owned(),
        [(only, _)] => only.name().to_owned(),
        shares => {
            let percent = |millionths: u32| match millionths {
                0..500 => "<0.1%".to_owned(),
                999_500..=1_000_000 => ">99.9%".to_owned(),
                _ => format!("{}%", Decimal { units: i128::from(millionths), digits: 4, least: 1 }.round(1)),
            };
            let each: Vec<_> =
                shares.iter().map(|(known, share)| format!("{} {}", known.name(), percent(*share))).collect();
            each.join(", ")
        }
    }
}

/// Aligns decimals at their points; `?` for an unknown one.
fn aligned(decimals: impl Iterator<Item = Option<Decimal>>) -> Vec<String> {
    let parts: Vec<_> = decimals.map(|decimal| decimal.map(Decimal::parts)).collect();
    let longest = parts.iter().flatten().map(|(_, after)| after.len()).max().unwrap_or(0);
    parts
        .into_iter()
        .map(|parts| match parts {
            None => format!("?{}", " ".repeat(longest + usize::from(longest > 0))),
            Some((before, after)) => {
                let point = if after.is_empty() { if longest > 0 { " " } else { "" } } else { "." };
                format!("{}{point}{after:<longest$}", group_thousands(&before))
            }
        })
        .collect()
}

fn grid(columns: &[Column], groups: usize, to: &mut dyn Write) -> io::Result<()> {
    let cells = columns.first().map_or(0, |column| column.cells.len());
    let names = columns.iter().map(|column| column.name.clone()).collect();
    let row = |row: usize| columns.iter().map(|column| column.cells[row].clone()).collect();
    let rows: Vec<Vec<String>> = [names].into_iter().chain((0..cells).map(row)).collect();
    let lines = table(&rows, |column| columns[column].right);
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    for (row, line) in lines.iter().enumerate() {
        // The totals stand below the groups and the header.
        if row == groups + 1 {
            writeln!(to, "{}", "-".repeat(width))?;
        }
        writeln!(to, "{line}")?;
    }
    Ok(())
}
