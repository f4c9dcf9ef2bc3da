//! The length of a message's body, by its fields (RFC 9112 §6.3).

use crate::body::Body;
use crate::chunks::Chunks;
use crate::fault::Fault;
use crate::head::{Head, RequestLine, StatusLine, Version};
use crate::lines::tokens;

/// The framing of a response's body.
#[derive(Debug)]
pub struct ResponseBody {
    /// The body.
    pub body: Body,
    /// The connection may carry another response, as far as the framing decides it.
    pub is_reusable: bool,
}

/// The body of a request.
///
/// | fields | |
/// |---|---|
/// | neither | no body |
/// | one `Content-Length`, a number below 2^63 | this many bytes |
/// | `Content-Length` repeated, or a list, even of equal numbers | 400 |
/// | one `Transfer-Encoding: chunked` in HTTP/1.1 | chunks |
/// | one other coding | 501 |
/// | repeats, lists, empty ones, any in HTTP/1.0 | 400 |
/// | both fields | 400 |
pub fn request_body(head: &Head<'_, '_, RequestLine<'_>>) -> Result<Body, Fault> {
    let mut lengths = head.lines.all("content-length");
    let mut codings = head.lines.all("transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(Body::EMPTY),
        (Some(_), Some(_)) => Err(Fault::LengthAndCoding),
        (Some(length), None) if lengths.next().is_none() => number(length).map(Body::Length),
        (Some(_), None) => Err(Fault::Length),
        (None, Some(coding)) => {
            let is_alone = codings.next().is_none() && head.version == Version::Http11;
            match coding {
                _ if !is_alone => Err(Fault::Coding),
                _ if coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked(Chunks::new(true))),
                _ if is_token(coding) => Err(Fault::UnknownCoding),
                _ => Err(Fault::Coding),
            }
        }
    }
}

/// The body of a response; `to_head`: its request's method was HEAD.
///
/// | response | |
/// |---|---|
/// | to HEAD, 1xx, 204, 304 | no body, whatever its fields say |
/// | one `Transfer-Encoding: chunked` | chunks; a `Content-Length` beside it is to be dropped, and the connection is not reusable, nor is one of HTTP/1.0 |
/// | any other `Transfer-Encoding` | a fault |
/// | `Content-Length`, once or equal each time | this many bytes |
/// | any other `Content-Length` | a fault |
/// | neither | up to the end of the connection |
pub fn response_body(head: &Head<'_, '_, StatusLine<'_>>, to_head: bool) -> Result<ResponseBody, Fault> {
    let mut length = None;
    for value in head.lines.all("content-length") {
        for item in value.split(|&byte| byte == b',') {
            let item = number(item.trim_ascii())?;
            if length.is_some_and(|length| length != item) {
                return Err(Fault::Length);
            }
            length = Some(item);
        }
    }
    let mut codings = head.lines.all("transfer-encoding");
    let coding = codings.next();
    if coding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"chunked")) || codings.next().is_some() {
        return Err(Fault::Coding);
    }
    let is_empty = to_head || matches!(head.start.code, 100..=199 | 204 | 304);
    Ok(match (coding, length) {
        _ if is_empty => ResponseBody { body: Body::EMPTY, is_reusable: true },
        (Some(_), _) => {
            let is_reusable = length.is_none() && head.version == Version::Http11;
            ResponseBody { body: Body::Chunked(Chunks::new(false)), is_reusable }
        }
        (None, Some(length)) => ResponseBody { body: Body::Length(length), is_reusable: true },
        (None, None) => ResponseBody { body: Body::Close, is_reusable: false },
    })
}

/// Reads 1*DIGIT, a number below 2^63.
fn number(digits: &[u8]) -> Result<u64, Fault> {
    let add = |number: i64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    let number = digits.iter().try_fold(0, add).filter(|_| !digits.is_empty());
    number.map(i64::cast_unsigned).ok_or(Fault::Length)
}

/// True if a value is one token, without parameters.
fn is_token(value: &[u8]) -> bool {
    let is_one = tokens(value).eq([value]);
    is_one && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
