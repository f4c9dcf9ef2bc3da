//! Requests that are buffered whole before they are forwarded: the bytes sent, the limits, and clients that leave
//! meanwhile.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use meter::Ending;
use relay::{ServerKind, UsageStep};
use usage::Policy;

use super::Proxy;
use crate::support::{PROMPT, Peer, Upstream, eventually, now, upstream_body};
use crate::usage::{
    ASKED, DONE, FINISH, HEAD, PLAIN, Server, USAGE, ask, chunk, delta, policy, record, request, steps,
};

crate::support::wires::table! {
    (all):
        a_chunked_request_stays_chunked,
        trailers_follow_the_edited_body,
        unannounced_trailers_change_nothing,
        body_with_digest_in_trailers_is_unedited,
        usage_is_requested_at_invocations,
        body_over_the_cap_passes_unedited,
        client_leaving_during_buffering_reaches_no_server,
        a_client_may_leave_at_every_byte;
    (main):
        buffered_bodies_share_one_limit,
        request_of_many_chunks_is_one_body;
}

fn a_chunked_request_stays_chunked() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
        chunk(&PLAIN[..9]),
        chunk(&PLAIN[9..]),
    );
    let (_, body) = ask(proxy.address(), &chunked);
    assert!(!body.contains("usage"));
    assert_eq!(server.bodies(), [ASKED]);
    assert!(!server.heads.lock().unwrap()[0].to_ascii_lowercase().contains("content-length"));
}

/// A request in chunks that ends in `trailers`.
fn with_trailers(fields: &str, body: &str, trailers: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n{fields}Transfer-Encoding: chunked\r\n\r\n{}0\r\n{trailers}\r\n",
        chunk(body),
    )
}

/// Trailers do not exempt a request from being counted: they follow the edited body, and the original body if that is
/// sent again.
fn trailers_follow_the_edited_body() {
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&sent);
    let upstream = Upstream::start(move |peer, number| {
        let Some(_) = peer.head() else { return };
        noted.lock().unwrap().push(peer.until("0\r\nx-a: b\r\n\r\n"));
        peer.send(if number == 0 {
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        } else {
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        });
    });
    let proxy = Proxy::with(upstream.address, policy(Policy::Inject));
    let (head, _) = ask(proxy.address(), &with_trailers("Trailer: X-A\r\n", PLAIN, "X-A: b\r\n"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let end = "0\r\nx-a: b\r\n\r\n";
    let all: Vec<String> =
        sent.lock().unwrap().iter().map(|body| unchunked(body.strip_suffix(end).unwrap())).collect();
    assert_eq!(all, [ASKED, PLAIN]);
    assert_eq!(steps(&proxy), [UsageStep::Injected]);
}

/// The content of the chunks.
fn unchunked(mut chunks: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let (data, rest) = rest.split_at(usize::from_str_radix(size, 16).unwrap());
        whole += data;
        chunks = rest.strip_prefix("\r\n").unwrap();
    }
    whole
}

fn unannounced_trailers_change_nothing() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
    let (_, body) = ask(proxy.address(), &with_trailers("", PLAIN, "X-A: b\r\n"));
    assert!(!body.contains("usage"));
    assert_eq!(server.bodies(), [ASKED]);
    assert_eq!(steps(&proxy), [UsageStep::Injected]);
}

/// A digest in the trailers counts as one in the head.
fn body_with_digest_in_trailers_is_unedited() {
    for seal in ["Content-Digest: sha-256=:AA==:\r\n", "X-A: b\r\nSignature: s=:AA==:\r\n"] {
        let server = Server::streaming();
        let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
        ask(proxy.address(), &with_trailers("", PLAIN, seal));
        assert_eq!(server.bodies(), [PLAIN], "{seal}");
        assert_eq!(steps(&proxy), [UsageStep::Unreadable], "{seal}");
    }
}

/// At `/invocations` only the body determines the dialect, so usage is requested once that is known.
fn usage_is_requested_at_invocations() {
    const TEXT: &str = r#"{"prompt":"p","stream": true}"#;
    const ESCAPED: &str = r#"{"mess\u0061ges":[],"stream": true}"#;
    const CHAT: &str = r#"{"messages":[],"stream": true}"#;
    let asked = |body: &str| body.replace("true", r#"true,"stream_options":{"include_usage":true}"#);
    let opaque = "\u{1}\u{2}gz";
    let server = Server::streaming();
    for (kind, sent, onward, step) in [
        (ServerKind::Vllm, CHAT, asked(CHAT), Some(UsageStep::Injected)),
        (ServerKind::Vllm, ESCAPED, asked(ESCAPED), Some(UsageStep::Injected)),
        (ServerKind::Vllm, TEXT, asked(TEXT), Some(UsageStep::Injected)),
        (ServerKind::Tgi, TEXT, TEXT.into(), Some(UsageStep::SentUnasked)),
        (ServerKind::Tgi, CHAT, asked(CHAT), Some(UsageStep::Injected)),
        (ServerKind::Vllm, r#"{"input":"p"}"#, r#"{"input":"p"}"#.into(), None),
        (ServerKind::Tgi, r#"{"inputs":"p","stream":true}"#, r#"{"inputs":"p","stream":true}"#.into(), None),
        (ServerKind::Vllm, r#"{"messages":[]}"#, r#"{"messages":[]}"#.into(), Some(UsageStep::NotStreamed)),
        (ServerKind::Vllm, r#"{"stream":true}"#, r#"{"stream":true}"#.into(), Some(UsageStep::Unreadable)),
        (ServerKind::Vllm, opaque, opaque.into(), Some(UsageStep::Unreadable)),
    ] {
        let proxy = Proxy::with(server.upstream.address, |plan| {
            plan.upstreams[0].usage = Policy::Inject;
            plan.upstreams[0].kind = Some(kind);
        });
        let (_, body) = ask(proxy.address(), &request(sent).replace("/v1/chat/completions", "/invocations"));
        assert!(!body.contains("usage"), "{sent}");
        assert_eq!(server.bodies().pop(), Some(onward), "{kind:?} {sent}");
        assert_eq!(steps(&proxy), Vec::from_iter(step), "{kind:?} {sent}");
    }
}

fn body_over_the_cap_passes_unedited() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
    let body = format!("{{\"stream\": true, \"prompt\": \"{}\"}}", "x".repeat(9 << 20));
    ask(proxy.address(), &request(&body));
    assert_eq!(server.bodies(), [body]);
    assert_eq!(steps(&proxy), [UsageStep::TooLarge]);
}

fn client_leaving_during_buffering_reaches_no_server() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
    let mut client = proxy.connect();
    let whole = request(PLAIN);
    client.send(&whole[..whole.len() - 4]);
    eventually("the request began", || proxy.seen().seated == 1);
    drop(client);
    let begun = now();
    eventually("it is over", || proxy.seen().seated == 0);
    assert!(begun.elapsed() < PROMPT);
    assert_eq!(server.bodies(), [""; 0]);
    assert_eq!(record(&proxy).ending, Ending::ClientAbort);
}

fn request_of_many_chunks_is_one_body() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
    let body = format!("{{\"stream\":true,\"prompt\":\"{}\"}}", "x".repeat(64 << 10));
    let mut client = proxy.connect();
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunks: Vec<u8> =
        body.bytes().flat_map(|byte| [b"1\r\n".as_slice(), &[byte], b"\r\n"].concat()).collect();
    client.send(chunks);
    client.send("0\r\n\r\n");
    let head = client.head().unwrap();
    upstream_body(&mut client, &head);
    let sent = body.replace("true,", r#"true,"stream_options":{"include_usage":true},"#);
    let bodies = server.bodies();
    assert!(bodies == [sent], "{} bodies, the first of {}", bodies.len(), bodies[0].len());
}

/// A buffered body counts against the limit until it has been sent, whatever becomes of the edit.
fn buffered_bodies_share_one_limit() {
    // A server that accepts connections and reads nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).set_recv_buffer_size(8192).unwrap();
    let proxy = Proxy::with(listener.local_addr().unwrap(), policy(Policy::Inject));
    let body = format!("{{\"stream\":true,\"prompt\":\"{}\"}}", "x".repeat(7 << 20));
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let (address, request) = (proxy.address(), request(&body));
            std::thread::spawn(move || {
                let mut client = Peer::connect(address);
                // The sockets hold what the proxy does not read. A client that leaves drops its request.
                client.try_send(request);
                client
            })
        })
        .collect();
    eventually("the limit is reached", || steps(&proxy).contains(&UsageStep::TooLarge));
    let injected = steps(&proxy).iter().filter(|step| **step == UsageStep::Injected).count();
    assert!(injected <= 9, "{injected} bodies of 7 MiB do not fit into 64");
    drop(proxy);
    clients.into_iter().for_each(|client| drop(client.join().unwrap()));
}

/// The client may leave at any byte of its request or of its answer (law 4).
fn a_client_may_leave_at_every_byte() {
    let stream = format!("{}{FINISH}{USAGE}{DONE}", delta("a"));
    let sent = stream.clone();
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&sent));
        peer.closed_after(now());
    });
    let proxy = Proxy::with(server.upstream.address, policy(Policy::Inject));
    let whole = request(PLAIN);
    for at in 0..whole.len() {
        let mut client = proxy.connect();
        client.send(&whole[..at]);
    }
    eventually("the in-flight gauge is zero", || proxy.seen().seated == 0 && proxy.running.in_flight() == 0);
    assert_eq!(server.bodies(), [""; 0], "no incomplete request was forwarded");
    let left = stream.find("data: {\"choices\":[],").unwrap();
    for at in 1..left {
        let mut client = proxy.connect();
        client.send(&whole);
        client.head();
        client.until(&stream[..at].chars().rev().take(1).collect::<String>());
    }
    eventually("all are over", || proxy.seen().seated == 0 && proxy.running.in_flight() == 0);
}
