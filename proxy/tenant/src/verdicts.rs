//! What was found of tokens seen before, since a signature costs twenty times a lookup (RS256) to a
//! thousand (ES384). Tokens are known by their hash; good and bad ones are kept apart, so that made-up tokens cannot push
//! out real ones. When a token is good is asked anew each time.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::jwt::Claims;
use crate::miss::Distrust;

/// Tokens of each sort that are known for certain; up to twice as many are. 4,096 callers with a
/// token each fit, in some two megabytes.
const KEPT: usize = 4096;

/// What was found, by a token's hash.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(Mutex<Both>);

#[derive(Debug, Default)]
struct Both {
    good: Generations<Arc<Claims>>,
    bad: Generations<Distrust>,
}

/// Two maps: once the young one is full it becomes the old one, and the old one is gone. What is
/// asked for is young again.
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

    fn put(&mut self, token: [u8; 32], verdict: T) {
        if self.young.len() >= KEPT {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(token, verdict);
    }
}

impl Verdicts {
    /// What the token says, by `find` if it was not seen lately. Never waits for another thread.
    pub(crate) fn of(
        &self,
        token: &[u8],
        find: impl FnOnce() -> Result<Claims, Distrust>,
    ) -> Result<Arc<Claims>, Distrust> {
        let hash = *blake3::hash(token).as_bytes();
        if let Some(mut known) = self.lock() {
            if let Some(claims) = known.good.get(&hash) {
                return Ok(claims);
            }
            if let Some(why) = known.bad.get(&hash) {
                return Err(why);
            }
        }
        let found = find().map(Arc::new);
        if let Some(mut known) = self.lock() {
            match &found {
                Ok(claims) => known.good.put(hash, claims.clone()),
                Err(why) => known.bad.put(hash, *why),
            }
        }
        found
    }

    fn lock(&self) -> Option<MutexGuard<'_, Both>> {
        match self.0.try_lock() {
            Ok(known) => Some(known),
            // A panic between two steps leaves at worst a verdict that is found again.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
#[path = "verdicts_tests.rs"]
mod tests;
