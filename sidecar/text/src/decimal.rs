//! Exact decimals as text: money, time and energy are whole numbers of a small unit, printed with
//! all their digits, or rounded once on request.

use std::fmt;

/// A whole number of units of 10^-`digits`, printed exactly, with at least `least` digits after the
/// point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The number of units.
    pub units: i128,
    /// The exponent: a unit is 10^-`digits`.
    pub digits: u32,
    /// The minimum number of digits after the point.
    pub least: u32,
}

/// Returns money in pico-units as a decimal.
pub fn money(pico: i128) -> Decimal {
    Decimal { units: pico, digits: 12, least: 2 }
}

/// Returns the price of a million tokens, from pico-units per token.
pub fn per_million(pico: i128) -> Decimal {
    Decimal { units: pico, digits: 6, least: 2 }
}

/// Returns nanoseconds as seconds, or nanojoules as joules.
pub fn nano(units: i128) -> Decimal {
    Decimal { units, digits: 9, least: 0 }
}

/// Returns a quotient, rounded once, half to even, to `digits` digits after the point; `None` for a divisor of zero, or
/// if the calculation exceeds an `i128`.
pub fn quotient(dividend: i128, divisor: i128, digits: u32) -> Option<Decimal> {
    let units = half_even(dividend.checked_mul(10_i128.checked_pow(digits)?)?, divisor)?;
    Some(Decimal { units, digits, least: digits.min(2) })
}

/// Returns a quotient rounded half to even to a whole number.
fn half_even(dividend: i128, divisor: i128) -> Option<i128> {
    let (whole, rest) = (dividend.checked_div_euclid(divisor)?, dividend.checked_rem_euclid(divisor)?);
    // The rest is below the divisor, so the difference does not overflow.
    let up = match rest.cmp(&(divisor.checked_abs()? - rest)) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => whole.rem_euclid(2),
        std::cmp::Ordering::Greater => 1,
    };
    Some(whole + up * divisor.signum())
}

impl Decimal {
    /// Rounds half to even to `places` digits after the point, all of them printed.
    #[must_use]
    pub fn round(self, places: u32) -> Self {
        if places >= self.digits {
            return Self { least: self.least.max(places.min(self.digits)), ..self };
        }
        // A power of ten is a divisor that neither is zero nor exceeds an `i128`.
        let units = half_even(self.units, 10_i128.pow(self.digits - places)).unwrap_or(self.units);
        Self { units, digits: places, least: places }
    }

    /// Returns the digits before the point, with their sign, and those after it.
    pub fn parts(self) -> (String, String) {
        let unit = 10_u128.pow(self.digits);
        let size = self.units.unsigned_abs();
        let sign = if self.units < 0 { "-" } else { "" };
        let mut after = match self.digits {
            0 => String::new(),
            digits => format!("{:0width$}", size % unit, width = digits as usize),
        };
        let kept = after.trim_end_matches('0').len().max(self.least as usize).min(after.len());
        after.truncate(kept);
        (format!("{sign}{}", size / unit), after)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.parts();
        match after.is_empty() {
            true => f.write_str(&before),
            false => write!(f, "{before}.{after}"),
        }
    }
}

/// Groups the digits of a whole number by thousands: `1,234,567`.
pub fn group_thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{group_thousands, money, nano, per_million, quotient};

    #[test]
    fn money_has_all_digits_and_at_least_two() {
        for (pico, text) in [
            (0, "0.00"),
            (1, "0.000000000001"),
            (-1, "-0.000000000001"),
            (1_500_000_000_000, "1.50"),
            (1_234_500_000_000, "1.2345"),
            (-2_000_000_000_000, "-2.00"),
            (9_223_372_036_854_775_807_000_000, "9223372036854.775807"),
            (i128::MIN, "-170141183460469231731687303.715884105728"),
        ] {
            assert_eq!(money(pico).to_string(), text);
        }
        assert_eq!(per_million(2_500_000).to_string(), "2.50");
        assert_eq!(per_million(75_001).to_string(), "0.075001");
        assert_eq!(nano(3_000_000_000).to_string(), "3");
        assert_eq!(nano(1_500_000_000).to_string(), "1.5");
    }

    #[test]
    fn rounding_is_half_to_even() {
        for (pico, places, text) in [
            (125_000_000_000_i128, 2, "0.12"),
            (135_000_000_000, 2, "0.14"),
            (135_000_000_001, 2, "0.14"),
            (-125_000_000_000, 2, "-0.12"),
            (-135_000_000_000, 2, "-0.14"),
            (2_500_000_000_000, 0, "2"),
            (1_000_000_000_000, 4, "1.0000"),
            (1, 12, "0.000000000001"),
            (1, 40, "0.000000000001"),
        ] {
            assert_eq!(money(pico).round(places).to_string(), text, "{pico} to {places}");
        }
    }

    #[test]
    fn quotient_is_rounded_once() {
        for (dividend, divisor, digits, text) in [
            (1, 3, 4, Some("0.3333")),
            (2, 3, 4, Some("0.6667")),
            (1, 8, 2, Some("0.12")),
            (3, 8, 2, Some("0.38")),
            (-1, 8, 2, Some("-0.12")),
            (5, 2, 0, Some("2")),
            (7, 2, 0, Some("4")),
            (6, 3, 12, Some("2.00")),
            // Rounded to one digit and then to none, it would be 1.
            (449, 1000, 0, Some("0")),
            (1, 0, 2, None),
            (i128::MAX, 1, 1, None),
        ] {
            assert_eq!(quotient(dividend, divisor, digits).map(|is| is.to_string()).as_deref(), text);
        }
    }

    #[test]
    fn digits_are_grouped_by_thousands() {
        for (digits, text) in [("0", "0"), ("999", "999"), ("1000", "1,000"), ("-1234567", "-1,234,567")] {
            assert_eq!(group_thousands(digits), text);
        }
    }
}
