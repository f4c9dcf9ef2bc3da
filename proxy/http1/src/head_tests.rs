//! Heads: what is accepted, and each fault.

use super::*;

/// The fault of a request's head; `None` if it is valid and whole.
fn fault(head: &[u8]) -> Option<Fault> {
    let mut table = Table::default();
    match request(head, &mut table) {
        Ok(head) => head.map_or_else(|| panic!("it is not whole"), |_| None),
        Err(fault) => Some(fault),
    }
}

/// The fault of a head with this field.
fn fault_with(field: &[u8]) -> Option<Fault> {
    fault(&[b"POST /v1/a HTTP/1.1\r\n", field, b"\r\n\r\n"].concat())
}

#[test]
fn fields_of_a_request_are_judged() {
    for field in [&b"a: b"[..], b"a:", b"a: \xFC", b"a:b\tc", b"!#$%&'*+-.^_`|~: 1"] {
        assert_eq!(fault_with(field), None, "{}", field.escape_ascii());
    }
    for field in [
        &b"a : b"[..],
        b" a: b",
        b"a: b\r\n c",
        b"a: b\r\n\tc",
        b"a",
        b": b",
        b"a\x00: b",
        b"a: b\x00",
        b"a: b\x01",
        b"a: b\x7F",
        b"a: \rb",
        b"a(b): c",
        b"\xFC: d",
    ] {
        assert_eq!(fault_with(field), Some(Fault::Syntax), "{}", field.escape_ascii());
    }
    for field in [&b"a: b\nc: d"[..], b"a: b\n", b"a:\n"] {
        assert_eq!(fault_with(field), Some(Fault::BareLf), "{}", field.escape_ascii());
    }
}

#[test]
fn first_line_of_a_request_is_judged() {
    for (line, expected) in [
        ("GET / HTTP/1.1", None),
        ("FOO * HTTP/1.0", None),
        ("GET http://a/b?c HTTP/1.1", None),
        ("GET  / HTTP/1.1", Some(Fault::Syntax)),
        ("GET /  HTTP/1.1", Some(Fault::Syntax)),
        ("GET /a b HTTP/1.1", Some(Fault::Syntax)),
        ("GET /a\tb HTTP/1.1", Some(Fault::Syntax)),
        (" GET / HTTP/1.1", Some(Fault::Syntax)),
        ("GET\t/ HTTP/1.1", Some(Fault::Syntax)),
        ("GET / HTTP/1.1 ", Some(Fault::Syntax)),
        ("GET /a#b HTTP/1.1", Some(Fault::Target)),
        ("GET /\u{e9} HTTP/1.1", Some(Fault::Target)),
        ("G T / HTTP/1.1", Some(Fault::Syntax)),
        ("G(T / HTTP/1.1", Some(Fault::Syntax)),
        ("GET /", Some(Fault::Syntax)),
        ("GET / HTTP/1.2", Some(Fault::Version)),
        ("GET / HTTP/2.0", Some(Fault::Version)),
        ("GET / HTTP/1.10", Some(Fault::Syntax)),
        ("GET / HTTP/11", Some(Fault::Version)),
        ("GET / http/1.1", Some(Fault::Syntax)),
    ] {
        assert_eq!(fault(format!("{line}\r\n\r\n").as_bytes()), expected, "{line}");
    }
}

#[test]
fn two_empty_lines_before_a_request_are_skipped() {
    let with = |lines: &str| fault(format!("{lines}GET / HTTP/1.1\r\n\r\n").as_bytes());
    for (lines, expected) in [
        ("\r\n\r\n", None),
        ("\r\n\r\n\r\n", Some(Fault::EmptyLines)),
        ("\n", Some(Fault::BareLf)),
        ("\r\n\n", Some(Fault::BareLf)),
        ("\r", Some(Fault::Syntax)),
    ] {
        assert_eq!(with(lines), expected, "{lines:?}");
    }
}

#[test]
fn size_of_a_request_head_is_bounded() {
    let line = |len: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(len - "GET / HTTP/1.1\r".len()));
    assert_eq!(fault(line(REQUEST_LINE_BYTES).as_bytes()), None);
    let long = line(REQUEST_LINE_BYTES + 1);
    assert_eq!(fault(long.as_bytes()), Some(Fault::LongRequestLine));
    // It is known before the line ends.
    assert_eq!(fault(&long.as_bytes()[..REQUEST_LINE_BYTES + 1]), Some(Fault::LongRequestLine));

    let fields = |count| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert_eq!(fault(fields(FIELDS).as_bytes()), None);
    assert_eq!(fault(fields(FIELDS + 1).as_bytes()), Some(Fault::ManyFields));

    let head = |len: usize| {
        let begin = "GET / HTTP/1.1\r\na: ";
        format!("{begin}{}\r\n\r\n", "b".repeat(len - begin.len() - 4))
    };
    assert_eq!(fault(head(HEAD_BYTES).as_bytes()), None);
    assert_eq!(fault(head(HEAD_BYTES + 1).as_bytes()), Some(Fault::LongHead));
    assert_eq!(fault(&head(2 * HEAD_BYTES).as_bytes()[..HEAD_BYTES + 1]), Some(Fault::LongHead));
}

#[test]
fn bytes_behind_a_head_are_not_judged() {
    let mut table = Table::default();
    let bytes = b"GET / HTTP/1.1\r\n\r\n\n\x00";
    assert_eq!(request(bytes, &mut table).unwrap().unwrap().len, bytes.len() - 2);
}

#[test]
fn head_of_a_response_is_judged() {
    let verdict = |head: &str| {
        let mut table = Table::default();
        response(head.as_bytes(), &mut table)
            .map(|head| head.map(|head| (head.start.code, head.lines.iter().count())))
    };
    for (head, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\n", Ok(Some((200, 0)))),
        ("HTTP/1.0 999\r\na: b\r\n\r\n", Ok(Some((999, 1)))),
        ("HTTP/1.1 200 OK\na : b\n\n", Ok(Some((200, 1)))),
        ("HTTP/1.1 200 OK\r\na: b\r\n", Ok(None)),
        ("HTTP/1.1 099 OK\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 20 OK\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 2000 OK\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1  200 OK\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 O\rK\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 O\0K\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.2 200 OK\r\n\r\n", Err(Fault::Version)),
        ("HTTP/2.0 200 OK\r\n\r\n", Err(Fault::Version)),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", Err(Fault::EmptyLines)),
        ("HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\na\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\n a: b\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\na(b): c\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\na: b\x7Fc\r\n\r\n", Err(Fault::Syntax)),
        ("HTTP/1.1 200 OK\r\na: \u{fc}\r\n\r\n", Ok(Some((200, 1)))),
    ] {
        assert_eq!(verdict(head), expected, "{head:?}");
    }
    let long = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(HEAD_BYTES));
    assert_eq!(verdict(&long), Err(Fault::LongHead));
    let many = |count| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert_eq!(verdict(&many(FIELDS)), Ok(Some((200, FIELDS))));
    assert_eq!(verdict(&many(FIELDS + 1)), Err(Fault::ManyFields));
}

#[test]
fn head_is_whole_only_with_bytes_that_may_make_it_so() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nb: c\r\n\r\n";
    let is_whole = |len| request(&head[..len], &mut Table::default()).unwrap().is_some();
    for len in 1..=head.len() {
        let more = &head[len - 1..len];
        assert_eq!(may_be_whole(more, len), more == b"\n");
        assert_eq!(is_whole(len), len == head.len());
    }
    assert!(!may_be_whole(b"x", REQUEST_LINE_BYTES) && may_be_whole(b"x", REQUEST_LINE_BYTES + 1));
}

#[test]
fn trailers_are_whole_lines() {
    let lines = trailers(b"a: b\r\nc:\r\n\r\n").unwrap();
    assert_eq!((lines.len(), lines[0].value), (2, &b"b"[..]));
    for section in ["a: b\r\n", "a b\r\n\r\n", "a: b\r\n\r\nc"] {
        assert!(trailers(section.as_bytes()).is_err(), "{section:?}");
    }
}
