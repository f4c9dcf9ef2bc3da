//! Receivers that fail: nothing is lost, each failure is counted, and no redirect is followed.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use events::{Reason, start};
use serde_json::Value;

use crate::book::{Book, arrives, until};
use crate::receiver::{Answer, Receiver};

/// Fails the first three requests in one way, and accepts the others.
fn check(answer: Answer, reason: Reason) {
    let fault = answer.clone();
    let receiver = Receiver::start(move |request, _| match request {
        0..3 => fault.clone(),
        _ => Answer::Accept,
    });
    let mut book = Book::new();
    book.enter(250);
    let mut plan = book.plan(&receiver.url());
    let has_no_end = matches!(answer, Answer::Hang | Answer::Slow);
    if has_no_end {
        plan.attempt_timeout = Duration::from_millis(500);
    }
    let sender = start(plan).unwrap();
    let reader = sender.status_reader();
    until("it has failed", || reader.status().failures[reason as usize] >= 1);
    arrives(&book, &reader, &receiver);
    let status = reader.status();
    let mut expected = [0; Reason::ALL.len()];
    // On a busy machine the receiver may be too late again.
    expected[reason as usize] = if has_no_end { status.failures[reason as usize].max(3) } else { 3 };
    assert_eq!((status.failures, status.rejected_total), (expected, 0), "{answer:?}");
    assert_eq!(status.error, None, "{answer:?}");
    assert_eq!(receiver.redirected.load(Ordering::SeqCst), 0, "{answer:?}");
    assert!(sender.shutdown(Duration::from_secs(60)));
}

#[test]
fn server_errors_are_retried() {
    for status in [408, 425, 429, 500, 502, 503, 504] {
        check(Answer::Status(status, None), Reason::Busy);
    }
}

#[test]
fn refusals_are_retried() {
    for status in [401, 403, 404, 405, 410] {
        check(Answer::Status(status, None), Reason::Refused);
    }
    check(Answer::Redirect, Reason::Refused);
}

/// A login page or a web UI at the URL, which stores nothing.
#[test]
fn html_pages_are_retried_and_named() {
    for kind in ["text/html", "Text/HTML; charset=utf-8"] {
        check(Answer::Page(Some(kind), "<html>"), Reason::Refused);
    }
    let receiver = Receiver::start(|_, _| Answer::Page(Some("text/html"), "<html>"));
    let mut book = Book::new();
    book.enter(5);
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("it has failed", || reader.status().error.is_some());
    let error = reader.status().error.unwrap();
    assert!(error.contains("status 200 with an HTML page") && error.contains("check the URL"), "{error}");
}

#[test]
fn other_successes_are_accepted() {
    for (kind, body) in [
        (None, ""),
        (Some("text/html"), ""),
        (None, "ok"),
        (Some("application/json"), "{}"),
        (Some("text/plain"), "<html>"),
    ] {
        let receiver = Receiver::start(move |_, _| Answer::Page(kind, body));
        let mut book = Book::new();
        book.enter(5);
        let sender = book.send(&receiver);
        let reader = sender.status_reader();
        arrives(&book, &reader, &receiver);
        assert_eq!(reader.status().failures, [0; Reason::ALL.len()], "{kind:?} {body}");
    }
}

#[test]
fn broken_answers_are_retried() {
    for answer in [Answer::Close, Answer::CutHead, Answer::Garbage, Answer::Flood] {
        check(answer, Reason::Unreachable);
    }
}

#[test]
fn late_answers_are_retried() {
    check(Answer::Hang, Reason::Unreachable);
    check(Answer::Slow, Reason::Unreachable);
}

#[test]
fn closed_port_is_retried_without_delaying_a_stop() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut book = Book::new();
    book.enter(10);
    let sender = start(book.plan(&format!("http://{closed}/"))).unwrap();
    let reader = sender.status_reader();
    until("it has failed", || reader.status().failures[Reason::Unreachable as usize] > 1);
    let status = reader.status();
    assert!(!status.up && status.pending == 10 && !reader.has_all(&book.place.ledger()), "{status:?}");
    assert!(sender.shutdown(Duration::from_secs(60)));
}

/// The events are stored twice, under the same ids.
#[test]
fn lost_acknowledgement_doubles_no_id() {
    let receiver = Receiver::start(|request, _| match request {
        0 | 2 => Answer::AcceptSilently,
        _ => Answer::Accept,
    });
    let mut book = Book::new();
    book.enter(150);
    let sender = book.send(&receiver);
    arrives(&book, &sender.status_reader(), &receiver);
    assert!(receiver.seen().stored > book.ids().len());
}

#[test]
fn requested_wait_is_obeyed() {
    let receiver = Receiver::start(|request, _| match request {
        0 => Answer::Status(429, Some(1)),
        _ => Answer::Accept,
    });
    let mut book = Book::new();
    book.enter(5);
    let sender = book.send(&receiver);
    arrives(&book, &sender.status_reader(), &receiver);
    let times: Vec<_> = receiver.seen().requests.into_iter().map(|(_, at)| at).collect();
    assert!(times[1] - times[0] >= Duration::from_secs(1), "{:?}", times[1] - times[0]);
}

#[test]
fn rejected_event_does_not_hold_back_the_others() {
    let bad = Book::row(9).id.to_string();
    let id = bad.clone();
    let receiver = Receiver::start(move |_, events| {
        let is_bad = |event: &Value| event["id"] == *id;
        if events.iter().any(is_bad) { Answer::Status(400, None) } else { Answer::Accept }
    });
    let mut book = Book::new();
    book.enter(130);
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("the others arrive", || reader.status().up && receiver.seen().events.len() == book.ids().len() - 1);
    let status = reader.status();
    assert_eq!((status.rejected_total, status.pending, status.error), (1, 0, None));
    assert!(!receiver.seen().events.contains_key(&bad));
    until("the file is done", || reader.has_all(&book.place.ledger()));
}

#[test]
fn receiver_that_rejects_every_event_loses_none() {
    let accepts = Arc::new(AtomicBool::new(false));
    let is_ready = Arc::clone(&accepts);
    let receiver = Receiver::start(move |_, _| match is_ready.load(Ordering::SeqCst) {
        true => Answer::Accept,
        false => Answer::Status(422, None),
    });
    let mut book = Book::new();
    book.enter(130);
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("it has failed", || reader.status().failures[Reason::Refused as usize] >= 2);
    assert_eq!(reader.status().rejected_total, 0);
    accepts.store(true, Ordering::SeqCst);
    arrives(&book, &reader, &receiver);
    assert_eq!(reader.status().rejected_total, 0);
}

#[test]
fn unreadable_file_does_not_stop_the_others() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    book.enter(40);
    std::fs::write(book.place.path("x-2026-08.db"), "no database").unwrap();
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("all arrive", || receiver.seen().events.len() == book.ids().len());
    until("it is reported", || reader.status().error.is_some_and(|error| error.contains("x-2026-08.db")));
    std::fs::remove_file(book.place.path("x-2026-08.db")).unwrap();
    arrives(&book, &reader, &receiver);
    assert_eq!(receiver.seen().stored, book.ids().len(), "none is sent twice");
}

#[test]
fn unwritable_cursor_is_reported_and_events_continue() {
    let receiver = Receiver::start(|_, _| Answer::Accept);
    let mut book = Book::new();
    // A folder of this name can be neither removed as a file nor replaced.
    std::fs::create_dir_all(book.place.path("x.db.usage-events.json.new/a")).unwrap();
    book.enter(250);
    let sender = book.send(&receiver);
    let reader = sender.status_reader();
    until("all arrive", || receiver.seen().events.len() == book.ids().len());
    until("it is reported", || reader.status().failures[Reason::Local as usize] > 0);
    std::fs::remove_dir_all(book.place.path("x.db.usage-events.json.new")).unwrap();
    book.enter(10);
    arrives(&book, &reader, &receiver);
    until("it is over", || reader.status().error.is_none());
}
