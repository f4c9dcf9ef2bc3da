//! The escapes of a path, as the servers read them that route by what they mean: `%61`, and `%u0061` as
//! cpp-httplib has it, llama.cpp's.

/// What the escape at the beginning of this path says, a byte (`%61`) or a code point or half a surrogate pair
/// (`%u0061`), and how many bytes it has; `None` if there is none.
pub fn escape(path: &[u8]) -> Option<(u32, usize)> {
    let (digits, length) = match path {
        [b'%', b'u', digits @ ..] => (digits.get(..4)?, 6),
        [b'%', digits @ ..] => (digits.get(..2)?, 3),
        _ => return None,
    };
    let code = digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))?;
    Some((code, length))
}
