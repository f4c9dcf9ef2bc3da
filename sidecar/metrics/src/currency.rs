//! Which money the price book is in. The law: a currency is in a metric's name, since two of them
//! cannot be added up; there is one for prices, fixed at the start, and GPU costs are US dollars.

/// A currency by its ISO 4217 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// US dollars.
    pub const USD: Self = Self(*b"USD");

    /// The currency of a code, in either case; `None` if it is not three letters.
    pub fn new(code: &str) -> Option<Self> {
        let code: [u8; 3] = code.as_bytes().try_into().ok()?;
        code.iter().all(u8::is_ascii_alphabetic).then(|| Self(code.map(|byte| byte.to_ascii_uppercase())))
    }

    /// The code, three upper-case letters.
    pub fn code(self) -> String {
        self.0.map(char::from).iter().collect()
    }

    /// The code as names of metrics have it, three lower-case letters.
    pub fn word(self) -> String {
        self.code().to_ascii_lowercase()
    }
}

impl Default for Currency {
    fn default() -> Self {
        Self::USD
    }
}
