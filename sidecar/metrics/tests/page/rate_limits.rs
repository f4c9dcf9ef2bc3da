//! Rate limits: of all workers' values the latest is shown, never a sum.

use std::sync::Arc;

use meter::{Observer, Quota, QuotaReading, RateLimits};
use metrics::{Metrics, Options};

use crate::openmetrics;

/// Limits of the tokens, at a time in milliseconds.
fn at(ms: u64, remaining: u64) -> RateLimits {
    let mut limits = RateLimits { at_unix_ms: ms, ..RateLimits::default() };
    limits.quotas[Quota::Tokens as usize] =
        QuotaReading { limit: Some(100), remaining: Some(remaining), reset_unix_ms: Some(ms + 500) };
    limits
}

#[test]
fn latest_value_of_all_workers_is_shown() {
    let metrics = Metrics::new(Options::default());
    let (mut one, mut two) = (metrics.worker(), metrics.worker());
    let (in_one, in_two) = (one.model("m"), two.model("m"));
    let upstream: Arc<str> = "hosted".into();
    let tokens = [("model", "m"), ("upstream", "hosted"), ("quota", "tokens")];
    let get = |name: &str, labels: &[(&str, &str)]| openmetrics::read(&metrics.text()).get(name, labels);
    assert_eq!(get("tokenmeter_rate_limit", &tokens), None);

    one.rate_limits(in_one, &upstream, &at(1_000, 90));
    two.rate_limits(in_two, &upstream, &at(2_000, 80));
    assert_eq!(get("tokenmeter_rate_limit", &tokens), Some(100.0));
    assert_eq!(get("tokenmeter_rate_limit_remaining", &tokens), Some(80.0));
    assert_eq!(get("tokenmeter_rate_limit_reset_timestamp_seconds", &tokens), Some(2.5));
    let requests = [("model", "m"), ("upstream", "hosted"), ("quota", "requests")];
    assert_eq!(get("tokenmeter_rate_limit", &requests), None, "a quota without a report has no series");

    // A response without a field leaves the value of the one before.
    one.rate_limits(
        in_one,
        &upstream,
        &RateLimits { at_unix_ms: 3_000, retry_after_ms: Some(1_500), ..RateLimits::default() },
    );
    assert_eq!(get("tokenmeter_rate_limit_remaining", &tokens), Some(80.0));
    let upstream_only = [("model", "m"), ("upstream", "hosted")];
    assert_eq!(get("tokenmeter_retry_after_seconds", &upstream_only), Some(1.5));

    one.rate_limits(in_one, &upstream, &at(4_000, 0));
    assert_eq!(get("tokenmeter_rate_limit_remaining", &tokens), Some(0.0));
}
