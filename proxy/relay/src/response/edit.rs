//! The editor of one response body: the usage editor, the marked parts, and the clock that limits how long bytes wait
//! for the rest of their event (law 2).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Context;

use bytes::Bytes;
use tokio::time::Sleep;
use usage::{Cuts, Editor};

use crate::Dropped;
use crate::request::in_flight::InFlight;

/// Edits one response body.
#[derive(Default)]
pub(super) struct Edit {
    editor: Editor,
    pub(super) cuts: Cuts,
    /// The timer of the waiting bytes, and their position in the body.
    overdue: Option<(u64, Pin<Box<Sleep>>)>,
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

    /// Takes the next slice with its marks, and returns the bytes to forward now: with all waiting ones if it is the
    /// `last` slice, or the meter marks no more.
    pub(super) fn apply(&mut self, in_flight: &InFlight, slice: Bytes, last: bool) -> Bytes {
        let Self { editor, cuts, .. } = self;
        // Only a torn event waits, so this copies little or nothing.
        let waiting = Bytes::copy_from_slice(editor.held());
        let given = slice.clone();
        match catch_unwind(AssertUnwindSafe(|| editor.edit(given, cuts))) {
            Ok(edited) => {
                self.tell(in_flight);
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

    /// Called when nothing can be read for now: returns the bytes that have waited long enough, and registers the task
    /// to be woken when the others have.
    pub(super) fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        let Some(held) = self.editor.held_from() else {
            self.overdue = None;
            return None;
        };
        if self.overdue.as_ref().is_none_or(|(from, _)| *from != held) {
            self.overdue = Some((held, Box::pin(tokio::time::sleep(usage::HOLD_TIME))));
        }
        let (_, overdue) = self.overdue.as_mut()?;
        if overdue.as_mut().poll(cx).is_pending() {
            return None;
        }
        self.overdue = None;
        self.release()
    }

    fn tell(&mut self, in_flight: &InFlight) {
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
    use std::task::Waker;
    use std::time::Duration;

    use super::*;

    fn hold(edit: &mut Edit, from: u64, slice: &'static str) {
        edit.cuts.hold(Some(from));
        let _ = edit.editor.edit(Bytes::from_static(slice.as_bytes()), &mut edit.cuts);
        assert!(edit.editor.is_holding());
    }

    #[tokio::test(start_paused = true)]
    async fn each_torn_event_has_its_own_time() {
        let (mut edit, mut cx) = (Edit::default(), Context::from_waker(Waker::noop()));
        let most = usage::HOLD_TIME;
        hold(&mut edit, 2, "a\nda");
        assert_eq!(edit.poll_overdue(&mut cx), None);
        tokio::time::advance(most - Duration::from_millis(5)).await;
        // That event was completed, and the next is torn as well.
        hold(&mut edit, 8, "ta\n\nda");
        assert_eq!(edit.poll_overdue(&mut cx), None);
        tokio::time::advance(Duration::from_millis(20)).await;
        assert_eq!(edit.poll_overdue(&mut cx), None, "it has waited for 20 ms");
        tokio::time::advance(most).await;
        assert_eq!(edit.poll_overdue(&mut cx).as_deref(), Some(&b"da"[..]));
        assert_eq!(edit.poll_overdue(&mut cx), None);
    }
}
