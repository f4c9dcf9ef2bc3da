//! The end of a connection or stream: requests that the server has not processed are sent again, and no others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use meter::Ending;

use super::{CHAT, GET, ask, proxy};
use crate::support::http2_server::*;
use crate::support::{self, DEADLINE, eventually};

crate::support::wires::table! {
    (http2_upstreams, "these servers use HTTP/2 themselves"):
        refused_request_is_sent_again_with_its_body,
        request_refused_during_its_upload_is_sent_again,
        server_that_always_refuses_is_answered_502,
        long_refused_request_is_not_sent_again,
        requests_after_a_goaway_move_and_those_before_finish,
        abrupt_end_truncates_answers_and_fails_requests,
        request_without_an_answer_is_not_sent_again,
        demand_for_http11_is_met,
        drain_lets_streams_finish,
        bodyless_answer_is_complete_with_its_head,
        long_head_cuts_no_streams_of_others,
        request_is_resent_once_alone_after_connection_error,
        request_unrelated_to_connection_error_succeeds,
        long_trailers_reset_their_stream,
        whole_answer_is_complete_before_its_stream_ends;
}

fn post(length: usize) -> String {
    format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length))
}

/// GOAWAY: the last stream that is processed, and a reason.
fn goaway(last: u32, reason: u32) -> Vec<u8> {
    [last.to_be_bytes(), reason.to_be_bytes()].concat()
}

fn refused_request_is_sent_again_with_its_body() {
    let server = Http2Server::start(|mut frames, _| async move {
        frames.begin(&[]).await;
        let mut is_refused = false;
        while let Some((stream, body)) = frames.request().await {
            if std::mem::replace(&mut is_refused, true) {
                frames.answer(stream, &body.len().to_string()).await;
            } else {
                frames.send(RST_STREAM, 0, stream, &REFUSED).await;
            }
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    let (head, body) = ask(&mut client, &post(30_000));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, "30000");
    assert_eq!(server.connections(), 1);
    assert!(proxy.seen().refused.is_empty());
}

fn request_refused_during_its_upload_is_sent_again() {
    let (heard, said) = mpsc::channel();
    let server = Http2Server::start(move |mut frames, _| {
        let heard = heard.clone();
        async move {
            frames.begin(&[]).await;
            let begun = frames.until(DATA).await.unwrap();
            frames.send(RST_STREAM, 0, begun.stream, &REFUSED).await;
            heard.send(begun.payload).unwrap();
            let (stream, body) = frames.request().await.unwrap();
            frames.answer(stream, &String::from_utf8(body).unwrap()).await;
            frames.next().await;
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nbegun");
    assert_eq!(said.recv_timeout(DEADLINE).unwrap(), b"begun");
    let (head, body) = ask(&mut client, "ended");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, "begunended");
    assert!(proxy.seen().refused.is_empty());
}

fn server_that_always_refuses_is_answered_502() {
    let attempts = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&attempts);
    let server = Http2Server::start(move |mut frames, _| {
        let counted = Arc::clone(&counted);
        async move {
            frames.begin(&[]).await;
            while let Some((stream, _)) = frames.request().await {
                counted.fetch_add(1, Ordering::SeqCst);
                frames.send(RST_STREAM, 0, stream, &REFUSED).await;
            }
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    let (head, body) = ask(&mut client, GET);
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    assert!(body.contains("upstream_refused"), "{body}");
    assert_eq!(attempts.load(Ordering::SeqCst), 1 + relay::limits::H2_REFUSALS);
}

/// A longer body is gone once it was sent.
fn long_refused_request_is_not_sent_again() {
    let server = Http2Server::start(|mut frames, _| async move {
        frames.begin(&[]).await;
        let head = frames.until(HEADERS).await.unwrap();
        let mut taken = 0;
        while taken <= relay::limits::H2_REPLAY_BYTES {
            let data = frames.until(DATA).await.unwrap();
            taken += data.payload.len();
            let update = u32::try_from(data.payload.len()).unwrap().to_be_bytes();
            for stream in [0, head.stream] {
                frames.send(WINDOW_UPDATE, 0, stream, &update).await;
            }
        }
        frames.send(RST_STREAM, 0, head.stream, &REFUSED).await;
        assert!(frames.until(HEADERS).await.is_none());
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    client.try_send(post(1 << 20));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 502"));
    assert!(client.until("}}").contains("upstream_refused"));
}

fn requests_after_a_goaway_move_and_those_before_finish() {
    let server = Http2Server::start(|mut frames, number| async move {
        frames.begin(&[]).await;
        if number > 0 {
            while let Some((stream, body)) = frames.request().await {
                frames.answer(stream, &format!("moved {}", body.len())).await;
            }
            return;
        }
        let (kept, _) = frames.request().await.unwrap();
        frames.send(HEADERS, END_HEADERS, kept, OK).await;
        let (unprocessed, _) = frames.request().await.unwrap();
        assert!(unprocessed > kept);
        frames.send(GOAWAY, 0, 0, &goaway(kept, 0)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        frames.send(DATA, END_STREAM, kept, b"kept").await;
        while frames.next().await.is_some() {}
    });
    let proxy = proxy(server.address);
    let mut first = proxy.connect();
    first.send(GET);
    first.head();
    let mut second = proxy.connect();
    assert_eq!(ask(&mut second, &post(5000)).1, "moved 5000");
    assert_eq!(first.until("0\r\n\r\n"), "4\r\nkept\r\n0\r\n\r\n");
    // New requests use the new connection.
    assert_eq!(ask(&mut first, GET).1, "moved 0");
    assert_eq!(server.connections(), 2);
}

fn abrupt_end_truncates_answers_and_fails_requests() {
    for abrupt in [Some(goaway(1, 2)), None] {
        let server = Http2Server::start(move |mut frames, _| {
            let abrupt = abrupt.clone();
            async move {
                frames.begin(&[]).await;
                let (stream, _) = frames.request().await.unwrap();
                frames.send(HEADERS, END_HEADERS, stream, OK).await;
                frames.send(DATA, 0, stream, b"begun").await;
                if let Some(goaway) = abrupt {
                    frames.send(GOAWAY, 0, 0, &goaway).await;
                }
            }
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        client.send(GET);
        client.head();
        assert_eq!(client.rest(), "5\r\nbegun\r\n", "without a last chunk");
    }
}

/// The server may have begun with it.
fn request_without_an_answer_is_not_sent_again() {
    let requests = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&requests);
    let server = Http2Server::start(move |mut frames, _| {
        let counted = Arc::clone(&counted);
        async move {
            frames.begin(&[]).await;
            while let Some((stream, _)) = frames.request().await {
                if counted.fetch_add(1, Ordering::SeqCst) > 0 {
                    return;
                }
                frames.answer(stream, "ok").await;
            }
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    ask(&mut client, GET);
    let (head, body) = ask(&mut client, GET);
    assert!(head.starts_with("HTTP/1.1 502") && body.contains("upstream_broken"), "{head}{body}");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

/// RFC 9113 §8.7: the request is sent again over HTTP/1.1, as are all later ones.
fn demand_for_http11_is_met() {
    let upstream = support::Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
    let script = upstream.address;
    let server = Http2Server::start_either(
        |mut frames, _| async move {
            frames.begin(&[]).await;
            while let Some((stream, _)) = frames.request().await {
                frames.send(RST_STREAM, 0, stream, &[0, 0, 0, 13]).await;
            }
        },
        script,
    );
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    for _ in 0..2 {
        assert_eq!(ask(&mut client, &post(10)).1, "old");
    }
    assert_eq!(server.connections(), 1);
    eventually("the requests have ended", || proxy.running.in_flight() == 0);
}

fn drain_lets_streams_finish() {
    let server = Http2Server::start(|mut frames, _| async move {
        frames.begin(&[]).await;
        let (stream, _) = frames.request().await.unwrap();
        frames.send(HEADERS, END_HEADERS, stream, OK).await;
        frames.send(DATA, 0, stream, b"begun").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        frames.send(DATA, END_STREAM, stream, b"ended").await;
        while frames.next().await.is_some() {}
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    client.until("begun\r\n");
    proxy.running.drain();
    assert_eq!(client.rest(), "5\r\nended\r\n0\r\n\r\n");
    proxy.running.join();
}

/// A server may send the end of a stream in a frame of its own, after all the bytes that it announced. Nothing is missing to
/// a client that leaves by then.
fn whole_answer_is_complete_before_its_stream_ends() {
    const BODY: &str = r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let server = Http2Server::start(|mut frames, _| async move {
        frames.begin(&[]).await;
        while let Some((stream, _)) = frames.request().await {
            let mut head = OK.to_vec();
            // Literal fields with names of the static table (RFC 7541 §6.2.2).
            for (name, value) in [(31, "application/json"), (28, &*BODY.len().to_string())] {
                head.extend([0x0f, name - 15, u8::try_from(value.len()).unwrap()]);
                head.extend(value.as_bytes());
            }
            frames.send(HEADERS, END_HEADERS, stream, &head).await;
            frames.send(DATA, 0, stream, BODY.as_bytes()).await;
            frames.until(RST_STREAM).await;
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    for _ in 0..2 {
        assert_eq!(ask(&mut client, CHAT).1, BODY);
        let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
        assert_eq!((record.ending, record.tokens.output()), (Ending::Complete, 2));
    }
    assert_eq!(server.connections(), 1);
}

/// The end of the stream comes in a frame of its own, or the connection breaks off before.
fn bodyless_answer_is_complete_with_its_head() {
    // `:status`, as 204, 304, and 200 with `content-length: 0`.
    for (block, status) in [(&b"\x89"[..], 204), (b"\x8b", 304), (b"\x88\x0f\x0d\x010", 200)] {
        for ends in [true, false] {
            let server = Http2Server::start(move |mut frames, _| async move {
                frames.begin(&[]).await;
                let (stream, _) = frames.request().await.unwrap();
                frames.send(HEADERS, END_HEADERS, stream, block).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                if ends {
                    frames.send(DATA, END_STREAM, stream, b"").await;
                    while frames.next().await.is_some() {}
                }
            });
            let proxy = proxy(server.address);
            let mut client = proxy.connect();
            client.send(CHAT);
            assert!(client.head().unwrap().starts_with(&format!("HTTP/1.1 {status}")));
            let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
            assert_eq!(record.ending, Ending::Complete, "{status} {ends}");
        }
    }
}

/// A request with a header list of more than `length` bytes.
fn long(length: usize) -> String {
    // `~` has 13 bits in the Huffman code, so that the encoded list is longer, too.
    format!("GET /x HTTP/1.1\r\nHost: h\r\nX-Long: {}\r\n\r\n", "~".repeat(length))
}

/// A server that begins the answer to each `GET` and ends all of them at a `POST`. A head of more than `list_max` bytes
/// is an error of the connection.
fn touchy(list_max: usize) -> Http2Server {
    Http2Server::start(move |mut frames, _| async move {
        frames.begin(&[]).await;
        let mut open = Vec::new();
        while let Some(head) = frames.until(HEADERS).await {
            if head.payload.len() > list_max {
                frames.send(GOAWAY, 0, 0, &goaway(head.stream.saturating_sub(2), ENHANCE_YOUR_CALM)).await;
                return;
            }
            if head.flags & END_STREAM == 0 {
                for stream in open.drain(..) {
                    frames.send(DATA, END_STREAM, stream, b"ended").await;
                }
                frames.answer(head.stream, "ok").await;
                continue;
            }
            frames.send(HEADERS, END_HEADERS, head.stream, OK).await;
            frames.send(DATA, 0, head.stream, b"begun").await;
            open.push(head.stream);
        }
    })
}

/// The reason of a GOAWAY with which servers end a connection of too long heads.
const ENHANCE_YOUR_CALM: u32 = 11;

fn long_head_cuts_no_streams_of_others() {
    let server = touchy(relay::limits::H2_SHARED_LIST_BYTES);
    let proxy = proxy(server.address);
    let mut poster = proxy.connect();
    assert_eq!(ask(&mut poster, &post(10)).1, "ok");
    let mut others: Vec<_> = (0..20).map(|_| proxy.connect()).collect();
    for other in &mut others {
        other.send(GET);
        other.head();
        other.until("begun\r\n");
    }
    for _ in 0..3 {
        let (head, body) = ask(&mut proxy.connect(), &long(relay::limits::H2_SHARED_LIST_BYTES));
        assert!(head.starts_with("HTTP/1.1 502") && body.contains("upstream_refused"), "{head}{body}");
    }
    assert_eq!(ask(&mut poster, &post(10)).1, "ok");
    for other in &mut others {
        assert_eq!(other.until("0\r\n\r\n"), "5\r\nended\r\n0\r\n\r\n");
    }
    assert_eq!(server.connections(), 4, "one is shared, and each long head had one of its own");
}

/// A request may be the cause of the error even if it is short.
fn request_is_resent_once_alone_after_connection_error() {
    let server = touchy(4000);
    let proxy = proxy(server.address);
    let mut poster = proxy.connect();
    assert_eq!(ask(&mut poster, &post(10)).1, "ok");
    let (head, body) = ask(&mut proxy.connect(), &long(5000));
    assert!(head.starts_with("HTTP/1.1 502") && body.contains("upstream_refused"), "{head}{body}");
    assert_eq!(server.connections(), 2);
    assert_eq!(ask(&mut poster, &post(10)).1, "ok");
    assert_eq!(server.connections(), 3, "the second connection was not shared");
}

fn request_unrelated_to_connection_error_succeeds() {
    let server = Http2Server::start(|mut frames, number| async move {
        frames.begin(&[]).await;
        let (stream, _) = frames.request().await.unwrap();
        if number > 0 {
            return frames.answer(stream, "alone").await;
        }
        frames.answer(stream, "shared").await;
        let (stream, _) = frames.request().await.unwrap();
        frames.send(GOAWAY, 0, 0, &goaway(stream - 2, ENHANCE_YOUR_CALM)).await;
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    assert_eq!(ask(&mut client, GET).1, "shared");
    assert_eq!(ask(&mut client, &post(5000)).1, "alone");
}

fn long_trailers_reset_their_stream() {
    let (heard, said) = mpsc::channel();
    let server = Http2Server::start(move |mut frames, _| {
        let heard = heard.clone();
        async move {
            frames.begin(&[]).await;
            frames.until(HEADERS).await.unwrap();
            loop {
                let frame = frames.next().await.unwrap();
                if [HEADERS, RST_STREAM].contains(&frame.kind) {
                    heard.send(frame.kind).unwrap();
                    break;
                }
            }
            frames.next().await;
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nTrailer: X-Long\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    client.send(format!("X-Long: {}\r\n\r\n", "~".repeat(relay::limits::H2_SHARED_LIST_BYTES)));
    assert_eq!(said.recv_timeout(DEADLINE).unwrap(), RST_STREAM);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 400"));
}
