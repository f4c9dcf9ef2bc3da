//! Bare words: numbers, `true`, `false` and `null`.

pub(super) fn is_bare(byte: u8) -> bool {
    const BARE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0_u8;
        loop {
            table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
            match byte.checked_add(1) {
                Some(next) => byte = next,
                None => break table,
            }
        }
    };
    BARE[usize::from(byte)]
}

pub(super) const NULL: &[u8] = b"null";

/// Returns true if the bytes begin with `null` and a byte that ends it.
#[inline]
pub(super) fn is_whole_null(bytes: &[u8]) -> bool {
    bytes.starts_with(NULL) && bytes.get(NULL.len()).is_some_and(|&byte| !is_bare(byte))
}

/// The length of the number or bare word at the start.
pub(super) fn bare_len(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| is_bare(byte)).count()
}
