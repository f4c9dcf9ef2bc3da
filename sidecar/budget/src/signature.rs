//! By what a receiver knows that a notice is ours: HMAC-SHA256 over the body, as GitHub's webhooks
//! and many after them have it.

use std::fmt::{self, Write};

use ring::hmac;

/// What both sides know.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// A secret that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretError;

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    }
}

impl std::error::Error for SecretError {}

impl Secret {
    /// The contents of a file, without the line end that editors put behind them.
    pub fn new(contents: &[u8]) -> Result<Self, SecretError> {
        let secret = contents.trim_ascii_end();
        match (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
            true => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret))),
            false => Err(SecretError),
        }
    }

    /// The header's value for a body.
    pub(crate) fn sign(&self, body: &[u8]) -> String {
        let mut value = "sha256=".to_owned();
        for byte in hmac::sign(&self.0, body).as_ref() {
            write!(value, "{byte:02x}").expect("a String takes any text");
        }
        value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The header that has it.
pub const SIGNATURE: &str = "tokenmeter-signature";

/// Fewer could be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// More is a file named by mistake.
const SECRET_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn as_anyone_can_compute_it() {
        // RFC 4231, test case 6: a key of 131 bytes 0xaa.
        let secret = Secret::new(&[0xaa; 131]).unwrap();
        assert_eq!(
            secret.sign(b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_line_end_is_no_part_of_it() {
        let body = b"{}";
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        assert_eq!(Secret::new(b"0123456789abcdef\r\n").unwrap().sign(body), secret.sign(body));
        assert_eq!(format!("{secret:?}"), "Secret");
        for (bytes, fits) in [(0, false), (15, false), (16, true), (4096, true), (4097, false)] {
            assert_eq!(Secret::new(&vec![b'x'; bytes]).is_ok(), fits, "{bytes}");
        }
        assert!(Secret::new(b"               \n").is_err());
    }
}
