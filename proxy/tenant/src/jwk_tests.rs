//! Accepted key sets, and the errors of others.

use super::{Algorithm, KeySet, MAX_KEYS, MAX_TRIED_KEYS};
use meter::TokenRejection;

#[test]
fn set_without_a_usable_key_is_an_error() {
    let many = format!("{{\"keys\":[{}]}}", vec!["{}"; MAX_KEYS + 1].join(","));
    for (json, why) in [
        ("", "not JSON at line 1 column 0"),
        ("{\n\"keys\":", "not JSON at line 2 column 7"),
        ("[]", "not a JWKS: the list `keys` is missing"),
        ("{\"keys\":{}}", "not a JWKS: the list `keys` is missing"),
        ("{\"keys\":[]}", "the list `keys` is empty"),
        (&many, "65 keys, more than 64"),
        (
            r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#,
            "none of its keys can verify a token: a key is a shared secret, which must not be published",
        ),
        (
            r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},3]}"#,
            "none of its keys can verify a token: a key has an unsupported type, an EC key's `x` and `y` are \
             not of its curve's length, an RSA key is shorter than 2048 bits",
        ),
        (
            r#"{"keys":[{"kty":"EC","crv":"P-256","alg":"HS256"},{"use":"enc"},{"key_ops":["sign"]}]}"#,
            "none of its keys can verify a token: a key is for encryption, a key's `alg` is not supported, a \
             key's `key_ops` lack `verify`",
        ),
    ] {
        assert_eq!(KeySet::read(json.as_bytes()).unwrap_err().to_string(), why, "{json}");
    }
}

/// An issuer may publish its next key under the same id.
#[test]
fn keys_that_share_an_id_are_each_tried() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    let keys: Vec<_> =
        (1..=4).map(|n| Ed25519KeyPair::from_seed_unchecked(&[n; 32]).expect("a key")).collect();
    let published = keys[..3].iter().map(|key| {
        format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"a","x":"{}"}}"#, BASE64.encode(key.public_key()))
    });
    let set = format!(r#"{{"keys":[{}]}}"#, published.collect::<Vec<_>>().join(","));
    let set = KeySet::read(set.as_bytes()).expect("a set");
    let verify = |key: &Ed25519KeyPair, id| {
        set.verify(Algorithm::EdDsa, Some(id), b"message", key.sign(b"message").as_ref())
    };
    assert!(keys[..3].iter().all(|key| verify(key, "a") == Ok(())));
    assert_eq!(verify(&keys[3], "a"), Err(TokenRejection::Signature));
    assert!(!set.take_missed(), "a fetch would bring the same id");
    assert_eq!(verify(&keys[0], "b"), Err(TokenRejection::UnknownKey));
    assert!(set.take_missed());
}

/// A key of another type is not tried: it neither uses up a try, nor counts its signature for the
/// algorithm that a token names.
#[test]
fn keys_of_another_type_are_not_tried() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let half = BASE64.encode([7; 32]);
    let other = format!(r#"{{"kty":"EC","crv":"P-256","x":"{half}","y":"{half}"}},"#).repeat(MAX_TRIED_KEYS);
    let own = BASE64.encode(key.public_key());
    let set = format!(r#"{{"keys":[{other}{{"kty":"OKP","crv":"Ed25519","x":"{own}"}}]}}"#);
    let set = KeySet::read(set.as_bytes()).expect("a set");
    let signature = key.sign(b"message");
    let verify = |algorithm| set.verify(algorithm, None, b"message", signature.as_ref());
    assert_eq!(verify(Algorithm::EdDsa), Ok(()));
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::EdDsa) {
        assert_eq!(verify(algorithm), Err(TokenRejection::Signature), "{}", algorithm.name());
    }
}
