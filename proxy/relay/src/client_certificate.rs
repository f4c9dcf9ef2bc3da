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
    // A name of an unknown type counts, but is not valid.
    let common = subject.filter(|name| name.oid == COMMON_NAME);
    let common = common.map(|name| (CertificateName::CommonName, text(&name.value).unwrap_or_default()));
    let mut names = Vec::new();
    for (kind, name) in alternative.chain(common) {
        if names.iter().filter(|(known, _)| *known == kind).count() < KIND_NAMES_MAX {
            names.push((kind, name));
        }
    }
    Some(CertificateNames { names })
}

/// Returns the text of a name, of which ASN.1 has several types.
fn text(value: &Any) -> Option<String> {
    let utf8 = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
    utf8.or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|text| text.as_str().to_owned()))
        .or_else(|_| value.decode_as::<Ia5StringRef<'_>>().map(|text| text.as_str().to_owned()))
        .or_else(|_| value.decode_as::<TeletexStringRef<'_>>().map(|text| text.as_str().to_owned()))
        .ok()
}

/// Names of each kind that are kept: with a second one, no rule for that kind matches.
const KIND_NAMES_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair, SanType};

    use super::*;

    fn names(params: CertificateParams) -> Vec<(CertificateName, String)> {
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        certificate_names(certificate.der()).unwrap().names
    }

    #[test]
    fn second_name_is_seen_behind_many_of_another_kind() {
        let hosts = (0..100).map(|n| format!("h{n}.test")).collect::<Vec<_>>();
        let mut params = CertificateParams::new(hosts).unwrap();
        for uri in ["urn:a", "urn:b", "urn:c"] {
            params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        }
        let uris: Vec<_> =
            names(params).into_iter().filter(|(kind, _)| *kind == CertificateName::Uri).collect();
        assert_eq!(uris, [(CertificateName::Uri, "urn:a".into()), (CertificateName::Uri, "urn:b".into())]);
    }

    #[test]
    fn common_name_of_an_unknown_type_counts() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, DnValue::BmpString("a".try_into().unwrap()));
        assert_eq!(names(params), [(CertificateName::CommonName, String::new())]);
    }
}
