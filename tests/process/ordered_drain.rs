//! A drain by request, as in a pod: `tokenmeter drain` in the sidecar's hook, `GET /drained` in the server's hook, and a
//! signal only after both.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use chance::Side;
use rusqlite::Connection;

use crate::drain::{ask, readiness, slow_server};
use crate::ledger::place::Place;
use crate::meter_page::get;
use crate::proxy::{DEADLINE, Proxy};

const END: &str = "data: [DONE]\n\n\r\n0\r\n\r\n";

/// The longest stream: 80 s at the server's speed.
const LONG: u32 = 4_000;

/// Starts the proxy with a ledger, a token file and these times of the drain.
fn start(place: &Place, upstream: SocketAddr, delay_ms: &str, grace_ms: &str) -> Proxy {
    let (ledger, token) = (place.text("x.db"), place.text("drain.token"));
    let times = ["--drain-delay-ms", delay_ms, "--drain-grace-ms", grace_ms];
    Proxy::start(upstream, &[&["--ledger", &ledger, "--drain-token-file", &token], &times[..]].concat())
}

/// Starts `tokenmeter drain` in the environment of the proxy's container.
fn order(place: &Place, admin: SocketAddr) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tokenmeter"))
        .arg("drain")
        .env("TOKENMETER_ADMIN", admin.to_string())
        .env("TOKENMETER_DRAIN_TOKEN_FILE", place.text("drain.token"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built")
}

fn finished(command: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.wait_with_output().expect("it ends");
    (status.code(), String::from_utf8(stderr).expect("UTF-8"))
}

/// Requests `/drained`, and then reads the number of rows in the ledger.
fn rows_when_drained(place: &Place, admin: SocketAddr) -> JoinHandle<(String, i64)> {
    let ledger = place.path("x.db");
    std::thread::spawn(move || {
        let answer = get(admin, "/drained").expect("the page is served");
        let file = Connection::open(ledger).expect("a ledger");
        (answer, file.query_row("SELECT count(*) FROM exchanges", [], |row| row.get(0)).expect("rows"))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordered_drain_ends_with_the_last_record_and_keeps_the_page() {
    let server = slow_server().await;
    let place = Place::new();
    let mut proxy = start(&place, server.addr(), "2500", "60000");
    let (data, admin) = (proxy.data, proxy.admin);
    let early = rows_when_drained(&place, admin);
    let long = tokio::task::spawn_blocking(move || ask(data, 250));
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    let (command, rows) = tokio::task::block_in_place(|| {
        readiness(admin, "200");
        assert!(!early.is_finished(), "it waits for an order");
        let command = order(&place, admin);
        readiness(admin, "503");
        let late = ask(data, 5).expect("a client within the delay is served");
        assert!(late.ends_with(END), "{late}");
        assert!(late.to_lowercase().contains("connection: close"), "{late}");
        (command, early.join().expect("no panic"))
    });
    let answer = long.await.expect("no panic").expect("the stream was not cut");
    assert!(answer.ends_with(END), "{answer}");
    tokio::task::block_in_place(|| {
        assert!(rows.0.starts_with("HTTP/1.1 200") && rows.0.ends_with("\r\n\r\ndrained\n"), "{}", rows.0);
        assert_eq!(rows.1, 2, "both rows are committed before the answer");
        let (code, said) = finished(command);
        assert!(code == Some(0) && said.ends_with("tokenmeter: drained\n"), "{code:?} {said}");
        assert!(TcpStream::connect(proxy.listener).is_err(), "the listener is closed");
        // The page stays until the signal, and a repeated order changes nothing.
        assert_eq!(proxy.page().sum("tokenmeter_ledger_rows_total", &[]), 2.0);
        assert_eq!(finished(order(&place, admin)).0, Some(0));
        for (path, status) in [("/livez", "200"), ("/readyz", "503"), ("/drained", "200")] {
            let answer = get(admin, path).expect("it is served");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        }
        assert!(proxy.is_alive());
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(10)).success(), "{}", proxy.log());
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_signal_in_an_ordered_drain_cuts_nothing_and_a_second_does() {
    let server = slow_server().await;
    let place = Place::new();
    for signals in [1, 2] {
        let mut proxy = start(&place, server.addr(), "0", "60000");
        let (data, admin) = (proxy.data, proxy.admin);
        let tokens = if signals == 1 { 150 } else { LONG };
        let stream = tokio::task::spawn_blocking(move || ask(data, tokens));
        server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
        let status = tokio::task::block_in_place(|| {
            readiness(admin, "200");
            let command = order(&place, admin);
            proxy.log_line("draining: ");
            proxy.terminate();
            proxy.log_line("stopping after the drain");
            if signals == 2 {
                proxy.terminate();
            }
            let status = proxy.ended(Duration::from_secs(30));
            assert_eq!(finished(command).0, Some(if signals == 1 { 0 } else { 1 }), "{signals} signals");
            status
        });
        assert_eq!(status.success(), signals == 1, "{status:?}");
        let answer = stream.await.expect("no panic").unwrap_or_default();
        assert_eq!(answer.ends_with(END), signals == 1, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_that_cuts_streams_ends_with_their_rows() {
    let server = slow_server().await;
    let place = Place::new();
    let proxy = start(&place, server.addr(), "0", "300");
    let (data, admin) = (proxy.data, proxy.admin);
    let cut = tokio::task::spawn_blocking(move || ask(data, LONG));
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    tokio::task::block_in_place(|| {
        let rows = rows_when_drained(&place, admin);
        assert_eq!(finished(order(&place, admin)).0, Some(0));
        let (answer, rows) = rows.join().expect("no panic");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(rows, 1, "the cut stream has its row");
    });
    let answer = cut.await.expect("no panic").unwrap_or_default();
    assert!(!answer.ends_with(END), "{answer}");
}

/// A sidecar that is a plain container without a hook gets the signal at once, while the server's hook waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_by_signal_answers_waiters_before_the_exit() {
    let server = slow_server().await;
    let place = Place::new();
    let mut proxy = start(&place, server.addr(), "0", "60000");
    let (data, admin) = (proxy.data, proxy.admin);
    let stream = tokio::task::spawn_blocking(move || ask(data, 100));
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    tokio::task::block_in_place(|| {
        readiness(admin, "200");
        let rows = rows_when_drained(&place, admin);
        // The command of another container may come at any time, even after the signal.
        proxy.terminate();
        readiness(admin, "503");
        let command = order(&place, admin);
        let (answer, rows) = rows.join().expect("no panic");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(rows, 1);
        assert_eq!(finished(command).0, Some(0));
        assert!(proxy.ended(Duration::from_secs(10)).success(), "{}", proxy.log());
    });
    assert!(stream.await.expect("no panic").expect("it is not cut").ends_with(END));
}

#[test]
fn drain_without_permission_fails_with_the_remedy() {
    if Side::Upstreams.excludes("the server in front accepts connections to a server that is down") {
        return;
    }
    let place = Place::new();
    let upstream = "127.0.0.1:9".parse().expect("an address");
    let said = |code: Option<i32>, said: &str, part: &str| {
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(part), "{part} in {said}");
    };
    let (code, text) = finished(order(&place, upstream));
    said(code, &text, "drain.token cannot be read");
    place.write("drain.token", "right\n");
    let (code, text) = finished(order(&place, upstream));
    said(code, &text, "--admin");
    let with = start(&place, upstream, "0", "0");
    let without = place.start(upstream, "y.db", &[]);
    let (code, text) = finished(order(&place, without.admin));
    said(code, &text, "403: no token is configured: set --drain-token-file or TOKENMETER_DRAIN_TOKEN_FILE");
    let other = Place::new();
    other.write("drain.token", "wrong\n");
    let (code, text) = finished(order(&other, with.admin));
    said(code, &text, "401: write `Authorization: Bearer`");
    assert!(get(with.admin, "/readyz").expect("it is served").contains("unreachable"), "nothing drains");
}
