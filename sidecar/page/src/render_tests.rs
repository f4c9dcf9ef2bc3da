//! Compression of pages, and decompression in pieces.

use std::future::poll_fn;

use super::*;

fn content(page: Vec<u8>) -> Content {
    Content { content_type: "text/plain", write: Box::new(move |out| out.write_all(&page)) }
}

#[test]
fn gzip_follows_accept_encoding() {
    for (field, gzip) in [
        ("gzip", true),
        ("GZIP;q=0.5", true),
        ("x-gzip", true),
        ("br, gzip;q=0.1", true),
        ("*", true),
        ("*;q=0, gzip", true),
        ("gzip;q=0, *", false),
        ("gzip; q=0.0", false),
        ("gzip;q=nonsense", false),
        ("identity", false),
        ("br", false),
        ("", false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(hyper::header::ACCEPT_ENCODING, HeaderValue::from_static(field));
        assert_eq!(accepts_gzip(&headers), gzip, "{field:?}");
    }
    assert!(!accepts_gzip(&HeaderMap::new()));
}

#[test]
fn page_is_decompressed_in_pieces() {
    for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 40 * PIECE_BYTES + 7] {
        let page: Vec<u8> = (0..length).map(|at| (at / 50) as u8).collect();
        let compressed = Compressed::render(content(page.clone())).unwrap();
        assert_eq!(compressed.length, length as u64);
        assert!(compressed.bytes.len() < 64 + length / 4, "{} of {length}", compressed.bytes.len());
        let mut body = Decompressing::new(compressed);
        assert_eq!(body.size_hint().exact(), Some(length as u64));
        let mut out = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(piece.len() <= PIECE_BYTES);
                out.extend_from_slice(&piece);
            }
        });
        assert_eq!(out, page);
        assert!(body.is_end_stream());
    }
}
