//! Upgrades of a store, by a version 2 of the schema that only these tests have.

use std::thread;

use postgres::Client;

use super::rows::{batch, origin, row};
use super::server::shared;
use crate::schema::{check, ensure, ensure_steps};
use crate::send::send;
use crate::{Address, Central};

/// The version of this tokenmeter, whose statements are in the store already, and the next one: a column, and a view
/// that version 1 does not have under its name.
const STEPS: [&str; 2] = [
    "SELECT 1 / 0",
    "ALTER TABLE tokenmeter.exchange ADD COLUMN added text;
     ALTER VIEW tokenmeter.requests RENAME TO former_requests;
     INSERT INTO tokenmeter.version (version) VALUES (2)",
];

/// A store of version 1 with a row, and the name of its database.
fn store() -> (String, Client) {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(vec![row(1)])).unwrap();
    (database, owner)
}

fn one<T: for<'v> postgres::types::FromSql<'v>>(client: &mut Client, sql: &str) -> T {
    client.query_one(sql, &[]).unwrap().get(0)
}

const VERSIONS: &str = "SELECT array_agg(version ORDER BY version) FROM tokenmeter.version";

#[test]
#[ignore = "needs PostgreSQL"]
fn upgrade_keeps_rows_in_place() {
    let (_, mut owner) = store();
    let place = "SELECT string_agg(x.ctid::text || c.relfilenode, ' ') FROM tokenmeter.exchange_2026_10 x, pg_class c \
                 WHERE c.relname = 'exchange_2026_10'";
    let before: String = one(&mut owner, place);
    ensure_steps(&mut owner, &STEPS).unwrap();
    assert_eq!(one::<Vec<i32>>(&mut owner, VERSIONS), [1, 2]);
    assert_eq!(one::<String>(&mut owner, place), before, "no row was written");
    let rows = "SELECT count(*) FROM tokenmeter.exchange WHERE added IS NULL AND tenant = 'tenant-1'";
    assert_eq!(one::<i64>(&mut owner, rows), 1);
    // Once more it changes nothing: neither step would succeed.
    ensure_steps(&mut owner, &STEPS).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn concurrent_upgrades_apply_a_step_once() {
    let (database, mut owner) = store();
    thread::scope(|scope| {
        for _ in 0..8 {
            let mut client = shared().client(&database).unwrap();
            scope.spawn(move || ensure_steps(&mut client, &STEPS).unwrap());
        }
    });
    assert_eq!(one::<Vec<i32>>(&mut owner, VERSIONS), [1, 2]);
}

/// All steps are one transaction.
#[test]
#[ignore = "needs PostgreSQL"]
fn failed_upgrade_leaves_the_store_as_it_was() {
    let (database, mut owner) = store();
    let error = ensure_steps(&mut owner, &[STEPS[0], STEPS[1], "SELECT 1 / 0"]).unwrap_err();
    assert!(error.message.contains("division by zero"), "{error}");
    assert_eq!(one::<Vec<i32>>(&mut owner, VERSIONS), [1]);
    let added = "SELECT count(*) FROM pg_attribute WHERE attname = 'added'";
    assert_eq!(one::<i64>(&mut owner, added), 0);
    // The lock is free, and the store is in use.
    ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(vec![row(2)])).unwrap();
    Central::open(&Address::parse(&shared().url(&database)).unwrap()).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn upgraded_store_refuses_earlier_version() {
    let (_, mut owner) = store();
    ensure_steps(&mut owner, &STEPS).unwrap();
    for refused in [ensure(&mut owner), check(&mut owner)] {
        let message = refused.unwrap_err().message;
        assert!(message.contains("schema is version 2, and this tokenmeter"), "{message}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn upgrade_by_other_role_is_refused() {
    let (database, mut owner) = store();
    owner
        .batch_execute(
            "CREATE ROLE upgrades_nothing LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA tokenmeter TO upgrades_nothing;
             GRANT SELECT ON tokenmeter.version TO upgrades_nothing",
        )
        .unwrap();
    let url = shared().url_of("upgrades_nothing", "x", &database);
    let mut other = crate::connect::connect(&Address::parse(&url).unwrap()).unwrap();
    let error = ensure_steps(&mut other, &STEPS).unwrap_err();
    assert_eq!(one::<Vec<i32>>(&mut owner, VERSIONS), [1], "{error}");
}

/// Roles keep their rights, and those that may read the tables may read a view that the new version adds.
#[test]
#[ignore = "needs PostgreSQL"]
fn grants_hold_after_an_upgrade() {
    let (_, mut owner) = store();
    owner
        .batch_execute(
            "CREATE ROLE ships_on; CREATE ROLE reads_on; GRANT USAGE ON SCHEMA tokenmeter TO ships_on, reads_on;
             GRANT INSERT ON tokenmeter.exchange TO ships_on;
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tokenmeter TO ships_on;
             GRANT SELECT ON tokenmeter.exchange TO reads_on",
        )
        .unwrap();
    ensure_steps(&mut owner, &STEPS).unwrap();
    let may = "SELECT has_table_privilege('ships_on', 'tokenmeter.exchange', 'INSERT')
                  AND has_function_privilege('ships_on', 'tokenmeter.ensure_months(integer[])', 'EXECUTE')
                  AND NOT has_table_privilege('ships_on', 'tokenmeter.requests', 'SELECT')";
    assert!(one::<bool>(&mut owner, may));
    owner.batch_execute("SET ROLE reads_on; SELECT * FROM tokenmeter.requests").unwrap();
}
