//! Messages of an HTTP/1.1 server: their framing and spelling.

use std::sync::mpsc;

use chance::Side;

use super::Proxy;
use crate::support::{Upstream, eventually};

crate::support::wires::table! {
    (http1_upstreams, "these answers have no form in HTTP/2"):
        http10_upstream_is_forwarded,
        body_ended_by_close_is_forwarded,
        response_with_two_framings_keeps_the_valid_one,
        heads_without_bodies_announce_none,
        equal_lengths_become_one,
        trailers_change_no_message,
        invalid_chunks_cut_a_response;
    (http1, "its client shows what only HTTP/1.1 has"):
        header_names_values_and_order_are_kept,
        http10_client_may_keep_its_connection,
        last_request_closes_its_connection,
        framing_of_a_request_becomes_canonical,
        empty_lines_between_requests_are_skipped,
        hints_before_a_response_to_head_end_nothing,
        request_without_a_length_has_no_body,
        lenient_responses_become_canonical;
    (cleartext, "a TLS alert is one of the responses"):
        invalid_upstream_responses_are_answered_502;
}

fn http10_upstream_is_forwarded() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold");
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(client.exactly(3), b"old");
}

fn body_ended_by_close_is_forwarded() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nX: y\r\n\r\nall of it");
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(client.head().unwrap().to_lowercase().contains("transfer-encoding: chunked"));
    assert_eq!(client.until("0\r\n\r\n"), "9\r\nall of it\r\n0\r\n\r\n");
}

fn header_names_values_and_order_are_kept() {
    let request =
        "GET /x HTTP/1.1\r\nHOST: h\r\nx-Low: 1\r\nX-HIGH: 2\r\nUser-Agent: A/1 (b)\r\nAccept: */*\r\n\r\n";
    let answer = "HTTP/1.1 200 Fine By Me\r\nserver: u\r\nX-Mixed-CASE: v\r\nset-Cookie: a\r\nSet-Cookie: b\r\nContent-length: 0\r\n\r\n";
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        heard.send(peer.head().unwrap()).unwrap();
        peer.send(answer);
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(request);
    assert_eq!(client.head().unwrap(), answer);
    assert_eq!(said.recv().unwrap(), request);
}

fn invalid_upstream_responses_are_answered_502() {
    if Side::Upstreams.excludes("a TLS alert is one of the responses") {
        return;
    }
    for (answer, what) in [
        ("SSH-2.0-OpenSSH\r\n\r\n", "upstream_invalid"),
        ("\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nX: y\rz\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nX: y\0z\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nX\r\nContent-Length: 0\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", "upstream_invalid"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "upstream_invalid",
        ),
        // A TLS alert: the server expects TLS.
        ("\x15\x03\x01\0\x02\x02F", "upstream_tls"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "upstream_invalid"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "upstream_invalid"),
        ("", "upstream_broken"),
        ("HTTP/1.1 200 OK\r\nContent-", "upstream_broken"),
    ] {
        let upstream = Upstream::start(move |peer, _| {
            peer.head();
            peer.send(answer);
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 502 "), "{answer:?} -> {head}");
        let body = client.until("}}");
        assert!(body.contains(what), "{answer:?} -> {body}");
    }
}

fn response_with_two_framings_keeps_the_valid_one() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";
    for (head, fields) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "a second length"),
        ("HTTP/1.0 200 OK\r\n", "a version without chunks"),
    ] {
        let upstream = Upstream::start(move |peer, _| {
            while peer.head().is_some() {
                peer.send(format!("{head}{chunked}"));
            }
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        for _ in 0..2 {
            client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(
                client.head().unwrap(),
                Proxy::spelled("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            );
            assert_eq!(client.until("0\r\n\r\n"), "3\r\none\r\n0\r\n\r\n");
        }
        assert_eq!(upstream.connections(), 2, "a connection with {fields} was used again");
    }
}

fn lenient_responses_become_canonical() {
    for (answer, expected) in [
        (
            "HTTP/1.1 200 OK\nX : y\nContent-Length: 2\n\nok",
            "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\nok",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n\
             02\r\nok\r\n1 \r\n!\r\n1;a=\"\\\"\"\r\n?\r\na\r\n0123456789\r\n000;b\r\nX: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nok\r\n1\r\n!\r\n1\r\n?\r\na\r\n0123456789\r\n0\r\n\r\n",
        ),
    ] {
        let upstream = Upstream::answering(answer);
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        let received = String::from_utf8(client.exactly(expected.len())).unwrap();
        assert_eq!(received, expected);
    }
}

fn invalid_chunks_cut_a_response() {
    for wire in [
        "3\nabc\r\n0\r\n\r\n",
        "3;a\nb\r\nabc\r\n0\r\n\r\n",
        "3;a\u{1}\r\nabc\r\n0\r\n\r\n",
        "3;a=\"\r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "00000000000003\r\nabc\r\n0\r\n\r\n",
        "\r\n0\r\n\r\n",
        // The end of the connection within a line.
        "3",
        "3;a",
        "3\r",
    ] {
        let upstream = Upstream::start(move |peer, _| {
            peer.head();
            peer.send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n{wire}"));
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        client.head();
        assert_eq!(client.rest(), "2\r\nok\r\n", "{wire:?}");
        eventually("the request ends", || proxy.running.in_flight() == 0);
    }
    for (wire, received) in [
        ("3\r\nabc\n0\r\n\r\n", "3\r\nabc\r\n"),
        ("3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\r\n"),
        ("0\r\nX: y\n\r\n", ""),
        ("0\r\nX : y\r\n\r\n", ""),
    ] {
        let upstream = Upstream::start(move |peer, _| {
            peer.head();
            peer.send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{wire}"));
            peer.closed_after(crate::support::now());
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        client.head();
        assert_eq!(client.rest(), received, "{wire:?}");
    }
}

fn framing_of_a_request_becomes_canonical() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            heard.send((head, peer.until("0\r\n\r\n"))).unwrap();
            peer.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    // The first one waits for a connection.
    for expected in ["d\r\nok?0123456789\r\n0\r\n\r\n", "2\r\nok\r\n1\r\n?\r\na\r\n0123456789\r\n0\r\n\r\n"] {
        client.send(
            "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n\
             02\r\nok\r\n1;a=\"\\\"\"\r\n?\r\na\r\n0123456789\r\n00\r\nX: y\r\n\r\n",
        );
        let (head, body) = said.recv().unwrap();
        assert_eq!(head, "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(body, expected);
        client.head();
    }
}

fn empty_lines_between_requests_are_skipped() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for before in ["", "\r\n", "\r\n\r\n"] {
        client.send(format!("{before}POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{{}}"));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
        client.exactly(2);
    }
}

fn hints_before_a_response_to_head_end_nothing() {
    let upstream = Upstream::answering(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
    );
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(client.head().unwrap().starts_with("HTTP/1.1 103 "));
        assert_eq!(client.head().unwrap(), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    }
    assert_eq!(upstream.connections(), 1);
}

fn request_without_a_length_has_no_body() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            heard.send(head.lines().next().unwrap().to_owned()).unwrap();
            peer.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    let proxy = Proxy::new(upstream.address);
    for version in ["1.0", "1.1"] {
        let mut client = proxy.connect();
        client.send(format!("POST /x HTTP/{version}\r\nHost: h\r\nConnection: keep-alive\r\n\r\nGET /y HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(client.head().unwrap().starts_with(&format!("HTTP/{version} 204 ")));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 204 "));
        assert_eq!([said.recv().unwrap(), said.recv().unwrap()], ["POST /x HTTP/1.1", "GET /y HTTP/1.1"]);
    }
}

fn http10_client_may_keep_its_connection() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for fields in ["Connection: keep-alive\r\n", ""] {
        client.send(format!("GET /x HTTP/1.0\r\n{fields}\r\n"));
        let head = client.head().unwrap().to_lowercase();
        assert!(head.starts_with("http/1.0 200 ok\r\n"), "{head}");
        assert_eq!(head.contains("connection: keep-alive"), !fields.is_empty(), "{head}");
        assert_eq!(client.exactly(2), b"ok");
    }
    assert_eq!(client.rest(), "");
}

fn heads_without_bodies_announce_none() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        let upstream = Upstream::answering(answer);
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        for _ in 0..2 {
            client.send(format!("{method} /x HTTP/1.1\r\nHost: h\r\n\r\n"));
            let head = client.head().unwrap().to_lowercase();
            assert!(!head.contains("transfer-encoding") && !head.contains("content-length"), "{head}");
        }
    }
}

fn equal_lengths_become_one() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().unwrap(), Proxy::spelled("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"));
    assert_eq!(client.exactly(2), b"ok");
}

fn last_request_closes_its_connection() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(
        client.rest().to_lowercase(),
        "http/1.1 200 ok\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    );
}

fn trailers_change_no_message() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nTrailer: Content-Length, Connection, X-T\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nok\r\n0\r\nContent-Length: 9\r\nConnection: close\r\nX-T: v\r\n\r\n",
    );
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    client.head();
    assert_eq!(client.until("\r\n\r\n").to_lowercase(), "2\r\nok\r\n0\r\nx-t: v\r\n\r\n");
}
