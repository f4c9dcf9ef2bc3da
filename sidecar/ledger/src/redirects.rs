//! The months whose items go to the open month, because their own file does not take them.
//!
//! Law: one file delays the rows of all others for at most [`WAIT_MAX`].

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::source::Month;

/// The longest wait for a past month that cannot be written.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The time for which the items of a month that could not be written for that long go to the open month.
const REDIRECT_TIME: Duration = Duration::from_secs(60);

/// The reason why the items of a month go to the open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The month is closed, so that this has no end.
    Closed,
    /// The month could not be written for too long.
    Unwritable,
}

/// The redirected months, and those that could not be written at the last attempt.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    /// Each with the time from which it is redirected.
    months: HashMap<Month, (Redirect, Instant)>,
    /// The time of the first failure in a row.
    unwritable_since: HashMap<Month, Instant>,
}

impl Redirects {
    /// Returns true if the items of a month go to the open one.
    pub(crate) fn has(&self, month: Month) -> bool {
        self.months.contains_key(&month)
    }

    /// Ends the redirects of months that can be tried again. Only between two batches: an attempt whose commit returned
    /// an error may have entered items into the open month, and the next must not enter them into their own, too.
    pub(crate) fn end_old(&mut self, now: Instant) {
        self.months.retain(|_, (why, since)| {
            *why == Redirect::Closed || now.saturating_duration_since(*since) <= REDIRECT_TIME
        });
    }

    /// Redirects a month from now on.
    pub(crate) fn add(&mut self, month: Month, why: Redirect) {
        self.months.insert(month, (why, Instant::now()));
    }

    /// Returns true if the writer should still wait for a month that cannot be written.
    pub(crate) fn waits(&mut self, month: Month) -> bool {
        self.unwritable_since.entry(month).or_insert_with(Instant::now).elapsed() < WAIT_MAX
    }

    /// Notes that a month was written.
    pub(crate) fn written(&mut self, month: Month) {
        self.unwritable_since.remove(&month);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{REDIRECT_TIME, Redirect, Redirects};

    #[test]
    fn redirect_ends_between_batches_only() {
        let (mut redirects, closed, unwritable) = (Redirects::default(), 680, 681);
        redirects.add(closed, Redirect::Closed);
        redirects.add(unwritable, Redirect::Unwritable);
        redirects.end_old(Instant::now());
        assert!(redirects.has(closed) && redirects.has(unwritable) && !redirects.has(682));
        redirects.end_old(Instant::now() + REDIRECT_TIME + Duration::from_secs(1));
        assert!(redirects.has(closed) && !redirects.has(unwritable));
    }
}
