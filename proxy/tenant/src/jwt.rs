//! Signed tokens (RFC 7519, 7515), as RFC 8725 would have them checked: the algorithm is one that
//! the rule allows and that the key is for, whatever the token says; issuer, audience and time are
//! checked after the signature, the time against the one handed in.
//!
//! Not followed: keys or addresses of keys inside a token (`jwk`, `jku`, `x5c`); not understood:
//! anything under `crit`, so such a token counts for nothing.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::asked::Head;
use crate::jwk::{Algorithm, KeySet};
use crate::miss::Distrust;
use crate::name::bounded;

/// Bytes of a token that is looked at. Those in use have one or two thousand; header fields of
/// more than 16 KiB are refused by most servers.
pub const TOKEN_BYTES: usize = 16 * 1024;

/// A rule that believes the claims of tokens.
#[derive(Clone, Debug)]
pub struct Jwt {
    /// Where the keys come from, as written: a file or a URL. Only a name here.
    pub source: Arc<str>,
    /// The keys; none as long as they could not be had.
    pub keys: KeySet,
    /// Which algorithms are allowed.
    pub algorithms: Vec<Algorithm>,
    /// Who may have issued it: `iss` is one of these.
    pub issuers: Vec<Box<str>>,
    /// For whom it may be: one of `aud` is one of these. Empty to ask nothing, which also takes
    /// tokens that were made for other services.
    pub audiences: Vec<Box<str>>,
    /// The claim that names the tenant.
    pub tenant: Claim,
    /// The claim that names the principal, if any.
    pub principal: Option<Claim>,
    /// Seconds by which clocks may differ.
    pub leeway_s: u64,
    /// The header field it comes in, in lower case; `Authorization: Bearer` if none is named.
    pub field: Option<Box<str>>,
}

/// A claim, by its name or by the names on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim(pub Vec<Box<str>>);

/// What a token that was signed as it should be says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) tenant: Box<str>,
    pub(crate) principal: Option<Box<str>>,
    /// Good from this second on, in seconds since 1970, leeway included.
    pub(crate) from: u64,
    /// Good until this second, exclusive.
    pub(crate) until: u64,
}

impl Jwt {
    /// What may be a token in a head, in the order sent.
    pub(crate) fn tokens<'a>(&self, head: &Head<'a>) -> impl Iterator<Item = &'a [u8]> {
        let named = self.field.as_deref();
        let bearers = named.is_none().then(|| head.bearers()).into_iter().flatten();
        let named = named.map(|field| head.each(field)).into_iter().flatten();
        let named = named.map(|value| value.strip_prefix(b"Bearer ").unwrap_or(value));
        bearers.chain(named).filter(|token| {
            let dots = token.iter().filter(|byte| **byte == b'.').count();
            token.len() <= TOKEN_BYTES && dots == 2
        })
    }

    /// What the token says, if its signature is right and it is meant for us; when it is good is
    /// for the caller to see.
    pub(crate) fn claims(&self, token: &[u8]) -> Result<Claims, Distrust> {
        let Parts { head, payload, message, signature } = parts(token).ok_or(Distrust::Malformed)?;
        let algorithm = head.get("alg").and_then(Value::as_str).ok_or(Distrust::Malformed)?;
        let algorithm = Algorithm::named(algorithm).filter(|one| self.algorithms.contains(one));
        let algorithm = algorithm.ok_or(Distrust::Algorithm)?;
        let id = match head.get("kid") {
            Some(id) => Some(id.as_str().ok_or(Distrust::Malformed)?),
            None => None,
        };
        if head.get("crit").is_some() {
            return Err(Distrust::Malformed);
        }
        self.keys.verify(algorithm, id, message.as_bytes(), &signature)?;
        self.meant_for_us(&json(payload).ok_or(Distrust::Malformed)?)
    }

    fn meant_for_us(&self, claims: &Value) -> Result<Claims, Distrust> {
        let issuer = claims.get("iss").and_then(Value::as_str).ok_or(Distrust::Issuer)?;
        if !self.issuers.iter().any(|known| **known == *issuer) {
            return Err(Distrust::Issuer);
        }
        if !self.for_us(claims.get("aud")) {
            return Err(Distrust::Audience);
        }
        let until = claims.get("exp").and_then(|exp| second(exp, f64::floor)).ok_or(Distrust::Times)?;
        let from = match claims.get("nbf") {
            Some(from) => second(from, f64::ceil).ok_or(Distrust::Times)?,
            None => 0,
        };
        Ok(Claims {
            tenant: self.tenant.text(claims).ok_or(Distrust::Tenant)?,
            principal: self.principal.as_ref().and_then(|claim| claim.text(claims)),
            from: from.saturating_sub(self.leeway_s),
            until: until.saturating_add(self.leeway_s),
        })
    }

    fn for_us(&self, audience: Option<&Value>) -> bool {
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
    /// The claim's text: a string, or a whole number as it is written. A list with one entry is
    /// that entry; one with several names nobody.
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

/// A token taken apart.
struct Parts<'a> {
    head: Value,
    payload: &'a str,
    /// What was signed.
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

/// A time in seconds since 1970, which may have a fraction.
fn second(value: &Value, round: fn(f64) -> f64) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole);
    }
    // Past 2^53 a fraction has no meaning; such a time is no time.
    let second = value.as_f64().filter(|second| (0.0..9e15).contains(second))?;
    Some(round(second) as u64)
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
