//! The bytes of a session: none is changed, whatever the frames.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use meter::Ending;
use relay::{Passthrough, UsagePolicy};
use serde_json::Value;

use super::socket::{Server, connect, masked, send};
use super::{REALTIME, answering, created, delta, done, record, until};
use crate::support::{Proxy, Upstream, eventually};

const EXTENSIONS: (&str, &str) = ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits");
const HANDSHAKE: &str = "GET /v1/realtime?model=m HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

#[test]
fn extensions_are_not_offered_where_usage_is_requested() {
    for (usage, offers) in [(UsagePolicy::Inject, false), (UsagePolicy::Observe, true)] {
        let server = Server::start(|socket| while socket.read().is_ok() {});
        let proxy = Proxy::with(server.address, |plan| plan.upstreams[0].usage = usage);
        let _client = connect(&proxy, REALTIME, &[EXTENSIONS, ("sec-websocket-protocol", "realtime")]);
        let handshake = server.handshake();
        assert_eq!(handshake.contains_key("sec-websocket-extensions"), offers);
        assert_eq!(handshake["sec-websocket-protocol"], "realtime");
        // On another path nothing is changed.
        let proxy = Proxy::with(server.address, |plan| plan.upstreams[0].usage = usage);
        let _client = connect(&proxy, "/v1/other", &[EXTENSIONS]);
        eventually("it is counted", || proxy.seen().passed == [Passthrough::Upgrade]);
    }
}

#[test]
fn compressed_session_passes_unmetered() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        let head = SWITCH.replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
        peer.send(head);
        let compressed = peer.exactly(4);
        peer.send(compressed);
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(HANDSHAKE);
    assert!(client.head().unwrap().contains("permessage-deflate"));
    client.send(b"\xC1\x02ab");
    assert_eq!(client.exactly(4), b"\xC1\x02ab");
    assert_eq!(proxy.seen().passed, [Passthrough::Socket]);
    assert_eq!(proxy.seen().seated, 0);
}

#[test]
fn empty_extensions_in_the_answer_are_none() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        let head = SWITCH.replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: \r\n\r\n");
        peer.send(head);
        let created = created("resp_1").to_string();
        peer.send([&[0x81, 126], &(created.len() as u16).to_be_bytes()[..], created.as_bytes()].concat());
        peer.rest();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(HANDSHAKE);
    client.head().unwrap();
    eventually("the answer begins", || proxy.seen().seated == 1);
    assert_eq!(proxy.seen().passed, []);
}

#[test]
fn sockets_of_other_apis_are_counted_by_their_path() {
    let server = Server::start(|socket| while socket.read().is_ok() {});
    for (path, reason) in [
        (
            "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
            Passthrough::Socket,
        ),
        ("/v1/anything", Passthrough::Upgrade),
    ] {
        let proxy = Proxy::new(server.address);
        let _client = connect(&proxy, path, &[]);
        assert_eq!(proxy.seen().passed, [reason], "{path}");
    }
}

/// An answer in frames of every kind, as the server sends them.
fn answer() -> Vec<u8> {
    let frame = |first: u8, payload: &[u8]| {
        let mut bytes = vec![first];
        match payload.len() {
            len @ ..126 => bytes.push(len as u8),
            len => {
                bytes.push(126);
                bytes.extend((len as u16).to_be_bytes());
            }
        }
        bytes.extend(payload);
        bytes
    };
    let created = created("resp_1").to_string();
    let (one, other) = created.as_bytes().split_at(20);
    let mut bytes = [frame(0x01, one), frame(0x89, b"alive?"), frame(0x00, b""), frame(0x80, other)].concat();
    bytes.extend(frame(0x81, delta("resp_1", "Hé").to_string().as_bytes()));
    bytes.extend(frame(0x82, b"\x00\x01 no JSON"));
    bytes.extend(frame(0x81, done("resp_1", "completed", Value::Null).to_string().as_bytes()));
    bytes.extend(frame(0x88, b"\x03\xE8"));
    bytes
}

/// Sends `request` in pieces of `step` bytes, reads the answer in the same pieces, and returns what each side got.
fn exchanged(request: &[u8], step: usize) -> (Vec<u8>, Vec<u8>, Proxy) {
    let (saw, seen) = mpsc::channel();
    let saw = Mutex::new(saw);
    let expected = request.len();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send(SWITCH);
        saw.lock().unwrap().send(peer.exactly(expected)).unwrap();
        for piece in answer().chunks(step) {
            peer.send(piece);
            if step < 50 {
                std::thread::yield_now();
            }
        }
        peer.half_close();
        peer.rest();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(HANDSHAKE);
    client.head();
    for piece in request.chunks(step) {
        client.send(piece);
    }
    let received = client.exactly(answer().len());
    client.half_close();
    (seen.recv().unwrap(), received, proxy)
}

#[test]
fn bytes_are_those_of_the_other_side() {
    let mut request = masked(r#"{"type":"session.update","session":{}}"#, 1, true);
    request.extend(masked(r#"{"type":"response"#, 1, false));
    request.extend(masked("", 9, true));
    request.extend(masked(r#".create","event_id":"my-1"}"#, 0, true));
    request.extend(masked(&format!(r#"{{"audio":"{}","type":"x"}}"#, "A".repeat(9000)), 2, true));
    for step in [1, 2, 3, 7, 64, 100_000] {
        let (upstream, client, proxy) = exchanged(&request, step);
        assert_eq!(upstream, request, "in steps of {step}");
        assert_eq!(client, answer(), "in steps of {step}");
        let record = record(&proxy);
        assert_eq!(record.identity.request_id.as_deref(), Some("my-1"), "in steps of {step}");
        assert_eq!((record.ending, record.tokens.output()), (Ending::Complete, 121), "in steps of {step}");
        assert_eq!(record.visible_chars, 2);
        assert_eq!(proxy.seen().passed, []);
    }
}

#[test]
fn broken_frames_pass_and_are_counted() {
    let mut request = masked(r#"{"type":"response.create"}"#, 1, true);
    // An unknown opcode: nothing after it is read.
    request.extend(b"\x83\x01?");
    request.extend(masked(r#"{"type":"response.create"}"#, 1, true));
    let (upstream, client, proxy) = exchanged(&request, 5);
    assert_eq!((upstream, client), (request, answer()));
    assert_eq!(record(&proxy).ending, Ending::Complete, "the other direction is still read");
    assert_eq!(proxy.seen().passed, [Passthrough::Socket]);
}

#[test]
fn panic_in_the_meter_costs_no_byte() {
    let server = answering();
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    until(&mut client, "session.created");
    proxy.seen().meter_panics = true;
    send(&mut client, r#"{"type":"response.create"}"#);
    assert_eq!(until(&mut client, "response.done").len(), 5);
    eventually("it is counted", || proxy.seen().lost == [relay::Dropped::Panic]);
    assert_eq!(record(&proxy).ending, Ending::ProxyError);
}

/// A client that reads nothing stops its server, and gets every byte once it reads on.
#[test]
fn slow_client_stops_its_upstream() {
    const FRAMES: usize = 512;
    let frame = [&b"\x82\x7E\xFF\x00"[..], &[0; 0xFF00]].concat();
    let whole = frame.len() * FRAMES;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send(SWITCH);
        for _ in 0..FRAMES {
            peer.send(&frame);
            counted.fetch_add(frame.len(), Ordering::SeqCst);
        }
        peer.half_close();
        peer.rest();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(HANDSHAKE);
    client.head();
    let mut before = 0;
    eventually("the upstream is stopped", || {
        std::thread::sleep(Duration::from_millis(100));
        let now = sent.load(Ordering::SeqCst);
        now > 0 && std::mem::replace(&mut before, now) == now
    });
    assert!(before < whole, "{before} bytes are in buffers");
    client.exactly(whole);
    client.half_close();
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
}
