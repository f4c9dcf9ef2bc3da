//! The name of one exchange, unique among all processes that meter.

use std::fmt;

/// A UUID version 7 (RFC 9562 §5.7): the time of the exchange's beginning, then chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId(pub [u8; 16]);

impl fmt::Display for ExchangeId {
    /// In lower-case hexadecimal with hyphens, as UUIDs are written.
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
