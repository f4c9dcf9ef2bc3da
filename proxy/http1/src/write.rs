//! Messages as bytes.

/// Writes a field.
pub fn write_field(out: &mut Vec<u8>, name: impl AsRef<[u8]>, value: &[u8]) {
    out.extend_from_slice(name.as_ref());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes bytes as one canonical chunk; nothing if there are none, because an empty chunk ends the body.
pub fn write_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut digits = [0; 16];
    let mut from = digits.len();
    let mut left = bytes.len();
    while left > 0 {
        from -= 1;
        digits[from] = b"0123456789abcdef"[left & 15];
        left >>= 4;
    }
    out.extend_from_slice(&digits[from..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
