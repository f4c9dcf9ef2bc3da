//! The editor of one response body: the usage editor, the marked parts, and the tick since which bytes wait for the rest
//! of their event, because that time is limited (law 2).

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use meter::Tick;
use usage::{Cuts, Editor, HOLD_TIME};

use crate::Dropped;
use crate::request::in_flight::InFlight;

/// Edits one response body.
#[derive(Default)]
pub(super) struct Edit {
    editor: Editor,
    pub(super) cuts: Cuts,
    /// The position in the body of the waiting bytes, and the tick since which they wait.
    waiting: Option<(u64, Tick)>,
    /// Failed cuts that were counted.
    counted: u64,
    /// True if the editor failed: the rest is forwarded unchanged.
    failed: bool,
}

impl Edit {
    /// Returns true if the next slice, of `len` bytes, is forwarded unchanged, because nothing is held and there is
    /// nothing to change, as with most slices: it counts as forwarded. The caller applies any other slice.
    pub(super) fn passes(&mut self, len: usize) -> bool {
        self.failed || self.editor.pass(len, &self.cuts)
    }

    /// Takes the next slice, which was read at `at`, with its marks, and returns the bytes to forward now: with all
    /// waiting ones if it is the `last` slice, or the meter marks no more.
    pub(super) fn apply(&mut self, in_flight: &InFlight, slice: Bytes, at: Tick, last: bool) -> Bytes {
        let Self { editor, cuts, .. } = self;
        // Only a torn event waits, so this copies little or nothing.
        let waiting = Bytes::copy_from_slice(editor.held());
        let given = slice.clone();
        match catch_unwind(AssertUnwindSafe(|| editor.edit(given, cuts))) {
            Ok(edited) => {
                self.count_missed(in_flight);
                self.wait(at);
                if last { joined(edited, self.editor.release()) } else { edited }
            }
            Err(_panic) => {
                in_flight.worker.dropped(Dropped::Panic);
                self.editor = Editor::new();
                self.failed = true;
                joined(waiting, slice)
            }
        }
    }

    /// Takes the bytes that still wait at the end.
    pub(super) fn release(&mut self) -> Option<Bytes> {
        Some(self.editor.release()).filter(|bytes| !bytes.is_empty())
    }

    /// Returns the tick at which the waiting bytes have waited long enough; `None` if there are none.
    pub(super) fn due(&self) -> Option<Tick> {
        let (_, since) = self.waiting.filter(|_| self.editor.is_holding())?;
        Some(Tick(since.0.saturating_add(u64::try_from(HOLD_TIME.as_nanos()).unwrap_or(u64::MAX))))
    }

    /// Notes since when bytes wait: each torn event has its own time.
    fn wait(&mut self, at: Tick) {
        let held = self.editor.held_from();
        if self.waiting.map(|(from, _)| from) != held {
            self.waiting = held.map(|from| (from, at));
        }
    }

    fn count_missed(&mut self, in_flight: &InFlight) {
        while self.counted < self.editor.missed() {
            self.counted += 1;
            in_flight.worker.dropped(Dropped::UsageEdit);
        }
    }
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    match (first.is_empty(), second.is_empty()) {
        (_, true) => first,
        (true, _) => second,
        _ => [first, second].concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(edit: &mut Edit, from: u64, slice: &'static str, at: Tick) {
        edit.cuts.hold(Some(from));
        let _ = edit.editor.edit(Bytes::from_static(slice.as_bytes()), &mut edit.cuts);
        assert!(edit.editor.is_holding());
        edit.wait(at);
    }

    #[test]
    fn each_torn_event_has_its_own_time() {
        let mut edit = Edit::default();
        let most = u64::try_from(HOLD_TIME.as_nanos()).unwrap();
        assert_eq!(edit.due(), None);
        hold(&mut edit, 2, "a\nda", Tick(10));
        hold(&mut edit, 2, "t", Tick(20));
        assert_eq!(edit.due(), Some(Tick(10 + most)), "it is the same event");
        // That event was completed, and the next is torn as well.
        hold(&mut edit, 8, "a\n\nda", Tick(most));
        assert_eq!(edit.due(), Some(Tick(2 * most)));
        assert_eq!(edit.release().as_deref(), Some(&b"da"[..]));
        assert_eq!(edit.due(), None);
    }
}
