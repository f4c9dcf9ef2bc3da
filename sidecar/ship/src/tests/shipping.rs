//! The shipper between a real ledger and a real store, either of which fails.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ledger::source::{DAY_US, Range, Source};

use super::ledgers::{TestLedger, arrives, same};
use super::rows::NOON_US;
use super::server::{PASSWORD, Server, shared, until};
use crate::{Address, Plan, start};

#[test]
#[ignore = "needs PostgreSQL"]
fn ledger_of_several_months_arrives_complete() {
    let url = shared().url(&shared().database());
    let mut book = TestLedger::new();
    book.enter(2_000);
    let shipper = book.ship(&url, 300);
    arrives(&book, &shipper, &url);
    let status = shipper.status();
    assert_eq!((status.rows_total, status.pending_rows, status.lag), (2_000, 0, Duration::ZERO));
    assert!(status.files.len() >= 3, "{:?}", status.files);
    book.enter(500);
    arrives(&book, &shipper, &url);
    assert_eq!(shipper.status().rows_total, 2_500);
    assert_eq!(shipper.status().failures, [0; 3]);
    assert!(shipper.shutdown(Duration::from_secs(30)));
}

/// Past months that were shipped long ago are charged again: the corrections lie in their files, and arrive.
#[test]
#[ignore = "needs PostgreSQL"]
fn corrections_arrive_in_their_month() {
    let url = shared().url(&shared().database());
    let mut book = TestLedger::new();
    book.enter(400);
    let shipper = book.ship(&url, 300);
    arrives(&book, &shipper, &url);
    let text = "version: again\ncurrency: USD\nmodels:\n\
                - {pattern: '*', input: 9, cache_write_1h: 9, output: 9, input_audio: 9, output_audio: 9, output_image: 9, \
                   output_video: 9}\n";
    let (prices, _) = price::Book::read(text).unwrap();
    let again = report::Reprice {
        range: Range::ALL,
        filters: &[],
        unpriced_only: false,
        book: &prices,
        who: "finance",
        at_us: NOON_US + 10 * DAY_US,
    };
    let done = report::reprice(&book.path(), &again).unwrap();
    assert!(done.entered > 300, "{done:?}");
    let mut months = BTreeSet::new();
    let store = ledger::Store::open_read(&book.path()).unwrap();
    let mut month = |month, _: &_| {
        months.insert(month);
        Ok(())
    };
    store.corrections(&Range::ALL, &mut month).unwrap();
    assert!(months.len() >= 3, "each in the month that it is of: {months:?}");
    until("the corrections are there", || {
        let central = crate::Central::open(&Address::parse(&url).unwrap()).unwrap();
        let mut there = 0;
        let mut count = |_, _: &_| {
            there += 1;
            Ok(())
        };
        central.corrections(&Range::ALL, &mut count).unwrap();
        there == done.entered
    });
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(Duration::from_secs(30)));
}

/// A month's file that cannot be read is reported, and all others are shipped.
#[test]
#[ignore = "needs PostgreSQL"]
fn unreadable_file_does_not_stop_others() {
    let url = shared().url(&shared().database());
    let mut book = TestLedger::new();
    book.enter(100);
    let spoiled = book.path().with_file_name("x-2026-01.db");
    std::fs::write(&spoiled, vec![0xA5; 8_192]).unwrap();
    let shipper = book.ship(&url, 30);
    until("all but that is sent", || {
        let status = shipper.status();
        status.rows_total == 100 && status.files.len() >= 3 && status.error.is_some()
    });
    book.enter(50);
    until("what comes later too", || shipper.status().rows_total == 150);
    let status = shipper.status();
    assert!(!status.up && status.error.is_some_and(|message| message.contains("x-2026-01.db")));
    assert!(!shipper.status_reader().has_all(&spoiled));
    std::fs::remove_file(&spoiled).unwrap();
    arrives(&book, &shipper, &url);
    assert_eq!(shipper.status().error, None);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn shutdown_sends_the_last_rows() {
    let url = shared().url(&shared().database());
    let mut book = TestLedger::new();
    book.enter(10);
    let shipper = book.ship(&url, 4);
    arrives(&book, &shipper, &url);
    book.enter(90);
    assert!(shipper.shutdown(Duration::from_secs(60)));
    same(&book.path(), &url);
}

/// The store lost its cursors, as after it was restored from a backup.
#[test]
#[ignore = "needs PostgreSQL"]
fn store_that_lost_its_cursors_counts_rows_once() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(700);
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(Duration::from_secs(30)));
    let mut owner = shared().client(&database).unwrap();
    owner
        .batch_execute(
            "UPDATE tokenmeter.file SET exchange = exchange / 2, last = NULL, energy = 0, act = 0, gap = 0",
        )
        .unwrap();
    book.enter(50);
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
    assert!(shipper.status().rows_total > 350, "{:?}", shipper.status());
    drop(shipper);
    owner.batch_execute("DELETE FROM tokenmeter.file WHERE month < '2026-10-01'").unwrap();
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
}

/// A node's volume is put back from last night: what was entered since then has other names and the same
/// places, so that places say nothing any more.
#[test]
#[ignore = "needs PostgreSQL"]
fn file_restored_from_a_backup_is_refused() {
    put_back(40);
}

/// No poll ran until the file held more than was lost.
#[test]
#[ignore = "needs PostgreSQL"]
fn restored_file_that_grew_is_refused_too() {
    put_back(250);
}

fn put_back(entered_after: u64) {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    let (file, backup) = (book.path(), book.path().with_extension("backup"));
    book.enter(60);
    book.meanwhile(|path| assert!(std::fs::copy(path, &backup).unwrap() > 0));
    book.enter(200);
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
    assert!(shipper.status_reader().has_all(&file));
    assert!(shipper.shutdown(Duration::from_secs(30)));

    book.meanwhile(|path| assert!(std::fs::copy(&backup, path).unwrap() > 0));
    book.enter(entered_after);
    let shipper = book.ship(&url, 100);
    until("it is reported", || shipper.status().error.is_some());
    let status = shipper.status();
    let message = status.error.unwrap();
    assert!(
        !status.up && message.contains("x.db") && message.contains("restored from a backup"),
        "{message}"
    );
    assert!(!shipper.status_reader().has_all(&file), "its rows may not go");
    assert!(status.files.len() >= 2 && status.files.iter().all(|seen| seen.complete && seen.path != file));

    let remedy = message.split('`').nth(1).unwrap();
    let mut owner = shared().client(&database).unwrap();
    assert_eq!(owner.execute(remedy, &[]).unwrap(), 1, "{remedy}");
    until("all of it is there", || shipper.status().up && shipper.status_reader().has_all(&file));
    for counted in [
        "SELECT count(*) FROM tokenmeter.exchange",
        "SELECT sum(exchanges)::bigint + (SELECT count(*) FROM tokenmeter.exchange WHERE role = 'prefill') \
         FROM tokenmeter.line",
    ] {
        assert_eq!(
            owner.query_one(counted, &[]).unwrap().get::<_, i64>(0) as u64,
            260 + entered_after,
            "{counted}"
        );
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn two_shippers_of_one_ledger_count_rows_once() {
    let url = shared().url(&shared().database());
    let mut book = TestLedger::new();
    book.enter(600);
    let both = [book.ship(&url, 16), book.ship(&url, 23)];
    for shipper in &both {
        arrives(&book, shipper, &url);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn rows_wait_while_the_store_is_away() {
    let mut server = Server::start();
    let url = server.url(&server.database());
    let mut book = TestLedger::new();
    book.enter(300);
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
    assert!(shipper.status_reader().has_all(&book.path()));
    server.down();
    book.enter(1_000);
    until("it is noticed", || {
        let status = shipper.status();
        !status.up && status.pending_rows == 1_000 && status.lag > Duration::from_secs(60)
    });
    let failures = shipper.status().failures;
    assert!(failures[0] > 0 && failures[1] == 0 && failures[2] == 0, "{failures:?}");
    assert!(!shipper.status_reader().has_all(&book.path()), "it may come back in another state");
    server.up();
    arrives(&book, &shipper, &url);
    assert_eq!(shipper.status().error, None);
}

/// The next poll is an hour away.
#[test]
#[ignore = "needs PostgreSQL"]
fn lost_connection_is_noticed_while_idle() {
    let mut server = Server::start();
    let url = server.url(&server.database());
    let mut book = TestLedger::new();
    book.enter(10);
    let (hour, soon) = (Duration::from_secs(3_600), Duration::from_millis(5));
    let plan = Plan::new(&book.path(), Address::parse(&url).unwrap(), "host");
    let shipper = start(Plan { poll_interval: hour, retry_delay: soon, ..plan }).unwrap();
    until("all is sent", || shipper.status().rows_total == 10 && shipper.status().up);
    server.down();
    until("it is noticed", || !shipper.status().up);
    let message = shipper.status().error.unwrap();
    assert!(message.contains(&format!("127.0.0.1:{}", server.port())), "{message}");
    server.up();
    until("it is back", || shipper.status().up);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn shipping_restarts_after_a_panic() {
    let url = shared().url(&shared().database());
    let mut book = TestLedger::new();
    book.enter(50);
    let plan = book.plan(&url, 100);
    let panics = Arc::clone(&plan.panics);
    let shipper = start(plan).unwrap();
    arrives(&book, &shipper, &url);
    panics.store(u32::MAX, Ordering::Relaxed);
    until("it is reported", || !shipper.status().up);
    let status = shipper.status();
    assert!(status.error.is_some_and(|message| message.contains("a panic")));
    assert!(status.failures[2] > 0 && !shipper.status_reader().has_all(&book.path()));
    panics.store(0, Ordering::Relaxed);
    book.enter(50);
    arrives(&book, &shipper, &url);
    assert_eq!(shipper.status().error, None);
    assert!(shipper.shutdown(Duration::from_secs(30)));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn killed_store_loses_and_doubles_nothing() {
    let mut server = Server::start();
    let url = server.url(&server.database());
    let mut book = TestLedger::new();
    book.enter(4_000);
    let shipper = book.ship(&url, 40);
    for kill in 1..=5 {
        until("some more is there", || shipper.status().rows_total >= kill * 500);
        server.kill();
        server.up();
    }
    arrives(&book, &shipper, &url);
    assert!(shipper.status().failures[0] > 0);
}

/// Cuts the first connection after so many bytes from the shipper or from the store, wherever that is: in the middle of
/// rows, or before the answer to a commit.
#[test]
#[ignore = "needs PostgreSQL"]
fn cut_connection_loses_and_doubles_nothing() {
    let mut book = TestLedger::new();
    book.enter(300);
    const ALL: usize = usize::MAX;
    let sent = [0, 1, 90, 400, 1_000, 3_000, 9_000, 20_000, 30_000, 40_000, 60_000, 80_000];
    let answered = [100, 1_500, 2_500, 3_500, 4_000];
    let cuts: Vec<_> = sent.map(|cut| (cut, ALL)).into_iter().chain(answered.map(|cut| (ALL, cut))).collect();
    let mut reached = 0;
    for cut in &cuts {
        let database = shared().database();
        let (port, seen) = cutting_proxy(shared().port(), *cut);
        let url = format!("postgres://owner:{PASSWORD}@127.0.0.1:{port}/{database}");
        let shipper = book.ship(&url, 100);
        arrives(&book, &shipper, &shared().url(&database));
        reached += usize::from(seen.load(Ordering::Relaxed) > 1);
    }
    assert!(reached >= 11, "only {reached} of {} places were within what is sent", cuts.len());
}

/// A forwarder whose first connection breaks after so many bytes from the client, or from the server.
fn cutting_proxy(to: u16, cut: (usize, usize)) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&seen);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
            let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
            let limit = if is_first { cut } else { (usize::MAX, usize::MAX) };
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass(client, server, limit.0));
            thread::spawn(move || pass(back.0, back.1, limit.1));
        }
    });
    (port, seen)
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut limit: usize) {
    let mut buffer = [0; 4096];
    while let Ok(read) = from.read(&mut buffer) {
        let some = read.min(limit);
        limit -= some;
        if to.write_all(&buffer[..some]).is_err() || read == 0 || limit == 0 {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn store_that_never_answers_does_not_delay_shutdown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://owner@127.0.0.1:{}/x", listener.local_addr().unwrap().port());
    let mut book = TestLedger::new();
    let shipper = book.ship(&url, 100);
    let (_held, _) = listener.accept().unwrap();
    book.enter(500);
    let began = Instant::now();
    assert!(!shipper.shutdown(Duration::from_millis(50)), "it cannot have come to its end");
    assert!(began.elapsed() < Duration::from_secs(5));
}
