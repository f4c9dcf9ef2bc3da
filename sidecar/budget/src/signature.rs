//! The signature of a notice: HMAC-SHA256 over the body, in the format of GitHub's webhooks.

use std::fmt::{self, Write};

use ring::hmac;

/// The shared secret.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// A secret of invalid length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")]
pub struct SecretError;

impl Secret {
    /// Takes the contents of a file, without whitespace at the end.
    pub fn new(contents: &[u8]) -> Result<Self, SecretError> {
        let secret = contents.trim_ascii_end();
        match (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
            true => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret))),
            false => Err(SecretError),
        }
    }

    /// Returns the header value for a body.
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

/// The header of the signature.
pub const SIGNATURE: &str = "tokenmeter-signature";

/// Shorter secrets could be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// A longer one is probably the wrong file.
const SECRET_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn signature_matches_rfc_4231() {
        // RFC 4231, test case 6: a key of 131 bytes 0xaa.
        let secret = Secret::new(&[0xaa; 131]).unwrap();
        assert_eq!(
            secret.sign(b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn line_end_is_not_part_of_the_secret() {
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
