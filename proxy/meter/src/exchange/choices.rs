//! The choices of the answer and the marks of its end.

use scan::{Finish, Scope};

use super::TIMED_CHOICES;
use crate::record::FINISHES;

/// The choices, and how each ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choices {
    /// Highest choice index seen, plus one.
    pub(super) count: u32,
    finished: u32,
    /// The last finish reason of each timed choice.
    pub(super) finishes: [Option<Finish>; FINISHES],
    /// Bits of the timed choices that finished, and of those that finished before the current frame.
    finished_timed: u8,
    finished_earlier: u8,
    /// Bits of the timed choices with a final count.
    counted_timed: u8,
    /// Some choice has content.
    pub(super) has_content: bool,
    pub(super) marks: EndMarks,
}

/// The marks of an end that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndMarks {
    /// The explicit end of the stream.
    pub(super) done: bool,
    /// An error in the body.
    pub(super) error: bool,
    /// A choice was aborted by the server.
    pub(super) aborted: bool,
    /// A choice reached a length limit.
    pub(super) length: bool,
}

impl Choices {
    /// Notes a choice that occurs.
    pub(super) fn note(&mut self, choice: u32) {
        self.count = self.count.max(choice.saturating_add(1));
    }

    /// Ends a choice.
    pub(super) fn finish(&mut self, choice: u32, reason: Finish) {
        self.note(choice);
        let bit = if (choice as usize) < TIMED_CHOICES { 1 << choice } else { 0 };
        if let Some(slot) = self.finishes.get_mut(choice as usize) {
            // Old Gemini models send `STOP` in every frame; the last one has the reason.
            *slot = Some(reason);
        }
        if self.finished_timed & bit == 0 {
            self.finished_timed |= bit;
            self.finished = self.finished.saturating_add(1);
        }
        self.marks.length |= reason == Finish::Length;
        self.marks.aborted |= reason == Finish::Abort;
    }

    /// Returns true if every choice finished, and at least `expected`.
    pub(super) fn are_finished(&self, expected: u32) -> bool {
        self.finished >= self.count.max(expected)
    }

    /// Ends a frame.
    pub(super) fn end_frame(&mut self) {
        self.finished_earlier = self.finished_timed;
    }

    /// Returns the scope of a count. A count after the finish of its choice is final, once: LiteLLM sends it
    /// in a frame of its own that still names the choice. In the frame of the finish the scanner decides:
    /// the `timings` of llama.cpp there are a running count.
    pub(super) fn scope(&mut self, scope: Scope) -> Scope {
        let (Scope::Running(choice) | Scope::Choice(Some(choice))) = scope else { return scope };
        if choice as usize >= TIMED_CHOICES {
            return scope;
        }
        let bit = 1 << choice;
        let last = matches!(scope, Scope::Choice(_)) || self.finished_earlier & bit != 0;
        if last && self.counted_timed & bit == 0 {
            self.counted_timed |= bit;
            return Scope::Choice(Some(choice));
        }
        Scope::Running(choice)
    }
}
