//! The views as SQL reads them: what a filter leaves out, and the comment on every column.

use ledger::source::DAY_US;
use postgres::Client;

use super::rows::{batch, energy, origin, row};
use super::server::shared;
use crate::schema;
use crate::send::send;

/// A store with rows of three months.
fn store() -> Client {
    let database = shared().database();
    let mut client = shared().client(&database).unwrap();
    schema::ensure(&mut client).unwrap();
    for month in 0..3 {
        let mut row = row(3);
        row.ended_us += month * 31 * DAY_US;
        row.id.0[0] = month as u8;
        let used = energy(&row, 3).into_iter().collect();
        let batch = ledger::export::ShipBatch { energy: used, ..batch(vec![row]) };
        send(&mut client, origin(1), "host", &batch).unwrap();
    }
    client
}

/// The partitions of `exchange`, `energy` and `line` that a query reads.
fn read(client: &mut Client, query: &str) -> Vec<String> {
    let plan = client.query(&format!("EXPLAIN (VERBOSE) {query}"), &[]).unwrap();
    let mut read = Vec::new();
    for line in plan.iter().map(|row| row.get::<_, String>(0)) {
        let scanned = line.split(" on tokenmeter.").nth(1).and_then(|rest| rest.split(' ').next());
        read.extend(scanned.filter(|name| name.contains("_20")).map(str::to_owned));
    }
    read.sort();
    read.dedup();
    read
}

#[test]
#[ignore = "needs PostgreSQL"]
fn filters_by_day_and_month_read_one_partition() {
    let mut client = store();
    for (query, partition) in [
        ("SELECT * FROM tokenmeter.exchanges WHERE day = '2026-11-02'", "exchange_2026_11"),
        (
            "SELECT * FROM tokenmeter.exchanges WHERE day BETWEEN '2026-11-02' AND '2026-11-09'",
            "exchange_2026_11",
        ),
        ("SELECT * FROM tokenmeter.exchanges WHERE day > '2026-12-01'", "exchange_2026_12"),
        ("SELECT * FROM tokenmeter.legs WHERE day = '2026-10-30'", "exchange_2026_10"),
        ("SELECT * FROM tokenmeter.gpu_use WHERE day = '2026-10-30'", "energy_2026_10"),
        ("SELECT * FROM tokenmeter.spend_daily WHERE day = '2026-10-31'", "line_2026_10"),
        ("SELECT * FROM tokenmeter.spend_daily WHERE month = '2026-12'", "line_2026_12"),
        ("SELECT * FROM tokenmeter.spend_monthly WHERE month = '2026-11'", "line_2026_11"),
        ("SELECT * FROM tokenmeter.spend_monthly WHERE month < '2026-11' AND tenant = 'x'", "line_2026_10"),
    ] {
        assert_eq!(read(&mut client, query), [partition], "{query}");
    }
    assert_eq!(read(&mut client, "SELECT * FROM tokenmeter.spend_monthly").len(), 3);
    // Rows of the last day of a month may be in the next partition, by their time zone.
    let last = "SELECT * FROM tokenmeter.exchanges WHERE day = '2026-10-31'";
    assert_eq!(read(&mut client, last), ["exchange_2026_10", "exchange_2026_11"]);
}
