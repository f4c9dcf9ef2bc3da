//! Published keys (RFC 7517) and the verification of tokens. Only public keys of asymmetric algorithms are
//! accepted: with a published shared secret, every reader of the set could sign.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::Value;

use meter::TokenRejection;

/// The limit of keys in a set. Identity providers publish a handful.
pub const MAX_KEYS: usize = 64;

/// The limit of keys tried for a token without a key id: each try costs as much as a small exchange.
const MAX_TRIED_KEYS: usize = 8;

meter::listed_enum! {
    /// The supported signature algorithms. Neither `none` nor algorithms with a shared secret: a public key
    /// could serve as that secret.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Algorithm {
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        Rs256 = "RS256",
        /// RSASSA-PKCS1-v1_5 with SHA-384.
        Rs384 = "RS384",
        /// RSASSA-PKCS1-v1_5 with SHA-512.
        Rs512 = "RS512",
        /// RSASSA-PSS with SHA-256.
        Ps256 = "PS256",
        /// RSASSA-PSS with SHA-384.
        Ps384 = "PS384",
        /// RSASSA-PSS with SHA-512.
        Ps512 = "PS512",
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// ECDSA on P-384 with SHA-384.
        Es384 = "ES384",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
    /// The name in a token's header.
    pub fn name(self);
    /// The algorithm with this name; the comparison is case-sensitive.
    pub fn from_name(&str);
}

/// A set of published keys. Clones share the set.
#[derive(Clone, Default)]
pub struct KeySet(Arc<Keys>);

#[derive(Default)]
struct Keys {
    keys: Vec<Key>,
    missed: AtomicBool,
}

/// A published key.
struct Key {
    id: Option<Box<str>>,
    /// The only algorithm it is for, if it has an `alg`.
    only: Option<Algorithm>,
    material: Material,
}

enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The error of a text that is not a usable key set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeySetError(Box<str>);

impl KeySet {
    /// Reads a JWKS. Keys for other uses or of unsupported types are skipped; a set without a usable key is
    /// an error.
    pub fn read(json: &[u8]) -> Result<Self, KeySetError> {
        let error = |message: String| KeySetError(message.into());
        let set: Value = serde_json::from_slice(json)
            .map_err(|parse| error(format!("not JSON at line {} column {}", parse.line(), parse.column())))?;
        let listed = set.get("keys").and_then(Value::as_array);
        let listed = listed.ok_or_else(|| error("not a JWKS: the list `keys` is missing".to_owned()))?;
        if listed.len() > MAX_KEYS {
            return Err(error(format!("{} keys, more than {MAX_KEYS}", listed.len())));
        }
        let (mut keys, mut unusable) = (Vec::new(), BTreeSet::new());
        for key in listed {
            match Key::read(key) {
                Ok(key) => keys.push(key),
                Err(why) => drop(unusable.insert(why)),
            }
        }
        if keys.is_empty() {
            let why = unusable.into_iter().collect::<Vec<_>>().join(", ");
            return Err(error(match why.as_str() {
                "" => "the list `keys` is empty".to_owned(),
                why => format!("none of its keys can verify a token: {why}"),
            }));
        }
        Ok(Self(Arc::new(Keys { keys, missed: AtomicBool::new(false) })))
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Returns true if there are no keys, as before the first fetch.
    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }

    /// Returns true if a key was missing since the last call: the set may have changed at its source.
    pub fn take_missed(&self) -> bool {
        self.0.missed.swap(false, Ordering::Relaxed)
    }

    /// Verifies the signature of a message by one of the keys.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenRejection> {
        let named = |key: &&Key| match (id, &key.id) {
            (Some(id), Some(known)) => **known == *id,
            // A key without an id may match any token, and a token without an id may match any key.
            _ => true,
        };
        let fits = |key: &&Key| key.only.is_none_or(|only| only == algorithm) && key.material.fits(algorithm);
        let mut tried = self.0.keys.iter().filter(named).filter(fits).take(MAX_TRIED_KEYS);
        if tried.any(|key| key.material.verifies(algorithm, message, signature)) {
            return Ok(());
        }
        let has = |id| self.0.keys.iter().any(|key| key.id.as_deref() == Some(id));
        if id.is_none_or(|id| !has(id)) {
            self.0.missed.store(true, Ordering::Relaxed);
        }
        // A token without an id may be of any key.
        let known = id.map_or(!self.is_empty(), has);
        Err(if known { TokenRejection::Signature } else { TokenRejection::UnknownKey })
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys.iter().map(|key| &key.id)).finish()
    }
}

impl Key {
    fn read(key: &Value) -> Result<Self, &'static str> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|what| what != "sig") {
            return Err("a key is for encryption");
        }
        if let Some(operations) = key.get("key_ops").and_then(Value::as_array)
            && !operations.iter().any(|operation| operation == "verify")
        {
            return Err("a key's `key_ops` lack `verify`");
        }
        let only = match text("alg") {
            Some(name) => Some(Algorithm::from_name(name).ok_or("a key's `alg` is not supported")?),
            None => None,
        };
        let bytes = |name: &str| {
            URL_SAFE_NO_PAD.decode(text(name).unwrap_or_default()).ok().filter(|bytes| !bytes.is_empty())
        };
        let coordinates = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
        };
        let material = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => match (bytes("n"), bytes("e")) {
                (Some(n), Some(e)) if n.len() >= 256 => Material::Rsa { n, e },
                (Some(_), Some(_)) => return Err("an RSA key is shorter than 2048 bits"),
                _ => return Err("an RSA key lacks `n` or `e`"),
            },
            (Some("EC"), Some("P-256")) => Material::P256(coordinates(32).ok_or(NO_POINT)?),
            (Some("EC"), Some("P-384")) => Material::P384(coordinates(48).ok_or(NO_POINT)?),
            (Some("OKP"), Some("Ed25519")) => {
                let x = bytes("x").filter(|x| x.len() == 32);
                Material::Ed25519(x.ok_or("an Ed25519 key's `x` is not 32 bytes")?)
            }
            (Some("oct"), _) => return Err("a key is a shared secret, which must not be published"),
            _ => return Err("a key has an unsupported type"),
        };
        Ok(Self { id: text("kid").map(Into::into), only, material })
    }
}

const NO_POINT: &str = "an EC key's `x` and `y` are not of its curve's length";

impl Material {
    fn fits(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::Rsa { .. } => algorithm <= Algorithm::Ps512,
            Self::P256(_) => algorithm == Algorithm::Es256,
            Self::P384(_) => algorithm == Algorithm::Es384,
            Self::Ed25519(_) => algorithm == Algorithm::EdDsa,
        }
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let point = |curve: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(curve, key).verify(message, signature).is_ok()
        };
        match (self, rsa(algorithm)) {
            (Self::Rsa { n, e }, Some(scheme)) => {
                RsaPublicKeyComponents { n, e }.verify(scheme, message, signature).is_ok()
            }
            (Self::Rsa { .. }, None) => false,
            (Self::P256(key), _) => point(&ECDSA_P256_SHA256_FIXED, key),
            (Self::P384(key), _) => point(&ECDSA_P384_SHA384_FIXED, key),
            (Self::Ed25519(key), _) => point(&ED25519, key),
        }
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
    })
}

#[cfg(test)]
#[path = "jwk_tests.rs"]
mod tests;
