//! Fairness among the connections of a worker: none reads again while others wait.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::limits;

/// The counter of a worker's turns: each poll of one of its tasks is a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Rc<Cell<u64>>);

impl Turn {
    /// The number of the current turn.
    pub(crate) fn number(&self) -> u64 {
        self.0.get()
    }

    /// Begins the next turn.
    pub(crate) fn begin(&self) {
        self.0.set(self.0.get().wrapping_add(1));
    }
}

/// The bytes that a socket may still read in a turn.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    turn: Turn,
    /// The turn to which `left_bytes` belongs.
    last: u64,
    left_bytes: usize,
}

impl ReadBudget {
    pub(crate) fn new(turn: &Turn) -> Self {
        Self { turn: turn.clone(), last: turn.number(), left_bytes: limits::TURN_READ_BYTES }
    }

    /// Returns the number of bytes that may be read now, at least 1. If none is left, wakes the task for another turn,
    /// behind the tasks that are ready.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<usize> {
        let turn = self.turn.number();
        if self.last != turn {
            self.last = turn;
            self.left_bytes = limits::TURN_READ_BYTES;
        }
        if self.left_bytes == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.left_bytes)
    }

    /// Subtracts bytes that were read.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use super::*;
    use crate::engine::net::wake_count::WakeCount;

    #[test]
    fn socket_reads_again_in_the_next_turn() {
        let wakes = Arc::new(WakeCount::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let turn = Turn::default();
        let mut budget = ReadBudget::new(&turn);
        assert_eq!(budget.poll(&cx), Poll::Ready(limits::TURN_READ_BYTES));
        budget.spend(limits::TURN_READ_BYTES - 1);
        assert_eq!(budget.poll(&cx), Poll::Ready(1));
        budget.spend(1);
        assert_eq!(wakes.get(), 0);
        assert_eq!(budget.poll(&cx), Poll::Pending);
        assert_eq!(wakes.get(), 1, "it gets another turn");
        turn.begin();
        assert_eq!(budget.poll(&cx), Poll::Ready(limits::TURN_READ_BYTES));
    }
}
