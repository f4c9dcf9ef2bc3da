//! The ledger and the store of a plan, and the text of every error.

use std::collections::BTreeMap;

use crate::plan::machine::Alone;
use crate::plan::{LedgerPlan, Plan};
use crate::settings::RawSettings;

fn try_plan(flags: &[(&'static str, &str)], machine: Alone) -> Result<LedgerPlan, Vec<String>> {
    whole_plan(flags, machine).map(|plan| plan.ledger)
}

fn whole_plan(flags: &[(&'static str, &str)], machine: Alone) -> Result<Plan, Vec<String>> {
    let all = flags.iter().map(|(key, text)| (*key, (*text).to_owned()));
    let flags: BTreeMap<_, _> = [("upstream", "http://gpu:8000".to_owned())].into_iter().chain(all).collect();
    Plan::make(&RawSettings::merge(&flags, &|_| None, None), &machine)
        .map_err(|errors| errors.0.iter().map(ToString::to_string).collect())
}

fn plan(flags: &[(&'static str, &str)]) -> LedgerPlan {
    try_plan(flags, Alone(&[])).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn default_is_no_ledger() {
    let ledger = plan(&[]);
    assert!(ledger.ledger.is_none() && ledger.ship.is_none());
}

#[test]
fn ledger_file_is_shipped_to_the_store() {
    let kept = plan(&[("ledger", "/tmp/spend.db"), ("ledger_keep_days", "90")]);
    let ledger = kept.ledger.expect("it is named");
    assert_eq!((ledger.path.to_str(), ledger.keep_days), (Some("/tmp/spend.db"), 90));
    assert!(kept.ship.is_none());

    let shipped = plan(&[("ledger", "spend.db"), ("ledger_ship", "postgres://meter:secret@db/spend")]);
    let ship = shipped.ship.expect("it is named");
    assert_eq!(ship.ledger.to_str(), Some("spend.db"));
    assert!(!format!("{ship:?}").contains("secret"));
}

#[test]
fn store_without_a_file_has_a_spool() {
    let ledger = plan(&[("ledger", "postgres://meter@db/spend")]);
    assert_eq!(ledger.ledger.expect("a spool").path.to_str(), Some("tokenmeter.db"));
    assert!(ledger.ship.is_some());
}

#[test]
fn time_zone_is_an_iana_name() {
    let zone = |flags: &[(&'static str, &str)]| {
        let ledger = plan(&[flags, &[("ledger", "spend.db")]].concat()).ledger.expect("it is named");
        ledger.time_zone.expect("the setting has a default").name().to_owned()
    };
    assert_eq!(zone(&[]), "UTC");
    assert_eq!(zone(&[("ledger_time_zone", "europe/berlin")]), "Europe/Berlin");
    let errors = |flags: &[(&'static str, &str)]| try_plan(flags, Alone(&[])).unwrap_err();
    assert_eq!(
        errors(&[("ledger", "spend.db"), ("ledger_time_zone", "Berlin")]),
        [
            "--ledger-time-zone: there is no time zone `Berlin`; write an IANA name such as Europe/Berlin, or UTC"
        ]
    );
    for store in [
        &[("ledger", "postgres://meter@db/spend")][..],
        &[("ledger", "spend.db"), ("ledger_ship", "postgres://meter@db/spend")],
    ] {
        assert!(try_plan(&[store, &[("ledger_time_zone", "Europe/Berlin")]].concat(), Alone(&[])).is_ok());
    }
    let plan = whole_plan(&[("ledger_time_zone", "Asia/Tokyo")], Alone(&[])).expect("it is right");
    assert!(plan.warnings.iter().any(|warning| warning.to_string().contains("no effect without `ledger`")));
}

#[test]
fn password_comes_from_the_environment() {
    let machine = Alone(&[("PGPASSWORD", "secret")]);
    let ledger = try_plan(&[("ledger", "postgres://meter@db/spend")], machine).expect("it is right");
    assert!(ledger.ship.expect("it is named").address.has_password());
}

#[test]
fn usage_events_are_those_of_the_ledger() {
    let url = "https://events.example/api?key=hunter2";
    let flags = [("ledger", "spend.db"), ("usage_events", url), ("usage_events_since", "2026-10")];
    let plan = whole_plan(&flags, Alone(&[])).expect("it is right");
    let events = plan.ledger.events.as_ref().expect("it is named");
    assert_eq!((events.ledger.to_str(), events.since_us), (Some("spend.db"), 1_790_812_800_000_000));
    let shown = plan.effective.show(true);
    assert!(shown.contains("usage_events: \"https://events.example/…\" "), "{shown}");
    assert!(!format!("{shown} {plan:?}").contains("hunter2"));
    assert_eq!(plan.warnings.len(), 0, "{:?}", plan.warnings);

    for (flags, warning) in [
        (
            &[("usage_events_token_file", "/nonexistent")][..],
            "--usage-events-token-file: has no effect without `usage_events`; set a URL, or remove it",
        ),
        (
            &[("usage_events", "http://events.example/")],
            "--usage-events: the receiver is http://, so anyone on the network path can read the usage of tenants and \
             the token; use https:// unless the receiver is local",
        ),
    ] {
        let plan = whole_plan(&[&[("ledger", "spend.db")], flags].concat(), Alone(&[])).expect("it is right");
        assert_eq!(plan.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), [warning]);
    }
}

#[test]
fn errors_have_remedies() {
    for (flags, error) in [
        (
            &[("ledger", "/tmp")][..],
            "--ledger: `/tmp` is not a ledger: it is a folder; write a file, as in \
             /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE",
        ),
        (
            &[("ledger", "spend")],
            "--ledger: `spend` is not a ledger: it does not end in .db; write a file, as in \
             /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE",
        ),
        (
            &[("ledger", "mysql://u:secret@db/spend")],
            "--ledger: `mysql://u:***@db/spend` is not a ledger: it is a URL, but not of PostgreSQL; write a file, \
             as in /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE",
        ),
        (
            &[("ledger", "/nonexistent/tokenmeter/spend.db")],
            "--ledger: the ledger's folder /nonexistent/tokenmeter does not exist; create or mount it before \
             tokenmeter starts, or name a file in another folder",
        ),
        (
            &[("ledger", "/dev/null/spend.db")],
            "--ledger: the ledger's folder /dev/null does not exist; create or mount it before tokenmeter \
             starts, or name a file in another folder",
        ),
        (
            &[("ledger", "postgres://meter@db/spend"), ("ledger_spool", "/nonexistent/spool.db")],
            "--ledger-spool: the ledger's folder /nonexistent does not exist; create or mount it before \
             tokenmeter starts, or name a file in another folder",
        ),
        (
            &[("ledger_ship", "postgres://meter@db/spend")],
            "--ledger-ship: there is no ledger to ship from; set `ledger` to a file",
        ),
        (
            &[("usage_events", "https://events.example/")],
            "--usage-events: usage events come from the ledger, which is not set; set `ledger` to a file",
        ),
        (
            &[("ledger", "spend.db"), ("usage_events", "events.example")],
            "--usage-events: the URL of usage events is invalid: its scheme is neither https nor http; write \
             https://HOST[:PORT]/PATH",
        ),
        (
            &[
                ("ledger", "spend.db"),
                ("usage_events", "https://events.example/"),
                ("usage_events_since", "October"),
            ],
            "--usage-events-since: `October` is not a time; write a month (2026-10), a day (2026-10-05) or a time in UTC \
             (2026-10-05T12:00:00Z); as in `usage_events_since: 2026-10`",
        ),
        (
            &[
                ("ledger", "spend.db"),
                ("usage_events", "https://events.example/"),
                ("usage_events_token_file", "/nonexistent"),
            ],
            "--usage-events-token-file: no token can be read from `/nonexistent`: No such file or directory (os error 2); put the \
             token there, on one line, or remove the setting",
        ),
        (
            &[("ledger", "postgres://a@db/spend"), ("ledger_ship", "postgres://b@db/spend")],
            "--ledger: a central ledger and --ledger-ship are both set; set `ledger` to the file and `ledger_ship` \
             to the store",
        ),
    ] {
        assert_eq!(try_plan(flags, Alone(&[])).expect_err("it is invalid"), [error]);
    }
}
