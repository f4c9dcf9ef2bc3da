//! The names in a client's certificate. The caller verified the certificate and read its names.

use crate::miss::Miss;

/// The names in a verified certificate, by their kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// Each name and its kind, in the certificate's order.
    pub names: Vec<(CertificateName, String)>,
}

meter::listed_enum! {
    /// A kind of name in a certificate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CertificateName {
        /// A URI of the subject's alternative names, such as a SPIFFE id.
        Uri = "uri",
        /// A host name of the subject's alternative names.
        Dns = "dns",
        /// A mail address of the subject's alternative names.
        Email = "email",
        /// The common name of the subject.
        CommonName = "common_name",
    }
    /// The word in the tenants file.
    pub fn name(self);
}

impl CertificateNames {
    /// Returns the only name of a kind. With several, none of them is the client's name.
    pub(crate) fn only(&self, kind: CertificateName) -> Result<&str, Miss> {
        let mut names = self.names.iter().filter(|(known, _)| *known == kind).map(|(_, name)| &**name);
        match (names.next(), names.next()) {
            (Some(name), None) => Ok(name),
            (Some(_), Some(_)) => Err(Miss::Repeated),
            (None, _) => Err(Miss::Absent),
        }
    }
}
