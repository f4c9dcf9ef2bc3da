//! The reader of frames against an oracle that has the whole direction in one slice, cut at every byte.

mod naive;
mod peer;

use naive::{Item, read};
use peer::{Sent, encode, masked, plain};
use proptest::prelude::*;
use websocket::{CloseFrame, Control, FrameReader, Step, UNMASKED_BYTES, Violation};

/// Returns what a reader finds in these slices, and the violation at which it stopped.
fn found<'a>(slices: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Item>, Option<Violation>) {
    let mut reader = FrameReader::new();
    let (mut items, mut message) = (Vec::new(), None::<Vec<u8>>);
    for slice in slices {
        let mut at = 0;
        loop {
            match reader.step(slice, &mut at) {
                Ok(None) => break,
                Ok(Some(Step::Begin)) => assert!(message.replace(Vec::new()).is_none()),
                Ok(Some(Step::Payload(bytes))) => {
                    assert!(!bytes.is_empty());
                    message.as_mut().expect("a message began").extend_from_slice(bytes);
                }
                Ok(Some(Step::End)) => {
                    items.push(Item::Message(message.take().expect("a message began")));
                }
                Ok(Some(Step::Control(control))) => items.push(Item::Control(control)),
                Err(violation) => return (items, Some(violation)),
            }
        }
        assert_eq!(at, slice.len(), "a slice is read to its end");
    }
    (items, None)
}

/// Asserts that the reader agrees with the oracle for the whole direction, at every cut, and byte by byte.
fn assert_read(bytes: &[u8]) -> (Vec<Item>, Option<Violation>) {
    let expected = read(bytes);
    assert_eq!(found([bytes]), expected, "whole");
    assert_eq!(found(bytes.chunks(1)), expected, "byte by byte");
    for cut in 0..=bytes.len().min(600) {
        let (one, other) = bytes.split_at(cut);
        assert_eq!(found([one, other]), expected, "cut at {cut}");
    }
    expected
}

#[test]
fn lengths_of_all_three_forms_are_read() {
    for len in [0, 1, 125, 126, 127, 65_535, 65_536, 3 * UNMASKED_BYTES + 7] {
        for mask in [None, Some([1, 2, 3, 4])] {
            let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            let bytes = encode(0x81, &payload, mask, 0);
            let expected = (vec![Item::Message(payload)], None);
            assert_eq!(found([&bytes[..]]), expected, "{len} bytes");
            assert_eq!(found(bytes.chunks(1013)), expected, "{len} bytes in slices");
            assert_eq!(read(&bytes), expected, "{len} bytes by the oracle");
        }
    }
}

#[test]
fn longer_length_than_needed_is_read() {
    for form in [126, 127] {
        let bytes = encode(0x81, b"hi", Some([9, 8, 7, 6]), form);
        assert_eq!(assert_read(&bytes), (vec![Item::Message(b"hi".to_vec())], None));
    }
}

#[test]
fn control_frames_stand_between_fragments() {
    let mut bytes = plain(0x01, b"{\"a\":");
    bytes.extend(masked(0x89, b"ping"));
    bytes.extend(plain(0x00, b""));
    bytes.extend(plain(0x8A, b""));
    bytes.extend(masked(0x80, b"1}"));
    bytes.extend(plain(0x88, &[0x03, 0xF0, b'n', b'o']));
    bytes.extend(plain(0x88, &[0x03]));
    let (items, violation) = assert_read(&bytes);
    let expected = [
        Item::Control(Control::Ping),
        Item::Control(Control::Pong),
        Item::Message(b"{\"a\":1}".to_vec()),
        Item::Control(Control::Close(Some(1008))),
        Item::Control(Control::Close(None)),
    ];
    assert_eq!((&items[..], violation), (&expected[..], None));
}

#[test]
fn invalid_frames_stop_the_reading() {
    let long = [&[0x81, 127][..], &(1_u64 << 63).to_be_bytes()].concat();
    let rows: [(&[u8], Violation); 9] = [
        (&[0xC1, 0], Violation::Reserved),
        (&[0xA1, 0], Violation::Reserved),
        (&[0x83, 0], Violation::Opcode),
        (&[0x8B, 0], Violation::Opcode),
        (&[0x09, 0], Violation::Control),
        (&[0x89, 126, 0, 126], Violation::Control),
        (&[0x80, 0], Violation::Continuation),
        (&[0x01, 0, 0x81, 0], Violation::Continuation),
        (&long, Violation::Length),
    ];
    for (bytes, violation) in rows {
        assert_eq!(assert_read(bytes), (Vec::new(), Some(violation)), "{bytes:x?}");
        // It stays broken, whatever follows.
        let mut reader = FrameReader::new();
        while let Ok(Some(_)) = reader.step(bytes, &mut 0) {}
        let follows = plain(0x81, b"hi");
        assert_eq!(reader.step(&follows, &mut 0), Err(violation));
        assert!(!reader.is_between_frames());
    }
}

#[test]
fn largest_length_is_read_without_its_bytes() {
    let head = [&[0x82, 127][..], &(i64::MAX as u64).to_be_bytes(), b"abc"].concat();
    assert_eq!(found([&head[..]]), (Vec::new(), None));
}

#[test]
fn boundaries_are_between_whole_frames() {
    let bytes = [plain(0x01, b"a"), masked(0x89, b"b"), plain(0x80, b"c")].concat();
    // The offsets at which a frame ends, and if the message has ended, too.
    let ends = [(0, true), (3, false), (10, false), (13, true)];
    for cut in 0..=bytes.len() {
        let mut reader = FrameReader::new();
        let mut at = 0;
        while let Some(_step) = reader.step(&bytes[..cut], &mut at).expect("valid framing") {}
        let known = ends.iter().find(|(end, _)| *end == cut);
        assert_eq!(reader.is_between_frames(), known.is_some(), "{cut}");
        assert_eq!(reader.is_between_messages(), known.is_some_and(|(_, whole)| *whole), "{cut}");
    }
}

#[test]
fn own_close_frames_are_valid() {
    let long = "é".repeat(100);
    for (frame, code) in [
        (CloseFrame::going_away(), 1001),
        (CloseFrame::policy("budget exhausted"), 1008),
        (CloseFrame::policy(&long), 1008),
    ] {
        for bytes in [frame.unmasked(), frame.masked([5, 6, 7, 8])] {
            assert!(bytes.len() <= 131);
            assert_eq!(assert_read(&bytes), (vec![Item::Control(Control::Close(Some(code)))], None));
        }
    }
    let bytes = CloseFrame::policy(&long).unmasked();
    assert!(std::str::from_utf8(&bytes[4..]).is_ok(), "a reason is cut between characters");
}

fn sent() -> impl Strategy<Value = Sent> {
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    let mask = prop::option::of(any::<[u8; 4]>());
    let pieces = prop::collection::vec((payload, mask), 1..4);
    let control = prop::option::of((0..3_u8, prop::collection::vec(any::<u8>(), 0..126)));
    (any::<bool>(), pieces, control).prop_map(|(is_text, pieces, control)| Sent { is_text, pieces, control })
}

proptest! {
    #![proptest_config(chance::cases(256))]

    #[test]
    fn messages_are_read_as_sent(messages in prop::collection::vec(sent(), 0..4), chunk in 1..300_usize) {
        let bytes: Vec<u8> = messages.iter().flat_map(Sent::bytes).collect();
        let expected: Vec<Item> = messages.iter().flat_map(Sent::items).collect();
        prop_assert_eq!(read(&bytes), (expected.clone(), None), "the oracle");
        prop_assert_eq!(found(bytes.chunks(chunk)), (expected, None));
    }

    #[test]
    fn any_bytes_are_read_as_by_the_oracle(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        assert_read(&bytes);
    }

    #[test]
    fn damaged_messages_are_read_as_by_the_oracle(
        messages in prop::collection::vec(sent(), 1..3),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u32,
        chunk in 1..40_usize,
    ) {
        let mut bytes: Vec<u8> = messages.iter().flat_map(Sent::bytes).collect();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(found(bytes.chunks(chunk)), read(&bytes));
    }
}
