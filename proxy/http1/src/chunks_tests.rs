//! Lines of chunks, their bounds, and which chunks are canonical.

use super::*;

/// Decodes a body in one slice: its data, or `None` if it is invalid or not whole.
fn decode(wire: &[u8], is_request: bool) -> Option<Vec<u8>> {
    let (mut chunks, mut at, mut data) = (Chunks::new(is_request), 0, Vec::new());
    while let Some(part) = chunks.next(wire, &mut at).ok()? {
        match part {
            Part::Data { data: range, .. } => data.extend_from_slice(&wire[range]),
            Part::End { .. } => return Some(data),
        }
    }
    None
}

#[test]
fn lines_of_chunks_are_judged() {
    for (line, of_request, of_response) in [
        ("5", true, true),
        ("0000000000005", true, true),
        ("00000000000005", false, false),
        ("5 ", false, true),
        ("5;a", true, true),
        ("5 ;a=b", true, true),
        ("5;a=\"b;\\\"\"", true, true),
        ("5;a=\"b", false, false),
        ("5;a\u{1}", false, false),
        ("5;a\u{7f}", false, false),
        ("5;a\nb", false, false),
        ("5;a=\"\nb\"", false, false),
        ("5;a\rb", false, false),
        ("5;\u{fc}\tb", true, true),
        ("5 5", false, false),
        (" 5", false, false),
        ("0x5", false, false),
        ("+5", false, false),
        ("5_0", false, false),
        ("", false, false),
        (";a", false, false),
    ] {
        let wire = format!("{line}\r\nhello\r\n0\r\n\r\n");
        for (is_request, is_valid) in [(true, of_request), (false, of_response)] {
            let expected = is_valid.then(|| b"hello".to_vec());
            assert_eq!(decode(wire.as_bytes(), is_request), expected, "{line:?}, of a request: {is_request}");
        }
    }
    for wire in [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\r\n0\n\r\n",
        "0\r\n\n",
        "0\r\na: b\n\r\n",
        "0\r\na : b\r\n\r\n",
        "0\r\na: b\r\n c\r\n\r\n",
    ] {
        assert_eq!(decode(wire.as_bytes(), false), None, "{wire:?}");
    }
}

#[test]
fn extensions_and_trailers_are_bounded() {
    let chunk = |bytes: usize| format!("1;{}\r\nx\r\n", "a".repeat(bytes - 1));
    let most = usize::from(EXTENSION_BYTES);
    assert!(decode(format!("{}0\r\n\r\n", chunk(most)).as_bytes(), true).is_some());
    assert!(decode(format!("{}0\r\n\r\n", chunk(most + 1)).as_bytes(), true).is_none());
    let count = usize::from(EXTENSIONS_BYTES) / most;
    assert!(decode(format!("{}0\r\n\r\n", chunk(most).repeat(count)).as_bytes(), true).is_some());
    assert!(decode(format!("{}0;\r\n\r\n", chunk(most).repeat(count)).as_bytes(), true).is_none());

    let section = |bytes: usize| format!("0\r\na: {}\r\n\r\n", "b".repeat(bytes - "a: \r\n\r\n".len()));
    assert!(decode(section(TRAILER_BYTES).as_bytes(), true).is_some());
    assert!(decode(section(TRAILER_BYTES + 1).as_bytes(), true).is_none());
}

#[test]
fn only_canonical_chunks_are_verbatim() {
    for (wire, is_canonical) in [
        ("5\r\nhello\r\n", true),
        ("05\r\nhello\r\n", false),
        ("5;a\r\nhello\r\n", false),
        ("5 \r\nhello\r\n", false),
        // The CRLF behind it may be another in the next slice.
        ("5\r\nhello", false),
    ] {
        let part = Chunks::new(false).next(wire.as_bytes(), &mut 0).unwrap().unwrap();
        let Part::Data { verbatim, .. } = part else { panic!("{part:?}") };
        assert_eq!(verbatim, is_canonical.then_some(0..wire.len()), "{wire:?}");
    }
    for (wire, is_canonical) in [("0\r\n\r\n", true), ("00\r\n\r\n", false), ("0\r\na: b\r\n\r\n", false)] {
        let part = Chunks::new(false).next(wire.as_bytes(), &mut 0).unwrap().unwrap();
        let expected = Part::End { verbatim: is_canonical.then_some(0..wire.len()), end: wire.len() };
        assert_eq!(part, expected, "{wire:?}");
    }
}

#[test]
fn end_is_given_again() {
    let (mut chunks, mut at) = (Chunks::new(true), 0);
    let wire = b"0\r\n\r\nnext";
    assert!(matches!(chunks.next(wire, &mut at), Ok(Some(Part::End { end: 5, .. }))));
    assert_eq!(chunks.next(wire, &mut at), Ok(Some(Part::End { verbatim: None, end: 5 })));
}

#[test]
fn decoder_is_small() {
    assert!(size_of::<Chunks>() <= 56, "{}", size_of::<Chunks>());
}
