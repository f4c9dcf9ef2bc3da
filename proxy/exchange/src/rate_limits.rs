//! The rate limits in the head of a response. A value that is not exactly in its format, or not plausible, is ignored.
//!
//! - OpenAI, Azure OpenAI, Groq and others: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`; a reset is a
//!   duration (`6m0s`, `120ms`, or seconds without a unit).
//! - Anthropic: `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}`; a reset is a
//!   time by RFC 3339.
//! - All: `retry-after`, in seconds or as an HTTP date (RFC 9110 §10.2.3).

use std::time::UNIX_EPOCH;

use http::HeaderMap;
use jiff::Timestamp;
use meter::{Quota, RateLimits};

/// Reads the rate limits of a head; `None` without any. `unix_ms` returns the current time in milliseconds since 1970;
/// it is called only if a field is found.
pub fn read(headers: &HeaderMap, unix_ms: impl FnOnce() -> u64) -> Option<RateLimits> {
    let mut fields = headers.iter().filter_map(|(name, value)| {
        let field = Field::of(name.as_str())?;
        Some((field, value.to_str().ok()?.trim()))
    });
    let first = fields.next()?;
    let now = unix_ms();
    let mut limits = RateLimits { at_unix_ms: now, ..RateLimits::default() };
    for (field, text) in [first].into_iter().chain(fields) {
        match field {
            Field::RetryAfter => {
                let date = || date_unix_ms(text).and_then(|date| plausible(date.saturating_sub(now)));
                limits.retry_after_ms = seconds(text).or_else(date);
            }
            Field::Of(quota, Part::Limit) => limits.quotas[quota as usize].limit = count(text),
            Field::Of(quota, Part::Remaining) => limits.quotas[quota as usize].remaining = count(text),
            Field::Of(quota, Part::Reset) => {
                let reset = duration_ms(text).map(|duration| now.saturating_add(duration));
                let at = || time_unix_ms(text).filter(|at| plausible(at.abs_diff(now)).is_some());
                limits.quotas[quota as usize].reset_unix_ms = reset.or_else(at);
            }
        }
    }
    (limits != RateLimits { at_unix_ms: now, ..RateLimits::default() }).then_some(limits)
}

/// The meaning of a field.
#[derive(Clone, Copy)]
enum Field {
    Of(Quota, Part),
    RetryAfter,
}

/// A part of a quota's state.
#[derive(Clone, Copy)]
enum Part {
    Limit,
    Remaining,
    Reset,
}

impl Field {
    fn of(name: &str) -> Option<Self> {
        let (quota, part) = if let Some(rest) = name.strip_prefix("x-ratelimit-") {
            let (part, quota) = rest.split_once('-')?;
            (quota, part)
        } else if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
            rest.rsplit_once('-')?
        } else {
            return (name == "retry-after").then_some(Self::RetryAfter);
        };
        let part = match part {
            "limit" => Part::Limit,
            "remaining" => Part::Remaining,
            "reset" => Part::Reset,
            _ => return None,
        };
        let quota = match quota {
            "requests" => Quota::Requests,
            "tokens" => Quota::Tokens,
            "input-tokens" => Quota::InputTokens,
            "output-tokens" => Quota::OutputTokens,
            _ => return None,
        };
        Some(Self::Of(quota, part))
    }
}

/// The maximum of a duration in milliseconds: a month. A time since 1970 in the place of a duration is above it.
const DURATION_MAX_MS: u64 = 31 * 24 * 3_600_000;

/// The maximum digits of a count; a double holds them exactly.
const COUNT_MAX_DIGITS: usize = 15;

/// The units of a duration in milliseconds, the longest first. `ms` stands before `m`, which it begins with.
const UNITS: [(&str, f64); 4] = [("h", 3_600_000.0), ("ms", 1.0), ("m", 60_000.0), ("s", 1_000.0)];

fn plausible(ms: u64) -> Option<u64> {
    (ms <= DURATION_MAX_MS).then_some(ms)
}

fn count(text: &str) -> Option<u64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits && text.len() <= COUNT_MAX_DIGITS).then(|| text.parse().ok())?
}

/// Reads seconds, with decimals or without, as milliseconds.
fn seconds(text: &str) -> Option<u64> {
    let (value, rest) = decimal(text)?;
    if rest.is_empty() { plausible((value * 1_000.0).round() as u64) } else { None }
}

/// Reads a duration as Go writes it, or seconds, as milliseconds.
fn duration_ms(text: &str) -> Option<u64> {
    if let Some(ms) = seconds(text) {
        return Some(ms);
    }
    let (mut rest, mut sum, mut before) = (text, 0.0, f64::INFINITY);
    while !rest.is_empty() {
        let (value, after) = decimal(rest)?;
        let (unit, factor) = UNITS.into_iter().find(|(unit, _)| after.starts_with(unit))?;
        if factor >= before {
            return None;
        }
        (rest, sum, before) = (&after[unit.len()..], sum + value * factor, factor);
    }
    (before < f64::INFINITY).then_some(())?;
    plausible(sum.round() as u64)
}

/// Reads the decimal number at the beginning of a text; returns the rest, too.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let is_number = number.len() <= 2 * COUNT_MAX_DIGITS
        && number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit());
    if is_number { Some((number.parse().ok()?, rest)) } else { None }
}

/// Reads a time by RFC 3339.
fn time_unix_ms(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let has_offset = text.ends_with('Z')
        || bytes
            .len()
            .checked_sub(6)
            .is_some_and(|at| matches!(bytes[at], b'+' | b'-') && bytes[at + 3] == b':');
    if !(20..=35).contains(&bytes.len()) || bytes[10] != b'T' || !has_offset {
        return None;
    }
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

/// Reads an HTTP date.
fn date_unix_ms(text: &str) -> Option<u64> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use meter::QuotaReading;
    use proptest::prelude::*;

    use super::*;

    /// 2026-07-01T12:00:00Z.
    const NOW: u64 = 1_782_907_200_000;

    fn of(fields: &[(&str, &str)]) -> Option<RateLimits> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        read(&headers, || NOW)
    }

    #[test]
    fn openai_fields_are_two_quotas() {
        let limits = of(&[
            ("content-type", "application/json"),
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ]);
        let requests =
            QuotaReading { limit: Some(500), remaining: Some(499), reset_unix_ms: Some(NOW + 120) };
        let tokens =
            QuotaReading { limit: Some(150_000), remaining: Some(0), reset_unix_ms: Some(NOW + 360_000) };
        let none = QuotaReading::default();
        let expected =
            RateLimits { at_unix_ms: NOW, quotas: [requests, tokens, none, none], retry_after_ms: None };
        assert_eq!(limits, Some(expected));
    }

    #[test]
    fn anthropic_fields_are_four_quotas() {
        let mut fields = Vec::new();
        for (at, quota) in ["requests", "tokens", "input-tokens", "output-tokens"].into_iter().enumerate() {
            fields.push((format!("anthropic-ratelimit-{quota}-limit"), format!("{}", 100 * (at + 1))));
            fields.push((format!("anthropic-ratelimit-{quota}-remaining"), format!("{at}")));
            fields.push((format!("anthropic-ratelimit-{quota}-reset"), format!("2026-07-01T12:00:0{at}Z")));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let limits = of(&fields).unwrap();
        for (at, quota) in (0..).zip(limits.quotas) {
            let expected = QuotaReading {
                limit: Some(100 * (at + 1)),
                remaining: Some(at),
                reset_unix_ms: Some(NOW + 1_000 * at),
            };
            assert_eq!(quota, expected, "{at}");
        }
    }

    #[test]
    fn a_head_without_limits_reads_no_clock() {
        let mut headers = HeaderMap::new();
        for name in ["x-ratelimit-limit", "x-ratelimit-limit-images", "anthropic-ratelimit-unified-status"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        assert_eq!(read(&headers, || panic!("read the clock")), None);
    }

    #[test]
    fn resets_are_durations_or_times() {
        for (text, expected) in [
            ("1s", Some(1_000)),
            ("6m0s", Some(360_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("7.66s", Some(7_660)),
            ("17ms", Some(17)),
            ("2m59.56s", Some(179_560)),
            ("1", Some(1_000)),
            ("0.25", Some(250)),
            ("0s", Some(0)),
            ("744h", Some(DURATION_MAX_MS)),
            ("745h", None),
            ("1790000000", None),
            ("1790000000000", None),
            ("", None),
            ("s", None),
            ("1d", None),
            ("1s1m", None),
            ("1s1s", None),
            ("1m ", Some(60_000)),
            ("1 m", None),
            ("-1s", None),
            ("+1s", None),
            ("1.s", None),
            (".5s", None),
            ("1..5s", None),
            ("1e3", None),
            ("inf", None),
            ("NaN", None),
            ("2026-07-01T12:00:42Z", Some(42_000)),
            ("2026-07-01T14:00:42+02:00", Some(42_000)),
            ("2026-07-01T12:00:00.250Z", Some(250)),
            ("2026-07-01 12:00:42Z", None),
            ("2026-07-01T12:00:42", None),
            ("2026-07-01", None),
            ("2026-13-01T12:00:42Z", None),
            ("2027-07-01T12:00:42Z", None),
            ("1970-01-01T00:00:00Z", None),
        ] {
            let limits = of(&[("x-ratelimit-reset-tokens", text)]);
            let reset = limits.and_then(|limits| limits.quotas[Quota::Tokens as usize].reset_unix_ms);
            assert_eq!(reset, expected.map(|ms| NOW + ms), "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (text, expected) in [
            ("1", Some(1_000)),
            ("0", Some(0)),
            ("0.5", Some(500)),
            ("Wed, 01 Jul 2026 12:01:00 GMT", Some(60_000)),
            ("Wed, 01 Jul 2026 11:00:00 GMT", Some(0)),
            ("Fri, 01 Jan 2027 11:00:00 GMT", None),
            ("-1", None),
            ("1s", None),
            ("soon", None),
            ("99999999999999999999", None),
        ] {
            let limits = of(&[("retry-after", text)]);
            assert_eq!(limits.and_then(|limits| limits.retry_after_ms), expected, "{text}");
        }
    }

    #[test]
    fn invalid_counts_are_ignored() {
        for text in ["", "-1", "+1", "1.0", "1e3", "0x1", "1 000", "9999999999999999", "unlimited"] {
            assert_eq!(of(&[("x-ratelimit-remaining-tokens", text)]), None, "{text}");
        }
        assert!(of(&[("x-ratelimit-remaining-tokens", "999999999999999")]).is_some());
    }

    proptest! {
        #![proptest_config(chance::cases(2048))]

        #[test]
        fn any_text_is_read_within_its_bounds(text in "[0-9a-zA-Z:.+ -]{0,40}") {
            let fields = ["x-ratelimit-reset-tokens", "x-ratelimit-limit-tokens", "retry-after"];
            if let Some(limits) = of(&fields.map(|name| (name, text.as_str()))) {
                let tokens = limits.quotas[Quota::Tokens as usize];
                prop_assert!(tokens.reset_unix_ms.is_none_or(|at| at.abs_diff(NOW) <= DURATION_MAX_MS));
                prop_assert!(tokens.limit.is_none_or(|limit| limit < 10_u64.pow(15)));
                prop_assert!(limits.retry_after_ms.is_none_or(|ms| ms <= DURATION_MAX_MS));
            }
        }
    }
}
