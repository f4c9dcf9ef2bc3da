//! Stores that fail in odd ways, or lie: each row is there once, nothing is lost, and the memory is bounded.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::ledgers::{TestLedger, arrives};
use super::server::{PASSWORD, shared, until};
use crate::schema;

/// The first rows are refused, by errors that an operator cannot mend, or with a text of 30 MB.
#[test]
#[ignore = "needs PostgreSQL"]
fn refused_rows_are_sent_again() {
    for (state, text) in [
        ("40001", "'could not serialize access'"),
        ("40P01", "'deadlock detected'"),
        ("57014", "'canceling statement'"),
        ("P0001", "repeat('x', 30000000)"),
        ("TM009", "repeat('x', 30000000)"),
    ] {
        let database = shared().database();
        let mut owner = shared().client(&database).unwrap();
        schema::ensure(&mut owner).unwrap();
        owner
            .batch_execute(&format!(
                "CREATE SEQUENCE public.tries;
                 CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
                   IF nextval('public.tries') <= 3 THEN
                     RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = {text}, DETAIL = {text}, HINT = {text};
                   END IF;
                   RETURN NULL;
                 END $$;
                 CREATE TRIGGER fail AFTER INSERT ON tokenmeter.exchange FOR EACH STATEMENT EXECUTE FUNCTION public.fail();"
            ))
            .unwrap();
        let mut book = TestLedger::new();
        book.enter(150);
        let url = shared().url(&database);
        let shipper = book.ship(&url, 100);
        let mut longest = 0;
        until("it is reported", || {
            let message = shipper.status().error.unwrap_or_default();
            longest = longest.max(message.len());
            shipper.status().failures.iter().sum::<u64>() >= 1
        });
        arrives(&book, &shipper, &url);
        assert!((1..=2_000).contains(&longest), "{state}: {longest} bytes");
    }
}

/// A server in between that lies about the number of rows that were written.
#[test]
#[ignore = "needs PostgreSQL"]
fn stated_number_of_rows_is_not_trusted() {
    for digit in [b'0', b'9'] {
        let (port, database) = (lying(digit), shared().database());
        let mut book = TestLedger::new();
        book.enter(250);
        let url = format!("postgres://owner:{PASSWORD}@127.0.0.1:{port}/{database}?sslmode=disable");
        let shipper = book.ship(&url, 100);
        arrives(&book, &shipper, &shared().url(&database));
        assert!(shipper.status_reader().has_all(&book.path()));
    }
}

/// A forwarder to the server that writes this digit in place of each digit of a tag such as `INSERT 0 100`.
fn lying(digit: u8) -> u16 {
    const TAG: &[u8] = b"INSERT 0 ";
    between(move |bytes| {
        for at in 0..bytes.len() {
            if bytes[..at].ends_with(TAG) {
                bytes[at..]
                    .iter_mut()
                    .take_while(|byte| byte.is_ascii_digit())
                    .for_each(|byte| *byte = digit);
            }
        }
        true
    })
}

/// A forwarder to the server that shows `change` what the server sends, and ends the connection if that returns false.
fn between(change: impl Fn(&mut [u8]) -> bool + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", shared().port())).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || forward(from, to, |_| true));
            let change = change.clone();
            thread::spawn(move || forward(server, client, change));
        }
    });
    port
}

fn forward(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8]) -> bool) {
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !change(&mut buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Servers that speak another protocol, or none: rows wait, the error is short, and the end is not delayed.
#[test]
fn other_protocols_keep_rows_in_the_ledger() {
    let error = |length: u32, text: &str| [b"E", &length.to_be_bytes()[..], text.as_bytes()].concat();
    for answer in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        vec![0; 100_000],
        vec![0xff; 100_000],
        error(u32::MAX, "SFATAL\0"),
        error(3, ""),
        error(100_000_014, &format!("SFATAL\0M{}\0\0", "x".repeat(100_000_000))),
        // A password, an unknown method, then nothing.
        b"R\0\0\0\x08\0\0\0\x63".to_vec(),
        Vec::new(),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = format!("{} bytes: {:?}", answer.len(), &answer[..answer.len().min(40)]);
        thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let _ = client.read(&mut [0; 1_000]);
                let _ = client.write_all(&answer);
            }
        });
        let mut book = TestLedger::new();
        book.enter(10);
        let shipper = book.ship(&format!("postgres://owner:x@127.0.0.1:{port}/x?sslmode=disable"), 100);
        until(&name, || shipper.status().failures.iter().sum::<u64>() > 1);
        let status = shipper.status();
        assert!(!status.up && status.pending_rows == 10 && status.rows_total == 0, "{name}");
        assert!(status.error.unwrap().len() < 3_000, "{name}");
        assert!(!shipper.status_reader().has_all(&book.path()), "{name}");
        assert!(shipper.shutdown(Duration::from_secs(20)), "{name}");
    }
}
