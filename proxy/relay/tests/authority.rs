//! The `Host` of an upstream that serves requests for its own name only.

use std::sync::mpsc;

use crate::support::{DEADLINE, Peer, Proxy, Upstream, upstream_body};

/// The `Host` that the server receives for these request heads.
fn received(authority: Option<&str>, heads: &[&str]) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(asked) = peer.head() {
            upstream_body(peer, &asked);
            let fields: Vec<_> =
                asked.lines().filter(|line| line.to_lowercase().starts_with("host:")).collect();
            sender.send(fields.join(" ")).unwrap();
            peer.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| {
        plan.upstreams[0].authority = authority.map(Into::into);
    });
    let ask = |head: &&str| {
        let mut client = Peer::connect(proxy.address());
        client.send(*head);
        client.head().unwrap();
        receiver.recv_timeout(DEADLINE).unwrap().to_lowercase()
    };
    heads.iter().map(ask).collect()
}

#[test]
fn own_name_replaces_the_clients() {
    let heads = [
        "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:9800\r\n\r\n",
        "GET http://proxy.example/v1/models HTTP/1.1\r\nHost: proxy.example\r\n\r\n",
        "GET /v1/models HTTP/1.0\r\n\r\n",
    ];
    assert_eq!(received(Some("api.example.com"), &heads), ["host: api.example.com"; 3]);
    assert_eq!(received(None, &heads[..2]), ["host: 127.0.0.1:9800", "host: proxy.example"]);
}
