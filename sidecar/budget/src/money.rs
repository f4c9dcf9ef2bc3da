//! Pico-units as people read them: all digits, none added.

/// A sum as a decimal number of whole units, with at least two digits after the point.
pub fn decimal(pico: i128) -> String {
    let (sign, size) = (if pico < 0 { "-" } else { "" }, pico.unsigned_abs());
    let part = format!("{:012}", size % UNIT);
    let kept = part.trim_end_matches('0').len().max(2);
    format!("{sign}{}.{}", size / UNIT, &part[..kept])
}

/// Pico-units of a unit.
const UNIT: u128 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn all_digits_are_shown_and_two_at_least() {
        for (pico, text) in [
            (0, "0.00"),
            (1, "0.000000000001"),
            (-1, "-0.000000000001"),
            (500_000_000_000, "0.50"),
            (12_345_000_000_000, "12.345"),
            (-7_000_000_000_000, "-7.00"),
            (i128::MIN, "-170141183460469231731687303.715884105728"),
        ] {
            assert_eq!(decimal(pico), text);
        }
    }
}
