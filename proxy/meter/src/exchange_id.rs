//! The id of one exchange, unique among all processes that meter.

use std::fmt;

/// A UUID version 7 (RFC 9562 §5.7): the start time of the exchange, then random bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId(pub [u8; 16]);

impl ExchangeId {
    /// The id of an exchange that began `began_unix_ns` nanoseconds after 1970, with 74 bits of `random`.
    pub fn new(began_unix_ns: u64, random: u128) -> Self {
        const VERSION: u128 = 7 << 76;
        const VARIANT: u128 = 0b10 << 62;
        // The bits that the version and the variant leave: 12 between them, 62 after.
        const FREE: u128 = (0xfff << 64) | ((1 << 62) - 1);
        let milliseconds = u128::from(began_unix_ns / 1_000_000) << 80;
        Self((milliseconds | VERSION | VARIANT | (random & FREE)).to_be_bytes())
    }
}

impl fmt::Display for ExchangeId {
    /// Formats as RFC 9562 does: lower-case hexadecimal with hyphens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ExchangeId;

    /// The example of RFC 9562, appendix A.6.
    #[test]
    fn id_matches_the_example_of_rfc_9562() {
        let random = (0xcc3_u128 << 64) | 0x18c4_dc0c_0c07_398f;
        let id = ExchangeId::new(1_645_557_742_000 * 1_000_000, random);
        assert_eq!(id.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    }

    #[test]
    fn random_bits_change_neither_time_nor_version() {
        for random in [0, u128::MAX] {
            let id = ExchangeId::new(1_645_557_742_000_999_999, random).0;
            assert_eq!(id[..6], [0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0]);
            assert_eq!((id[6] >> 4, id[8] >> 6), (7, 0b10));
        }
        let (earlier, later) = (ExchangeId::new(1_000_000, u128::MAX), ExchangeId::new(2_000_000, 0));
        assert!(earlier < later, "ids sort by time");
    }
}
