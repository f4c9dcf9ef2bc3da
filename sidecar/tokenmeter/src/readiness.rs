//! Whether traffic should be sent here, and why not. Three things speak against it: we have only
//! just started, we are draining, or an upstream cannot be reached. Each goes by itself, so nobody
//! has to reset anything; draining comes first and never goes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state all who know something share. Control plane only: nothing here is asked per request.
#[derive(Clone, Debug)]
pub(crate) struct Readiness(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    phase: Phase,
    upstreams: Vec<(String, Reach)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Serving,
    Draining,
}

/// What is known about the way to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nobody has tried yet.
    Untried,
    /// A connection was made.
    Reached,
    /// None could be made, for this reason.
    Unreachable(String),
}

impl Readiness {
    /// Not ready: starting, and no upstream tried. `upstreams` says each as people know it.
    pub(crate) fn new(upstreams: impl IntoIterator<Item = String>) -> Self {
        let upstreams = upstreams.into_iter().map(|upstream| (upstream, Reach::Untried)).collect();
        Self(Arc::new(Mutex::new(State { phase: Phase::Starting, upstreams })))
    }

    /// The listeners are open.
    pub(crate) fn serving(&self) {
        let mut state = self.state();
        if state.phase == Phase::Starting {
            state.phase = Phase::Serving;
        }
    }

    /// We were told to stop.
    pub(crate) fn draining(&self) {
        self.state().phase = Phase::Draining;
    }

    /// Notes what a try came to; what was known before it.
    pub(crate) fn note(&self, upstream: usize, reach: Reach) -> Reach {
        std::mem::replace(&mut self.state().upstreams[upstream].1, reach)
    }

    /// Whether an upstream is reached, if that was tried.
    pub(crate) fn reached(&self, upstream: usize) -> Option<bool> {
        match self.state().upstreams[upstream].1 {
            Reach::Untried => None,
            Reach::Reached => Some(true),
            Reach::Unreachable(_) => Some(false),
        }
    }

    /// Why no traffic should be sent here, a line each; none if it should.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let state = self.state();
        let phase = match state.phase {
            Phase::Starting => Some("starting: the listeners are not open yet".to_owned()),
            Phase::Serving => None,
            Phase::Draining => Some("draining: told to stop, finishing what is running".to_owned()),
        };
        let upstreams = state.upstreams.iter().filter_map(|(upstream, reach)| match reach {
            Reach::Untried => Some(format!("upstream {upstream} was not tried yet")),
            Reach::Reached => None,
            Reach::Unreachable(why) => Some(format!("upstream {upstream} is unreachable: {why}")),
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
    use super::{Reach, Readiness};

    #[test]
    fn it_becomes_ready_by_itself_and_draining_never_ends() {
        let readiness = Readiness::new(["gpu at http://gpu:8000".to_owned()]);
        assert_eq!(readiness.reasons().len(), 2);
        assert_eq!(readiness.reached(0), None);
        readiness.serving();
        assert_eq!(readiness.reasons(), ["upstream gpu at http://gpu:8000 was not tried yet"]);
        assert_eq!(readiness.note(0, Reach::Unreachable("refused".to_owned())), Reach::Untried);
        assert_eq!(readiness.reasons(), ["upstream gpu at http://gpu:8000 is unreachable: refused"]);
        assert_eq!(readiness.reached(0), Some(false));
        assert!(matches!(readiness.note(0, Reach::Reached), Reach::Unreachable(_)));
        assert!(readiness.reasons().is_empty());
        readiness.draining();
        readiness.serving();
        assert_eq!(readiness.reasons(), ["draining: told to stop, finishing what is running"]);
    }
}
