//! Responses whose content type is not what their body is: what only the proxy asked for never reaches the client.

use std::time::Duration;

use meter::Stated;
use relay::Dropped;
use usage::Policy;

use crate::support::{eventually, now};
use crate::usage::{DONE, FINISH, PLAIN, Server, USAGE, ask, chunk, delta, record, request};

/// The content types of servers, as lines of a head, and the count of each.
const LABELS: [(&str, Option<Stated>); 6] = [
    ("", None),
    ("Content-Type: text/plain; charset=utf-8\r\n", Some(Stated::Other)),
    ("Content-Type: application/octet-stream\r\n", Some(Stated::Other)),
    ("Content-Type: application/json\r\n", Some(Stated::Json)),
    ("Content-Type: application/x-ndjson\r\n", Some(Stated::Ndjson)),
    ("Content-Type: TEXT/Event-Stream\r\n", None),
];

/// A server that answers with this label: a first part of the body at once, and the rest after `pause`.
fn serving(label: &str, has_length: bool, (first, rest): (&str, &str), pause: Duration) -> Server {
    let (label, first, rest) = (label.to_owned(), first.to_owned(), rest.to_owned());
    Server::start(move |peer, _| {
        let framing = match has_length {
            true => format!("Content-Length: {}", first.len() + rest.len()),
            false => "Transfer-Encoding: chunked".to_owned(),
        };
        peer.send(format!("HTTP/1.1 200 OK\r\n{label}{framing}\r\n\r\n"));
        for (part, pause) in [(&first, Duration::ZERO), (&rest, pause)] {
            std::thread::sleep(pause);
            let part = if has_length || part.is_empty() { part.clone() } else { chunk(part) };
            peer.send(part);
        }
        if !has_length {
            peer.send("0\r\n\r\n");
        }
    })
}

#[test]
fn stream_under_any_label_loses_what_was_asked_for() {
    let (first, rest) = (delta("a"), format!("{}{FINISH}{USAGE}{DONE}", delta("b")));
    for (label, stated) in LABELS {
        for has_length in [false, true] {
            let server = serving(label, has_length, (&first, &rest), Duration::from_millis(80));
            let proxy = server.proxy(Policy::Inject);
            let (head, body) = ask(proxy.address(), &request(PLAIN));
            assert_eq!(body, format!("{first}{}{FINISH}{DONE}", delta("b")), "{label} {has_length}");
            assert!(!head.to_ascii_lowercase().contains("content-length"), "{head}");
            let record = record(&proxy);
            assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2), "{label}");
            assert!(record.streamed && record.timing.first_token_ns.is_some(), "{label}");
            assert_eq!(proxy.seen().mislabelled, Vec::from_iter(stated), "{label}");
            assert_eq!(proxy.seen().lost, [], "{label}");
        }
    }
}

#[test]
fn lines_under_any_label_lose_what_was_asked_for() {
    let lines = |text: &str| text.replace("data: ", "").replace("\n\n", "\n");
    let [first, finish, usage] = [&delta("a"), FINISH, USAGE].map(lines);
    let content = format!("{first}{finish}");
    for (label, stated) in LABELS {
        let stated = if label.contains("Event") { Some(Stated::Sse) } else { stated };
        let stated = stated.filter(|stated| *stated != Stated::Ndjson);
        // A response with a length is not edited if its first part is one line: then the usage stays, and is counted.
        let is_known = label.contains("Event") || label.contains("ndjson");
        for (has_length, parts, goes) in [
            (false, (&*first, &*format!("{finish}{usage}")), true),
            (false, (&*content, &*usage), true),
            (true, (&*content, &*usage), true),
            (true, (&*first, &*format!("{finish}{usage}")), is_known),
        ] {
            let server = serving(label, has_length, parts, Duration::from_millis(20));
            let proxy = server.proxy(Policy::Inject);
            let wanted = if goes { content.clone() } else { format!("{content}{usage}") };
            assert_eq!(ask(proxy.address(), &request(PLAIN)).1, wanted, "{label} {has_length} {parts:?}");
            assert_eq!(record(&proxy).tokens.output(), 2, "{label}");
            assert_eq!(proxy.seen().mislabelled, Vec::from_iter(stated), "{label}");
            let lost = if goes { vec![] } else { vec![Dropped::UsageEdit] };
            eventually("the loss is counted", || proxy.seen().lost == lost);
        }
    }
}

#[test]
fn whole_answer_keeps_its_length() {
    const WHOLE: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    for (label, _) in
        LABELS.into_iter().filter(|(label, _)| !label.contains("Event") && !label.contains("ndjson"))
    {
        for (first, rest) in [(WHOLE, ""), ("", WHOLE), (" ", WHOLE), (&WHOLE[..9], &WHOLE[9..])] {
            let server = serving(label, true, (first, rest), Duration::from_millis(10));
            let proxy = server.proxy(Policy::Inject);
            let (head, body) = ask(proxy.address(), &request(PLAIN));
            assert_eq!(body, format!("{first}{rest}"), "{label}");
            assert!(head.to_ascii_lowercase().contains("content-length"), "{head}");
            assert_eq!(record(&proxy).tokens.output(), 2, "{label}");
            assert_eq!(proxy.seen().lost, [], "{label}");
        }
    }
}

/// A head waits for the first byte for 50 ms only. If it has a length, the body can be edited no more.
#[test]
fn late_body_passes_under_its_length() {
    let body = format!("{}{FINISH}{USAGE}{DONE}", delta("a"));
    for has_length in [false, true] {
        let pause = Duration::from_secs(2);
        let server = serving("Content-Type: application/json\r\n", has_length, ("", &body), pause);
        let proxy = server.proxy(Policy::Inject);
        let mut client = proxy.connect();
        let begun = now();
        client.send(request(PLAIN));
        let head = client.head().unwrap();
        assert!(begun.elapsed() < pause, "the head came after {:?}", begun.elapsed());
        let received = String::from_utf8(crate::support::upstream_body(&mut client, &head)).unwrap();
        let edited = format!("{}{FINISH}{DONE}", delta("a"));
        assert_eq!(received, if has_length { body.clone() } else { edited });
        let record = record(&proxy);
        assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2));
        let lost = if has_length { vec![Dropped::UsageEdit] } else { Vec::new() };
        eventually("the loss is counted", || proxy.seen().lost == lost);
    }
}
