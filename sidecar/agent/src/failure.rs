//! The failure of an attempt, by what the sender can do about it.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::agent::Error;

/// The failure of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub kind: Kind,
    /// The reason, without the address.
    pub reason: String,
    /// The pause that the receiver asks for.
    pub retry_after: Option<Duration>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// There was no response in time, or none that is HTTP.
    Unreachable,
    /// The receiver cannot accept anything now: 408, 425, 429 or 5xx.
    Busy,
    /// The receiver does not accept this body: 400, 413 or 422.
    Rejected,
    /// The receiver does not accept requests of this sender, or at this address: any other status, or an HTML page.
    Refused,
}

impl Failure {
    /// Returns true if the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Unreachable | Kind::Busy)
    }

    pub(crate) fn unreachable(error: &Error) -> Self {
        Self { kind: Kind::Unreachable, reason: error.to_string(), retry_after: None }
    }

    /// Returns the failure of a success with an HTML page.
    pub(crate) fn page(status: u16) -> Self {
        let reason = format!("status {status} with an HTML page, such as a login page or a web UI");
        Self { kind: Kind::Refused, reason, retry_after: None }
    }

    /// Returns the failure of a status; `None` for a success.
    pub(crate) fn of_status(status: u16, retry_after: Option<&str>) -> Option<Self> {
        let kind = match status {
            200..=299 => return None,
            408 | 425 | 429 | 500..=599 => Kind::Busy,
            400 | 413 | 422 => Kind::Rejected,
            _ => Kind::Refused,
        };
        let end = if (300..400).contains(&status) { ", and redirects are not followed" } else { "" };
        let retry_after = retry_after.and_then(pause);
        Some(Self { kind, reason: format!("status {status}{end}"), retry_after })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Returns the pause of `Retry-After`, which is in seconds or a date.
fn pause(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Failure, Kind};

    #[test]
    fn statuses_have_kinds() {
        for (kind, statuses) in [
            (Kind::Busy, &[408, 425, 429, 500, 503, 599][..]),
            (Kind::Rejected, &[400, 413, 422]),
            (Kind::Refused, &[100, 301, 307, 401, 403, 404, 405, 410, 600]),
        ] {
            for status in statuses {
                assert_eq!(Failure::of_status(*status, None).map(|it| it.kind), Some(kind), "{status}");
            }
        }
        assert_eq!(Failure::of_status(204, None), None);
    }

    #[test]
    fn requested_pause_is_read() {
        let pause = |text| Failure::of_status(429, Some(text)).and_then(|failure| failure.retry_after);
        assert_eq!(pause(" 7 "), Some(Duration::from_secs(7)));
        assert!(pause("Fri, 31 Dec 9999 23:59:59 GMT").is_some_and(|it| it > Duration::from_secs(60)));
        for text in ["Thu, 01 Jan 1970 00:00:00 GMT", "-1", "soon", ""] {
            assert_eq!(pause(text), None, "{text}");
        }
    }
}
