//! The facts detected about an upstream while serving it. Each fact is one word: the worker that detects it writes it,
//! every worker reads it at an exchange's start, and none waits for another (law 7). Facts about behaviour expire after
//! [`limits::REMEMBERED_NS`], because servers are restarted with other options.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use exchange::fingerprint;
use meter::{DEFAULT_TENANT, Tick};
use usage::AddedOptions;

use crate::{ServerKind, limits};

/// The known facts of one upstream beyond its configuration.
#[derive(Debug, Default)]
pub struct UpstreamProfile {
    /// Index of the kind in [`ServerKind::ALL`], plus one.
    kind: AtomicU8,
    /// True if vLLM's front end is the Rust one, which frames its answers differently as soon as running usage is
    /// requested.
    rust_front_end: AtomicU8,
    include: Verdict,
    running: Verdict,
    sends_usage: Until,
    says_nothing: Until,
}

/// A fact with its expiry: nanoseconds of the monotonic clock, 0 if it was never detected.
#[derive(Debug, Default)]
struct Until(AtomicU64);

impl Until {
    /// Written only if it changes much: all workers read the word.
    fn learn(&self, now: Tick) {
        let until = now.0.saturating_add(limits::REMEMBERED_NS);
        if until.saturating_sub(self.0.load(Ordering::Relaxed)) > limits::REMEMBERED_NS / 20 {
            self.0.store(until, Ordering::Relaxed);
        }
    }

    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn holds(&self, now: Tick) -> bool {
        self.0.load(Ordering::Relaxed) > now.0
    }
}

/// The client of a request, by which rejections are counted: its tenant, or its address if no tenant rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientKey(u64);

impl ClientKey {
    /// The client with this tenant, if known, at this address.
    pub fn of(tenant: Option<&str>, peer: IpAddr) -> Self {
        let client = match tenant.filter(|tenant| *tenant != DEFAULT_TENANT) {
            Some(tenant) => fingerprint(tenant),
            None => fingerprint(&peer),
        };
        // Zero means no client.
        Self(client | 1)
    }
}

/// The server's reaction to one usage option. A rejection of one client's request holds for that client, and for all as
/// soon as a second client has one: one client could make its own requests fail on purpose. One request a minute tries
/// again.
#[derive(Debug, Default)]
struct Verdict {
    accepts: Until,
    /// The client of the last rejection.
    refused: AtomicU64,
    refuses_one: Until,
    refuses_all: Until,
    /// The tick from which a request tries again despite a rejection.
    probe_at: AtomicU64,
}

impl Verdict {
    fn accept(&self, now: Tick) {
        self.accepts.learn(now);
        if self.refuses_one.is_set() || self.refuses_all.is_set() {
            self.refuses_one.forget();
            self.refuses_all.forget();
        }
    }

    /// If the server accepted lately, the rejection does not hold for all.
    fn refuse(&self, client: ClientKey, now: Tick) {
        if self.accepts.holds(now) {
            return;
        }
        let before = self.refused.swap(client.0, Ordering::Relaxed);
        if self.refuses_one.holds(now) && before != client.0 {
            self.refuses_all.learn(now);
        }
        self.refuses_one.learn(now);
        self.probe_at.store(now.0.saturating_add(limits::REJECTION_RETRY_NS), Ordering::Relaxed);
    }

    fn refuses(&self, client: ClientKey, now: Tick) -> bool {
        let is_its = || self.refused.load(Ordering::Relaxed) == client.0 && self.refuses_one.holds(now);
        if !self.refuses_all.holds(now) && !is_its() {
            return false;
        }
        let (due, next) =
            (self.probe_at.load(Ordering::Relaxed), now.0.saturating_add(limits::REJECTION_RETRY_NS));
        let probes = due <= now.0
            && self.probe_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        !probes
    }
}

impl UpstreamProfile {
    /// Records the detected kind of the server.
    pub fn kind(&self, kind: ServerKind) {
        let number = ServerKind::ALL.iter().position(|known| *known == kind).unwrap_or(0) + 1;
        self.kind.store(u8::try_from(number).unwrap_or(0), Ordering::Relaxed);
    }

    /// The detected kind.
    pub fn found_kind(&self) -> Option<ServerKind> {
        let number = usize::from(self.kind.load(Ordering::Relaxed));
        ServerKind::ALL.get(number.checked_sub(1)?).copied()
    }

    /// Records whether vLLM's front end is the Rust one.
    pub fn front_end(&self, rust: bool) {
        self.rust_front_end.store(u8::from(rust), Ordering::Relaxed);
    }

    /// Returns true if it is the Rust one.
    pub fn has_rust_front_end(&self) -> bool {
        self.rust_front_end.load(Ordering::Relaxed) == 1
    }

    /// Records that the server accepted a request with the `added` options.
    pub fn accepts(&self, added: AddedOptions, now: Tick) {
        for (verdict, asked) in [(&self.include, added.include), (&self.running, added.is_running())] {
            if asked {
                verdict.accept(now);
            }
        }
    }

    /// Records that the server answered 400 to the request of `client` with the `added` options, and not to the
    /// original.
    pub fn refuses(&self, added: AddedOptions, client: ClientKey, now: Tick) {
        let verdict = if added.is_running() { &self.running } else { &self.include };
        verdict.refuse(client, now);
    }

    /// Returns true if the server rejects the option for usage at the end.
    pub fn refuses_include(&self, client: ClientKey, now: Tick) -> bool {
        self.include.refuses(client, now)
    }

    /// Returns true if the server rejects the option for running counts.
    pub fn refuses_running(&self, client: ClientKey, now: Tick) -> bool {
        self.running.refuses(client, now)
    }

    /// Records that the server sent usage without a request for it.
    pub fn sends_usage(&self, now: Tick) {
        self.sends_usage.learn(now);
    }

    /// Records that a whole stream without the option had no usage.
    pub fn sends_no_usage(&self) {
        self.sends_usage.forget();
    }

    /// Returns true if the server lately sent usage without a request for it.
    pub fn sends_usage_unasked(&self, now: Tick) -> bool {
        self.sends_usage.holds(now)
    }

    /// Records whether a whole stream had a count of any kind.
    pub fn reports(&self, something: bool, now: Tick) {
        if something { self.says_nothing.forget() } else { self.says_nothing.learn(now) }
    }

    /// Returns true if the last whole stream had no count.
    pub fn says_nothing(&self, now: Tick) -> bool {
        self.says_nothing.holds(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: AddedOptions = AddedOptions { include: true, continuous: false, timings: false };
    const BOTH: AddedOptions = AddedOptions { continuous: true, ..END };

    fn client(number: u8) -> ClientKey {
        ClientKey::of(None, [127, 0, 0, number].into())
    }

    #[test]
    fn one_clients_rejection_holds_for_it_alone() {
        let (profile, now) = (UpstreamProfile::default(), Tick(5));
        profile.refuses(END, client(1), now);
        profile.refuses(END, client(1), now);
        assert!(profile.refuses_include(client(1), now) && !profile.refuses_include(client(2), now));
        assert!(!profile.refuses_running(client(1), now));
        profile.refuses(END, client(2), now);
        assert!([1, 2, 3].iter().all(|number| profile.refuses_include(client(*number), now)));
        let later = 5 + limits::REMEMBERED_NS;
        assert!(!profile.refuses_include(client(3), Tick(later)), "it is forgotten");
    }

    #[test]
    fn one_request_a_minute_tries_again() {
        let (profile, now) = (UpstreamProfile::default(), Tick(5));
        profile.refuses(BOTH, client(1), now);
        profile.refuses(BOTH, client(2), now);
        let due = Tick(5 + limits::REJECTION_RETRY_NS);
        assert!(profile.refuses_running(client(3), Tick(due.0 - 1)));
        assert!(!profile.refuses_running(client(3), due) && profile.refuses_running(client(3), due));
        profile.accepts(BOTH, due);
        assert!(!profile.refuses_running(client(1), due) && !profile.refuses_running(client(3), due));
        profile.refuses(BOTH, client(1), due);
        profile.refuses(BOTH, client(2), due);
        assert!(!profile.refuses_running(client(1), due), "only one request tries again");
    }

    #[test]
    fn accepted_option_leaves_the_other_unchanged() {
        let (profile, now) = (UpstreamProfile::default(), Tick(5));
        profile.refuses(BOTH, client(1), now);
        profile.accepts(END, now);
        assert!(profile.refuses_running(client(1), now));
        profile.refuses(BOTH, client(2), now);
        assert!(profile.refuses_running(client(3), now));
    }

    #[test]
    fn client_is_its_tenant_where_one_is_known() {
        let (one, other) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        assert_eq!(ClientKey::of(Some("a"), one), ClientKey::of(Some("a"), other));
        assert_ne!(ClientKey::of(Some("a"), one), ClientKey::of(Some("b"), one));
        assert_ne!(ClientKey::of(Some(DEFAULT_TENANT), one), ClientKey::of(Some(DEFAULT_TENANT), other));
        assert_eq!(ClientKey::of(None, one), ClientKey::of(Some(DEFAULT_TENANT), one));
    }

    #[test]
    fn every_kind_is_stored_and_read() {
        let profile = UpstreamProfile::default();
        assert_eq!(profile.found_kind(), None);
        for kind in ServerKind::ALL {
            profile.kind(kind);
            assert_eq!(profile.found_kind(), Some(kind));
        }
    }
}
