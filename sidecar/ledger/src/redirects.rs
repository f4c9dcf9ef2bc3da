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
    /// Returns true if the items of a month go to the open one. A month that could not be written is tried again after
    /// `REDIRECT_TIME`.
    pub(crate) fn has(&mut self, month: Month) -> bool {
        match self.months.get(&month) {
            None => false,
            Some((Redirect::Unwritable, since)) if since.elapsed() > REDIRECT_TIME => {
                self.months.remove(&month);
                false
            }
            Some(_) => true,
        }
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
