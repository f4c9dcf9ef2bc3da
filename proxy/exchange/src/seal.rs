//! Fields that protect the bytes of a body.

use http::HeaderMap;

/// Returns true if a field protects the body's bytes, so that no change goes unnoticed: digests (RFC 9530, RFC 3230,
/// RFC 1864) and signatures (RFC 9421).
pub fn is_sealed(headers: &HeaderMap) -> bool {
    // A message has few fields: comparing their names costs less than five hashes.
    let seals = ["content-digest", "repr-digest", "digest", "content-md5", "signature"];
    headers.keys().any(|name| seals.contains(&name.as_str()))
}
