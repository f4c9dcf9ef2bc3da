//! Commands on the store whose connection breaks after any of their messages, as by a kill. Run again, they leave the
//! same rows as a single run.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use chance::Chance;
use ledger::SourceError;

use super::closing::{WAIT_TIMEOUT, adjust, adjustment, billed, number, reprice, shipped, well};
use super::ledgers::TestLedger;
use super::server::{PASSWORD, shared};
use crate::{Address, close};

/// A forwarder to the server that breaks after a number of messages from the client, over all connections.
struct Forwarder {
    port: u16,
    left: Arc<AtomicI64>,
}

impl Forwarder {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let its = Arc::clone(&left);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", shared().port())) else { continue };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let left = Arc::clone(&its);
                thread::spawn(move || forward(server, client, &AtomicI64::new(i64::MAX)));
                thread::spawn(move || forward(from, to, &left));
            }
        });
        Self { port, left }
    }

    fn address(&self, database: &str) -> Address {
        let url = format!("postgres://owner:{PASSWORD}@127.0.0.1:{}/{database}?sslmode=disable", self.port);
        Address::parse(&url).unwrap()
    }
}

/// Forwards until the end, or until no message is left. Then both directions end.
fn forward(mut from: TcpStream, mut to: TcpStream, left: &AtomicI64) {
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if left.fetch_sub(1, Ordering::SeqCst) <= 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Runs a command, cut off after each of its messages (`--long`, else after some), and then as a whole. Returns its
/// result, and the number of cuts.
fn cut_everywhere<T>(
    wire: &Forwarder,
    stride: &mut Chance,
    run: impl Fn() -> Result<T, SourceError>,
) -> (T, i64) {
    let mut messages = 0;
    loop {
        messages += if chance::is_long() { 1 } else { 1 + stride.below(9) as i64 };
        wire.left.store(messages, Ordering::SeqCst);
        let result = run();
        let is_cut = wire.left.swap(i64::MAX, Ordering::SeqCst) <= 0;
        match result {
            Ok(done) if !is_cut => return (done, messages - 1),
            // The answer to a commit arrived, and a later message did not.
            Ok(_) => {}
            Err(_) => assert!(is_cut, "it failed by itself"),
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commands_cut_off_anywhere_lose_and_double_nothing() {
    let (plain, cut) = (shared().database(), shared().database());
    let (wire, mut stride) = (Forwarder::new(), Chance::new(20_261_127));
    let mut found = Vec::new();
    for database in [&plain, &cut] {
        let url = shared().url(database);
        let mut book = TestLedger::new();
        book.enter(80);
        let shipper = book.ship(&url, 64);
        shipped(&shipper, 80);
        assert!(shipper.shutdown(WAIT_TIMEOUT));
        let is_cut = *database == cut;
        let at = if is_cut { wire.address(database) } else { Address::parse(&url).unwrap() };
        let mut cuts = Vec::new();
        let mut step = |run: &dyn Fn() -> Result<(), SourceError>| {
            cuts.push(if is_cut {
                cut_everywhere(&wire, &mut stride, run).1
            } else {
                run().map(|()| 0).unwrap()
            });
        };
        step(&|| reprice(&at, 9).map(drop));
        step(&|| adjust(&at, &adjustment("outage", "2026-07")).map(drop));
        step(&|| close(&at, number("2026-07"), "ann").map(drop));
        step(&|| adjust(&at, &adjustment("second outage", "2026-07")).map(drop));
        step(&|| reprice(&at, 4).map(drop));
        well(database);
        assert!(!is_cut || cuts.iter().all(|cuts| *cuts > 5), "{cuts:?}");
        let corrections = "SELECT count(*), sum(delta_pico)::text FROM tokenmeter.correction";
        let row = shared().client(database).unwrap().query_one(corrections, &[]).unwrap();
        found.push((billed(database), row.get::<_, i64>(0), row.get::<_, String>(1)));
    }
    assert_eq!(found[0], found[1]);
}
