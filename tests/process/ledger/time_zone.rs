//! A ledger whose days are those of the zone that the setting names, and reports by the days of another one. The zones
//! differ by 25 hours, so that their dates differ at any time.

use std::time::Duration;

use ledger::{month, now_us, period};
use serde_json::Value;

use super::client::{Ask, Bill};
use super::place::{Place, Rows, command, server};
use crate::meter_page::get;

const HERE: (&str, i64) = ("Pacific/Kiritimati", 14);
const THERE: (&str, i64) = ("Pacific/Pago_Pago", -11);

/// Returns the present day of a zone with a fixed offset.
fn today((_, hours): (&str, i64)) -> i32 {
    month::day(now_us() + hours * 3_600_000_000)
}

/// Returns the only day of a report, and its notes.
fn day_of(arguments: &[&str]) -> (String, String) {
    let report = command(&[&["spend", "--by", "day", "--format", "json"], arguments].concat());
    let report: Value = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"));
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{report}");
    (rows[0]["day"].as_str().expect("a day").to_owned(), report["notes"].to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_are_those_of_the_setting() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        // Again if a day ends meanwhile.
        let (mut proxy, before) = loop {
            let _ = std::fs::remove_file(place.path("x.db"));
            let before = [HERE, THERE].map(today);
            let mut proxy = place.start(server.addr(), "x.db", &["--ledger-time-zone", HERE.0]);
            Bill::default().ask(proxy.data, Ask::of("acme", "small"));
            proxy.page_when("it is on the disk", |page| Rows::of(page).acknowledged == 1);
            if [HERE, THERE].map(today) == before {
                break (proxy, before);
            }
            proxy.terminate();
            proxy.ended(Duration::from_secs(15));
        };
        let path = place.text("x.db");
        let (day, notes) = day_of(&["--ledger", &path]);
        assert_eq!(day, period::day(before[0]));
        assert!(notes.contains(&format!("the days and months are those of {}", HERE.0)), "{notes}");
        let (day, notes) = day_of(&["--ledger", &path, "--time-zone", THERE.0]);
        assert_eq!(day, period::day(before[1]));
        assert!(notes.contains("made from rows"), "{notes}");
        let live = get(proxy.admin, "/api/spend").expect("it is served");
        let body = live.split_once("\r\n\r\n").expect("a body").1;
        let live: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {live}"));
        assert_eq!(
            (&live["time_zone"], &live["days"][0]["day"]),
            (&HERE.0.into(), &period::day(before[0]).into())
        );
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());

        let mut proxy = place.start(server.addr(), "x.db", &["--ledger-time-zone", THERE.0]);
        proxy.page_when("the ledger is open", super::place::is_up);
        let next = month::name(month::of_day(today(HERE)) + 1);
        let zones = format!("{}, from {next} on {}", HERE.0, THERE.0);
        assert!(proxy.log().contains(&zones), "{}", proxy.log());
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
        let status = command(&["ledger", "status", "--ledger", &path]);
        assert!(status.contains(&format!("time zone: {zones}")), "{status}");
        command(&["ledger", "verify", "--ledger", &path]);
    });
}
