//! A slow client stops its own stream, never the others of its connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use relay::limits;

use super::{ask, proxy};
use crate::support::http2::{connect_with_window, run};
use crate::support::http2_server::*;
use crate::support::{DEADLINE, eventually};

crate::support::wires::table! {
    (http2_upstreams, "these servers use HTTP/2 themselves"):
        stalled_streams_stop_no_others,
        unread_answer_is_bounded_by_a_window;
    (http2_upstreams, slow, "these servers use HTTP/2 themselves"):
        unread_answers_of_500_clients_are_bounded;
}

/// A server that sends as much as the windows allow to the requests of `/x`, and answers those of `/y`. It reports the
/// bytes sent on all connections each time that no window of one has grown for a while.
fn endless() -> (Http2Server, mpsc::Receiver<usize>) {
    let (stopped, stops) = mpsc::channel();
    let sent = Arc::<AtomicUsize>::default();
    let server = Http2Server::start(move |mut frames, _| {
        let (stopped, sent) = (stopped.clone(), Arc::clone(&sent));
        async move {
            frames.begin(&[]).await;
            let mut windows = BTreeMap::<u32, usize>::from([(0, 65_535)]);
            let mut initial = 65_535;
            loop {
                let Ok(frame) = tokio::time::timeout(QUIET, frames.next()).await else {
                    let _ = stopped.send(sent.load(Ordering::SeqCst));
                    continue;
                };
                let Some(frame) = frame else { return };
                match frame.kind {
                    SETTINGS => {
                        let window = frame.payload.chunks(6).find(|setting| setting[..2] == [0, 4]);
                        if let Some(window) = window {
                            initial = u32::from_be_bytes(window[2..].try_into().unwrap()) as usize;
                        }
                    }
                    // The path is Huffman-coded or not; that of the answered requests is longer.
                    HEADERS if frame.payload.len() > LONG => frames.answer(frame.stream, "unhindered").await,
                    HEADERS => {
                        frames.send(HEADERS, END_HEADERS, frame.stream, OK).await;
                        windows.insert(frame.stream, initial);
                    }
                    WINDOW_UPDATE => {
                        let more = u32::from_be_bytes(frame.payload[..4].try_into().unwrap()) as usize;
                        *windows.entry(frame.stream).or_default() += more;
                    }
                    _ => {}
                }
                for stream in windows.keys().copied().filter(|stream| *stream > 0).collect::<Vec<_>>() {
                    while windows[&stream] >= PIECE && windows[&0] >= PIECE {
                        frames.send(DATA, 0, stream, &[b'x'; PIECE]).await;
                        *windows.get_mut(&stream).unwrap() -= PIECE;
                        *windows.get_mut(&0).unwrap() -= PIECE;
                        sent.fetch_add(PIECE, Ordering::SeqCst);
                    }
                }
            }
        }
    });
    (server, stops)
}

/// Bytes of a DATA frame.
const PIECE: usize = 16 << 10;

/// Bytes that the head of a request to [`STALLING`] does not have.
const LONG: usize = 100;

const STALLING: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

/// The time after which a window counts as full.
const QUIET: Duration = Duration::from_millis(500);

fn answered() -> String {
    format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "y".repeat(4 * LONG))
}

fn stalled_streams_stop_no_others() {
    const STALLED: usize = 20;
    let (server, stops) = endless();
    let proxy = proxy(server.address);
    let mut other = proxy.connect();
    ask(&mut other, &answered());
    let mut stalled: Vec<_> = (0..STALLED).map(|_| proxy.connect()).collect();
    for client in &mut stalled {
        socket2::SockRef::from(client.stream()).set_recv_buffer_size(8192).unwrap();
        client.send(STALLING);
    }
    eventually("the streams are open", || proxy.running.in_flight() == STALLED);
    while stops.recv_timeout(DEADLINE * 3).unwrap() == 0 {}
    for _ in 0..100 {
        assert_eq!(ask(&mut other, &answered()).1, "unhindered");
    }
    eventually("the answered requests have ended", || proxy.running.in_flight() == STALLED);
    assert_eq!(server.connections(), 1);
}

/// The bytes that a server may send to a client that reads nothing.
fn unread_answer_is_bounded_by_a_window() {
    let (server, stops) = endless();
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    socket2::SockRef::from(client.stream()).set_recv_buffer_size(8192).unwrap();
    client.send(STALLING);
    let sent = loop {
        match stops.recv_timeout(DEADLINE * 3).unwrap() {
            0 => {}
            sent => break sent,
        }
    };
    assert!(sent < 16 << 20, "{sent} bytes, of which the sockets of this machine take some megabytes");
}

/// The clients take a byte each, so that all bytes that the server sent are in the proxy's memory.
fn unread_answers_of_500_clients_are_bounded() {
    const CLIENTS: usize = 10;
    const STREAMS: usize = 50;
    const STALLED: usize = CLIENTS * STREAMS;
    let (server, stops) = endless();
    let proxy = proxy(server.address);
    run(async {
        let mut clients = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = connect_with_window(proxy.listener(), 1).await;
            for _ in 0..STREAMS {
                let request = Request::get("http://h/x").body(Empty::<Bytes>::new()).unwrap();
                answers.push(client.send_request(request).await.unwrap());
            }
            clients.push(client);
        }
        let (mut before, mut same) = (0, 0);
        // A report of each connection without a byte in between.
        while same <= server.connections() {
            let sent = stops.recv_timeout(DEADLINE).unwrap();
            same = if sent == before { same + 1 } else { 0 };
            before = sent;
        }
        assert_eq!(proxy.running.in_flight(), STALLED);
        let window = limits::H2_UPSTREAM_STREAM_WINDOW as usize;
        assert!(before >= STALLED * window / 2, "{before} bytes");
        assert!(before <= STALLED * (window + PIECE), "{before} bytes");
        assert!(before < 40 << 20, "{before} bytes: wire.md states 40 MiB");
    });
}
