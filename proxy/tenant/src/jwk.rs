//! Published keys (RFC 7517): which tokens they can verify. Only public keys of asymmetric
//! algorithms are taken: a shared secret in such a set would let everybody who can read it sign.

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

use crate::miss::Distrust;

/// Keys a set may have. Identity providers publish a handful.
pub const KEYS_MOST: usize = 64;

/// Keys that one token is tried on, if it does not say which made it: each costs as much as a
/// small exchange.
const TRIED_MOST: usize = 8;

/// The signature algorithms there are for us. There is no `none`, and none with a shared secret:
/// a public key would otherwise do as that secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Its name in a token's head.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of a name, letter for letter.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// A set of published keys. Clones are the same set.
#[derive(Clone, Default)]
pub struct KeySet(Arc<Keys>);

#[derive(Default)]
struct Keys {
    keys: Vec<Key>,
    missed: AtomicBool,
}

/// One key.
struct Key {
    id: Option<Box<str>>,
    /// The only algorithm it is for, if it says so.
    only: Option<Algorithm>,
    material: Material,
}

enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Text that is no set of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKeys(Box<str>);

impl fmt::Display for NotKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotKeys {}

impl KeySet {
    /// Reads a JWKS. Keys that are not for verifying, or of kinds we have no use for, are passed
    /// over; a set in which none is left is a mistake.
    pub fn read(json: &[u8]) -> Result<Self, NotKeys> {
        let no = |what: String| NotKeys(what.into());
        let set: Value = serde_json::from_slice(json)
            .map_err(|error| no(format!("not JSON at line {} column {}", error.line(), error.column())))?;
        let listed = set.get("keys").and_then(Value::as_array);
        let listed = listed.ok_or_else(|| no("no JWKS: it has no list `keys`".to_owned()))?;
        if listed.len() > KEYS_MOST {
            return Err(no(format!("{} keys, more than {KEYS_MOST}", listed.len())));
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
            return Err(no(match why.as_str() {
                "" => "the list `keys` is empty".to_owned(),
                why => format!("none of its keys can verify a token: {why}"),
            }));
        }
        Ok(Self(Arc::new(Keys { keys, missed: AtomicBool::new(false) })))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether there is none, as before the first could be fetched.
    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }

    /// Whether a key was missed since this was last asked: the set may have changed at its source.
    pub fn take_missed(&self) -> bool {
        self.0.missed.swap(false, Ordering::Relaxed)
    }

    /// Whether one of the keys made this signature of this message.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Distrust> {
        let named = |key: &&Key| match (id, &key.id) {
            (Some(id), Some(known)) => **known == *id,
            // A key without an id may be the one; a token without one may be of any.
            _ => true,
        };
        let fits = |key: &&Key| key.only.is_none_or(|only| only == algorithm) && key.material.fits(algorithm);
        let mut tried = self.0.keys.iter().filter(named).filter(fits).take(TRIED_MOST);
        if tried.any(|key| key.material.verifies(algorithm, message, signature)) {
            return Ok(());
        }
        let has = |id| self.0.keys.iter().any(|key| key.id.as_deref() == Some(id));
        if id.is_none_or(|id| !has(id)) {
            self.0.missed.store(true, Ordering::Relaxed);
        }
        // Without an id any key may be meant.
        let known = id.map_or(!self.is_empty(), has);
        Err(if known { Distrust::Signature } else { Distrust::UnknownKey })
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
            Some(name) => Some(Algorithm::named(name).ok_or("a key's `alg` is not one of ours")?),
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
            _ => return Err("a key is of a kind we cannot use"),
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
