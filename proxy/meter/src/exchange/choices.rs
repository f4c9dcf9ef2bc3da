//! The choices of the answer and the marks of its end.

use scan::{Finish, Scope};

use super::TIMED_CHOICES;
use crate::record::FINISHES;

/// The choices, and how each ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choices {
    /// Highest choice index seen, plus one.
    pub(super) count: u32,
    by_body: Finished,
    by_engine: Finished,
    /// The last finish reason of each timed choice.
    pub(super) finishes: [Option<Finish>; FINISHES],
    /// Bits of the timed choices that the body finished before the current frame.
    finished_earlier: u8,
    /// Some choice has content.
    pub(super) has_content: bool,
    pub(super) marks: EndMarks,
}

/// The finished choices of one source.
#[derive(Clone, Copy, Debug, Default)]
struct Finished {
    /// Bits of the timed ones.
    timed: u8,
    /// The number of the others.
    untimed: u32,
}

impl Finished {
    fn add(&mut self, choice: u32) {
        match choice as usize {
            timed @ 0..TIMED_CHOICES => self.timed |= 1 << timed,
            _ => self.untimed = self.untimed.saturating_add(1),
        }
    }

    /// The choices that at least one of two sources finished. Both may finish the same untimed ones.
    fn or(self, other: Self) -> Self {
        Self { timed: self.timed | other.timed, untimed: self.untimed.max(other.untimed) }
    }

    fn count(self) -> u32 {
        self.untimed.saturating_add(self.timed.count_ones())
    }
}

/// The marks of an end that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndMarks {
    /// The explicit end of the stream.
    pub(super) done: bool,
    /// An error in the body.
    pub(super) error: bool,
    /// The body says that the server aborted a choice.
    pub(super) aborted: bool,
    /// The engine aborted a choice, perhaps because the client left.
    pub(super) engine_aborted: bool,
    /// A choice reached a length limit.
    pub(super) length: bool,
}

impl Choices {
    /// Notes a choice that occurs.
    pub(super) fn note(&mut self, choice: u32) {
        self.count = self.count.max(choice.saturating_add(1));
    }

    /// Ends a choice, as the body says.
    pub(super) fn finish(&mut self, choice: u32, reason: Finish) {
        self.by_body.add(choice);
        self.note_reason(choice, reason);
        self.marks.aborted |= reason == Finish::Abort;
    }

    /// Ends a choice, as the engine says.
    pub(super) fn finish_by_engine(&mut self, choice: u32, reason: Finish) {
        self.by_engine.add(choice);
        self.note_reason(choice, reason);
        self.marks.engine_aborted |= reason == Finish::Abort;
    }

    fn note_reason(&mut self, choice: u32, reason: Finish) {
        self.note(choice);
        if let Some(slot) = self.finishes.get_mut(choice as usize) {
            // Old Gemini models send `STOP` in every frame; the last one has the reason.
            *slot = Some(reason);
        }
        self.marks.length |= reason == Finish::Length;
    }

    /// Returns true if every choice finished, and at least `expected`.
    pub(super) fn are_finished(&self, expected: u32) -> bool {
        self.by_body.or(self.by_engine).count() >= self.count.max(expected)
    }

    /// Returns true if the body finished every choice, and at least `expected`.
    pub(super) fn are_finished_by_body(&self, expected: u32) -> bool {
        self.by_body.count() >= self.count.max(expected)
    }

    /// Ends a frame.
    pub(super) fn end_frame(&mut self) {
        self.finished_earlier = self.by_body.timed;
    }

    /// Returns the scope of a count. A count after the finish of its choice is final: LiteLLM sends it in a frame of its
    /// own that still names the choice. In the frame of the finish the scanner decides: the `timings` of llama.cpp
    /// there are a running count.
    pub(super) fn scope(&self, scope: Scope) -> Scope {
        match scope {
            Scope::Running(choice)
                if (choice as usize) < TIMED_CHOICES && self.finished_earlier & (1 << choice) != 0 =>
            {
                Scope::Choice(Some(choice))
            }
            scope => scope,
        }
    }
}
