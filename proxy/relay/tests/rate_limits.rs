//! The rate limits in a response head reach the observer; the client receives the fields unchanged.

use meter::Quota;

use crate::support::{Peer, Proxy, Upstream, upstream_body};

/// A proxy before a server that answers each request with this status and these fields; the head that a client gets.
fn answered(path: &str, status: &str, fields: &str) -> (Proxy, String) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: 2\r\n\r\n{{}}"
    );
    let upstream = Upstream::start(move |peer, _| {
        while let Some(asked) = peer.head() {
            upstream_body(peer, &asked);
            peer.send(&head);
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = Peer::connect(proxy.address());
    client.send(format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 13\r\n\r\n{{\"model\":\"m\"}}"));
    let got = client.head().unwrap();
    (proxy, got)
}

#[test]
fn limits_of_a_head_are_observed() {
    let fields = "x-ratelimit-limit-tokens: 100\r\nx-ratelimit-remaining-tokens: 7\r\nx-ratelimit-reset-tokens: 1m0s\r\nretry-after: 2\r\n";
    for status in ["200 OK", "429 Too Many Requests"] {
        let (proxy, got) = answered("/v1/chat/completions", status, fields);
        assert!(fields.lines().all(|field| got.to_lowercase().contains(field)), "{got}");
        let seen = proxy.seen();
        let [(upstream, limits)] = seen.rate_limits.as_slice() else { panic!("{:?}", seen.rate_limits) };
        let tokens = limits.quotas[Quota::Tokens as usize];
        assert_eq!(upstream, "under-test");
        assert_eq!(
            (tokens.limit, tokens.remaining, limits.retry_after_ms),
            (Some(100), Some(7), Some(2_000))
        );
        assert!(limits.at_unix_ms > 1_700_000_000_000, "milliseconds since 1970: {limits:?}");
        assert_eq!(tokens.reset_unix_ms, Some(limits.at_unix_ms + 60_000));
    }
}

#[test]
fn heads_without_limits_or_unmetered_are_not_observed() {
    for (path, fields) in [
        ("/v1/chat/completions", "x-ratelimit-limit: 1\r\n"),
        ("/tokenize", "x-ratelimit-limit-tokens: 1\r\n"),
    ] {
        let (proxy, _) = answered(path, "200 OK", fields);
        assert_eq!(proxy.seen().rate_limits, [], "{path}");
    }
}
