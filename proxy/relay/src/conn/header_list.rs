//! The size of a list of header fields.

use http::HeaderMap;

/// Returns the bytes of all names and values.
pub(crate) fn text_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Returns the size as HTTP/2 limits it (RFC 9113 §6.5.2), in bytes.
pub(crate) fn list_bytes(fields: &HeaderMap) -> usize {
    text_bytes(fields) + fields.len() * FIELD_BYTES
}

/// Bytes that HTTP/2 adds for each field.
const FIELD_BYTES: usize = 32;
