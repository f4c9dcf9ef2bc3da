//! The end of a string. Most keys and values are shorter than the call of a vectorised search is worth, so the first
//! bytes are compared eight at a time.

use memchr::memchr2;

/// Words that are compared before the vectorised search.
const WORDS: usize = 4;
const BYTES: usize = size_of::<u64>();

/// Returns the offset of the first quote or backslash.
#[inline]
pub(super) fn stop(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for word in bytes.chunks_exact(BYTES).take(WORDS) {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk has eight bytes"));
        let found = zeros(word ^ repeated(b'"')) | zeros(word ^ repeated(b'\\'));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += BYTES;
    }
    memchr2(b'"', b'\\', &bytes[at..]).map(|offset| at + offset)
}

const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; BYTES])
}

/// Sets the highest bit of the lowest zero byte. Bytes above it may be marked without being zero, none below it.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(repeated(1)) & !word & repeated(0x80)
}

#[cfg(test)]
mod tests {
    use super::stop;

    #[test]
    fn stop_is_the_first_quote_or_backslash() {
        // Bytes that differ from both by one bit or by one, and those with the highest bit.
        let others = [b'!', b'#', b'[', b']', b' ', 0, 1, 0x7f, 0x80, 0xa2, 0xdc, 0xff];
        for len in 0..80 {
            for seed in 0..12 {
                let mut bytes: Vec<u8> = (0..len).map(|at| others[(at * 7 + seed) % others.len()]).collect();
                assert_eq!(stop(&bytes), None);
                for at in (0..len).rev() {
                    let (mark, other) = if at % 2 == 0 { (b'"', b'\\') } else { (b'\\', b'"') };
                    bytes[at] = mark;
                    assert_eq!(stop(&bytes), Some(at));
                    bytes[at] = other;
                }
            }
        }
    }
}
