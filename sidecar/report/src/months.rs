//! The months of a report and whether each is closed, so that a bill shows if it can still change.

use ledger::Calendar;
use ledger::month;
use ledger::source::{Month, Range};

meter::listed_enum! {
    /// The state of a month.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum MonthState {
        /// The source does not know which months are closed.
        #[default]
        Unknown = "unknown",
        /// It is signed off.
        Closed = "closed",
        /// It is over and not closed.
        Ended = "ended",
        /// It is the current month.
        Open = "open",
        /// It is in the future: the clock was ahead when its exchanges ended.
        Future = "future",
    }
    /// Returns its name in reports.
    pub fn name(self);
}

impl MonthState {
    /// Returns the state of a month at an instant, microseconds since 1970; `is_closed` as known by the source.
    pub fn at(calendar: &Calendar, month: Month, now_us: i64, is_closed: Option<bool>) -> Self {
        let Range { since_us, until_us } = Range::of_month(calendar, month);
        match is_closed {
            _ if now_us < since_us => Self::Future,
            None => Self::Unknown,
            Some(true) => Self::Closed,
            Some(false) if now_us < until_us => Self::Open,
            Some(false) => Self::Ended,
        }
    }
}

/// Returns a sentence about months and their states, in chronological order.
pub(super) fn sentence<'a>(
    months: impl Iterator<Item = (&'a Month, &'a MonthState)> + Clone,
) -> Option<String> {
    use MonthState::{Closed, Ended, Future, Open, Unknown};
    let parts = [Closed, Ended, Open, Future, Unknown].into_iter().filter_map(|state| {
        let of_it: Vec<Month> =
            months.clone().filter(|(_, is)| **is == state).map(|(month, _)| *month).collect();
        let is = match of_it.len() {
            0 => return None,
            1 => "is",
            _ => "are",
        };
        let names = spans(&of_it);
        Some(match state {
            Closed => format!("{names} {is} closed"),
            Ended => format!("{names} {is} over and not closed, so that late exchanges may still be added"),
            Open => format!("{names} {is} open: exchanges are still added"),
            Future => format!("{names} {is} in the future: the clock was ahead when these exchanges ended"),
            Unknown => format!("the central store does not know whether {names} {is} closed"),
        })
    });
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Formats months that are in order; three and more in sequence are one span: `2026-01 to 2026-03, 2026-05`.
pub fn spans(months: &[Month]) -> String {
    let spans = months.chunk_by(|one, next| one + 1 == *next).flat_map(|span| match span {
        [first, _, .., last] => vec![format!("{} to {}", month::name(*first), month::name(*last))],
        few => few.iter().map(|month| month::name(*month)).collect(),
    });
    spans.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{MonthState, sentence};
    use ledger::{Calendar, month};

    #[test]
    fn month_is_closed_ended_open_or_future() {
        let october = 681;
        let within = month::begin_us(october) + 1;
        let after = month::begin_us(october + 1);
        for (now_us, is_closed, state) in [
            (within, Some(false), MonthState::Open),
            (after, Some(false), MonthState::Ended),
            (after, Some(true), MonthState::Closed),
            (after, None, MonthState::Unknown),
            (within - 2, Some(false), MonthState::Future),
            (within - 2, None, MonthState::Future),
        ] {
            assert_eq!(
                MonthState::at(&Calendar::default(), october, now_us, is_closed),
                state,
                "{now_us} {is_closed:?}"
            );
        }
    }

    #[test]
    fn every_month_is_named_once() {
        let said = |states: &[(i32, MonthState)]| {
            sentence(states.iter().copied().collect::<BTreeMap<_, _>>().iter())
        };
        use MonthState::{Closed, Ended, Open};
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[(681, Closed)]).as_deref(), Some("2026-10 is closed"));
        assert_eq!(
            said(&[(676, Closed), (677, Closed), (678, Closed), (680, Closed), (681, Ended), (682, Open)])
                .as_deref(),
            Some(
                "2026-05 to 2026-07, 2026-09 are closed; 2026-10 is over and not closed, so that late exchanges may \
                 still be added; 2026-11 is open: exchanges are still added"
            )
        );
    }
}
