//! Decides which usage the proxy requests for a client: by the upstream's policy, its kind and its earlier answers. If
//! the option has no use or was rejected, the request is forwarded unchanged.

use exchange::{Question, Speaks, UpstreamFacts};
use http::HeaderMap;
use meter::Tick;
use scan::Dialect;
use usage::Policy;

use crate::Upstream;
use crate::upstream_profile::{ClientKey, UpstreamProfile};

/// The rules by which usage is requested in one request.
#[derive(Clone, Copy)]
pub(crate) struct UsagePolicy<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) profile: &'a UpstreamProfile,
    /// The client of the request.
    pub(crate) client: ClientKey,
    /// The time at which the request began.
    pub(crate) now: Tick,
}

impl UsagePolicy<'_> {
    /// Returns the usage to request with these header fields, as far as the path decides; `None` if there is no usage
    /// option, or the body decides.
    pub(crate) fn question_by_path(&self, speaks: Speaks, headers: &HeaderMap) -> Option<Question> {
        self.askable(speaks.usage_dialect()?, headers)
    }

    /// Returns the usage to request in this dialect, if it has a usage option.
    pub(crate) fn askable(&self, dialect: Dialect, headers: &HeaderMap) -> Option<Question> {
        let Self { upstream, profile, client, now } = *self;
        let mut facts = UpstreamFacts {
            kind: upstream.kind.or_else(|| profile.found_kind()),
            usage: upstream.usage,
            has_rust_front_end: profile.has_rust_front_end(),
            sends_usage_unasked: profile.sends_usage_unasked(now),
            ..UpstreamFacts::default()
        };
        if !facts.has_option(dialect) {
            return None;
        }
        // Only where the answer matters: a question about a rejected option may use up its next attempt.
        facts.refuses_running = facts.usage == Policy::Continuous && profile.refuses_running(client, now);
        facts.refuses_include = facts.may_include(dialect) && profile.refuses_include(client, now);
        facts.question(dialect, headers)
    }
}
