//! Startup: addresses, shared ports, ports in use, and the limit of connections.

use std::net::TcpListener;
use std::time::Duration;

use chance::Side;
use relay::{StartError, outbox, start};

use crate::support::{Proxy, Upstream, eventually, listen, plan, tcp};

#[test]
fn port_in_use_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let mut plan = plan(taken);
    plan.upstreams[0].listen = vec![listen(taken)];
    plan.workers = 2;
    let observers = (0..2).map(|_| crate::support::observer()).collect();
    let error = start(plan.relay, plan.control, observers, outbox(1).0).err().unwrap();
    assert!(matches!(error, StartError::Listen { .. }));
    let text = error.to_string();
    assert!(text.contains(&taken.to_string()) && text.contains("under-test"), "{text}");
    assert!(text.contains("choose another port"), "{text}");
}

#[test]
fn port_of_a_running_proxy_is_in_use() {
    let upstream = Upstream::answering("");
    let first = Proxy::with(upstream.address, |plan| plan.workers = 2);
    let mut plan = plan(upstream.address);
    plan.upstreams[0].listen = vec![listen(first.address())];
    assert!(start(plan.relay, plan.control, vec![crate::support::observer()], outbox(1).0).is_err());
}

#[test]
fn every_worker_serves_every_upstream() {
    let (one, two) = (
        Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"),
        Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo"),
    );
    let proxy = Proxy::with(one.address, |changed| {
        changed.workers = 3;
        changed.upstreams.extend(plan(two.address).relay.upstreams);
    });
    let addresses: Vec<_> = proxy.running.listeners().iter().map(|listener| tcp(&listener.address)).collect();
    for _ in 0..20 {
        for (address, expected) in addresses.iter().zip([b"one", b"two"]) {
            let mut client = crate::support::Peer::connect(*address);
            client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
            client.head();
            assert_eq!(client.exactly(3), expected);
        }
    }
    assert_eq!(proxy.running.loads().len(), 2);
}

/// Requests in flight keep their places.
#[test]
fn accepting_pauses_at_the_limit() {
    if Side::Clients.excludes("it reads the socket itself") {
        return;
    }
    let upstream = Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /slow") {
                peer.closed_after(crate::support::now());
                return;
            }
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.connections = 2);
    let mut first = proxy.connect();
    let mut second = proxy.connect();
    for client in [&mut first, &mut second] {
        client.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    eventually("both are served", || proxy.running.in_flight() == 2);
    let mut third = proxy.connect();
    third.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    third.stream().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(std::io::Read::read(&mut third.stream(), &mut [0]).is_err());
    drop(first);
    third.stream().set_read_timeout(Some(crate::support::DEADLINE)).unwrap();
    assert!(third.head().unwrap().starts_with("HTTP/1.1 200"));
    drop(second);
    eventually("all is over", || proxy.running.in_flight() == 0);
}

/// Runs in a process of its own, because it lowers the process's limit.
#[test]
fn running_out_of_descriptors_pauses_accepting() {
    const CHILD: &str = "RELAY_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        return few_descriptors();
    }
    let child = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -n 64 && exec \"$0\" --exact start::running_out_of_descriptors_pauses_accepting",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

fn few_descriptors() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut served = proxy.connect();
    let mut ask = |what: &str| {
        served.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(served.head().unwrap().starts_with("HTTP/1.1 200"), "{what}");
        served.exactly(2);
    };
    ask("before");
    // Both ends of each connection are in this process, so the test's own end fails first; the kernel still holds some
    // connections for the proxy to accept.
    let mut held = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect(proxy.address()) {
        held.push(stream);
    }
    eventually("it is counted", || proxy.seen().lost.contains(&relay::Dropped::Accept));
    ask("while it is out of descriptors");
    held.clear();
    eventually("it recovers", || match std::net::TcpStream::connect(proxy.address()) {
        Ok(stream) => {
            let mut client = crate::support::Peer::new(stream);
            client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
            client.head().is_some_and(|head| head.starts_with("HTTP/1.1 200"))
        }
        Err(_) => false,
    });
}
