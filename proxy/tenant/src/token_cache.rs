//! A cache of verified tokens, since a signature costs twenty (RS256) to a thousand (ES384) times a lookup.
//! Tokens are identified by their hash. Valid and invalid ones are kept separately, so that forged tokens
//! cannot evict valid ones. The validity in time is checked on each request.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::jwt::Claims;
use meter::TokenRejection;

/// The guaranteed number of entries of each kind; up to twice as many are kept. 4,096 callers with one token
/// each fit, in about two megabytes.
const MAX_ENTRIES: usize = 4096;

/// The results by a token's hash.
#[derive(Debug, Default)]
pub(crate) struct TokenCache(Mutex<Caches>);

#[derive(Debug, Default)]
struct Caches {
    valid: Generations<Arc<Claims>>,
    invalid: Generations<TokenRejection>,
}

/// Two maps: once the young one is full, it replaces the old one. A lookup in the old map moves the entry to
/// the young one.
#[derive(Debug)]
struct Generations<T> {
    young: HashMap<[u8; 32], T>,
    old: HashMap<[u8; 32], T>,
}

impl<T> Default for Generations<T> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T: Clone> Generations<T> {
    fn get(&mut self, token: &[u8; 32]) -> Option<T> {
        if let Some(known) = self.young.get(token) {
            return Some(known.clone());
        }
        let known = self.old.remove(token)?;
        self.put(*token, known.clone());
        Some(known)
    }

    fn put(&mut self, token: [u8; 32], entry: T) {
        if self.young.len() >= MAX_ENTRIES {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(token, entry);
    }
}

impl TokenCache {
    /// Returns the result for a token, from `find` if it was not seen recently. Never waits for another
    /// thread.
    pub(crate) fn of(
        &self,
        token: &[u8],
        find: impl FnOnce() -> Result<Claims, TokenRejection>,
    ) -> Result<Arc<Claims>, TokenRejection> {
        let hash = *blake3::hash(token).as_bytes();
        if let Some(mut known) = self.lock() {
            if let Some(claims) = known.valid.get(&hash) {
                return Ok(claims);
            }
            if let Some(why) = known.invalid.get(&hash) {
                return Err(why);
            }
        }
        let found = find().map(Arc::new);
        if let Some(mut known) = self.lock() {
            match &found {
                Ok(claims) => known.valid.put(hash, claims.clone()),
                Err(why) => known.invalid.put(hash, *why),
            }
        }
        found
    }

    fn lock(&self) -> Option<MutexGuard<'_, Caches>> {
        match self.0.try_lock() {
            Ok(known) => Some(known),
            // A panic between two steps loses at most a result, which is found again.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
#[path = "token_cache_tests.rs"]
mod tests;
