//! The results of this crate's parsers, in the oracle's types.

use http1::{
    Body, Chunks, Fault, Lines, Part, Table, Version, request, request_body, response, response_body,
    trailers,
};

use crate::naive::{Chunked, Fields, Framing, Head, Read};

/// A head and the bytes behind it; `None` if it is not whole.
pub(crate) type Verdict = Result<Option<(Head, Vec<u8>)>, Fault>;

pub(crate) fn read_request(bytes: &[u8]) -> Verdict {
    let mut table = Table::default();
    Ok(request(bytes, &mut table)?.map(|head| {
        let start = [head.start.method, head.start.target, name(head.version)].map(str::to_string);
        ((start, fields(head.lines)), bytes[head.len..].to_vec())
    }))
}

/// The framing of the body behind a request's head, which is valid; `None` if it is not.
pub(crate) fn read_request_framing(bytes: &[u8]) -> Option<Framing> {
    let mut table = Table::default();
    let head = request(bytes, &mut table).ok().flatten().expect("a valid head");
    request_body(&head).ok().map(|body| framing(&body))
}

pub(crate) fn read_response(bytes: &[u8]) -> Verdict {
    let mut table = Table::default();
    Ok(response(bytes, &mut table)?.map(|head| {
        let start = [name(head.version), &head.start.code.to_string(), head.start.reason].map(str::to_string);
        ((start, fields(head.lines)), bytes[head.len..].to_vec())
    }))
}

/// The framing of the body behind a response's head, which is valid, and whether its connection may carry another
/// response; `None` if it is not.
pub(crate) fn read_response_framing(bytes: &[u8], to_head: bool) -> Option<(Framing, bool)> {
    let mut table = Table::default();
    let head = response(bytes, &mut table).ok().flatten().expect("a valid head");
    response_body(&head, to_head).ok().map(|found| (framing(&found.body), found.is_reusable))
}

fn name(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

fn fields(lines: Lines<'_, '_>) -> Fields {
    lines.iter().map(|line| (line.name.to_string(), line.value.to_vec())).collect()
}

fn framing(body: &Body) -> Framing {
    match body {
        Body::Length(length) => Framing::Length(*length),
        Body::Chunked(_) => Framing::Chunked,
        Body::Close => Framing::Close,
    }
}

/// The verdict on a chunked body in these slices, and its payload up to an error or to the end of the input.
pub(crate) fn read_chunked(slices: &[&[u8]], is_request: bool) -> (Read<Chunked>, Vec<u8>) {
    let (mut chunks, mut payload) = (Chunks::new(is_request), Vec::new());
    for (index, slice) in slices.iter().enumerate() {
        let mut at = 0;
        loop {
            match chunks.next(slice, &mut at) {
                Ok(None) => break,
                Ok(Some(Part::Data { data, verbatim })) => {
                    assert!(!data.is_empty());
                    if let Some(verbatim) = verbatim {
                        assert_canonical(&slice[verbatim], &slice[data.clone()]);
                    }
                    payload.extend_from_slice(&slice[data]);
                }
                Ok(Some(Part::End { verbatim, end })) => {
                    assert_eq!(end, at);
                    assert!(verbatim.is_none_or(|range| &slice[range] == b"0\r\n\r\n"));
                    let fields = trailers_of(&chunks);
                    let rest = [&slice[end..], &slices[index + 1..].concat()].concat();
                    let body = Chunked { payload: payload.clone(), trailers: fields };
                    return (Read::Whole(body, rest), payload);
                }
                Err(_) => return (Read::Invalid, payload),
            }
        }
        assert_eq!(at, slice.len(), "a slice is read to its end");
    }
    (Read::Partial, payload)
}

fn trailers_of(chunks: &Chunks) -> Fields {
    match chunks.trailers() {
        [] => Vec::new(),
        section => {
            let lines = trailers(section).expect("the decoder has parsed them");
            lines.iter().map(|line| (line.name.to_string(), line.value.to_vec())).collect()
        }
    }
}

/// Asserts that a range that may be forwarded unchanged equals the chunk that a plain encoder makes of its data.
fn assert_canonical(verbatim: &[u8], data: &[u8]) {
    let mut chunk = Vec::new();
    http1::write_chunk(&mut chunk, data);
    assert_eq!(verbatim.to_ascii_lowercase(), chunk.to_ascii_lowercase());
}
