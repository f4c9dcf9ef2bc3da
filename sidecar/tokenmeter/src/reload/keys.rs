//! A source of published keys: reads or fetches it again, and keeps the last valid set.

use std::time::{Duration, Instant};

use metrics::ReloadedFile;
use rules::{JWKS_BYTES, KeySource, Place};
use tenant::KeySet;

use super::fetch::Fetch;
use super::{LastRead, ReloadResult};

/// The intervals of fetches from a URL.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchIntervals {
    /// The regular interval.
    pub(super) regular: Duration,
    /// The minimum interval, after a token with an unknown key or a failed fetch: forged tokens must not cause
    /// requests to the issuer.
    pub(super) minimum: Duration,
}

/// The default intervals: issuers publish a new key well before they use it, and allow longer caching.
pub(super) const FETCH_INTERVALS: FetchIntervals =
    FetchIntervals { regular: Duration::from_secs(300), minimum: Duration::from_secs(30) };

/// A source and its last result.
pub(super) struct KeysWatch {
    pub(super) source: KeySource,
    pub(super) keys: KeySet,
    last: LastRead,
    fetch: Option<Fetch>,
    asked: Option<Instant>,
    failed: bool,
    intervals: FetchIntervals,
}

impl KeysWatch {
    /// Creates the watch with its current keys, which may be empty.
    pub(super) fn new(source: KeySource, keys: KeySet, intervals: FetchIntervals) -> Self {
        let fetch = match &source.place {
            Place::Url(url) => Some(Fetch::new(url.starts_with("https:"))),
            Place::File(_) => None,
        };
        Self { source, keys, last: LastRead::Never, fetch, asked: None, failed: false, intervals }
    }

    /// Returns the watch with the source of new rules.
    pub(super) fn renamed(self, source: KeySource) -> Self {
        Self { source, ..self }
    }

    /// Checks the source if it is due; returns true if the keys changed.
    pub(super) fn check(&mut self, now: Instant, urgent: bool, results: &mut Vec<ReloadResult>) -> bool {
        let is_url = matches!(self.source.place, Place::Url(_));
        if is_url && !self.is_time(now, urgent) {
            return false;
        }
        let content = match (&self.source.place, &self.fetch) {
            (Place::File(path), _) => self.last.changed(path, JWKS_BYTES),
            (Place::Url(url), Some(fetch)) => {
                let got = match fetch.get(url) {
                    Ok(content) => LastRead::Read(content),
                    Err(why) => LastRead::Unreadable(why),
                };
                self.asked = Some(now);
                self.failed = matches!(got, LastRead::Unreadable(_));
                let changed = got != self.last;
                self.last = got;
                match (&self.last, changed) {
                    (LastRead::Read(content), true) => Some(Ok(content.clone())),
                    (LastRead::Unreadable(why), true) => Some(Err(why.clone())),
                    _ => None,
                }
            }
            (Place::Url(_), None) => None,
        };
        let Some(content) = content else { return false };
        let read = content.and_then(|json| KeySet::read(&json).map_err(|error| error.to_string()));
        self.failed = read.is_err();
        let named = self.source.shown();
        let (outcome, changed) = match read {
            Ok(keys) => {
                let outcome = format!("{} keys of {named}", keys.len());
                self.keys = keys;
                (Ok(outcome), true)
            }
            Err(why) => (Err(format!("{}: the keys of {named}: {why}", self.source.origin)), false),
        };
        results.push(ReloadResult { kind: ReloadedFile::Keys, outcome });
        changed
    }

    fn is_time(&mut self, now: Instant, urgent: bool) -> bool {
        let Some(asked) = self.asked else { return true };
        let since = now.saturating_duration_since(asked);
        // `take_missed` resets its flag, so it is called only when a fetch would follow.
        let soon = since >= self.intervals.minimum && (self.failed || self.keys.take_missed());
        urgent || soon || since >= self.intervals.regular
    }
}
