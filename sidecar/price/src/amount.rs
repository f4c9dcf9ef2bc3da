//! Parses decimal numbers into whole multiples of a power of ten, without floats. The result has a flag
//! for rounding; ties go to the even neighbour.

/// A parsed number in whole parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The number of parts, rounded half-even.
    pub(crate) whole: i128,
    /// True if nothing was rounded.
    pub(crate) exact: bool,
}

/// The reason why a text is not a usable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    /// It is not a decimal number: an optional sign, digits, one point, an optional exponent.
    Malformed,
    /// It is 10^30 or more, or has more than 100 characters.
    TooLarge,
}

/// Maximum length of a number in characters; no price needs as many digits.
const MAX_NUMBER_CHARS: usize = 100;

/// Maximum digits of the result: an `i128` still holds its product with a token count.
const MAX_DIGITS: usize = 30;

/// Returns `text` times 10^`shift`, rounded to a whole number.
pub(crate) fn parts(text: &str, shift: i32) -> Result<Parts, NumberError> {
    if text.len() > MAX_NUMBER_CHARS {
        return Err(NumberError::TooLarge);
    }
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
        None => (unsigned, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if before.len() + after.len() == 0 || !is_digits(before) || !is_digits(after) {
        return Err(NumberError::Malformed);
    }
    let digits = format!("{before}{after}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Parts { whole: 0, exact: true });
    }
    // The position of the decimal point, counted from the first of the remaining digits.
    let places = i32::try_from(after.len()).map_err(|_| NumberError::TooLarge)?;
    let length = i32::try_from(digits.len()).map_err(|_| NumberError::TooLarge)?;
    let point = length.saturating_sub(places).saturating_add(exponent).saturating_add(shift);
    let Ok(kept) = usize::try_from(point) else {
        // A tenth of a part, or less.
        return Ok(Parts { whole: 0, exact: false });
    };
    if kept > MAX_DIGITS {
        return Err(NumberError::TooLarge);
    }
    let (whole, rest) = digits.split_at(kept.min(digits.len()));
    let mut sum: i128 = whole.bytes().fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    for _ in whole.len()..kept {
        sum *= 10;
    }
    let rest = rest.trim_end_matches('0');
    let up = match rest.as_bytes() {
        [] => false,
        [b'5'] => sum % 2 == 1,
        [first, ..] => *first >= b'5',
    };
    sum += i128::from(up);
    Ok(Parts { whole: if negative { -sum } else { sum }, exact: rest.is_empty() })
}

/// Returns a decimal number in pico-units (10⁻¹²), if it is one and needs no rounding.
pub fn exact_pico(text: &str) -> Option<i128> {
    parts(text, 12).ok().filter(|parts| parts.exact).map(|parts| parts.whole)
}

fn exponent_of(text: &str) -> Result<i32, NumberError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    match digits.is_empty() || digits.bytes().any(|byte| !byte.is_ascii_digit()) {
        true => Err(NumberError::Malformed),
        // Clamped: beyond this, the result is too large or zero in any case.
        false => Ok(text
            .parse::<i32>()
            .map_or(if text.starts_with('-') { -9999 } else { 9999 }, |number| number.clamp(-9999, 9999))),
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use proptest::prelude::*;

    use super::{NumberError, Parts, exact_pico, parts};

    #[test]
    fn amount_with_too_many_digits_is_refused() {
        let found = ["-50", "0.000000000001", "0.0000000000001", "fifty"].map(exact_pico);
        assert_eq!(found, [Some(-50_000_000_000_000), Some(1), None, None]);
    }

    #[test]
    fn rounding_is_half_even_and_reported() {
        for (text, shift, whole, exact) in [
            ("2.5", 6, 2_500_000, true),
            ("0", 6, 0, true),
            ("-0.0", 6, 0, true),
            (".5", 1, 5, true),
            ("5.", 1, 50, true),
            ("+7", 0, 7, true),
            ("5e-8", 12, 50_000, true),
            ("5.0000000000000004E-8", 12, 50_000, false),
            ("1.3e-10", 12, 130, true),
            ("0.5", 0, 0, false),
            ("1.5", 0, 2, false),
            ("2.5", 0, 2, false),
            ("2.50000001", 0, 3, false),
            ("-1.5", 0, -2, false),
            ("0.05", 0, 0, false),
            ("0.6", 0, 1, false),
            ("1e-9999999999", 12, 0, false),
            ("0e9999999999", 12, 0, true),
            ("123456789012345678", 12, 123_456_789_012_345_678_000_000_000_000, true),
        ] {
            assert_eq!(parts(text, shift), Ok(Parts { whole, exact }), "{text}");
        }
    }

    #[test]
    fn invalid_number_is_refused() {
        for text in [
            "", "-", ".", "nan", ".nan", "inf", "0x10", "1_000", "1,5", "1e", "1e+", "--1", "1.2.3", " 1",
            "$2", "١",
        ] {
            assert_eq!(parts(text, 6), Err(NumberError::Malformed), "{text}");
        }
        for text in ["1e31", "1e9999999999", &"9".repeat(101)] {
            assert_eq!(parts(text, 0), Err(NumberError::TooLarge), "{text}");
        }
    }

    #[test]
    fn limits_are_inclusive() {
        let zeros = |chars: usize| format!("0.{}", "0".repeat(chars - 2));
        assert_eq!(parts(&zeros(100), 0), Ok(Parts { whole: 0, exact: true }));
        assert_eq!(parts(&zeros(101), 0), Err(NumberError::TooLarge));
        assert_eq!(parts("1e29", 0), Ok(Parts { whole: 10_i128.pow(29), exact: true }));
        assert_eq!(parts("1e30", 0), Err(NumberError::TooLarge));
    }

    proptest! {
        #![proptest_config(chance::cases(2000))]

        #[test]
        fn parts_agree_with_rationals(
            digits in "[0-9]{1,20}", places in 0usize..20, exponent in -30i32..10, shift in 0i32..13, negative: bool,
        ) {
            let at = digits.len().saturating_sub(places);
            let sign = if negative { "-" } else { "" };
            let text = format!("{sign}{}.{}e{exponent}", &digits[..at], &digits[at..]);
            let ten = |power: i32| BigRational::from(BigInt::from(10)).pow(power);
            let exactly = BigRational::from(format!("{sign}{digits}").parse::<BigInt>().unwrap())
                * ten(exponent + shift - i32::try_from(digits.len() - at).unwrap());
            let doubled: BigRational = &exactly * BigInt::from(2);
            let floor = exactly.floor();
            // Half-even by its definition: `Ratio::round` rounds halves away from zero.
            let nearest = if doubled.is_integer() && !exactly.is_integer() {
                let even: BigRational = &floor / BigInt::from(2);
                if even.is_integer() { floor } else { floor + BigInt::from(1) }
            } else {
                (exactly.clone() + BigRational::new(1.into(), 2.into())).floor()
            };
            match parts(&text, shift) {
                Ok(Parts { whole, exact }) => {
                    prop_assert_eq!(BigInt::from(whole), nearest.to_integer());
                    prop_assert_eq!(exact, exactly.is_integer());
                }
                Err(NumberError::TooLarge) => prop_assert!(exactly.numer().magnitude() >= ten(29).numer().magnitude()),
                Err(NumberError::Malformed) => prop_assert!(false, "{}", text),
            }
        }
    }
}
