//! Which sets of keys are taken, and what is said of the others.

use super::{KEYS_MOST, KeySet};

#[test]
fn a_set_without_a_usable_key_says_why() {
    let many = format!("{{\"keys\":[{}]}}", vec!["{}"; KEYS_MOST + 1].join(","));
    for (json, why) in [
        ("", "not JSON at line 1 column 0"),
        ("{\n\"keys\":", "not JSON at line 2 column 7"),
        ("[]", "no JWKS: it has no list `keys`"),
        ("{\"keys\":{}}", "no JWKS: it has no list `keys`"),
        ("{\"keys\":[]}", "the list `keys` is empty"),
        (&many, "65 keys, more than 64"),
        (
            r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#,
            "none of its keys can verify a token: a key is a shared secret, which must not be published",
        ),
        (
            r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},3]}"#,
            "none of its keys can verify a token: a key is of a kind we cannot use, an EC key's `x` and `y` are \
             not of its curve's length, an RSA key is shorter than 2048 bits",
        ),
        (
            r#"{"keys":[{"kty":"EC","crv":"P-256","alg":"HS256"},{"use":"enc"},{"key_ops":["sign"]}]}"#,
            "none of its keys can verify a token: a key is for encryption, a key's `alg` is not one of ours, a \
             key's `key_ops` lack `verify`",
        ),
    ] {
        assert_eq!(KeySet::read(json.as_bytes()).unwrap_err().to_string(), why, "{json}");
    }
}
