//! The escapes of a path, as servers that decode paths before routing read them: `%61`, and `%u0061` in
//! cpp-httplib, which llama.cpp uses.

/// Decodes the escape at the start of a path. Returns a byte (`%61`), or a code point or surrogate
/// (`%u0061`), and the length of the escape in bytes; `None` if there is none.
pub fn escape(path: &[u8]) -> Option<(u32, usize)> {
    let (digits, length) = match path {
        [b'%', b'u', digits @ ..] => (digits.get(..4)?, 6),
        [b'%', digits @ ..] => (digits.get(..2)?, 3),
        _ => return None,
    };
    let code = digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))?;
    Some((code, length))
}
