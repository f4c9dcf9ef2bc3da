//! Readiness, and the reasons against it: the process is starting or draining, or an upstream is unreachable.
//! Readiness recovers by itself, except from draining.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The shared state of readiness. Control plane only: no request reads it.
#[derive(Clone, Debug)]
pub(crate) struct Readiness(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    phase: Phase,
    upstreams: Vec<(String, Reachability)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Serving,
    Draining,
}

/// The reachability of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reachability {
    /// No connection was tried yet.
    Unknown,
    /// A connection was made.
    Reachable,
    /// No connection could be made, for this reason.
    Unreachable(String),
    /// The server listens, and TLS with it fails, for this reason.
    Unusable(String),
}

impl Readiness {
    /// Creates the state of a start; `upstreams` are the names in messages.
    pub(crate) fn new(upstreams: impl IntoIterator<Item = String>) -> Self {
        let upstreams = upstreams.into_iter().map(|upstream| (upstream, Reachability::Unknown)).collect();
        Self(Arc::new(Mutex::new(State { phase: Phase::Starting, upstreams })))
    }

    /// Records that the listeners are open.
    pub(crate) fn serving(&self) {
        let mut state = self.state();
        if state.phase == Phase::Starting {
            state.phase = Phase::Serving;
        }
    }

    /// Records that the process drains.
    pub(crate) fn draining(&self) {
        self.state().phase = Phase::Draining;
    }

    /// Records the result of a probe; returns the previous one.
    pub(crate) fn note(&self, upstream: usize, reach: Reachability) -> Reachability {
        std::mem::replace(&mut self.state().upstreams[upstream].1, reach)
    }

    /// Returns true if an upstream is reachable; `None` before the first probe.
    pub(crate) fn reached(&self, upstream: usize) -> Option<bool> {
        match self.state().upstreams[upstream].1 {
            Reachability::Unknown => None,
            Reachability::Reachable => Some(true),
            Reachability::Unreachable(_) | Reachability::Unusable(_) => Some(false),
        }
    }

    /// Returns the reasons against readiness, one per line.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let state = self.state();
        let phase = match state.phase {
            Phase::Starting => Some("starting: the listeners are not open yet".to_owned()),
            Phase::Serving => None,
            Phase::Draining => Some("draining: stopping after the requests in flight".to_owned()),
        };
        let upstreams = state.upstreams.iter().filter_map(|(upstream, reach)| match reach {
            Reachability::Unknown => Some(format!("upstream {upstream} is not probed yet")),
            Reachability::Reachable => None,
            Reachability::Unreachable(why) => Some(format!("upstream {upstream} is unreachable: {why}")),
            Reachability::Unusable(why) => Some(format!("upstream {upstream} cannot be used: {why}")),
        });
        phase.into_iter().chain(upstreams).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Reachability, Readiness};

    #[test]
    fn readiness_recovers_except_from_draining() {
        let readiness = Readiness::new(["gpu at http://gpu:8000".to_owned()]);
        assert_eq!(readiness.reasons().len(), 2);
        assert_eq!(readiness.reached(0), None);
        readiness.serving();
        assert_eq!(readiness.reasons(), ["upstream gpu at http://gpu:8000 is not probed yet"]);
        assert_eq!(readiness.note(0, Reachability::Unreachable("refused".to_owned())), Reachability::Unknown);
        assert_eq!(readiness.reasons(), ["upstream gpu at http://gpu:8000 is unreachable: refused"]);
        assert_eq!(readiness.reached(0), Some(false));
        assert!(matches!(readiness.note(0, Reachability::Reachable), Reachability::Unreachable(_)));
        assert!(readiness.reasons().is_empty());
        readiness.draining();
        readiness.serving();
        assert_eq!(readiness.reasons(), ["draining: stopping after the requests in flight"]);
    }
}
