//! One client takes long answers slowly over HTTP/2, on more streams than the upstream has connections, and asks again
//! whenever one of them ends. Of the requests of others none is refused, from another address or from the same one.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::crowd::{CHAT, STREAM, ask_from, connect_from};
use crate::meter_page::Page;
use crate::proxy::{DEADLINE, Proxy};

/// Descriptors of the process, of which its upstream gets 363.
const DESCRIPTORS: usize = 1024;

/// The upstream connections that one address gets.
const ATTACKED: f64 = 272.0;

/// Streams of each of the attacker's two connections.
const STREAMS: usize = 250;

/// The bytes by which it opens the window of each stream, and the pause between: 150 bytes a second.
const WINDOW: u32 = 75;
const PAUSE: Duration = Duration::from_millis(500);

/// Requests of others, and the threads that send them.
const REQUESTS: usize = 200;
const THREADS: usize = 20;

/// Generates without end for the model `long`, and answers other requests at once, with usage.
fn generating() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let (mut request, mut buffer) = (String::new(), [0; 4096]);
                while !request.contains(r#""stream":true"#) {
                    let Ok(read @ 1..) = client.read(&mut buffer) else { return };
                    request += &String::from_utf8_lossy(&buffer[..read]);
                }
                if !request.contains("long") {
                    let _ = client.write_all(STREAM.as_bytes());
                    return;
                }
                let (first, _) = STREAM.split_once("\n\n").expect("the head and a frame");
                let (_, frame) = first.split_once("\r\n\r\n").expect("a frame");
                let mut sent = client.write_all(first.as_bytes());
                while sent.is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                    sent = client.write_all(format!("\n\n{frame}").as_bytes());
                }
            });
        }
    });
    address
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request for a long answer on this stream.
fn long(stream: u32) -> Vec<u8> {
    const BODY: &[u8] = br#"{"model":"long","stream":true}"#;
    // POST, http, then the path and the authority as literals without indexing.
    let path = b"/v1/chat/completions";
    let fields = [&[0x83, 0x86, 0x04, 20], &path[..], b"\x01\x01h"].concat();
    [frame(1, 4, stream, &fields), frame(0, 1, stream, BODY)].concat()
}

/// Attacks on one connection from 127.0.0.1 until `stop`.
fn attack(address: SocketAddr, stop: &AtomicBool) {
    let mut socket = connect_from(1, address);
    socket.set_read_timeout(Some(PAUSE / 10)).expect("a timeout");
    let window = |stream, bytes: u32| frame(8, 0, stream, &bytes.to_be_bytes());
    // The windows of its streams are empty, and that of the connection is not the limit.
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let mut output = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &window(0, 1 << 30)].concat();
    let (mut open, mut next, mut input) = (BTreeSet::new(), 1, Vec::new());
    let mut opened = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        while open.len() < STREAMS {
            output.extend(long(next));
            open.insert(next);
            next += 2;
        }
        if opened.elapsed() >= PAUSE {
            opened = Instant::now();
            open.iter().for_each(|stream| output.extend(window(*stream, WINDOW)));
        }
        socket.write_all(&std::mem::take(&mut output)).expect("the proxy keeps the connection");
        let mut buffer = [0; 64 << 10];
        match socket.read(&mut buffer) {
            Ok(0) => panic!("the proxy keeps the connection"),
            Ok(read) => input.extend_from_slice(&buffer[..read]),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}")
            }
        }
        while let Some((head, rest)) = input.split_first_chunk::<9>() {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            if rest.len() < length {
                break;
            }
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let (kind, has_ended) = (head[3], head[4] & 1 != 0);
            if kind == 3 || kind < 2 && has_ended {
                open.remove(&stream);
            }
            input.drain(..9 + length);
        }
    }
}

/// The attacker's connections, until it is dropped.
struct Attack {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attack {
    fn start(address: SocketAddr) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let threads = (0..2).map(|_| {
            let stopped = Arc::clone(&stop);
            std::thread::spawn(move || attack(address, &stopped))
        });
        Self { threads: threads.collect(), stop }
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || std::thread::panicking(), "the attack ended early");
        }
    }
}

fn none_is_refused(last: u8) {
    let proxy = Proxy::start_with_descriptors(DESCRIPTORS, generating(), &["--workers", "2"]);
    let attack = Attack::start(proxy.data);
    let begun = Instant::now();
    while Page::fetch(proxy.admin).sum("tokenmeter_upstream_connections", &[]) < ATTACKED {
        assert!(begun.elapsed() < DEADLINE, "the attacker does not get its connections");
        std::thread::sleep(PAUSE / 10);
    }
    let address = proxy.data;
    let ask = move || {
        for _ in 0..REQUESTS / THREADS {
            let answer = ask_from(last, address, &CHAT);
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("data: [DONE]"), "{answer}");
        }
    };
    let threads: Vec<_> = (0..THREADS).map(|_| std::thread::spawn(ask)).collect();
    let served = threads.into_iter().filter_map(|thread| thread.join().ok()).count();
    assert_eq!(served, THREADS, "requests were refused");
    let page = Page::fetch(proxy.admin);
    let input = [("model", "m"), ("type", "input")];
    assert_eq!(page.sum("tokenmeter_tokens_total", &input), 1000.0 * REQUESTS as f64);
    let cut = page.sum("tokenmeter_dropped_total", &[("what", "slow_client")]);
    assert!(cut > 0.0 || last == 2, "readers give way to their own address");
    drop(attack);
}

#[test]
#[ignore = "waits for seconds"]
fn slow_readers_starve_no_other_address() {
    none_is_refused(2);
}

#[test]
#[ignore = "waits for seconds"]
fn slow_readers_starve_none_at_their_address() {
    none_is_refused(1);
}
