//! Verification of a server's certificate, with an error that says which part of the chain is missing, and the absence
//! of verification.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::BasicConstraints;
use x509_cert::spki::ObjectIdentifier;

use crate::fault::printable;

/// Verification by the rules of the web PKI (crate webpki).
#[derive(Debug)]
pub(crate) struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    /// The certificates that the operator trusts. A server may present one of them as its own, although it may issue
    /// others: `openssl req -x509` makes such certificates.
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(crate) fn new(inner: Arc<WebPkiServerVerifier>, trusted: Vec<CertificateDer<'static>>) -> Self {
        Self { inner, trusted }
    }

    /// Accepts a trusted certificate as the server's own, if it is valid now and has the server's name.
    fn is_trusted_itself(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<bool, rustls::Error> {
        if !self.trusted.contains(certificate) {
            return Ok(false);
        }
        let Ok(read) = Certificate::from_der(certificate) else { return Ok(false) };
        let validity = read.tbs_certificate.validity;
        let not_before = UnixTime::since_unix_epoch(validity.not_before.to_unix_duration());
        let not_after = UnixTime::since_unix_epoch(validity.not_after.to_unix_duration());
        if now > not_after {
            return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
        }
        if now < not_before {
            return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(true)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let error = match self.inner.verify_server_cert(own, intermediates, name, ocsp, now) {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        let rustls::Error::InvalidCertificate(reason) = &error else { return Err(error) };
        let has_no_root = match reason {
            CertificateError::BadSignature => {
                let short = intermediates.iter().chain(&self.trusted).find_map(short_key);
                return Err(short.map_or(error, |issuer| Untrusted::ShortIssuer(issuer).into()));
            }
            CertificateError::UnknownIssuer => true,
            // Among others, an issuer's certificate in place of a server's.
            CertificateError::Other(_) => false,
            _ => return Err(error),
        };
        if self.is_trusted_itself(own, name, now)? {
            return Ok(ServerCertVerified::assertion());
        }
        let untrusted = Untrusted::of(own, intermediates);
        let untrusted = untrusted.filter(|untrusted| has_no_root || untrusted.is_of_own());
        Err(untrusted.map_or(error, Untrusted::into))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verified = self.inner.verify_tls12_signature(message, certificate, signed);
        verified.map_err(|error| of_key(error, certificate))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verified = self.inner.verify_tls13_signature(message, certificate, signed);
        verified.map_err(|error| of_key(error, certificate))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Explains the error of a signature that the server made with the key of its certificate.
pub(crate) fn of_key(error: rustls::Error, certificate: &CertificateDer<'_>) -> rustls::Error {
    let is_of_key = error == CertificateError::BadSignature.into() && short_key(certificate).is_some();
    if is_of_key { Untrusted::ShortKey.into() } else { error }
}

/// Returns the subject of a certificate if its RSA key is too short to be accepted.
fn short_key(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = Certificate::from_der(certificate).ok()?.tbs_certificate;
    let key = certificate.subject_public_key_info;
    let is_short = key.algorithm.oid == RSA && key.subject_public_key.raw_bytes().len() < RSA_MIN_BYTES;
    is_short.then(|| printable(&certificate.subject.to_string()))
}

/// The algorithm of an RSA key (RFC 8017, `rsaEncryption`).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// The size of the modulus of a 2048-bit key in bytes, without its exponent and encoding.
const RSA_MIN_BYTES: usize = 256;

/// The reason why a chain is not trusted, where the library's error is too general. Its text is the rest of a sentence
/// that begins with the certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untrusted {
    /// The server's RSA key is too short.
    #[error("has an RSA key of less than 2048 bits, which is not accepted; issue one with a longer key")]
    ShortKey,
    /// This issuer's RSA key is too short.
    #[error(
        "is issued by '{0}', whose RSA key has less than 2048 bits, which is not accepted; issue it by an authority \
         with a longer key"
    )]
    ShortIssuer(String),
    /// The server's own certificate is an issuer's.
    #[error("is an issuer's certificate, not a server's")]
    Issuer,
    /// The server's own certificate is signed with its own key.
    #[error("is self-signed and not trusted; name its file as ca to trust it")]
    SelfSigned,
    /// The chain ends at a root that is not trusted.
    #[error("is issued under the root '{0}', which is not trusted; name its file as ca to trust it")]
    Root(String),
    /// Only the server's own certificate was sent, and its issuer is not a trusted root.
    #[error(
        "is issued by '{0}', which is not a trusted root, and the server sent no intermediate certificate; add that to \
         the server's certificate file, or name the issuer's file as ca to trust it"
    )]
    NoIntermediate(String),
    /// The last certificate of the chain has this issuer, which is not a trusted root.
    #[error("has a chain to '{0}', which is not a trusted root; name the root's file as ca to trust it")]
    NoRoot(String),
}

impl Untrusted {
    /// Returns true if the server's own certificate is the reason, whatever its chain.
    fn is_of_own(&self) -> bool {
        matches!(self, Self::Issuer | Self::SelfSigned)
    }

    fn of(own: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Option<Self> {
        let own = Certificate::from_der(own).ok()?.tbs_certificate;
        if own.issuer == own.subject {
            return Some(Self::SelfSigned);
        }
        if own.get::<BasicConstraints>().ok()?.is_some_and(|(_, constraints)| constraints.ca) {
            return Some(Self::Issuer);
        }
        let Some(last) = intermediates.last() else {
            return Some(Self::NoIntermediate(printable(&own.issuer.to_string())));
        };
        let last = Certificate::from_der(last).ok()?.tbs_certificate;
        let issuer = printable(&last.issuer.to_string());
        Some(if last.issuer == last.subject { Self::Root(issuer) } else { Self::NoRoot(issuer) })
    }
}

impl From<Untrusted> for rustls::Error {
    fn from(untrusted: Untrusted) -> Self {
        CertificateError::Other(OtherError(Arc::new(untrusted))).into()
    }
}

/// Accepts every certificate: the operator turned verification off. The server still proves that it has the key.
#[derive(Debug)]
pub(crate) struct Unverified(pub(crate) Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verified =
            verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms);
        verified.map_err(|error| of_key(error, certificate))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verified =
            verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms);
        verified.map_err(|error| of_key(error, certificate))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
