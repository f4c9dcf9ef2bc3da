//! a × b ÷ d with a 256-bit product.

/// Returns a × b ÷ d, rounded down and saturated. `d` is not 0.
pub(crate) fn mul_div(a: u128, b: u128, d: u128) -> u128 {
    divide(a, b, d).0
}

/// Returns a × b ÷ d, rounded up and saturated.
pub(crate) fn mul_div_up(a: u128, b: u128, d: u128) -> u128 {
    let (quotient, rest) = divide(a, b, d);
    quotient.saturating_add(u128::from(rest > 0))
}

fn divide(a: u128, b: u128, d: u128) -> (u128, u128) {
    if let Some(product) = a.checked_mul(b) {
        return (product / d, product % d);
    }
    let (high, low) = multiply(a, b);
    if high >= d {
        return (u128::MAX, 0);
    }
    // Long division, bit by bit: the product has more than 128 bits.
    let (mut quotient, mut rest) = (0, high);
    for bit in (0..128).rev() {
        let over = rest >> 127 == 1;
        rest = (rest << 1) | ((low >> bit) & 1);
        quotient <<= 1;
        if over || rest >= d {
            rest = rest.wrapping_sub(d);
            quotient |= 1;
        }
    }
    (quotient, rest)
}

/// Returns the upper and the lower half of a product.
fn multiply(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (left, right) = (a1 * b0, a0 * b1);
    let middle = ((a0 * b0) >> 64) + (left & LOW) + (right & LOW);
    let high = a1 * b1 + (left >> 64) + (right >> 64) + (middle >> 64);
    (high, a.wrapping_mul(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(chance::cases(2_000))]

        /// (q·d + r) = a·b, compared modulo 2¹²⁸ and by size.
        #[test]
        fn quotient_and_remainder_give_back_the_product(a: u128, b: u128, d in 1u128..) {
            let (high, low) = multiply(a, b);
            let (quotient, rest) = divide(a, b, d);
            if high >= d {
                prop_assert_eq!(quotient, u128::MAX);
            } else {
                prop_assert!(rest < d);
                let (back_high, back_low) = multiply(quotient, d);
                let (sum, over) = back_low.overflowing_add(rest);
                prop_assert_eq!((back_high + u128::from(over), sum), (high, low));
            }
        }
    }

    #[test]
    fn quotients_round_and_saturate_as_documented() {
        assert_eq!((mul_div(7, 3, 2), mul_div_up(7, 3, 2), mul_div_up(6, 1, 2)), (10, 11, 3));
        assert_eq!(mul_div(u128::MAX, 6, 12), u128::MAX / 2);
        assert_eq!(mul_div(u128::MAX, 2, 1), u128::MAX);
    }
}
