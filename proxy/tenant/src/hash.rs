//! Keyed hashes of secrets and personal names (law 11). One key file, shared by a fleet, yields a key for
//! each purpose, so that the hash of an API key reveals nothing about an end user of the same text.

use std::fmt;

/// The purpose of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An API key.
    ApiKey,
    /// A principal.
    Principal,
    /// An end user.
    EndUser,
}

/// The keys derived from a key file.
#[derive(Clone)]
pub struct HashKey {
    api_key: [u8; 32],
    principal: [u8; 32],
    end_user: [u8; 32],
    mark: [u8; 4],
}

/// The error of a key file that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortKeyError {
    /// Its length in bytes.
    pub bytes: usize,
}

/// The keyed hash of an API key, as in a tenants file: `b3-MARK-HASH`. The mark identifies the key file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash {
    /// The mark of the key file.
    pub mark: [u8; 4],
    /// The hash.
    pub hash: [u8; 32],
}

impl HashKey {
    /// The minimum length of a key file, bytes.
    pub const MIN_BYTES: usize = 32;

    /// Derives the keys from a key file's content. In a text file, trailing white space is ignored, since
    /// editors add it; in random bytes every byte counts.
    pub fn of(content: &[u8]) -> Result<Self, ShortKeyError> {
        let is_text = content.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        let material = if is_text { content.trim_ascii_end() } else { content };
        if material.len() < Self::MIN_BYTES {
            return Err(ShortKeyError { bytes: material.len() });
        }
        let made = |context| blake3::derive_key(context, material);
        let mark = made("tokenmeter 2026-11 hash key mark");
        Ok(Self {
            api_key: made("tokenmeter 2026-11 hash of an API key"),
            principal: made("tokenmeter 2026-11 hash of a principal"),
            end_user: made("tokenmeter 2026-11 hash of an end user"),
            mark: [mark[0], mark[1], mark[2], mark[3]],
        })
    }

    /// The mark of the key file: not secret, and enough to identify the file.
    pub fn mark(&self) -> [u8; 4] {
        self.mark
    }

    /// The hash of an API key.
    pub fn api_key(&self, key: &[u8]) -> KeyHash {
        KeyHash { mark: self.mark, hash: *blake3::keyed_hash(&self.api_key, key).as_bytes() }
    }

    /// The hash that replaces a name: 32 hexadecimal digits, 128 bits.
    pub fn name(&self, purpose: Purpose, name: &str) -> String {
        let key = match purpose {
            Purpose::ApiKey => &self.api_key,
            Purpose::Principal => &self.principal,
            Purpose::EndUser => &self.end_user,
        };
        blake3::keyed_hash(key, name.as_bytes()).to_hex()[..32].to_owned()
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HashKey").field(&hex(&self.mark)).finish()
    }
}

impl KeyHash {
    /// Reads `b3-MARK-HASH`.
    pub fn read(text: &str) -> Option<Self> {
        let (mark, hash) = text.strip_prefix("b3-")?.split_once('-')?;
        Some(Self { mark: unhex(mark)?, hash: unhex(hash)? })
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b3-{}-{}", hex(&self.mark), hex(&self.hash))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
#[path = "hash_tests.rs"]
mod tests;
