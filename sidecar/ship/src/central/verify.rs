//! Verifies that the store's daily totals equal the sums of its rows and corrections, and that closed months are as they
//! were signed off.
//!
//! Only corrections are compared where the store has totals without rows: in a forgotten month, and for a file that
//! lost rows before they were shipped.

use std::collections::HashMap;

use ledger::column::RowReader;
use ledger::source::{Month, Source, SourceError};
use ledger::{DailyTotal, line_difference};
use meter::TokenType;
use postgres::types::Type;

use super::{Central, day_of};
use crate::columns;
use crate::error::uuid;

/// Maximum differences of one month that are listed; further ones are only counted.
const MAX_NAMED: usize = 20;

/// The verdict on one month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The month.
    pub month: Month,
    /// Number of exchanges read.
    pub rows: u64,
    /// True if the month's rows were dropped, so that only its corrections were compared.
    pub is_forgotten: bool,
    /// The digest, if the month is closed.
    pub digest: Option<String>,
    /// The differences; empty if there are none.
    pub differences: Vec<String>,
}

impl Central {
    /// Verifies every month, or one.
    ///
    /// # Errors
    /// If the store cannot be read, or has nothing of the month.
    pub fn verify(&self, only: Option<Month>) -> Result<Vec<Verdict>, SourceError> {
        let rates = self.rates()?;
        let currencies: HashMap<_, _> = rates.iter().map(|rate| (rate.id, rate.currency)).collect();
        let mut months = Vec::new();
        let sql = "SELECT first - date '1970-01-01' AS day, first IN (SELECT tokenmeter.forgotten()) AS is_forgotten \
                   FROM (SELECT to_date(right(inhrelid::regclass::text, 7), 'YYYY_MM') AS first FROM pg_inherits \
                   WHERE inhparent = 'tokenmeter.line'::regclass UNION SELECT month FROM tokenmeter.file) m \
                   WHERE EXISTS (SELECT FROM tokenmeter.file f WHERE f.month = first) \
                   OR EXISTS (SELECT FROM tokenmeter.line l WHERE l.day >= first AND l.day < first + interval '1 month') \
                   OR EXISTS (SELECT FROM tokenmeter.exchange x WHERE x.ended_at >= first::timestamp AT TIME ZONE 'UTC' \
                   AND x.ended_at < (first + interval '1 month') AT TIME ZONE 'UTC') \
                   ORDER BY 1";
        self.each(sql, &[], |row| {
            let (day, is_forgotten): (i32, bool) = (row.try_get("day")?, row.try_get("is_forgotten")?);
            months.push((day, ledger::month::of_day(day), is_forgotten));
            Ok(())
        })?;
        let forgotten: Vec<Month> =
            months.iter().filter(|(_, _, is_forgotten)| *is_forgotten).map(|(_, month, _)| *month).collect();
        months.retain(|(_, month, _)| only.is_none_or(|only| only == *month));
        if let (Some(only), true) = (only, months.is_empty()) {
            return Err(format!("the central store has no data of {}", ledger::month::name(only)).into());
        }
        let mut verdicts = Vec::with_capacity(months.len());
        for (first_day, month, is_forgotten) in months {
            let mut rows = 0;
            self.each(&count(), &[(&first_day, Type::INT4)], |row| {
                rows = row.try_get::<_, i64>(0)?.unsigned_abs();
                Ok(())
            })?;
            // Differing totals: as stored, and as computed from rows; either may be missing.
            let mut pairs: Vec<[Option<DailyTotal>; 2]> = Vec::new();
            let (mut more, mut reader) = (0_u64, RowReader::new());
            self.each(&differing(), &[(&first_day, Type::INT4), (&is_forgotten, Type::BOOL)], |row| {
                let (is_made, is_stored_too) = (row.try_get("is_made")?, row.try_get("is_stored_too")?);
                let is_full = pairs.len() >= MAX_NAMED;
                match pairs.last_mut() {
                    Some([Some(_), made]) if is_made && is_stored_too && more == 0 => {
                        *made = Some(columns::read(row, &mut reader)?);
                    }
                    _ if is_made && is_stored_too => {}
                    _ if is_full => more += 1,
                    _ if is_made => pairs.push([None, Some(columns::read(row, &mut reader)?)]),
                    _ => pairs.push([Some(columns::read(row, &mut reader)?), None]),
                }
                Ok(())
            })?;
            let mut differences: Vec<String> = pairs
                .iter()
                .filter_map(|[stored, made]| {
                    let rate = stored.as_ref().or(made.as_ref())?.key.rate;
                    let currency = rate.and_then(|rate| currencies.get(&rate)).map(price::Currency::code);
                    line_difference(currency, made.as_ref(), stored.as_ref())
                })
                .collect();
            if more > 0 {
                differences.push(format!("and {more} more such daily totals"));
            }
            let digest = self.verify_closed(month, &forgotten, &mut differences)?;
            verdicts.push(Verdict { month, rows, is_forgotten, digest, differences });
        }
        Ok(verdicts)
    }

    /// Compares a month with its sign-off. Returns the digest, if the month is closed.
    fn verify_closed(
        &self,
        month: Month,
        forgotten: &[Month],
        differences: &mut Vec<String>,
    ) -> Result<Option<String>, SourceError> {
        let Some(closing) = self.closing(month)? else { return Ok(None) };
        let name = ledger::month::name(month);
        let Some((digest, document)) = &closing.signed else {
            differences
                .push(format!("its sign-off is not complete: run `tokenmeter ledger close {name}` again"));
            return Ok(None);
        };
        let signed = self.closed_files(month)?;
        let computed = self.compute(&closing, &signed, forgotten)?;
        for (file, signed) in &signed {
            if computed.file(file).is_none_or(|computed| computed != &signed.digest[..]) {
                differences
                    .push(format!("the ledger file {} has changed since its month was closed", uuid(file)));
            }
        }
        let others = computed.files().filter(|file| !signed.contains_key(*file)).map(uuid);
        differences
            .extend(others.map(|file| format!("the ledger file {file} arrived after the month was closed")));
        if computed.digest[..] != digest[..] {
            differences.push("its digest is not that of its sign-off".to_owned());
        }
        // Names of hosts may change, and files are compared above.
        let names = document.as_object().into_iter().flatten().filter(|(name, _)| *name != "files");
        let differing: Vec<&str> = names
            .filter(|(name, value)| computed.document[*name] != **value)
            .map(|(name, _)| &**name)
            .collect();
        if !differing.is_empty() {
            differences.push(format!("its sign-off differs from the month in: {}", differing.join(", ")));
        }
        Ok(Some(ledger::digest::hex(digest)))
    }
}

/// Returns the SQL that counts the exchanges of a month.
fn count() -> String {
    format!("SELECT count(*) FROM {MONTH} m, tokenmeter.exchange x WHERE {}", of_month())
}

/// SQL of the first day of the month, `$1` in days since 1970, and of that of the next month.
const MONTH: &str =
    "(SELECT date '1970-01-01' + $1 AS first, (date '1970-01-01' + $1 + interval '1 month')::date AS next)";

/// Returns the SQL condition that a row of a table `x` is of the month `m` ([`MONTH`]). The bounds of its instant
/// exclude most partitions.
fn of_month() -> String {
    let day = day_of("x");
    format!(
        "x.ended_at >= (m.first - 2)::timestamp AT TIME ZONE 'UTC' AND x.ended_at < (m.next + 2)::timestamp AT TIME ZONE 'UTC' \
         AND {day} >= m.first AND {day} < m.next"
    )
}

/// The key columns of a daily total without `instance`: totals are compared over all files.
const KEYS: &str = "day, tenant, principal, upstream, provider, model, ending, input_provenance, output_provenance, \
                    rate, class";

/// The columns of a daily total that are sums, without tokens: those of 64 bits, and those of any size.
const COUNTS: [&str; 2] = ["exchanges", "energy_exchanges"];
const SUMS: [&str; 5] = ["cost_pico", "energy_nj", "gpu_ns", "gpu_hours_pico", "gpu_energy_pico"];

/// Returns the SQL of a month's totals whose stored sums differ from those of rows and corrections.
fn differing() -> String {
    let tokens = || TokenType::ALL.iter().map(|kind| kind.name());
    let list = |each: &dyn Fn(&str) -> String| {
        tokens().chain(COUNTS).chain(SUMS).map(each).collect::<Vec<_>>().join(", ")
    };
    let sums = list(&|name| format!("sum({name}) AS {name}"));
    let read = list(&|name| match SUMS.contains(&name) {
        true => format!("trunc({name})::text AS {name}"),
        false => format!("{name}::bigint AS {name}"),
    });
    let of_exchange = list(&|name| match name {
        "exchanges" => "1".to_owned(),
        "cost_pico" => "coalesce(x.cost_pico, 0)".to_owned(),
        name if tokens().any(|token| token == name) => format!("x.{name}"),
        _ => "0".to_owned(),
    });
    let of_leg = list(&|_| "0".to_owned());
    let of_energy = list(&|name| match name {
        "energy_exchanges" => "(x.role IS DISTINCT FROM 'prefill')::int".to_owned(),
        "energy_nj" | "gpu_ns" | "gpu_hours_pico" | "gpu_energy_pico" => format!("coalesce(e.{name}, 0)"),
        _ => "0".to_owned(),
    });
    let of_correction = list(&|name| match name {
        "exchanges" => "x.unpriced::int".to_owned(),
        "cost_pico" => "x.delta_pico".to_owned(),
        _ => "0".to_owned(),
    });
    let keys = |class: &str| {
        format!(
            "{} AS day, x.tenant, coalesce(x.principal, '') AS principal, \
             x.upstream, x.provider, x.model, x.ending, x.input_provenance, x.output_provenance, \
             coalesce(x.rate, '00000000-0000-0000-0000-000000000000') AS rate, '{class}' AS class",
            day_of("x")
        )
    };
    let (usage, correction) = (keys("usage"), keys("correction"));
    let names = list(&str::to_owned);
    let of_month = of_month();
    format!(
        "WITH m AS MATERIALIZED {MONTH},
         lacking AS (SELECT coalesce(f.late_of, g.instance) AS instance
           FROM tokenmeter.gap g LEFT JOIN tokenmeter.file f ON f.instance = g.instance WHERE g.seq < 0),
         partial AS (TABLE lacking UNION
           SELECT f.instance FROM tokenmeter.file f WHERE f.late_of IN (TABLE lacking)),
         parts ({KEYS}, {names}) AS (
           SELECT {usage}, {of_exchange} FROM m, tokenmeter.exchange x
             WHERE {of_month} AND x.role IS DISTINCT FROM 'prefill' AND NOT $2 AND x.instance NOT IN (TABLE partial)
           UNION ALL SELECT {usage}, {of_leg} FROM m, tokenmeter.exchange x
             WHERE {of_month} AND x.role = 'prefill' AND NOT $2 AND x.instance NOT IN (TABLE partial)
           UNION ALL SELECT {usage}, {of_energy}
             FROM m, tokenmeter.exchange x JOIN tokenmeter.energy e ON e.ended_at = x.ended_at AND e.id = x.id
             WHERE {of_month} AND e.class = 'usage' AND NOT $2 AND e.instance NOT IN (TABLE partial)
           UNION ALL SELECT {correction}, {of_correction} FROM m, tokenmeter.correction x WHERE {of_month}),
         made AS (SELECT {KEYS}, {sums} FROM parts GROUP BY {KEYS}),
         stored AS (SELECT {KEYS}, {sums} FROM m, tokenmeter.line
           WHERE day >= m.first AND day < m.next AND (class = 'correction'
             OR class = 'usage' AND NOT $2 AND instance NOT IN (TABLE partial)) GROUP BY {KEYS}),
         differing AS (
           SELECT false AS is_made, d.* FROM (TABLE stored EXCEPT TABLE made) d
           UNION ALL SELECT true, d.* FROM (TABLE made EXCEPT TABLE stored) d)
         SELECT is_made, bool_or(NOT is_made) OVER (PARTITION BY {KEYS}) AS is_stored_too, day, tenant, principal, upstream, provider, model, ending,
           input_provenance, output_provenance, rate, class, {read}
         FROM differing ORDER BY {KEYS}, is_made"
    )
}
