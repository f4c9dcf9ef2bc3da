//! Passes a body through scanner, filter and editor, as the relay does.

use bytes::Bytes;
use scan::{Dialect, Framing, Scanner};
use usage::{AddedOptions, Editor, Injection, UsageFilter, UsageOptions};

use crate::dice::Dice;
use crate::seen::Nothing;
use crate::{counted, naive};

/// The result of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The bytes that the client received.
    pub body: Vec<u8>,
    /// Number of failed edits.
    pub missed: u64,
    /// True if the server sent usage without a request for it.
    pub unasked: bool,
}

/// Edits an event stream that arrives in `slices`, of a client that did not request what was `added`, from a server that
/// sends usage members without counts only on request. Held bytes stay held until the end of the body.
pub fn edited<'a>(
    dialect: Dialect,
    added: Option<AddedOptions>,
    slices: impl IntoIterator<Item = &'a [u8]>,
) -> Edited {
    let asked = added.is_some_and(|added| !added.include);
    filtered(dialect, UsageFilter::new(added, asked).without_placeholders(), slices)
}

/// Edits an event stream that arrives in `slices` by this filter.
pub fn filtered<'a>(
    dialect: Dialect,
    mut filter: UsageFilter,
    slices: impl IntoIterator<Item = &'a [u8]>,
) -> Edited {
    let mut scanner = Scanner::new(dialect, Framing::Sse);
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

/// Checks the laws of the edit on a generated stream, for any cut.
pub fn check_stream(dice: &mut Dice<'_>) {
    let made = counted::stream(dice);
    let body = &made.body;
    let text = String::from_utf8_lossy(body);
    let twin = naive::edit(body, made.added);
    let check = |slices: Vec<&[u8]>, whole: bool| {
        let got = edited(Dialect::OpenaiChat, Some(made.added), slices.iter().copied());
        // A usage event before the first finish may be torn while nothing is held yet.
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
    // A byte order mark that arrives alone is forwarded, and the event after it starts there.
    let first = if body.starts_with("\u{FEFF}".as_bytes()) { 4.min(body.len()) } else { 0 };
    let (head, rest) = body.split_at(first);
    check(vec![body], true);
    check(std::iter::once(head).chain(dice.slices(rest)).collect(), false);
    check(std::iter::once(head).chain(rest.chunks(1)).collect(), false);
    let untouched = edited(Dialect::OpenaiChat, None, dice.slices(body));
    assert_eq!((&untouched.body, untouched.missed), (body, 0), "{text:?}");
}

/// Checks the laws of the edited request: it reads as intended, and nothing else changes.
pub fn check_request(body: &[u8], want: UsageOptions) {
    let text = String::from_utf8_lossy(body);
    let expected = naive::asked(body, want);
    match usage::inject_usage(body, want) {
        Injection::Nothing(why) => assert!(expected.is_none(), "{why:?}: {text}"),
        Injection::Edit { edit, .. } => {
            let original = Bytes::copy_from_slice(body);
            let after = edit.apply(&original).collect::<Vec<_>>().concat();
            assert_eq!(after.len(), edit.new_len(body.len()), "{text}");
            // Deeper nesting or larger numbers than a tree supports are not tested.
            if let Ok(before) = serde_json::from_slice::<serde_json::Value>(body) {
                let after: serde_json::Value = serde_json::from_slice(&after).expect("still JSON");
                assert_eq!(Some(&after), expected.as_ref(), "{before}");
            }
        }
    }
}
