//! Connections that a load balancer hands on: the header of the PROXY protocol names their client.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use chance::Side;
use relay::Dropped;
use tenant::{Live, Nets, Rule, Rules, Spec, TenantPart};

use crate::support::{DEADLINE, Peer, Proxy, TestPlan, eventually, upstream_body};
use crate::tenants::{name, post, server};
use crate::usage::{Server, record};

const CHAT: &str = "/v1/chat/completions";
const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x1f\x90\0\x50";
const OF_ITSELF: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/// Expects the header from these peers; clients of 192.0.2.0/24 are the tenant `lab`.
fn behind(server: &Server, trusted: &str, change: impl FnOnce(&mut TestPlan)) -> Proxy {
    let lab = Rule::Peer { nets: Nets::read(["192.0.2.0/24"]).unwrap(), tenant: name("lab") };
    let claimed = Rule::Header { field: "x-tenant".into(), tenant: TenantPart::Value, principal: None };
    let spec = Spec { rules: vec![lab, claimed], trusted: Nets::read([trusted]).unwrap(), ..Spec::default() };
    Proxy::with(server.upstream.address, |plan| {
        plan.control.tenants = Arc::new(Live::new(Rules::new(spec)));
        plan.upstreams[0].listen[0].proxy_protocol = true;
        change(plan);
    })
}

/// Sends a header, then a request that names the tenant `claimed`; returns the tenant of its record.
fn tenant_after(proxy: &Proxy, header: &[u8]) -> String {
    let mut client = connect(proxy, header);
    client.send(post(CHAT, "X-Tenant: claimed\r\n", "{}"));
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    upstream_body(&mut client, &head);
    let end = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap();
    end.record.identity.tenant.to_string()
}

/// Connects, and sends a header byte by byte.
fn connect(proxy: &Proxy, header: &[u8]) -> Peer {
    use std::io::Write;
    let mut socket = TcpStream::connect(proxy.address()).unwrap();
    socket.set_nodelay(true).unwrap();
    // An error means that the proxy has closed the connection, which shows when it is read.
    let _ = header.chunks(1).try_for_each(|byte| socket.write_all(byte));
    Peer::new(socket)
}

#[test]
fn header_of_a_trusted_peer_names_the_client() {
    let server = server();
    let clear = behind(&server, "127.0.0.1", |_| {});
    let with_tls = behind(&server, "127.0.0.1", TestPlan::listen_with_tls);
    let over_unix = [&V2[..13], &[0x31, 0, 216], &[b'/'; 216]].concat();
    for (header, tenant) in
        // A client without an address has nothing of the trust that the load balancer itself has.
        [
            (V1, "lab"),
            (V2, "lab"),
            (OF_ITSELF, "claimed"),
            (b"PROXY UNKNOWN\r\n", "default"),
            (&over_unix, "default"),
        ]
    {
        assert_eq!(tenant_after(&clear, header), tenant, "{}", header.escape_ascii());
        assert_eq!(tenant_after(&with_tls, header), tenant, "{}", header.escape_ascii());
    }
    assert_eq!(clear.seen().lost, []);
}

#[test]
fn connection_without_a_header_is_closed_and_counted() {
    if Side::Clients.excludes("the connections end before TLS begins") {
        return;
    }
    let server = server();
    let proxy = behind(&server, "127.0.0.1", |plan| {
        plan.head_timeout = Duration::from_millis(300);
    });
    for first in [post(CHAT, "", "{}").as_bytes(), b"PROXY TCP4 nobody\r\n", &V2[..20], b""] {
        let mut client = connect(&proxy, first);
        assert_eq!(client.rest(), "");
    }
    assert_eq!(proxy.seen().lost, [Dropped::ProxyHeader; 4]);
    assert_eq!(server.upstream.connections(), 0);
}

#[test]
fn untrusted_peer_is_closed_and_counted() {
    let server = server();
    let proxy = behind(&server, "10.0.0.1", |_| {});
    let mut client = Peer::connect(proxy.address());
    client.try_send(V1);
    assert_eq!(client.rest(), "");
    eventually("it is counted", || proxy.seen().lost == [Dropped::ProxyHeader]);
    let off = Proxy::new(server.upstream.address);
    let mut client = Peer::connect(off.address());
    client.send(post(CHAT, "", "{}"));
    client.head().unwrap();
    assert_eq!(&*record(&off).identity.tenant, "default");
}

/// The client that the header names is the holder, not the load balancer.
#[test]
fn named_clients_have_shares_of_their_own() {
    let server = server();
    let proxy = behind(&server, "127.0.0.1", |plan| plan.connections = 8);
    let idle: Vec<_> = (0..8).map(|_| connect(&proxy, V1)).collect();
    eventually("all have places", || proxy.running.reader()().connections.taken == 8);
    let other = b"PROXY TCP4 198.51.100.9 10.0.0.1 8080 80\r\n";
    assert_eq!(tenant_after(&proxy, other), "default");
    assert!(proxy.seen().lost.contains(&Dropped::Connection));
    drop(idle);
}
