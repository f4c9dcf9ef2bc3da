//! The body that each combination of fields has.

use super::*;
use crate::{Table, request, response};

/// The kind of a body.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Length(u64),
    Chunked,
    Close,
}

impl From<Body> for Kind {
    fn from(body: Body) -> Self {
        match body {
            Body::Length(length) => Self::Length(length),
            Body::Chunked(_) => Self::Chunked,
            Body::Close => Self::Close,
        }
    }
}

#[test]
fn body_of_a_request_is_unambiguous() {
    let body = |version: &str, fields: &str| {
        let bytes = format!("POST / {version}\r\n{fields}\r\n");
        let mut table = Table::default();
        request_body(&request(bytes.as_bytes(), &mut table)?.unwrap()).map(Kind::from)
    };
    for (fields, expected) in [
        ("", Ok(Kind::Length(0))),
        ("Content-Length: 5\r\n", Ok(Kind::Length(5))),
        ("content-length: 9223372036854775807\r\n", Ok(Kind::Length(i64::MAX as u64))),
        ("Content-Length: 9223372036854775808\r\n", Err(Fault::Length)),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", Err(Fault::Length)),
        ("Content-Length: 5, 5\r\n", Err(Fault::Length)),
        ("Content-Length: +5\r\n", Err(Fault::Length)),
        ("Content-Length: 0x5\r\n", Err(Fault::Length)),
        ("Content-Length: -0\r\n", Err(Fault::Length)),
        ("Content-Length: 5 5\r\n", Err(Fault::Length)),
        ("Content-Length: 5\u{b2}\r\n", Err(Fault::Length)),
        ("Content-Length:\r\n", Err(Fault::Length)),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Err(Fault::LengthAndCoding)),
        ("Transfer-Encoding: Chunked\r\n", Ok(Kind::Chunked)),
        ("Transfer-Encoding: gzip\r\n", Err(Fault::UnknownCoding)),
        ("Transfer-Encoding: xchunked\r\n", Err(Fault::UnknownCoding)),
        ("Transfer-Encoding: identity\r\n", Err(Fault::UnknownCoding)),
        ("Transfer-Encoding: chunked, identity\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: ,chunked\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: chunked\u{b}\r\n", Err(Fault::Syntax)),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: chunked, chunked\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: chunked,\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: chunked;a=b\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: \"chunked\"\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding:\r\n", Err(Fault::Coding)),
    ] {
        assert_eq!(body("HTTP/1.1", fields), expected, "{fields:?}");
    }
    assert_eq!(body("HTTP/1.0", "Transfer-Encoding: chunked\r\n"), Err(Fault::Coding));
    assert_eq!(body("HTTP/1.0", "Content-Length: 5\r\n"), Ok(Kind::Length(5)));
}

#[test]
fn body_of_a_response_is_read_leniently() {
    let body = |line: &str, fields: &str, to_head| {
        let bytes = format!("{line}\r\n{fields}\r\n");
        let mut table = Table::default();
        let head = response(bytes.as_bytes(), &mut table).unwrap().unwrap();
        response_body(&head, to_head).map(|body| (Kind::from(body.body), body.is_reusable))
    };
    let ok = |fields: &str| body("HTTP/1.1 200 OK", fields, false);
    for (fields, expected) in [
        ("", Ok((Kind::Close, false))),
        ("Content-Length: 5\r\n", Ok((Kind::Length(5), true))),
        ("Content-Length: 5\r\nContent-Length: 5, 5\r\n", Ok((Kind::Length(5), true))),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(Fault::Length)),
        ("Content-Length: 5,\r\n", Err(Fault::Length)),
        ("Transfer-Encoding: chunked\r\n", Ok((Kind::Chunked, true))),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Ok((Kind::Chunked, false))),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(Fault::Coding)),
        ("Transfer-Encoding: identity\r\n", Err(Fault::Coding)),
    ] {
        assert_eq!(ok(fields), expected, "{fields:?}");
    }
    let chunked = "Transfer-Encoding: chunked\r\n";
    assert_eq!(body("HTTP/1.0 200 OK", chunked, false), Ok((Kind::Chunked, false)));
    for line in ["HTTP/1.1 204 No", "HTTP/1.1 304 No", "HTTP/1.1 103 Early"] {
        assert_eq!(body(line, "Content-Length: 5\r\n", false), Ok((Kind::Length(0), true)), "{line}");
    }
    assert_eq!(body("HTTP/1.1 200 OK", chunked, true), Ok((Kind::Length(0), true)));
    assert_eq!(body("HTTP/1.1 304 No", "Content-Length: x\r\n", false), Err(Fault::Length));
}
