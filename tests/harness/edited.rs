//! A body on its way through scanner, watch and editor, as the relay takes it.

use bytes::Bytes;
use scan::{Dialect, Framing, Scanner};
use usage::{Added, Editor, Injection, UsageFilter, UsageOptions};

use crate::dice::Dice;
use crate::seen::Nothing;
use crate::{counted, naive};

/// What became of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// What the client got.
    pub body: Vec<u8>,
    /// Edits that could not be made.
    pub missed: u64,
    /// The server was seen to send usage unasked.
    pub unasked: bool,
}

/// Edits an event stream that arrives in `slices`, of a client that had not asked for what was
/// `added`. What is held stays held until the end of the body.
pub fn edited<'a>(
    dialect: Dialect,
    added: Option<Added>,
    slices: impl IntoIterator<Item = &'a [u8]>,
) -> Edited {
    let mut scanner = Scanner::new(dialect, Framing::Sse);
    let asked = added.is_some_and(|added| !added.include);
    let mut filter = UsageFilter::new(added, asked);
    filter.arm(&mut scanner);
    let (mut editor, mut body) = (Editor::new(), Vec::new());
    for slice in slices {
        scanner.feed(slice, &mut filter.listen(&mut Nothing));
        let out = editor.edit(Bytes::copy_from_slice(slice), filter.cuts(&scanner));
        body.extend_from_slice(&out);
    }
    scanner.end(&mut filter.listen(&mut Nothing));
    body.extend_from_slice(&editor.release());
    Edited { body, missed: editor.missed(), unasked: filter.sends_unrequested() }
}

/// Holds the laws of the edit over one made stream, however it is cut.
pub fn check_stream(dice: &mut Dice<'_>) {
    let made = counted::stream(dice);
    let body = &made.body;
    let text = String::from_utf8_lossy(body);
    let twin = naive::edit(body, made.added);
    let check = |slices: Vec<&[u8]>, whole: bool| {
        let got = edited(Dialect::OpenaiChat, Some(made.added), slices.iter().copied());
        // A usage event before any finish may be torn when nothing is held yet.
        if got.missed > 0 && made.early && !whole {
            return;
        }
        let as_expected = (got.missed, got.unasked, &got.body) == (0, false, &twin);
        let (kept, wanted) = (String::from_utf8_lossy(&got.body), String::from_utf8_lossy(&twin));
        let lens: Vec<usize> = slices.iter().map(|slice| slice.len()).collect();
        assert!(
            as_expected,
            "{:?} of {text:?} in {lens:?}:\n{kept:?}, missed {}, unasked {}; the twin\n{wanted:?}",
            made.added, got.missed, got.unasked
        );
    };
    // A byte order mark that comes alone is given away, and the event after it counts from there.
    let first = if body.starts_with("\u{FEFF}".as_bytes()) { 4.min(body.len()) } else { 0 };
    let (head, rest) = body.split_at(first);
    check(vec![body], true);
    check(std::iter::once(head).chain(dice.slices(rest)).collect(), false);
    check(std::iter::once(head).chain(rest.chunks(1)).collect(), false);
    let untouched = edited(Dialect::OpenaiChat, None, dice.slices(body));
    assert_eq!((&untouched.body, untouched.missed), (body, 0), "{text:?}");
}

/// Holds the laws of the question: what is edited reads as it should, and nothing else changes.
pub fn check_request(body: &[u8], want: UsageOptions) {
    let text = String::from_utf8_lossy(body);
    let expected = naive::asked(body, want);
    match usage::inject_usage(body, want) {
        Injection::Nothing(why) => assert!(expected.is_none(), "{why:?}: {text}"),
        Injection::Edit { edit, .. } => {
            let original = Bytes::copy_from_slice(body);
            let after = edit.apply(&original).collect::<Vec<_>>().concat();
            assert_eq!(after.len(), edit.new_len(body.len()), "{text}");
            // Deeper or larger numbers than a tree takes are no matter of ours.
            if let Ok(before) = serde_json::from_slice::<serde_json::Value>(body) {
                let after: serde_json::Value = serde_json::from_slice(&after).expect("still JSON");
                assert_eq!(Some(&after), expected.as_ref(), "{before}");
            }
        }
    }
}
