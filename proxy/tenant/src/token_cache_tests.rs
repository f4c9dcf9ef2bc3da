//! Cached tokens are not verified again, and forged tokens evict no valid one.

use std::cell::Cell;

use super::{MAX_ENTRIES, TokenCache};
use crate::jwt::Claims;
use meter::TokenRejection;

fn claims() -> Result<Claims, TokenRejection> {
    Ok(Claims { tenant: "acme".into(), principal: None, from: 0, until: 9 })
}

#[test]
fn a_token_is_verified_once() {
    let (cache, verifications) = (TokenCache::default(), Cell::new(0));
    for _ in 0..3 {
        let verify = |found| {
            verifications.set(verifications.get() + 1);
            found
        };
        assert!(cache.of(b"good", || verify(claims())).is_ok());
        assert_eq!(cache.of(b"bad", || verify(Err(TokenRejection::Issuer))), Err(TokenRejection::Issuer));
    }
    assert_eq!(verifications.get(), 2);
}

#[test]
fn forged_tokens_evict_no_valid_token() {
    let cache = TokenCache::default();
    cache.of(b"good", claims).unwrap();
    for forged in 0..4 * MAX_ENTRIES {
        let forged = forged.to_le_bytes();
        cache.of(&forged, || Err(TokenRejection::Signature)).unwrap_err();
    }
    assert!(cache.of(b"good", || unreachable!("it is cached")).is_ok());
    let known = cache.0.lock().unwrap();
    assert!(known.invalid.young.len() + known.invalid.old.len() <= 2 * MAX_ENTRIES);
}

#[test]
fn a_used_token_stays_cached() {
    let cache = TokenCache::default();
    cache.of(b"asked", claims).unwrap();
    for other in 0..4 * MAX_ENTRIES {
        cache.of(&other.to_le_bytes(), claims).unwrap();
        if other % (MAX_ENTRIES / 2) == 0 {
            assert!(cache.of(b"asked", || unreachable!("it is cached")).is_ok());
        }
    }
    let known = cache.0.lock().unwrap();
    assert!(known.valid.young.len() + known.valid.old.len() <= 2 * MAX_ENTRIES);
}
