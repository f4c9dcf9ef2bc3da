//! Compares the parsers of heads and chunked bodies, whose input is cut at every byte, with an oracle that has the whole
//! message.

#[expect(dead_code, reason = "the fuzz targets use the rest")]
mod agreement;
mod naive;
mod read;

use agreement::{Cuts, assert_chunked, assert_request, assert_response};
use http1::Fault;
use naive::{Chunked, Read};
use proptest::prelude::*;
use read::read_request;

/// Words of heads, valid and not.
const HEAD_WORDS: [&str; 30] = [
    "GET",
    "POST",
    " ",
    " ",
    "/",
    "/v1/chat",
    "/a#b",
    "/é",
    " HTTP/1.1\r\n",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    " HTTP/2.0\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "Host: a\r\n",
    "a:\r\n",
    "b : c\r\n",
    "c:  d \t\r\n",
    ": e\r\n",
    "f\r\n",
    " folded\r\n",
    "g: \0\r\n",
    "h: \u{fc}\r\n",
    "Content-Length: 5\r\n",
    "content-length: 5, 05\r\n",
    "Content-Length: 9223372036854775808\r\n",
    "Transfer-Encoding: Chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "HTTP/1.0 204\r\n",
];

/// Words of chunked bodies, valid and not.
const CHUNK_WORDS: [&str; 24] = [
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "0\r\n",
    "a",
    "F\r\n",
    "00",
    "\r\n",
    "\r",
    "\n",
    ";",
    "b=c",
    "\"",
    "\\",
    " ",
    "\t",
    "0x1",
    "é",
    "\u{1}",
    "x: y\r\n",
    "x : y\r\n",
    "z\r\n",
    "00000000000005\r\nhello\r\n",
    "hello",
    "3;q=\"\r\n",
];

fn words(of: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![20 => proptest::sample::select(of).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..3)];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(chance::cases(2_000))]

    #[test]
    fn request_heads_are_those_of_the_oracle(bytes in words(&HEAD_WORDS)) {
        assert_request(&bytes, Cuts::Every);
        assert_request(&[b"POST / HTTP/1.1\r\n", &bytes[..]].concat(), Cuts::Every);
    }

    #[test]
    fn chunked_bodies_are_those_of_the_oracle(bytes in words(&CHUNK_WORDS), is_request: bool) {
        assert_chunked(&bytes, is_request, Cuts::Every);
        assert_chunked(&[b"5\r\nhello\r\n0\r\n", &bytes[..]].concat(), is_request, Cuts::Every);
    }

    #[test]
    fn response_heads_are_those_of_the_oracle(bytes in words(&HEAD_WORDS)) {
        assert_response(&bytes, Cuts::Every);
        assert_response(&[b"HTTP/1.1 200 OK\r\n", &bytes[..]].concat(), Cuts::Every);
    }
}

#[test]
fn oracle_reads_a_body_with_trailers() {
    let bytes = b"5;a=\"b;\\\"\"\r\nhello\r\n0\r\nx: y\r\n\r\nrest";
    let read = naive::chunked(bytes, true, &mut Vec::new());
    let body = Chunked { payload: b"hello".to_vec(), trailers: vec![("x".into(), b"y".to_vec())] };
    assert_eq!(read, Read::Whole(body, b"rest".to_vec()));
    assert_chunked(bytes, true, Cuts::Every);
}

#[test]
fn fault_is_that_of_the_first_invalid_byte() {
    for (head, fault) in [
        ("GET / HTTP/3.0\r\na: b\n\r\n", Fault::Version),
        ("GET / HTTP/1.1\na b\r\n\r\n", Fault::BareLf),
        ("GET / HTTP/1.1\r\na b\r\nc: d\n\r\n", Fault::Syntax),
        ("GET /#a HTTP/3.0\r\n\r\n", Fault::Target),
        ("\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", Fault::EmptyLines),
        ("\nGET / HTTP/1.1\r\n\r\n", Fault::BareLf),
    ] {
        assert_eq!(read_request(head.as_bytes()), Err(fault), "{head:?}");
        assert_request(head.as_bytes(), Cuts::Every);
    }
}
