//! What is compressed, and that a page comes out as it went in, a piece at a time.

use std::future::poll_fn;

use super::*;

fn scrape(page: Vec<u8>) -> Scrape {
    Scrape { content_type: "text/plain", write: Box::new(move |out| out.write_all(&page)) }
}

#[test]
fn gzip_is_for_those_who_ask_for_it() {
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
        assert_eq!(takes_gzip(&headers), gzip, "{field:?}");
    }
    assert!(!takes_gzip(&HeaderMap::new()));
}

#[test]
fn a_page_is_held_compressed_and_comes_out_in_pieces() {
    for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 40 * PIECE_BYTES + 7] {
        let page: Vec<u8> = (0..length).map(|at| (at / 50) as u8).collect();
        let packed = Packed::print(scrape(page.clone())).unwrap();
        assert_eq!(packed.length, length as u64);
        assert!(packed.bytes.len() < 64 + length / 4, "{} of {length}", packed.bytes.len());
        let mut body = Unpacked::new(packed);
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
