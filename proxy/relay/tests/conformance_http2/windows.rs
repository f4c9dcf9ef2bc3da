//! A slow client stops its own stream, never the others of its connection.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use relay::limits;

use super::{ask, proxy};
use crate::support::http2_server::*;
use crate::support::{DEADLINE, eventually};

/// A server that sends as much as the windows allow to the requests of `/x`, and answers those of `/y`. It reports each
/// time that no window has grown for a while.
fn endless() -> (Http2Server, mpsc::Receiver<usize>) {
    let (stopped, stops) = mpsc::channel();
    let server = Http2Server::start(move |mut frames, _| {
        let stopped = stopped.clone();
        async move {
            frames.begin(&[]).await;
            let mut windows = BTreeMap::<u32, usize>::from([(0, 65_535)]);
            let mut sent = 0;
            loop {
                let Ok(frame) = tokio::time::timeout(QUIET, frames.next()).await else {
                    let _ = stopped.send(sent);
                    continue;
                };
                let Some(frame) = frame else { return };
                match frame.kind {
                    // The path is Huffman-coded or not; that of the answered requests is longer.
                    HEADERS if frame.payload.len() > LONG => frames.answer(frame.stream, "unhindered").await,
                    HEADERS => {
                        frames.send(HEADERS, END_HEADERS, frame.stream, OK).await;
                        windows.insert(frame.stream, limits::H2_UPSTREAM_STREAM_WINDOW as usize);
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
                        sent += PIECE;
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

#[test]
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
    assert_eq!((server.connections(), proxy.running.in_flight()), (1, STALLED));
}

/// The bytes that a server may send to a client that reads nothing.
#[test]
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
