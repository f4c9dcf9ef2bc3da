//! The currency of the price book. Invariant: a metric in money has the currency in its name, because two currencies
//! cannot be summed. There is one currency for prices, fixed at the start; GPU costs are in US dollars.

/// A currency by its ISO 4217 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// US dollars.
    pub const USD: Self = Self(*b"USD");

    /// Returns the currency of a code of three letters in either case, else `None`.
    pub fn new(code: &str) -> Option<Self> {
        let code: [u8; 3] = code.as_bytes().try_into().ok()?;
        code.iter().all(u8::is_ascii_alphabetic).then(|| Self(code.map(|byte| byte.to_ascii_uppercase())))
    }

    /// Returns the code, three upper-case letters.
    pub fn code(self) -> String {
        self.0.map(char::from).iter().collect()
    }

    /// Returns the code as in metric names, three lower-case letters.
    pub fn word(self) -> String {
        self.code().to_ascii_lowercase()
    }
}

impl Default for Currency {
    fn default() -> Self {
        Self::USD
    }
}
