//! What was learned about an upstream while serving it. Each fact is one word: a worker that learns
//! something writes it, every worker reads it at an exchange's start, and none waits for another
//! (law 7). Facts about behaviour are forgotten after [`limits::REMEMBERED_NS`], because servers
//! are restarted with other options.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use meter::Tick;

use crate::{Kind, limits};

/// What is known of one upstream beyond its configuration.
#[derive(Debug, Default)]
pub struct Learned {
    /// Number of the kind in [`Kind::ALL`], plus one.
    kind: AtomicU8,
    /// vLLM: its front end is the Rust one, which frames its answers in another way as soon as
    /// running usage is asked for.
    rust_front_end: AtomicU8,
    refuses_include: Until,
    refuses_continuous: Until,
    accepts: Until,
    sends_usage: Until,
    says_nothing: Until,
}

/// A fact and when it will be forgotten: nanoseconds of the monotonic clock, 0 for never learned.
#[derive(Debug, Default)]
struct Until(AtomicU64);

impl Until {
    /// Written only if that changes much: all workers read the word.
    fn learn(&self, now: Tick) {
        let until = now.0.saturating_add(limits::REMEMBERED_NS);
        if until.saturating_sub(self.0.load(Ordering::Relaxed)) > limits::REMEMBERED_NS / 20 {
            self.0.store(until, Ordering::Relaxed);
        }
    }

    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn holds(&self, now: Tick) -> bool {
        self.0.load(Ordering::Relaxed) > now.0
    }
}

impl Learned {
    /// The server was found to be of this kind.
    pub fn kind(&self, kind: Kind) {
        let number = Kind::ALL.iter().position(|known| *known == kind).unwrap_or(0) + 1;
        self.kind.store(u8::try_from(number).unwrap_or(0), Ordering::Relaxed);
    }

    /// The kind it was found to be.
    pub fn found_kind(&self) -> Option<Kind> {
        let number = usize::from(self.kind.load(Ordering::Relaxed));
        Kind::ALL.get(number.checked_sub(1)?).copied()
    }

    /// vLLM's front end was seen to be the Rust one, or not to be.
    pub fn front_end(&self, rust: bool) {
        self.rust_front_end.store(u8::from(rust), Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn has_rust_front_end(&self) -> bool {
        self.rust_front_end.load(Ordering::Relaxed) == 1
    }

    /// The server took a request with what we had added.
    pub fn accepts(&self, now: Tick) {
        self.accepts.learn(now);
    }

    /// The server answered 400 to a request with what we had added, and not to the original. One
    /// that lately took another such request does not refuse them all.
    pub fn refuses(&self, continuous: bool, now: Tick) {
        if self.accepts.holds(now) {
            return;
        }
        if continuous { self.refuses_continuous.learn(now) } else { self.refuses_include.learn(now) }
    }

    /// Whether it refuses `include_usage`.
    pub fn refuses_include(&self, now: Tick) -> bool {
        self.refuses_include.holds(now)
    }

    /// Whether it refuses `continuous_usage_stats`.
    pub fn refuses_continuous(&self, now: Tick) -> bool {
        self.refuses_continuous.holds(now)
    }

    /// The server sent usage that nobody had asked for.
    pub fn sends_usage(&self, now: Tick) {
        self.sends_usage.learn(now);
    }

    /// A whole stream that nobody had asked for usage had none.
    pub fn sends_no_usage(&self) {
        self.sends_usage.forget();
    }

    /// Whether it does.
    pub fn sends_usage_unasked(&self, now: Tick) -> bool {
        self.sends_usage.holds(now)
    }

    /// A whole stream carried no count of any kind, or did.
    pub fn reports(&self, something: bool, now: Tick) {
        if something { self.says_nothing.forget() } else { self.says_nothing.learn(now) }
    }

    /// Whether the last whole stream carried none.
    pub fn says_nothing(&self, now: Tick) -> bool {
        self.says_nothing.holds(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_forgotten() {
        let learned = Learned::default();
        let now = Tick(5);
        assert!(!learned.refuses_include(now) && !learned.refuses_continuous(now));
        learned.refuses(true, now);
        assert!(learned.refuses_continuous(now) && !learned.refuses_include(now));
        learned.accepts(now);
        learned.refuses(false, now);
        assert!(!learned.refuses_include(now), "one request is not all");
        let later = Tick(5 + limits::REMEMBERED_NS);
        assert!(learned.refuses_continuous(Tick(later.0 - 1)));
        assert!(!learned.refuses_continuous(later));
    }

    #[test]
    fn every_kind_is_told_again() {
        let learned = Learned::default();
        assert_eq!(learned.found_kind(), None);
        for kind in Kind::ALL {
            learned.kind(kind);
            assert_eq!(learned.found_kind(), Some(kind));
        }
    }
}
