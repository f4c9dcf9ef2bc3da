//! The rights of a shipping role in the store.

use postgres::{Client, NoTls};

use super::rows::{batch, origin, rows};
use super::server::shared;
use crate::schema;
use crate::send::send;

const DOCUMENT: &str = include_str!("../../postgres.md");

/// The roles of the document, by other names.
fn store(ships: &[&str]) -> (String, Client) {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    let statements = DOCUMENT.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    for role in ships {
        let statements =
            statements.replace("tokenmeter_ship", role).replace("tokenmeter_read", &format!("{role}_read"));
        owner.batch_execute(&statements).unwrap();
        owner.batch_execute(&format!("ALTER ROLE {role} PASSWORD 'a'")).unwrap();
    }
    (database, owner)
}

fn connected(role: &str, database: &str) -> Client {
    let url = shared().url_of(role, "a", database);
    Client::connect(&format!("{url}?sslmode=disable"), NoTls).unwrap()
}

fn code(client: &mut Client, sql: &str) -> String {
    client.batch_execute(sql).expect_err(sql).code().unwrap().code().to_owned()
}

/// A line of the tenant `t`, of so many exchanges and so much cost.
fn put(function: &str, instance: &str, exchanges: i64, cost_pico: &str) -> String {
    let zero = [
        "input",
        "input_cached",
        "input_cache_write",
        "input_cache_write_1h",
        "input_audio",
        "input_image",
        "input_video",
        "input_cached_audio",
        "input_cached_image",
        "output",
        "output_reasoning",
        "output_audio",
        "output_image",
        "output_video",
        "energy_exchanges",
        "energy_nj",
        "gpu_ns",
        "gpu_hours_pico",
        "gpu_energy_pico",
    ]
    .map(|name| format!("\"{name}\": 0"))
    .join(", ");
    let keys = [
        "tenant",
        "principal",
        "upstream",
        "provider",
        "model",
        "ending",
        "input_provenance",
        "output_provenance",
    ]
    .map(|name| format!("\"{name}\": \"t\""))
    .join(", ");
    format!(
        "SELECT tokenmeter.{function}('{instance}', 20741, '{{{zero}, {keys}, \"rate\": \
         \"00000000-0000-0000-0000-000000000000\", \"exchanges\": {exchanges}, \"cost_pico\": {cost_pico}}}')"
    )
}

const FILE_1: &str = "01010101-0101-0101-0101-010101010101";
const FILE_2: &str = "02020202-0202-0202-0202-020202020202";

#[test]
#[ignore = "needs PostgreSQL"]
fn role_writes_only_files_that_it_ships() {
    let (database, mut owner) = store(&["node_1", "node_2"]);
    let mut node_1 = connected("node_1", &database);
    let mut node_2 = connected("node_2", &database);
    send(&mut node_1, origin(1), "host", &batch(rows(0..10))).unwrap();
    send(&mut node_2, origin(2), "host", &batch(rows(10..20))).unwrap();
    let unknown = "03030303-0303-0303-0303-030303030303";
    for instance in [FILE_2, unknown] {
        for sql in [
            put("put_shed", instance, 1, "1"),
            put("put_usage", instance, 1, "1"),
            format!("SELECT tokenmeter.put_device('{instance}', 20741, '{{}}')"),
            format!(
                "SELECT tokenmeter.progress('{instance}', 681, 'h', 9999, 0, 0, 0, 0, NULL, NULL, false, false)"
            ),
            format!("INSERT INTO tokenmeter.gap VALUES ('{instance}', 1, now(), now(), 'x', 1, true)"),
            format!("INSERT INTO tokenmeter.act VALUES ('{instance}', 1, now(), 'x', 'y', '')"),
            format!(
                "INSERT INTO tokenmeter.energy VALUES ('2026-10-15', '{unknown}', '{instance}', 1, 1, 1, 1, 'usage')"
            ),
        ] {
            assert_eq!(code(&mut node_1, &sql), "TM001", "{sql}");
        }
    }
    let sql = format!("SELECT tokenmeter.put_line('{FILE_1}', 20741, '{{}}', 'usage', '%I = 0')");
    assert_eq!(code(&mut node_1, &sql), "42501", "only the other functions may call it");
    let error = send(&mut node_1, origin(2), "host", &batch(rows(20..30))).unwrap_err();
    assert!(error.message.contains("UPDATE tokenmeter.file SET owner = 'node_1'"), "{error}");
    // The remedy that the message names.
    owner.batch_execute("UPDATE tokenmeter.file SET owner = 'node_1'").unwrap();
    send(&mut node_1, origin(2), "host", &batch(rows(20..30))).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn numbers_that_cannot_be_negative_are_refused() {
    let (database, _) = store(&["node_3"]);
    let mut client = connected("node_3", &database);
    send(&mut client, origin(1), "host", &batch(rows(0..10))).unwrap();
    for function in ["put_shed", "put_usage"] {
        client.batch_execute(&put(function, FILE_1, 1, "1")).unwrap();
        for sql in [put(function, FILE_1, 1, "-9000000000000000"), put(function, FILE_1, -1, "1")] {
            assert_eq!(code(&mut client, &sql), "23514", "{sql}");
        }
    }
    for sql in [
        format!("INSERT INTO tokenmeter.gap VALUES ('{FILE_1}', 1, now(), now(), 'x', -1, true)"),
        format!("INSERT INTO tokenmeter.energy VALUES ('2026-10-15', '{FILE_2}', '{FILE_1}', -1, 1, 1, 1, 'usage')"),
        "INSERT INTO tokenmeter.rate (id, version, book, entry, tier, above_input_tokens, currency, input, per_request) \
         VALUES (gen_random_uuid(), '', '', '', '', 0, 'USD', -1, 0)"
            .to_owned(),
    ] {
        assert_eq!(code(&mut client, &sql), "23514", "{sql}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn owner_statements_refuse_others_and_name_owner() {
    let (database, mut owner) = store(&["node_4"]);
    let mut client = connected("node_4", &database);
    send(&mut client, origin(1), "host", &batch(rows(0..10))).unwrap();
    owner.batch_execute("SELECT tokenmeter.ensure_months(ARRAY[20800])").unwrap();
    owner.batch_execute("ALTER ROLE node_4_read PASSWORD 'a'").unwrap();
    for (called, sql) in [
        ("forget", "SELECT tokenmeter.forget('2026-10')".to_owned()),
        ("send_again", format!("SELECT tokenmeter.send_again('{FILE_1}')")),
        ("give_up", format!("SELECT tokenmeter.give_up('{FILE_1}')")),
        (
            "begin_amendment",
            "SELECT tokenmeter.begin_amendment(681, now(), 'adjusted', 'ann', '{}')".to_owned(),
        ),
        ("close", "SELECT tokenmeter.close('2026-10', 'ann')".to_owned()),
    ] {
        for role in ["node_4", "node_4_read"] {
            let error = connected(role, &database).batch_execute(&sql).expect_err(&sql);
            let error = error.as_db_error().unwrap();
            assert_eq!(error.code().code(), "42501", "{sql}");
            let message = format!(
                "role {role} may not call tokenmeter.{called}: only owner, the owner of the schema tokenmeter, may"
            );
            assert_eq!(error.message(), message);
            assert!(error.hint().unwrap().starts_with("Connect as owner"), "{error:?}");
        }
        let add = "SELECT tokenmeter.add_energy(ARRAY[]::timestamptz[], ARRAY[]::uuid[])";
        assert_eq!(code(&mut client, add), "42501");
        owner.batch_execute(&sql).unwrap();
    }
}

/// The message is of no effect on rights: without it, the statements are refused as well.
#[test]
#[ignore = "needs PostgreSQL"]
fn shipping_role_lacks_rights_of_owner_statements() {
    let (database, mut owner) = store(&["node_5"]);
    let mut client = connected("node_5", &database);
    send(&mut client, origin(1), "host", &batch(rows(0..10))).unwrap();
    owner.batch_execute("SELECT tokenmeter.ensure_months(ARRAY[20800])").unwrap();
    owner
        .batch_execute(
            "CREATE OR REPLACE FUNCTION tokenmeter.require_schema_owner(called text) RETURNS void LANGUAGE sql AS ''",
        )
        .unwrap();
    for sql in [
        "SELECT tokenmeter.forget('2026-10')".to_owned(),
        format!("SELECT tokenmeter.send_again('{FILE_1}')"),
        format!("SELECT tokenmeter.give_up('{FILE_1}')"),
        "SELECT tokenmeter.begin_amendment(681, now(), 'adjusted', 'ann', '{}')".to_owned(),
        "SELECT tokenmeter.close('2026-10', 'ann')".to_owned(),
        "INSERT INTO tokenmeter.closing VALUES ('2026-10-01', now(), 'ann', 'x')".to_owned(),
        format!(
            "INSERT INTO tokenmeter.closed_file VALUES ('{FILE_1}', '2026-10-01', '', '2026-10-01', '{{}}')"
        ),
    ] {
        assert_eq!(code(&mut client, &sql), "42501", "{sql}");
    }
}

/// The functions of triggers run with the owner's rights, and a role may make triggers on tables of its own.
#[test]
#[ignore = "needs PostgreSQL"]
fn role_cannot_write_totals_by_own_trigger() {
    let (database, mut owner) = store(&["trigger_node"]);
    send(&mut owner, origin(1), "host", &batch(rows(0..3))).unwrap();
    let mut node = connected("trigger_node", &database);
    for (table, function) in
        [("exchange", "roll_exchange"), ("energy", "roll_energy"), ("correction", "roll_correction")]
    {
        owner.batch_execute(&format!("GRANT SELECT ON tokenmeter.{table} TO trigger_node")).unwrap();
        let made = format!(
            "CREATE TEMP TABLE {table} AS SELECT * FROM tokenmeter.{table} WHERE false;
             CREATE TRIGGER roll AFTER INSERT ON pg_temp.{table} REFERENCING NEW TABLE AS inserted
             FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.{function}();"
        );
        node.batch_execute(&made).unwrap();
        let insert = format!("INSERT INTO pg_temp.{table} SELECT * FROM tokenmeter.{table}");
        assert_eq!(code(&mut node, &insert), "42501", "{function}");
    }
}
