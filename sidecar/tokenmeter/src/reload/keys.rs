//! One source of published keys: read or fetched again, and the last good set kept.

use std::time::{Duration, Instant};

use tenant::KeySet;

use super::fetch::Fetch;
use super::{Last, News, Which};
use crate::plan::tenants::{JWKS_BYTES, KeySource, Place};

/// How often a URL is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Without a reason.
    pub(super) usual: Duration,
    /// At the soonest, when a token named a key that is not there, or the last time failed: tokens
    /// that were made up must not turn into requests to the issuer.
    pub(super) soonest: Duration,
}

/// Issuers publish a new key well before they use it, and let its set be cached for longer.
pub(super) const PACE: Pace = Pace { usual: Duration::from_secs(300), soonest: Duration::from_secs(30) };

/// A source, and what it said last.
pub(super) struct KeysWatch {
    pub(super) source: KeySource,
    pub(super) keys: KeySet,
    last: Last,
    fetch: Option<Fetch>,
    asked: Option<Instant>,
    failed: bool,
    pace: Pace,
}

impl KeysWatch {
    /// Begins with `keys`, which may be none yet.
    pub(super) fn new(source: KeySource, keys: KeySet, pace: Pace) -> Self {
        let fetch = match &source.place {
            Place::Url(url) => Some(Fetch::new(url.starts_with("https:"))),
            Place::File(_) => None,
        };
        Self { source, keys, last: Last::Never, fetch, asked: None, failed: false, pace }
    }

    /// The same, as new rules name it.
    pub(super) fn renamed(self, source: KeySource) -> Self {
        Self { source, ..self }
    }

    /// Looks, if it is time to; whether there are other keys now.
    pub(super) fn look(&mut self, now: Instant, urgent: bool, news: &mut Vec<News>) -> bool {
        let is_url = matches!(self.source.place, Place::Url(_));
        if is_url && !self.is_time(now, urgent) {
            return false;
        }
        let content = match (&self.source.place, &self.fetch) {
            (Place::File(path), _) => self.last.changed(path, JWKS_BYTES),
            (Place::Url(url), Some(fetch)) => {
                let got = match fetch.get(url) {
                    Ok(content) => Last::Read(content),
                    Err(why) => Last::Unreadable(why),
                };
                self.asked = Some(now);
                self.failed = matches!(got, Last::Unreadable(_));
                let changed = got != self.last;
                self.last = got;
                match (&self.last, changed) {
                    (Last::Read(content), true) => Some(Ok(content.clone())),
                    (Last::Unreadable(why), true) => Some(Err(why.clone())),
                    _ => None,
                }
            }
            (Place::Url(_), None) => None,
        };
        let Some(content) = content else { return false };
        let read = content.and_then(|json| KeySet::read(&json).map_err(|error| error.to_string()));
        self.failed = read.is_err();
        let named = self.source.shown();
        let (said, changed) = match read {
            Ok(keys) => {
                let said = format!("{} keys of {named}", keys.len());
                self.keys = keys;
                (Ok(said), true)
            }
            Err(why) => (Err(format!("{}: the keys of {named}: {why}", self.source.origin)), false),
        };
        news.push(News { which: Which::Keys, said });
        changed
    }

    fn is_time(&mut self, now: Instant, urgent: bool) -> bool {
        let Some(asked) = self.asked else { return true };
        let since = now.saturating_duration_since(asked);
        // Action only when it would count, so that a missing key is not forgotten before that.
        let soon = since >= self.pace.soonest && (self.failed || self.keys.take_missed());
        urgent || soon || since >= self.pace.usual
    }
}
