//! Fingerprints: 64 bits by which a process recognises what it saw, without keeping it.

use std::hash::{BuildHasher, Hash};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

/// Returns the fingerprint of a value: the same within a process, by a seed that its clients do not know. foldhash is not
/// a cryptographic hash: nothing secret may depend on it.
pub fn fingerprint<T: Hash + ?Sized>(value: &T) -> u64 {
    SeedableRandomState::with_seed(0, SharedSeed::global_random()).hash_one(value)
}
