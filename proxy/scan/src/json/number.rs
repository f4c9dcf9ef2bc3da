//! The grammar of a JSON number (RFC 8259, section 6). Every parser of the servers and clients refuses a
//! number with a leading zero, so such a count is ignored.

use crate::limits::CARRY_BYTES;

/// Returns true if `word` is a JSON number. In a word that fills the carry buffer, only the integer part is
/// checked: the rest may be cut.
pub(super) fn is_number(word: &[u8]) -> bool {
    let unsigned = word.strip_prefix(b"-").unwrap_or(word);
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let has_whole = matches!(whole, [b'0'] | [b'1'..=b'9', ..]);
    has_whole && (word.len() >= CARRY_BYTES || is_fraction_and_exponent(rest))
}

fn is_fraction_and_exponent(text: &[u8]) -> bool {
    let exponent = match text.strip_prefix(b".") {
        Some(fraction) => match digits(fraction) {
            0 => return false,
            len => &fraction[len..],
        },
        None => text,
    };
    match exponent {
        [] => true,
        [b'e' | b'E', b'+' | b'-', power @ ..] | [b'e' | b'E', power @ ..] => {
            !power.is_empty() && digits(power) == power.len()
        }
        _ => false,
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn numbers_follow_the_json_grammar() {
        for word in ["0", "-0", "0.5", "10", "1e05", "1E+05", "1e-5", "-12.50e7", "0e0", "9007199254740993"] {
            assert!(is_number(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn malformed_numbers_are_no_numbers() {
        for word in [
            "", "-", "00", "01", "-01", "05000000", "00.5", "1.", ".5", "1.e5", "1e", "1e+", "+1", "1-2",
            "0x10", "1_0", "1.2.3", "--1", "1e5.0",
        ] {
            assert!(!is_number(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn a_cut_number_is_a_number() {
        let long = "1".repeat(255) + ".";
        assert!(is_number(long.as_bytes()));
        assert!(!is_number(("0".to_owned() + &long).as_bytes()));
    }
}
