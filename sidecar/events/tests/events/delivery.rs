//! The delivery to a receiver that works, over restarts, restored files and retention.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use events::{BATCH_MAX_EVENTS, Plan, Reason, Token, start};
use ledger::source::{DAY_US, Range, Source, Used};
use ledger::testing::NOON_US;
use ledger::{Row, Store};
use serde_json::Value;

use crate::book::{Book, arrives, until};
use crate::receiver::{Answer, Receiver};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn each_exchange_arrives_once_over_restarts() {
    let receiver = Receiver::start(|_, events| {
        assert!(events.len() <= BATCH_MAX_EVENTS, "{}", events.len());
        Answer::Accept
    });
    let mut book = Book::new();
    for rows in [350, 0, 1, 120] {
        book.enter(rows);
        let sender = book.send(&receiver);
        arrives(&book, &sender.status_reader(), &receiver);
        let reader = sender.status_reader();
        until("the open file is complete", || reader.has_all(&book.place.ledger()));
        assert!(sender.shutdown(LONG));
    }
    let seen = receiver.seen();
    assert_eq!(seen.stored, book.ids().len(), "none is sent twice");
    let head = &seen.requests[0].0;
    assert!(head.starts_with("post /api/v1/events?key=secret http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/cloudevents-batch+json"), "{head}");
    assert!(!head.contains("\r\nauthorization"), "{head}");
    let event = &seen.events[&Book::row(9).id.to_string()];
    assert_eq!(*event, events::event(&Book::row(9)).unwrap());
}

#[test]
fn shutdown_sends_what_is_new() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    let sender = start(Plan { poll_interval: LONG, ..book.plan(&receiver.url()) }).unwrap();
    until("the first poll is over", || sender.status_reader().status().up);
    book.enter(30);
    assert!(sender.shutdown(LONG));
    assert_eq!(receiver.seen().events.len(), book.ids().len());
}

#[test]
fn changed_token_is_used_at_the_next_attempt() {
    let receiver = Receiver::start(|request, _| match request {
        0 => Answer::Status(401, None),
        _ => Answer::Accept,
    });
    let mut book = Book::new();
    book.enter(5);
    let token = Arc::new(Mutex::new("old"));
    let read = Arc::clone(&token);
    let token_of = Token::new(move || {
        let now = *read.lock().unwrap();
        *read.lock().unwrap() = "new";
        Ok(now.to_owned())
    });
    let sender = start(Plan { token: Some(token_of), ..book.plan(&receiver.url()) }).unwrap();
    arrives(&book, &sender.status_reader(), &receiver);
    let heads: Vec<_> = receiver.seen().requests.into_iter().map(|(head, _)| head).collect();
    assert!(heads[0].contains("\r\nauthorization: bearer old"), "{}", heads[0]);
    assert!(heads[1].contains("\r\nauthorization: bearer new"), "{}", heads[1]);
}

#[test]
fn unreadable_token_sends_nothing() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    book.enter(5);
    let is_there = Arc::new(AtomicBool::new(false));
    let read = Arc::clone(&is_there);
    let token = Token::new(move || match read.load(Ordering::SeqCst) {
        true => Ok("token".to_owned()),
        false => Err(std::io::ErrorKind::NotFound.into()),
    });
    let sender = start(Plan { token: Some(token), ..book.plan(&receiver.url()) }).unwrap();
    let reader = sender.status_reader();
    until("it fails", || reader.status().error.is_some_and(|error| error.contains("token")));
    assert_eq!(receiver.seen().requests.len(), 0);
    is_there.store(true, Ordering::SeqCst);
    arrives(&book, &reader, &receiver);
}

/// The file was restored from a copy, and other rows were entered since.
#[test]
fn restored_file_is_sent_again() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    book.enter(40);
    let copy = book.place.path("copy.db");
    book.meanwhile(|path| assert!(fs::copy(path, &copy).unwrap() > 0));
    book.enter(30);
    let sender = book.send(&receiver);
    arrives(&book, &sender.status_reader(), &receiver);
    assert!(sender.shutdown(LONG));
    // Rows 40 to 70 are gone from the ledger, and 70 to 170 come in their place.
    book.meanwhile(|path| assert!(fs::copy(&copy, path).unwrap() > 0));
    book.enter(100);
    let sender = book.send(&receiver);
    arrives(&book, &sender.status_reader(), &receiver);
    assert!(sender.shutdown(LONG));
    assert!(receiver.seen().stored > book.ids().len(), "the copy's rows are sent again");
}

#[test]
fn lost_cursor_sends_the_same_events_again() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    book.enter(50);
    for times in 1..=2 {
        let sender = book.send(&receiver);
        until("all are sent", || receiver.seen().stored == times * book.ids().len());
        assert!(sender.shutdown(LONG));
        fs::remove_file(book.place.path("x.db.usage-events.json")).unwrap();
    }
    assert_eq!(receiver.seen().events.len(), book.ids().len());
}

#[test]
fn exchanges_before_the_start_have_no_events() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    book.enter(60);
    let plan = Plan { since_us: NOON_US - DAY_US, ..book.plan(&receiver.url()) };
    let sender = start(plan).unwrap();
    let reader = sender.status_reader();
    until("it is done", || reader.status().up && reader.has_all(&book.place.ledger()));
    assert!(sender.shutdown(LONG));
    let seen = receiver.seen();
    assert!(!seen.events.is_empty());
    let of_october = |event: &Value| event["time"].as_str().unwrap().starts_with("2026-10");
    assert!(seen.events.values().all(of_october));
    assert_eq!(seen.events.len(), (0..60).filter(|n| n % 4 != 0 && n % 10 != 7).count());
}

/// The cursor decides, and not the age of the rows.
#[test]
fn retention_waits_for_events() {
    let accepts = Arc::new(AtomicBool::new(false));
    let is_ready = Arc::clone(&accepts);
    let receiver = Receiver::start(move |_, _| match is_ready.load(Ordering::SeqCst) {
        true => Answer::Accept,
        false => Answer::Status(503, None),
    });
    let mut book = Book::new();
    book.enter(40);
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("it has failed", || reader.status().failures[Reason::Busy as usize] > 0);
    let now_us = NOON_US + 100 * DAY_US;
    let retained = |book: &mut Book| {
        let mut rows = 0;
        book.meanwhile(|path| {
            // The clock is trusted after a day.
            for day in [1, 0] {
                ledger::testing::retain(path, now_us - day * DAY_US, &|file| reader.has_all(file));
            }
            let store = Store::open_read(path).unwrap();
            let mut count = |_, _: &Row, _: Option<&Used>| {
                rows += 1;
                Ok(())
            };
            store.rows(&Range::ALL, &mut count).unwrap();
        });
        rows
    };
    assert_eq!(retained(&mut book), 40);
    accepts.store(true, Ordering::SeqCst);
    arrives(&book, &reader, &receiver);
    let past = book.place.path("x-2026-09.db");
    until("the past month is complete", || reader.has_all(&past));
    assert_eq!(retained(&mut book), 30, "those of September are gone");
    assert_eq!(reader.status().deleted_total, 0, "none without an event");
}

#[test]
fn deleted_rows_are_counted() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    book.enter(40);
    let now_us = NOON_US + 100 * DAY_US;
    book.meanwhile(|path| {
        // The clock is trusted after a day.
        ledger::testing::retain(path, now_us - DAY_US, &|_| true);
        ledger::testing::retain(path, now_us, &|_| true);
    });
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("it is done", || reader.status().up);
    let deleted = reader.status().deleted_total;
    assert!(deleted > 0, "{:?}", reader.status());
    assert!(sender.shutdown(LONG));
    // The cursor is behind the deleted rows: they are counted once.
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("it is done", || reader.status().up);
    assert_eq!((reader.status().deleted_total, reader.status().error), (0, None));
    assert_eq!(receiver.seen().stored, receiver.seen().events.len());
}
