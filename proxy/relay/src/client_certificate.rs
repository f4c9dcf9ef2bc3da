//! The names in the certificate of a client. An authority that the listener trusts has signed it, but its content is
//! bounded anyway.

use rustls::pki_types::CertificateDer;
use tenant::{CertificateName, CertificateNames};
use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::{Any, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Returns the names in a certificate: the alternative names of its subject, and its common name. Names of other kinds
/// are left out. `None` if it cannot be read.
pub fn certificate_names(certificate: &CertificateDer<'_>) -> Option<CertificateNames> {
    let certificate = Certificate::from_der(certificate).ok()?.tbs_certificate;
    let alternative = certificate.get::<SubjectAltName>().ok()?.map(|(_, names)| names.0).unwrap_or_default();
    let alternative = alternative.iter().filter_map(|name| {
        Some(match name {
            GeneralName::UniformResourceIdentifier(name) => (CertificateName::Uri, name.as_str().to_owned()),
            GeneralName::DnsName(name) => (CertificateName::Dns, name.as_str().to_owned()),
            GeneralName::Rfc822Name(name) => (CertificateName::Email, name.as_str().to_owned()),
            _ => return None,
        })
    });
    let subject = certificate.subject.0.iter().flat_map(|names| names.0.iter());
    let common = subject.filter(|name| name.oid == COMMON_NAME).filter_map(|name| text(&name.value));
    let common = common.map(|name| (CertificateName::CommonName, name));
    Some(CertificateNames { names: alternative.chain(common).take(NAMES_MAX).collect() })
}

/// Returns the text of a name, of which ASN.1 has several types.
fn text(value: &Any) -> Option<String> {
    if let Ok(text) = value.decode_as::<Utf8StringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    if let Ok(text) = value.decode_as::<PrintableStringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    if let Ok(text) = value.decode_as::<Ia5StringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    value.decode_as::<TeletexStringRef<'_>>().ok().map(|text| text.as_str().to_owned())
}

/// Names of one certificate that are kept: a rule needs one of a kind, and with a second one it does not match.
const NAMES_MAX: usize = 64;
