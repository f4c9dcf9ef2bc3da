//! TLS between the client and the proxy: handshakes that fail, the end of a session, and new certificates. Other
//! tests run with TLS, too (`support/wires.rs`).

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chance::Side;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use relay::{Dropped, Refusal, RuleKind};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tenant::{CertificateName, Rule, TenantPart};

use crate::support::http2::{connect_with_tls, run};
use crate::support::{DEADLINE, Peer, Proxy, TestPlan, Upstream, eventually, tls};
use crate::tenants::{in_force, rules, server};

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A proxy with TLS to an upstream.
fn proxy_of(upstream: SocketAddr, change: impl FnOnce(&mut TestPlan)) -> Proxy {
    Proxy::with(upstream, |plan| {
        change(plan);
        plan.listen_with_tls();
    })
}

fn proxy(change: impl FnOnce(&mut TestPlan)) -> Proxy {
    let upstream = Upstream::answering(OK);
    proxy_of(upstream.address, change)
}

/// A socket without TLS.
fn socket(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket
}

fn session(config: Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(config, ServerName::try_from(tls::NAME).unwrap()).unwrap()
}

/// The bytes by which a client begins.
fn hello() -> Vec<u8> {
    let mut hello = Vec::new();
    session(tls::client(&[])).write_tls(&mut hello).unwrap();
    hello
}

/// Asserts that a client is served.
fn is_served(proxy: &Proxy) {
    let mut client = proxy.connect();
    client.send(GET);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn http_without_tls_gets_a_readable_400() {
    let proxy = proxy(|_| {});
    for request in [GET.to_owned(), format!("{GET}{}", "x".repeat(100_000)), "PRI * HTTP/2.0\r\n".to_owned()]
    {
        let mut client = socket(proxy.address());
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nThis listener expects TLS: use an https URL\n"), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    }
    assert_eq!(proxy.seen().lost, [Dropped::Handshake; 3]);
    is_served(&proxy);
}

#[test]
fn tls_without_tls_listener_gets_a_400() {
    if Side::Clients.excludes("its listener has no TLS") {
        return;
    }
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::new(upstream.address);
    let mut client = socket(proxy.address());
    client.write_all(&hello()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 Bad Request\r\n"), "{}", answer.escape_ascii());
    assert_eq!(proxy.seen().refused, [Refusal::Framing]);
}

#[test]
fn garbage_gets_an_alert() {
    let proxy = proxy(|_| {});
    for garbage in [&[0; 100][..], &[22, 3, 1, 0, 4, 255, 0, 0, 0], b"\x80\x2e\x01\x00\x02", &[0xff; 20_000]]
    {
        let mut client = socket(proxy.address());
        client.write_all(garbage).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        // An alert is a record of type 21; a record without its end gets none.
        assert!(matches!(answer[..], [21, 3, _, 0, 2, 2, _] | []), "{answer:?}");
    }
    eventually("all are counted", || proxy.seen().lost == [Dropped::Handshake; 4]);
    is_served(&proxy);
}

/// A load balancer's probe connects and leaves.
#[test]
fn connection_without_a_byte_is_not_counted() {
    let proxy = proxy(|_| {});
    drop(socket(proxy.address()));
    let closed = socket(proxy.address());
    closed.shutdown(Shutdown::Write).unwrap();
    assert_eq!((&closed).read(&mut [0]).unwrap(), 0);
    is_served(&proxy);
    assert_eq!(proxy.seen().lost, []);
}

#[test]
fn stalled_handshakes_end_with_the_head_deadline() {
    let proxy = proxy(|plan| plan.head_timeout = Duration::from_millis(300));
    let hello = hello();
    let mut stalled: Vec<_> = [0, 1, 5, hello.len() / 2, hello.len()]
        .into_iter()
        .map(|length| {
            let mut client = socket(proxy.address());
            client.write_all(&hello[..length]).unwrap();
            client
        })
        .collect();
    is_served(&proxy);
    for client in &mut stalled {
        let mut away = Vec::new();
        client.read_to_end(&mut away).unwrap();
    }
    assert_eq!(proxy.seen().lost, [Dropped::Handshake; 5]);
    is_served(&proxy);
}

/// Stalled handshakes hold places as connections before their first request do: others take them.
#[test]
fn stalled_handshakes_leave_places_for_others() {
    let proxy = proxy(|plan| plan.connections = 4);
    let stalled: Vec<_> = (0..4)
        .map(|_| {
            let mut client = socket(proxy.address());
            client.write_all(&hello()[..9]).unwrap();
            client
        })
        .collect();
    is_served(&proxy);
    assert!(proxy.seen().lost.contains(&Dropped::Connection));
    drop(stalled);
}

#[test]
fn both_versions_and_protocols_are_spoken() {
    let proxy = proxy(|_| {});
    for version in rustls::ALL_VERSIONS {
        for (offered, agreed) in
            [(&["h2", "http/1.1"][..], Some(&b"h2"[..])), (&["http/1.1"], Some(b"http/1.1")), (&[], None)]
        {
            let session = session(tls::client_of(offered, &[version]));
            let mut client = StreamOwned::new(session, socket(proxy.address()));
            client.flush().unwrap();
            assert_eq!(client.conn.protocol_version(), Some(version.version));
            assert_eq!(client.conn.alpn_protocol(), agreed);
            if agreed == Some(b"h2") {
                continue;
            }
            client.write_all(GET.as_bytes()).unwrap();
            let mut answer = [0; OK.len()];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, OK.as_bytes());
        }
    }
}

#[test]
fn unknown_protocol_is_refused() {
    let proxy = proxy(|_| {});
    let mut client = StreamOwned::new(session(tls::client(&["smtp"])), socket(proxy.address()));
    let error = client.write_all(GET.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    eventually("it is counted", || proxy.seen().lost == [Dropped::Handshake]);
}

/// Without ALPN the first bytes show the protocol.
#[test]
fn http2_with_prior_knowledge_is_served_within_tls() {
    let proxy = proxy(|_| {});
    let mut client = StreamOwned::new(session(tls::client(&[])), socket(proxy.address()));
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut frame = [0; 9];
    client.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3..5], [4, 0], "settings");
}

/// A response without a length ends with its connection: the announcement distinguishes its end from a truncation.
#[test]
fn end_is_announced_and_truncation_is_not() {
    for (end, is_complete) in [("0\r\n\r\n", true), ("", false)] {
        let upstream = Upstream::start(move |peer, _| {
            peer.head();
            peer.send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n{end}"));
        });
        let proxy = proxy_of(upstream.address, |_| {});
        let mut client = StreamOwned::new(session(tls::client(&[])), socket(proxy.address()));
        client.write_all(b"GET /x HTTP/1.0\r\nHost: h\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer);
        assert!(answer.ends_with(b"\r\n\r\none"), "{}", answer.escape_ascii());
        assert_eq!(read.is_ok(), is_complete, "{read:?}");
    }
}

/// The announcement of a client's end may be read with its request, and then no event follows. With a second request the
/// proxy reads nothing more.
#[test]
fn end_that_arrives_with_requests_is_seen() {
    // It does not answer, so nothing else ends the connection.
    let upstream = Upstream::start(|peer, _| while peer.head().is_some() {});
    let proxy = proxy_of(upstream.address, |_| {});
    let mut client = StreamOwned::new(session(tls::client(&[])), socket(proxy.address()));
    client.conn.complete_io(&mut client.sock).unwrap();
    client.conn.writer().write_all(GET.repeat(2).as_bytes()).unwrap();
    client.conn.send_close_notify();
    let mut records = Vec::new();
    client.conn.write_tls(&mut records).unwrap();
    client.sock.write_all(&records).unwrap();
    while client.sock.read(&mut [0; 1024]).unwrap() > 0 {}
    eventually("its request has ended", || proxy.running.in_flight() == 0);
}

/// Records may arrive in any pieces.
#[test]
fn records_are_read_byte_by_byte() {
    let proxy = proxy(|_| {});
    let mut client = socket(proxy.address());
    client.set_nodelay(true).unwrap();
    let mut session = session(tls::client(&["http/1.1"]));
    let send = |session: &mut ClientConnection, client: &mut TcpStream| {
        let mut records = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut records).unwrap();
        }
        records.chunks(1).for_each(|byte| client.write_all(byte).unwrap());
    };
    while session.is_handshaking() {
        send(&mut session, &mut client);
        session.read_tls(&mut client).unwrap();
        session.process_new_packets().unwrap();
    }
    session.writer().write_all(GET.as_bytes()).unwrap();
    send(&mut session, &mut client);
    let mut client = StreamOwned::new(session, client);
    let mut answer = [0; OK.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, OK.as_bytes());
}

#[test]
fn client_may_change_its_keys() {
    let proxy = proxy(|_| {});
    let config = tls::client_of(&[], &[&rustls::version::TLS13]);
    let mut client = StreamOwned::new(session(config), socket(proxy.address()));
    for _ in 0..3 {
        client.write_all(GET.as_bytes()).unwrap();
        let mut answer = [0; OK.len()];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, OK.as_bytes());
        client.conn.refresh_traffic_keys().unwrap();
    }
}

#[test]
fn certificate_names_the_tenant_over_http2() {
    let server = server();
    let proxy = proxy_of(server.upstream.address, |plan| {
        let rule = Rule::Certificate { name: CertificateName::Dns, tenant: TenantPart::Value };
        in_force(rules(vec![rule]))(plan);
        plan.upstreams[0].listen[0].tls = Some(tls::verifying_server());
    });
    let address = proxy.address();
    run(async {
        for team in ["team-a", "team-b"] {
            let mut client = connect_with_tls(address, tls::presenting(&["h2"], team)).await.unwrap();
            for _ in 0..2 {
                let request = Request::post(format!("https://{}/v1/chat/completions", tls::NAME));
                let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
                let response = client.send_request(request).await.unwrap();
                assert_eq!(response.status(), 200);
                response.into_body().collect().await.unwrap();
                let end = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap();
                assert_eq!(&*end.record.identity.tenant, team);
            }
        }
        // Without a certificate, the session ends before a request.
        if let Ok(mut client) = connect_with_tls(address, tls::client(&["h2"])).await {
            let request = Request::get("https://proxy.test/x").body(Full::new(Bytes::new())).unwrap();
            assert!(client.send_request(request).await.is_err());
        }
    });
    assert_eq!(proxy.seen().rules, [RuleKind::Certificate; 4]);
    eventually("it is counted", || proxy.seen().lost == [Dropped::Handshake]);
    assert_eq!(server.heads.lock().unwrap().len(), 4);
}

#[test]
#[ignore = "waits for seconds"]
fn stalled_handshake_is_counted_and_broken_session_ends() {
    // Long enough for the other handshake on a busy machine.
    let proxy = proxy(|plan| plan.head_timeout = Duration::from_secs(2));
    let mut hello = Vec::new();
    session(tls::client(&["h2"])).write_tls(&mut hello).unwrap();
    let mut stalled = socket(proxy.address());
    stalled.write_all(&hello).unwrap();
    let mut broken = StreamOwned::new(session(tls::client(&["h2"])), socket(proxy.address()));
    broken.flush().unwrap();
    assert_eq!(broken.conn.alpn_protocol(), Some(&b"h2"[..]));
    // The frame of settings shows that the proxy has ended the handshake, too.
    broken.read_exact(&mut [0; 9]).unwrap();
    // A record that does not belong to the session.
    broken.sock.write_all(b"\x17\x03\x03\0\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx").unwrap();
    let _ = broken.sock.read_to_end(&mut Vec::new());
    let _ = stalled.read_to_end(&mut Vec::new());
    eventually("the stalled one is counted", || proxy.seen().lost == [Dropped::Handshake]);
    is_served(&proxy);
}

#[test]
#[ignore = "waits for seconds"]
fn failed_handshake_is_counted_once() {
    let proxy = proxy(|plan| plan.head_timeout = Duration::from_millis(200));
    let mut clients: Vec<_> = (0..4).map(|_| socket(proxy.address())).collect();
    for client in &mut clients {
        client.write_all(b"\x80\x2e\x01\x00\x02").unwrap();
        // The proxy has closed its half, and reads on.
        let _ = client.read_to_end(&mut Vec::new());
    }
    eventually("all have ended", || proxy.running.reader()().connections.taken == 0);
    assert_eq!(proxy.seen().lost, [Dropped::Handshake; 4]);
}

#[test]
fn new_configuration_applies_to_new_connections() {
    let current = tls::server();
    let proxy = proxy(|plan| plan.upstreams[0].listen[0].tls = Some(Arc::clone(&current)));
    let mut before = proxy.connect();
    before.send(GET);
    before.head().unwrap();
    before.exactly(2);
    let mut next = (**current.load()).clone();
    next.alpn_protocols = vec![b"smtp".to_vec()];
    current.store(Arc::new(next));
    let mut after = Peer::connect(proxy.address());
    assert!(!after.try_send(GET), "it has the new configuration");
    before.send(GET);
    assert!(before.head().unwrap().starts_with("HTTP/1.1 200"), "it keeps its own");
}
