//! Signed tokens (RFC 7519, 7515), verified by the rules of RFC 8725: the algorithm must be allowed by the
//! rule and match the key. Issuer, audience and time are checked after the signature, the time against the
//! caller's clock.
//!
//! Keys and key URLs inside a token (`jwk`, `jku`, `x5c`) are not used. Extensions under `crit` are
//! unsupported, so a token with `crit` is invalid.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::jwk::{Algorithm, KeySet};
use crate::name::bounded;
use crate::request::Head;
use meter::TokenRejection;

/// The limit of a token's length, bytes. Tokens in use have one or two thousand; most servers refuse header
/// fields above 16 KiB.
pub const TOKEN_MAX_BYTES: usize = 16 * 1024;

/// A rule that takes the tenant from a token's claims.
#[derive(Clone, Debug)]
pub struct Jwt {
    /// The source of the keys as written, a file or a URL; used as a name only.
    pub source: Arc<str>,
    /// The keys; empty until they are available.
    pub keys: KeySet,
    /// The allowed algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The allowed issuers: `iss` is one of these.
    pub issuers: Vec<Box<str>>,
    /// The allowed audiences: one of `aud` is one of these. If empty, the audience is not checked, so tokens
    /// for other services count too.
    pub audiences: Vec<Box<str>>,
    /// The claim with the tenant.
    pub tenant: Claim,
    /// The claim with the principal, if any.
    pub principal: Option<Claim>,
    /// The allowed clock difference in seconds.
    pub leeway_s: u64,
    /// The header field of the token, in lower case; `Authorization: Bearer` if none is set.
    pub field: Option<Box<str>>,
}

/// A claim, by its name or its path of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim(pub Vec<Box<str>>);

/// The claims of a correctly signed token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) tenant: Box<str>,
    pub(crate) principal: Option<Box<str>>,
    /// The start of validity in seconds since 1970, leeway included.
    pub(crate) from: u64,
    /// The end of validity, exclusive.
    pub(crate) until: u64,
}

impl Jwt {
    /// Returns the possible tokens in a head, in the order sent.
    pub(crate) fn tokens<'a>(&self, head: &Head<'a>) -> impl Iterator<Item = &'a [u8]> {
        let named = self.field.as_deref();
        let bearers = named.is_none().then(|| head.bearers()).into_iter().flatten();
        let named = named.map(|field| head.each(field)).into_iter().flatten();
        let named = named.map(|value| value.strip_prefix(b"Bearer ").unwrap_or(value));
        bearers.chain(named).filter(|token| {
            let dots = token.iter().filter(|byte| **byte == b'.').count();
            token.len() <= TOKEN_MAX_BYTES && dots == 2
        })
    }

    /// Returns the claims of a token with a valid signature, issuer and audience. The caller checks the
    /// validity in time.
    pub(crate) fn claims(&self, token: &[u8]) -> Result<Claims, TokenRejection> {
        let Parts { head, payload, message, signature } = parts(token).ok_or(TokenRejection::Malformed)?;
        let algorithm = head.get("alg").and_then(Value::as_str).ok_or(TokenRejection::Malformed)?;
        let algorithm = Algorithm::from_name(algorithm).filter(|one| self.algorithms.contains(one));
        let algorithm = algorithm.ok_or(TokenRejection::Algorithm)?;
        let id = match head.get("kid") {
            Some(id) => Some(id.as_str().ok_or(TokenRejection::Malformed)?),
            None => None,
        };
        if head.get("crit").is_some() {
            return Err(TokenRejection::Malformed);
        }
        self.keys.verify(algorithm, id, message.as_bytes(), &signature)?;
        self.check_claims(&json(payload).ok_or(TokenRejection::Malformed)?)
    }

    fn check_claims(&self, claims: &Value) -> Result<Claims, TokenRejection> {
        let issuer = claims.get("iss").and_then(Value::as_str).ok_or(TokenRejection::Issuer)?;
        if !self.issuers.iter().any(|known| **known == *issuer) {
            return Err(TokenRejection::Issuer);
        }
        if !self.has_audience(claims.get("aud")) {
            return Err(TokenRejection::Audience);
        }
        let until = claims.get("exp").and_then(|exp| second(exp, f64::floor)).ok_or(TokenRejection::Times)?;
        let from = match claims.get("nbf") {
            Some(from) => second(from, f64::ceil).ok_or(TokenRejection::Times)?,
            None => 0,
        };
        Ok(Claims {
            tenant: self.tenant.text(claims).ok_or(TokenRejection::Tenant)?,
            principal: self.principal.as_ref().and_then(|claim| claim.text(claims)),
            from: from.saturating_sub(self.leeway_s),
            until: until.saturating_add(self.leeway_s),
        })
    }

    fn has_audience(&self, audience: Option<&Value>) -> bool {
        let known = |one: &Value| self.audiences.iter().any(|known| one.as_str() == Some(known));
        self.audiences.is_empty()
            || match audience {
                Some(Value::Array(several)) => several.iter().any(known),
                Some(one) => known(one),
                None => false,
            }
    }
}

impl Claim {
    /// Returns the claim's text: a string, or a whole number as written. A list with one entry counts as
    /// that entry; a list with several names no tenant.
    fn text(&self, claims: &Value) -> Option<Box<str>> {
        let mut value = self.0.iter().try_fold(claims, |value, name| value.get(&**name))?;
        if let Value::Array(entries) = value {
            value = match entries.as_slice() {
                [only] => only,
                _ => return None,
            };
        }
        let text: Box<str> = match value {
            Value::String(text) => text.as_str().into(),
            Value::Number(number) if !number.is_f64() => number.to_string().into(),
            _ => return None,
        };
        bounded(&text).is_some().then_some(text)
    }
}

/// A token split into its parts.
struct Parts<'a> {
    head: Value,
    payload: &'a str,
    /// The signed text.
    message: &'a str,
    signature: Vec<u8>,
}

fn parts(token: &[u8]) -> Option<Parts<'_>> {
    let (message, signature) = std::str::from_utf8(token).ok()?.rsplit_once('.')?;
    let (head, payload) = message.split_once('.')?;
    Some(Parts { head: json(head)?, payload, message, signature: URL_SAFE_NO_PAD.decode(signature).ok()? })
}

fn json(part: &str) -> Option<Value> {
    let value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()?;
    matches!(value, Value::Object(_)).then_some(value)
}

/// Reads a time in seconds since 1970, which may have a fraction.
fn second(value: &Value, round: fn(f64) -> f64) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole);
    }
    // Above 2^53 a fraction has no meaning; such a time is invalid.
    let second = value.as_f64().filter(|second| (0.0..9e15).contains(second))?;
    Some(round(second) as u64)
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
