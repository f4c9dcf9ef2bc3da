//! The speed at which a client sends a request body, or reads a response. The traffic only counts bytes and notes
//! whether it waits for the client; once a second the sweep checks it, so that no frame needs a timer. Time spent
//! waiting for the upstream is not attributed to the client.

use std::cell::Cell;
use std::cmp::Reverse;
use std::task::Waker;

use super::task::Task;
use crate::claims::Progress;
use crate::limits::{RATE_GRACE_SWEEPS, SLOW_BYTES_PER_S, SLOW_SWEEPS};

/// The progress of one body.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The task to wake when the sweep ends the body.
    task: Task,
    verdict: Cell<Option<Verdict>>,
    /// The bytes counted at the last sweep.
    swept: Cell<u64>,
    silent_sweeps: Cell<u64>,
    /// The last sweeps in a row that found the proxy waiting, and those of them in which the client moved less than
    /// [`SLOW_BYTES_PER_S`].
    awaited_sweeps: Cell<u64>,
    slow_sweeps: Cell<u64>,
    waited_sweeps: Cell<u64>,
    /// Recent bytes per second: an average in which each sweep has half of the weight.
    recent_rate: Cell<u64>,
    // Last what each frame uses.
    bytes: Cell<u64>,
    /// True while the proxy waits for the client.
    waiting: Cell<bool>,
}

/// A decision of another task about a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The body is no longer buffered.
    Ungathered,
    /// The client is too slow.
    Slow,
    /// The client exceeds its share while another one waits.
    OverShare,
}

/// The minimum speed of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinimumSpeed {
    /// Maximum seconds without a byte.
    pub(crate) silent_s: u64,
    /// Minimum mean bytes per second.
    pub(crate) bytes_per_s: u64,
    /// Maximum seconds in all, plus one for each [`SLOW_BYTES_PER_S`] bytes.
    pub(crate) whole_s: u64,
}

impl Pace {
    /// Counts bytes.
    pub(crate) fn moved(&self, bytes: usize) {
        self.waiting.set(false);
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Records that the proxy waits for the client from now on.
    pub(crate) fn wait(&self) {
        self.waiting.set(true);
    }

    /// As [`wait`](Self::wait), and a verdict wakes this task.
    pub(crate) fn wait_in(&self, task: &Waker) {
        self.waiting.set(true);
        self.task.set(task);
    }

    /// Sets the verdict; the first one that ends the body stands.
    pub(crate) fn decide(&self, verdict: Verdict) {
        if !self.is_over() {
            self.verdict.set(Some(verdict));
            self.task.wake();
        }
    }

    /// The verdict, if there is one.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.verdict.get()
    }

    /// Returns true if the body was ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.verdict.get(), Some(Verdict::Slow | Verdict::OverShare))
    }

    /// The progress of its client, as far as it is known; a body that was ended makes none.
    pub(crate) fn progress(&self) -> Progress {
        let (rate, silent) = (self.recent_rate.get(), Reverse(self.silent_sweeps.get()));
        if self.is_over() || !self.is_known() {
            Progress::Flowing
        } else if self.slow_sweeps.get() >= SLOW_SWEEPS {
            Progress::Slow(rate, silent)
        } else {
            Progress::Awaited(rate, silent)
        }
    }

    /// Returns true if the proxy has waited for the client long enough to know its speed: one second.
    pub(crate) fn is_known(&self) -> bool {
        self.waiting.get() && (self.silent_sweeps.get() > 0 || self.awaited_sweeps.get() > 1)
    }

    /// Records that one second passed. Returns true if the client keeps the minimum speed.
    pub(crate) fn sweep(&self, least: MinimumSpeed) -> bool {
        let moved = self.bytes.get() - self.swept.replace(self.bytes.get());
        let is_awaited = self.waiting.get();
        let in_a_row =
            |sweeps: &Cell<u64>, is_one: bool| sweeps.set(if is_one { sweeps.get() + 1 } else { 0 });
        in_a_row(&self.silent_sweeps, is_awaited && moved == 0);
        in_a_row(&self.awaited_sweeps, is_awaited);
        in_a_row(&self.slow_sweeps, is_awaited && moved < SLOW_BYTES_PER_S);
        if !is_awaited {
            return true;
        }
        let waited = self.waited_sweeps.get() + 1;
        self.waited_sweeps.set(waited);
        self.recent_rate.set(if waited == 1 { moved } else { u64::midpoint(self.recent_rate.get(), moved) });
        let is_fast = waited <= RATE_GRACE_SWEEPS || self.bytes.get() / waited >= least.bytes_per_s;
        let whole_s = least.whole_s.saturating_add(self.bytes.get() / SLOW_BYTES_PER_S);
        self.silent_sweeps.get() < least.silent_s && is_fast && waited <= whole_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: MinimumSpeed = MinimumSpeed { silent_s: 3, bytes_per_s: 100, whole_s: 60 };

    #[test]
    fn silent_client_is_slow() {
        let pace = Pace::default();
        pace.moved(5);
        pace.wait();
        assert!(pace.sweep(LEAST) && pace.sweep(LEAST) && pace.sweep(LEAST));
        assert_eq!(pace.silent_sweeps.get(), 2);
        pace.moved(1);
        pace.wait();
        assert!(pace.sweep(LEAST) && pace.sweep(LEAST) && pace.sweep(LEAST) && !pace.sweep(LEAST));
    }

    #[test]
    fn slow_upstream_is_not_the_clients_time() {
        let pace = Pace::default();
        pace.moved(5);
        assert!((0..10 * RATE_GRACE_SWEEPS).all(|_| pace.sweep(LEAST)));
    }

    #[test]
    fn dripping_client_is_slow_after_the_grace() {
        let pace = Pace::default();
        let drip = || {
            pace.moved(99);
            pace.wait();
            pace.sweep(LEAST)
        };
        assert!((0..RATE_GRACE_SWEEPS).all(|_| drip()));
        assert!(!drip());
    }

    /// Counts the sweeps until a client that sends at this rate is too slow.
    fn sweeps_at(bytes_per_s: usize, at_most: u64) -> u64 {
        let pace = Pace::default();
        let kept = (0..at_most).take_while(|_| {
            pace.moved(bytes_per_s);
            pace.wait();
            pace.sweep(LEAST)
        });
        kept.count() as u64
    }

    #[test]
    fn whole_time_is_bounded_unless_the_rate_suffices() {
        assert_eq!(sweeps_at(400, 1000), 66, "60 s, and one for each 4 KiB");
        assert_eq!(sweeps_at(4096, 10_000), 10_000);
        assert_eq!(sweeps_at(1 << 20, 10_000), 10_000);
    }

    #[test]
    fn early_bytes_buy_no_progress() {
        let pace = Pace::default();
        let second = |bytes| {
            pace.moved(bytes);
            pace.wait();
            assert!(pace.sweep(LEAST));
            pace.progress()
        };
        assert_eq!(second(8 << 20), Progress::Flowing, "it is not known yet");
        assert!((1..SLOW_SWEEPS).all(|_| matches!(second(200), Progress::Awaited(..))));
        assert!(matches!(second(200), Progress::Slow(..)));
        assert!(matches!(second(8 << 10), Progress::Awaited(..)));
        pace.moved(1);
        assert_eq!(pace.progress(), Progress::Flowing, "the proxy does not wait for it");
        pace.sweep(LEAST);
        pace.wait();
        assert_eq!(pace.progress(), Progress::Flowing, "it took what arrived");
    }

    #[test]
    fn first_end_stands() {
        let pace = Pace::default();
        pace.decide(Verdict::Ungathered);
        pace.decide(Verdict::Slow);
        pace.decide(Verdict::OverShare);
        assert_eq!(pace.verdict(), Some(Verdict::Slow));
    }
}
