//! Which ledger and which store are written for what, and every mistake in them, word for word.

use std::collections::BTreeMap;

use crate::machine::Alone;
use crate::plan::{Books, Plan};
use crate::settings::Written;

fn made(flags: &[(&'static str, &str)], machine: Alone) -> Result<Books, Vec<String>> {
    let all = flags.iter().map(|(key, text)| (*key, (*text).to_owned()));
    let flags: BTreeMap<_, _> = [("upstream", "http://gpu:8000".to_owned())].into_iter().chain(all).collect();
    Plan::make(&Written::merge(&flags, &|_| None, None), &machine)
        .map(|plan| plan.books)
        .map_err(|mistakes| mistakes.0.iter().map(ToString::to_string).collect())
}

fn books(flags: &[(&'static str, &str)]) -> Books {
    made(flags, Alone(&[])).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

#[test]
fn nothing_is_kept_unless_a_ledger_is_named() {
    let books = books(&[]);
    assert!(books.ledger.is_none() && books.ship.is_none());
}

#[test]
fn a_file_is_kept_and_shipped_where_it_is_told_to() {
    let kept = books(&[("ledger", "/tmp/spend.db"), ("ledger_keep_days", "90")]);
    let ledger = kept.ledger.expect("it is named");
    assert_eq!((ledger.path.to_str(), ledger.keep_days), (Some("/tmp/spend.db"), 90));
    assert!(kept.ship.is_none());

    let shipped = books(&[("ledger", "spend.db"), ("ledger_ship", "postgres://meter:secret@db/spend")]);
    let ship = shipped.ship.expect("it is named");
    assert_eq!(ship.ledger.to_str(), Some("spend.db"));
    assert!(!format!("{ship:?}").contains("secret"));
}

#[test]
fn a_store_alone_has_a_file_before_it() {
    let books = books(&[("ledger", "postgres://meter@db/spend")]);
    assert_eq!(books.ledger.expect("a spool").path.to_str(), Some("tokenmeter.db"));
    assert!(books.ship.is_some());
}

#[test]
fn the_password_may_come_from_the_environment() {
    let machine = Alone(&[("PGPASSWORD", "secret")]);
    let books = made(&[("ledger", "postgres://meter@db/spend")], machine).expect("it is right");
    assert!(books.ship.expect("it is named").address.has_password());
}

#[test]
fn mistakes() {
    for (flags, told) in [
        (
            &[("ledger", "/tmp")][..],
            "--ledger: `/tmp` is no ledger: it is a folder; write a file's name as in \
             /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE",
        ),
        (
            &[("ledger", "spend")],
            "--ledger: `spend` is no ledger: it does not end in .db; write a file's name as in \
             /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE",
        ),
        (
            &[("ledger", "mysql://u:secret@db/spend")],
            "--ledger: `mysql://u:***@db/spend` is no ledger: it is a URL, but not of PostgreSQL; write a file's \
             name as in /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE",
        ),
        (
            &[("ledger", "/nonexistent/tokenmeter/spend.db")],
            "--ledger: the ledger's folder /nonexistent/tokenmeter is not there; make it, or mount it, before \
             tokenmeter starts, or name a file in another one",
        ),
        (
            &[("ledger", "/dev/null/spend.db")],
            "--ledger: the ledger's folder /dev/null is not there; make it, or mount it, before tokenmeter \
             starts, or name a file in another one",
        ),
        (
            &[("ledger", "postgres://meter@db/spend"), ("ledger_spool", "/nonexistent/spool.db")],
            "--ledger-spool: the ledger's folder /nonexistent is not there; make it, or mount it, before \
             tokenmeter starts, or name a file in another one",
        ),
        (
            &[("ledger_ship", "postgres://meter@db/spend")],
            "--ledger-ship: rows are to be shipped, but there is no ledger to ship from; name a file by `ledger`",
        ),
        (
            &[("ledger", "postgres://a@db/spend"), ("ledger_ship", "postgres://b@db/spend")],
            "--ledger: both a central ledger and --ledger-ship are named; name the file by `ledger`, the store by \
             `ledger_ship`",
        ),
    ] {
        assert_eq!(made(flags, Alone(&[])).expect_err("it is wrong"), [told]);
    }
}
