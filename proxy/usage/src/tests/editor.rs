//! The editor's output for given marks.

use bytes::Bytes;
use proptest::prelude::*;

use crate::{Cut, Cuts, Editor, HOLD_MAX_BYTES};

fn event(from: usize, to: usize) -> Cut {
    Cut::Event(from as u64, to as u64)
}

fn holding(from: usize) -> Cuts {
    let mut cuts = Cuts::new();
    cuts.hold(Some(from as u64));
    cuts
}

/// Cuts the event between `[` and `]`, which are not part of the body, in one slice.
fn without_event(marked: &str) -> (String, u64) {
    let (from, to) = (marked.find('[').expect("["), marked.find(']').expect("]"));
    let body = marked.replace(['[', ']'], "");
    let mut cuts = Cuts::new();
    cuts.cut(event(from, to - 1));
    let mut editor = Editor::new();
    let out = editor.edit(Bytes::from(body), &mut cuts);
    assert_eq!(cuts, Cuts::new(), "marks are emptied");
    assert!(!editor.is_holding());
    (String::from_utf8(out.to_vec()).expect("UTF-8"), editor.missed())
}

#[test]
fn an_event_is_cut_without_its_comments() {
    for (marked, kept) in [
        ("data: a\n\n[data: u\n\n]data: b\n\n", "data: a\n\ndata: b\n\n"),
        ("data: a\r\n\r\n[data: u\r\n\r]\ndata: b\r\n\r\n", "data: a\r\n\r\ndata: b\r\n\r\n"),
        ("data: a\r\r[data: u\r\r]data: b\r\r", "data: a\r\rdata: b\r\r"),
        // Vector 34: its event and id lines are removed; comments inside and after it stay.
        ("[event: x\nid: 7\n: in\ndata: u\nretry: 3\n\n]: after\n\n", ": in\n: after\n\n"),
        ("[event: x\r\n: in\r\ndata: u\r\n\r]\n: after\r\n", ": in\r\n: after\r\n"),
        // Several data lines (vector 33) are one event.
        ("[data: {\ndata: u\ndata\n\n]data: b\n\n", "data: b\n\n"),
        // Empty lines and blocks without data before it, which the scanner counts to it, stay.
        ("[\n\nid: 3\n\ndata: u\n\n]data: b\n\n", "\n\nid: 3\n\ndata: b\n\n"),
        ("[\u{FEFF}data: u\n\n]data: b\n\n", "\u{FEFF}data: b\n\n"),
        ("[data: u\n\n]", ""),
    ] {
        // The brackets are byte positions, as are the marks.
        assert_eq!(without_event(marked), (kept.to_owned(), 0), "{marked:?}");
    }
}

#[test]
fn marks_around_no_event_cut_nothing() {
    for marked in ["data: a\n[\ndata: u\n]\n", "[data: u\n]\n", "data: u\n\n[]", "[data: u]\n\n"] {
        let whole = marked.replace(['[', ']'], "");
        assert_eq!(without_event(marked), (whole, 1), "{marked:?}");
    }
}

#[test]
fn a_member_is_cut_from_its_payload_only() {
    for (before, member, after) in [
        ("{\"c\":[1]", r#","u":{"a":[1,{"b":2}],"c":"}\","}"#, "}"),
        ("{\"c\":[1] ", r#", "u" : null"#, " ,\"d\":2}"),
        ("{", "\"u\":null,", "\"d\":2}"),
        ("{ ", "\"u\":{} , \t", "\"d\":2}"),
        ("{ ", "\"u\":null", " }"),
    ] {
        for end in ["\n", "\r\n", "\r"] {
            let (before, after) =
                (format!("data: {before}"), format!("{after}{end}{end}data: [DONE]{end}{end}"));
            let cut = Cut::Member(before.len() as u64, (before.len() + member.len()) as u64);
            let mut cuts = Cuts::new();
            cuts.cut(cut);
            let mut editor = Editor::new();
            let out = editor.edit(Bytes::from([&before, member, &after].concat()), &mut cuts);
            assert_eq!((out, editor.missed()), (Bytes::from(before + &after), 0), "{member}");
        }
    }
    // Over several lines.
    for (marked, kept) in [
        ("data: {\"c\":[]<,\ndata: \"u\":{}>}\n\n", "data: {\"c\":[]\ndata: }\n\n"),
        (
            "data: {\"c\":[]<,\n: ,\nevent: x\ndata:\"u\":null>}\n\n",
            "data: {\"c\":[]\n: ,\nevent: x\ndata:}\n\n",
        ),
        (
            "data: {\ndata: <\"u\":{}\ndata\ndata: ,\ndata: >\"d\":2}\n\n",
            "data: {\ndata: \ndata\ndata: \ndata: \"d\":2}\n\n",
        ),
    ] {
        for end in ["\n", "\r\n", "\r"] {
            let [marked, kept] = [marked, kept].map(|text| text.replace('\n', end));
            let (from, to) = (marked.find('<').expect("<"), marked.find('>').expect(">") - 1);
            let mut cuts = Cuts::new();
            cuts.cut(Cut::Member(from as u64, to as u64));
            let mut editor = Editor::new();
            let out = editor.edit(Bytes::from(marked.replace(['<', '>'], "")), &mut cuts);
            assert_eq!((out, editor.missed()), (Bytes::from(kept), 0), "{marked:?}");
        }
    }
}

#[test]
fn a_range_that_is_no_member_stays() {
    let body = "data: {\"a\":{}}\n\n: \"x\":{}\n\ndata: [{\"u\":{}}, \"u\":{}]\n\n";
    for (from, to) in [(7, 7), (12, 8), (6, 13), (7, 12), (7, 900), (900, 990), (0, 16), (11, 12)] {
        let mut cuts = Cuts::new();
        cuts.cut(Cut::Member(from, to));
        let mut editor = Editor::new();
        let out = editor.edit(Bytes::from(body), &mut cuts);
        assert_eq!((&out[..], editor.missed()), (body.as_bytes(), 1), "{from} {to}");
    }
}

/// A member is cut although the start of its frame was forwarded.
#[test]
fn member_of_a_torn_frame_is_cut() {
    let body = "data: {\"a\":1,\"u\":null}\n\n";
    let (from, to) = (12, 21);
    for at in 0..=body.len() {
        let mut editor = Editor::new();
        let (first, second) = body.split_at(at);
        // The last byte after which nothing of the member is there is that before its comma.
        let mut cuts = if at > from { holding(from) } else { Cuts::new() };
        let mut out = editor.edit(Bytes::from(first), &mut cuts).to_vec();
        let mut cuts = Cuts::new();
        cuts.cut(Cut::Member(from as u64, to));
        out.extend_from_slice(&editor.edit(Bytes::from(second), &mut cuts));
        assert_eq!((&*out, editor.missed()), (&b"data: {\"a\":1}\n\n"[..], 0), "{at}");
    }
}

#[test]
fn an_unmarked_slice_passes_without_a_copy() {
    let slice = Bytes::from("data: a\n\n".repeat(9));
    let mut editor = Editor::new();
    let out = editor.edit(slice.clone(), &mut Cuts::new());
    assert_eq!((out.as_ptr(), out.len()), (slice.as_ptr(), slice.len()));
    // The part before a torn tail is not copied either.
    let out = editor.edit(slice.clone(), &mut holding(2 * slice.len() - 9));
    assert_eq!((out.as_ptr(), out.len()), (slice.as_ptr(), slice.len() - 9));
    assert!(editor.is_holding());
    assert_eq!(editor.release(), "data: a\n\n");
}

#[test]
fn a_torn_event_is_held_and_cut() {
    let mut editor = Editor::new();
    let mut cuts = holding(3);
    assert_eq!(editor.edit(Bytes::from("a\n\ndata: "), &mut cuts), "a\n\n");
    assert_eq!(editor.edit(Bytes::from("u"), &mut holding(3)), "");
    assert_eq!(editor.edit(Bytes::new(), &mut holding(3)), "");
    let mut cuts = holding(14);
    cuts.cut(event(3, 12));
    assert_eq!(editor.edit(Bytes::from("\n\n: c\ndat"), &mut cuts), ": ");
    assert!(editor.is_holding());
    assert_eq!(editor.edit(Bytes::from("a"), &mut Cuts::new()), "c\ndata");
    assert!(!editor.is_holding());
    assert_eq!(editor.missed(), 0);
}

#[test]
fn line_feed_in_the_next_slice_is_cut() {
    for (next, kept) in [("\ndata", "data"), ("\n", ""), ("\n\n", "\n"), ("data", "data"), ("\r\n", "\r\n")] {
        let mut editor = Editor::new();
        let mut cuts = Cuts::new();
        cuts.cut(event(0, 10));
        assert_eq!(editor.edit(Bytes::from("data: u\r\n\r"), &mut cuts), "");
        assert_eq!(editor.edit(Bytes::new(), &mut Cuts::new()), "");
        assert_eq!(editor.edit(Bytes::from(next), &mut Cuts::new()), kept, "{next:?}");
        assert_eq!(editor.edit(Bytes::from("\n"), &mut Cuts::new()), "\n", "only one");
    }
    // A CR that was not cut keeps its LF.
    let mut editor = Editor::new();
    let mut cuts = Cuts::new();
    cuts.cut(event(0, 9));
    assert_eq!(editor.edit(Bytes::from("data: u\r\rdata: a\r\n\r"), &mut cuts), "data: a\r\n\r");
    assert_eq!(editor.edit(Bytes::from("\n"), &mut Cuts::new()), "\n");
}

#[test]
fn a_hold_inside_a_cut_is_ignored() {
    for at in 0..18 {
        let mut cuts = holding(at);
        cuts.cut(event(0, 9));
        let mut editor = Editor::new();
        let out = editor.edit(Bytes::from("data: u\n\ndata: b\n\n"), &mut cuts);
        assert_eq!(editor.is_holding(), at >= 9, "{at}");
        assert_eq!([out, editor.release()].concat(), b"data: b\n\n", "{at}");
    }
}

#[test]
fn released_bytes_pass_unchanged() {
    let mut editor = Editor::new();
    assert_eq!(editor.edit(Bytes::from("data: "), &mut holding(0)), "");
    assert_eq!(editor.release(), "data: ");
    assert_eq!(editor.release(), "");
    // The event continues: it is neither held again nor cut.
    assert_eq!(editor.edit(Bytes::from("u\n"), &mut holding(0)), "u\n");
    assert!(!editor.is_holding());
    let mut cuts = Cuts::new();
    cuts.cut(event(0, 9));
    cuts.cut(event(9, 18));
    assert_eq!(editor.edit(Bytes::from("\ndata: u\n\nx"), &mut cuts), "\nx");
    assert_eq!(editor.missed(), 1);
}

#[test]
fn the_hold_is_bounded() {
    let mut editor = Editor::new();
    let half = Bytes::from(vec![b'a'; HOLD_MAX_BYTES / 2]);
    assert_eq!(editor.edit(half.clone(), &mut holding(0)), "");
    assert_eq!(editor.edit(half.clone(), &mut holding(0)), "");
    assert_eq!(editor.edit(Bytes::from("b"), &mut holding(0)).len(), HOLD_MAX_BYTES + 1);
    assert!(!editor.is_holding());
    assert_eq!(editor.edit(half.clone(), &mut holding(0)), half);
    assert_eq!(editor.missed(), 0, "nothing was to be cut yet");
    let mut cuts = Cuts::new();
    cuts.cut(event(0, HOLD_MAX_BYTES * 3 / 2 + 3));
    assert_eq!(editor.edit(Bytes::from("\n\n"), &mut cuts), "\n\n");
    assert_eq!(editor.missed(), 1);
    // A slice above the limit passes at once, but its tail is held.
    let mut editor = Editor::new();
    assert_eq!(
        editor.edit(Bytes::from(vec![b'a'; HOLD_MAX_BYTES + 1]), &mut holding(0)).len(),
        HOLD_MAX_BYTES + 1
    );
    let mut editor = Editor::new();
    assert_eq!(editor.edit(Bytes::from(vec![b'a'; HOLD_MAX_BYTES + 1]), &mut holding(1)).len(), 1);
}

/// Offsets in and around a body of a few hundred bytes, and far outside.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..400_u64, 1 => Just(u64::MAX), 1 => Just(1 << 40)]
}

proptest! {
    #![proptest_config(chance::cases(2_000))]

    /// For any marks: no panic, no byte doubled or moved, and none outside the marks removed, except
    /// adjacent commas, white space and the LF of a CR.
    #[test]
    fn invalid_marks_remove_nothing_else(
        words in prop::collection::vec(prop::sample::select(&[
            "data: ", "{\"a\":1,", "\"u\":{}", "}", "\n", "\n\n", "\r\n", "\r", ": c\n", "id: 1\n", " ,", "x",
        ][..]), 1..60),
        steps in prop::collection::vec((
            1..90_usize,
            prop::collection::vec((offset(), offset(), prop::option::of((offset(), offset()))), 0..3),
            prop::option::of(offset()),
            prop::bool::weighted(0.1),
        ), 1..20),
    ) {
        let body = words.concat().into_bytes();
        let mut editor = Editor::new();
        let (mut rest, mut out, mut marked) = (&body[..], Vec::new(), 0);
        for (take, changes, hold, release) in steps.iter().cycle().take(400) {
            let (slice, after) = rest.split_at((*take).min(rest.len()));
            rest = after;
            let mut cuts = Cuts::new();
            for &(from, to, member) in changes {
                cuts.cut(member.map_or(Cut::Event(from, to), |(from, to)| Cut::Member(from, to)));
                let (from, to) = member.unwrap_or((from, to));
                marked += (to.min(400).saturating_sub(from) as usize) + 200;
            }
            cuts.hold(*hold);
            out.extend_from_slice(&editor.edit(Bytes::copy_from_slice(slice), &mut cuts));
            if *release {
                out.extend_from_slice(&editor.release());
            }
            if rest.is_empty() {
                break;
            }
        }
        out.extend_from_slice(rest);
        let held = editor.release();
        prop_assert!(held.len() <= HOLD_MAX_BYTES);
        let at = out.len() - rest.len();
        out.splice(at..at, held);
        let mut bytes = body.iter();
        prop_assert!(out.iter().all(|byte| bytes.any(|b| b == byte)), "{:?}", String::from_utf8_lossy(&out));
        prop_assert!(out.len() + marked >= body.len());
        if marked == 0 {
            prop_assert_eq!(&out, &body);
        }
    }

    #[test]
    fn holding_loses_no_byte(
        body in prop::collection::vec(any::<u8>(), 0..300),
        steps in prop::collection::vec((1..40_usize, prop::option::of(offset()), any::<bool>()), 1..20),
    ) {
        let mut editor = Editor::new();
        let (mut rest, mut out) = (&body[..], Vec::new());
        for (take, hold, release) in steps.iter().cycle() {
            let (slice, after) = rest.split_at((*take).min(rest.len()));
            rest = after;
            let mut cuts = Cuts::new();
            cuts.hold(*hold);
            out.extend_from_slice(&editor.edit(Bytes::copy_from_slice(slice), &mut cuts));
            if *release {
                out.extend_from_slice(&editor.release());
            }
            prop_assert!(body.starts_with(&out));
            if rest.is_empty() {
                break;
            }
        }
        out.extend_from_slice(&editor.release());
        prop_assert_eq!(out, body);
        prop_assert_eq!(editor.missed(), 0);
    }
}
