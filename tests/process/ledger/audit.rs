//! Reads a ledger's files by SQL, without the ledger's own code: unique rows, and sums of rows.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Rows of each tenant.
    pub(crate) tenants: Vec<(String, u64)>,
    /// Gap markers.
    pub(crate) gaps: u64,
    /// Exchanges that are known only as totals.
    pub(crate) shed: u64,
}

impl Found {
    pub(crate) fn rows(&self) -> u64 {
        self.tenants.iter().map(|(_, rows)| rows).sum()
    }

    pub(crate) fn of(&self, tenant: &str) -> u64 {
        self.tenants.iter().find(|(name, _)| name == tenant).map_or(0, |(_, rows)| *rows)
    }
}

/// Reads a ledger of one month; fails the test if a row is duplicated, or a daily total is not the sum of its rows.
#[track_caller]
pub(crate) fn audit(ledger: &Path) -> Found {
    let file = Connection::open_with_flags(ledger, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("a database");
    let check: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
    assert_eq!(check, "ok");
    let number = |sql: &str| -> u64 {
        file.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql).try_into().expect("a count")
    };
    let twice = "SELECT count(*) - count(DISTINCT id) FROM exchange";
    assert_eq!(number(twice), 0, "a row is duplicated");
    let differences = format!(
        "SELECT count(*) FROM (SELECT * FROM ({ROWS} EXCEPT {LINES}) UNION ALL SELECT * FROM ({LINES} EXCEPT {ROWS}))"
    );
    assert_eq!(number(&differences), 0, "totals are not the sums of their rows");
    let mut tenants = file.prepare("SELECT tenant, count(*) FROM exchange GROUP BY 1").expect("SQL");
    let tenants = tenants
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("rows");
    Found {
        tenants,
        gaps: number("SELECT count(*) FROM gap"),
        shed: number("SELECT coalesce(sum(exchanges), 0) FROM line WHERE class = 'shed'"),
    }
}

const ROWS: &str = "SELECT ifnull(day, ended_us / 86400000000), tenant, model, ending, coalesce(rate, x''), count(*), sum(input), \
    sum(input_cached), sum(output), sum(output_reasoning), coalesce(sum(cost_pico), 0) FROM exchange GROUP BY 1, 2, 3, 4, 5";
const LINES: &str = "SELECT day, tenant, model, ending, rate, sum(exchanges), sum(input), sum(input_cached), sum(output), \
    sum(output_reasoning), sum(cost_high) * 1000000 + sum(cost_low) FROM line WHERE class = 'usage' GROUP BY 1, 2, 3, 4, 5";
