//! Usage events of a process that is killed again and again: in the end the receiver has the event of each exchange of
//! the ledger, and no two different events with one id.

use std::collections::BTreeMap;
use std::time::Duration;

use chance::Chance;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::hook::Hook;
use super::kills::load;
use super::place::{Place, Rows, is_up, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receiver_has_every_event_after_any_kill() {
    let server = server().await;
    let place = Place::new();
    let receiver = Hook::new();
    let url = format!("http://{}/api/v1/events", receiver.address);
    let flags = ["--usage-events", url.as_str()];
    let mut chance = Chance::new(20_261_127);
    let lives = if chance::is_long() { 100 } else { 10 };
    for life in 0..lives {
        // The events of the life before are sent at the start.
        let proxy = place.start(server.addr(), "x.db", &flags);
        let load = load(proxy.data, life);
        let enough = 1 + chance.below(400);
        tokio::task::block_in_place(|| {
            proxy.page_when("some are on the disk", |page| Rows::of(page).acknowledged >= enough)
        });
        proxy.kill();
        load.abort();
    }
    tokio::task::block_in_place(|| {
        let mut proxy = place.start(server.addr(), "x.db", &flags);
        let page = proxy.page_when("all is sent", |page| {
            let events = |name: &str| page.sum(&format!("tokenmeter_usage_events_{name}"), &[]);
            is_up(page) && events("up") == 1.0 && events("pending") == 0.0
        });
        assert_eq!(page.sum("tokenmeter_dropped_total", &[("what", "usage_event")]), 0.0);
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
    });
    let mut events: BTreeMap<String, Value> = BTreeMap::new();
    for request in receiver.posted() {
        let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
        assert!(
            head.to_ascii_lowercase().contains("content-type: application/cloudevents-batch+json"),
            "{head}"
        );
        for event in serde_json::from_str::<Vec<Value>>(body).expect("a list") {
            let id = event["id"].as_str().expect("an id").to_owned();
            let before = events.insert(id, event.clone());
            assert!(before.is_none_or(|before| before == event), "one id has two events: {event}");
        }
    }
    let ledger = Connection::open_with_flags(place.path("x.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let ledger = ledger.expect("a database");
    let mut rows = ledger.prepare("SELECT id, output FROM exchange").expect("SQL");
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?));
    let rows: BTreeMap<String, i64> = rows
        .query_map([], row)
        .expect("rows")
        .map(|row| row.map(|(id, output)| (meter::ExchangeId(id).to_string(), output)).expect("a row"))
        .collect();
    assert!(rows.len() > 500, "{}", rows.len());
    let of_events = |event: &Value| event["data"]["tokens"]["output"].as_i64().expect("a count");
    let events: BTreeMap<String, i64> =
        events.iter().map(|(id, event)| (id.clone(), of_events(event))).collect();
    assert!(events == rows, "{} events of {} rows", events.len(), rows.len());
}
