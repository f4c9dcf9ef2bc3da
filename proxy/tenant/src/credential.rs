//! The API keys in a header field's value. Servers and gateways accept a key bare, after `Bearer`, after any
//! scheme (LiteLLM accepts `Basic KEY`), as user or password of `Basic`, or in the credential of an AWS
//! signature. A key proves itself, so each form is tried.

use base64::Engine;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

/// Base64 with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the first result of `known` for the keys that `value` may contain.
pub(crate) fn find<R>(value: &[u8], mut known: impl FnMut(&[u8]) -> Option<R>) -> Option<R> {
    let mut known = |key: &[u8]| {
        let key = key.trim_ascii();
        if key.is_empty() { None } else { known(key) }
    };
    let value = value.trim_ascii();
    // After a scheme first: nearly every client sends the key there.
    if let Some(space) = value.iter().position(u8::is_ascii_whitespace) {
        let (scheme, rest) = (&value[..space], value[space..].trim_ascii());
        if let Some(hit) = known(rest) {
            return Some(hit);
        }
        if scheme.eq_ignore_ascii_case(b"basic")
            && let Ok(decoded) = BASE64.decode(rest)
        {
            let colon = decoded.iter().position(|&byte| byte == b':');
            let (user, password) =
                colon.map_or((&decoded[..], &b""[..]), |at| (&decoded[..at], &decoded[at + 1..]));
            if let Some(hit) = known(password).or_else(|| known(user)) {
                return Some(hit);
            }
        }
        if let Some(hit) = behind_bearer(rest).and_then(&mut known) {
            return Some(hit);
        }
    }
    known(value)
}

/// The key in `AWS4-HMAC-SHA256 Credential=Bearer KEY/date/region, …`.
fn behind_bearer(rest: &[u8]) -> Option<&[u8]> {
    const BEARER: &[u8] = b"Bearer ";
    let at = rest.windows(BEARER.len()).position(|part| part.eq_ignore_ascii_case(BEARER))?;
    let key = rest[at + BEARER.len()..].trim_ascii_start();
    let end = key.iter().position(|&byte| matches!(byte, b'/' | b',') || byte.is_ascii_whitespace());
    Some(&key[..end.unwrap_or(key.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_key_is_found() {
        let basic = |text: &str| BASE64.encode(text);
        let encoded = [basic("sk-1:"), basic("user:sk-1"), basic("sk-1"), basic(":sk-1")];
        let mut spellings = vec![
            "sk-1".to_owned(),
            "  sk-1 ".to_owned(),
            "Bearer sk-1".to_owned(),
            "bearer  sk-1".to_owned(),
            "BEARER\tsk-1".to_owned(),
            "Basic sk-1".to_owned(),
            "Token sk-1".to_owned(),
            "AWS4-HMAC-SHA256 Credential=Bearer sk-1/20261101/us/bedrock, SignedHeaders=host".to_owned(),
        ];
        spellings.extend(encoded.iter().map(|encoded| format!("Basic {encoded}")));
        spellings.push(format!("basic {}", encoded[0].trim_end_matches('=')));
        for spelling in &spellings {
            let hit = find(spelling.as_bytes(), |key| (key == b"sk-1").then_some(()));
            assert_eq!(hit, Some(()), "{spelling}");
        }
    }

    #[test]
    fn other_values_are_no_key() {
        for other in
            ["", " ", "sk-12", "Bearer", "Bearer ", "Bearer sk-1 x", "Basic !!!", "Basic", "x sk-1/2"]
        {
            let hit = find(other.as_bytes(), |key| (key == b"sk-1").then_some(()));
            assert_eq!(hit, None, "{other}");
        }
    }
}
