//! Interim responses.

use std::time::Duration;

use super::Proxy;
use crate::support::Upstream;

crate::support::wires::table! {
    (http1_clients, "interim responses reach HTTP/1.1 clients only"):
        early_hints_arrive_before_the_response,
        hop_by_hop_fields_of_hints_are_removed,
        http10_client_gets_no_interim_response,
        flood_of_interim_responses_is_cut;
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

fn early_hints_arrive_before_the_response() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send(HINTS);
        wait.lock().unwrap().recv().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().unwrap(), HINTS);
    go.send(()).unwrap();
    assert_eq!(client.head().unwrap(), Proxy::spelled("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"));
    assert_eq!(client.exactly(2), b"ok");
}

fn http10_client_gets_no_interim_response() {
    let upstream = Upstream::start(|peer, _| {
        while peer.head().is_some() {
            peer.send(format!("{HINTS}HTTP/1.1 100 Continue\r\n\r\n"));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let proxy = Proxy::new(upstream.address);
    for (version, interim) in [("1.0", ""), ("1.1", HINTS)] {
        let mut client = proxy.connect();
        client.send(format!("GET /x HTTP/{version}\r\nHost: h\r\n\r\n"));
        if !interim.is_empty() {
            assert_eq!(client.head().unwrap(), interim, "the 100 belongs to the other hop");
        }
        assert!(client.head().unwrap().starts_with(&format!("HTTP/{version} 200 OK")));
    }
}

fn flood_of_interim_responses_is_cut() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        // The server with TLS in front of it reads as long as there are bytes, so there are pauses.
        while peer.try_send(HINTS.repeat(100)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let proxy = Proxy::new(upstream.address);
    for (version, hints_max) in [("1.0", 0), ("1.1", relay::limits::INTERIM_RESPONSES)] {
        let mut client = proxy.connect();
        client.send(format!("GET /x HTTP/{version}\r\nHost: h\r\n\r\n"));
        let mut hints = 0;
        let last = loop {
            match client.head().unwrap() {
                head if head == HINTS => hints += 1,
                head => break head,
            }
        };
        assert!(last.starts_with(&format!("HTTP/{version} 502")), "{last}");
        assert!(hints <= hints_max, "{version}: {hints}");
    }
}

fn hop_by_hop_fields_of_hints_are_removed() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send(
            "HTTP/1.1 103 Early Hints\r\nConnection: x-hop\r\nx-hop: 1\r\nKeep-Alive: 5\r\n\
             Transfer-Encoding: chunked\r\nlink: </a>\r\n\r\n",
        );
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().unwrap(), HINTS);
    assert_eq!(client.head().unwrap(), Proxy::spelled("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"));
}
