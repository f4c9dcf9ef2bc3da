//! The texts of TLS faults: the event, the responsible side, and the remedy.

use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, InvalidMessage};

use crate::verifier::Untrusted;

/// A TLS fault as a text. It names the server and quotes at most [`NAMES_MAX`] names of its certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct TlsFault {
    text: Box<str>,
    is_of_certificate: bool,
}

impl TlsFault {
    fn new(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), is_of_certificate: false }
    }

    /// The fault of a handshake with the server of this name.
    pub(crate) fn of(error: &io::Error, server: &str) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        match cause {
            Some(rustls::Error::InvalidCertificate(error)) => {
                let text = format!("the certificate of {server} {}", certificate(error));
                Self { text: text.into(), is_of_certificate: true }
            }
            Some(rustls::Error::InvalidMessage(
                InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge,
            )) => Self::new("its certificate chain is too long; remove certificates that it does not need"),
            Some(rustls::Error::InvalidMessage(_) | rustls::Error::InappropriateMessage { .. }) => {
                Self::new("it answered without TLS; write http://")
            }
            Some(rustls::Error::AlertReceived(alert)) => Self::new(received(*alert, server)),
            Some(other) => Self::new(format!("TLS failed: {other}")),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::new(
                "it closed the connection during the TLS handshake; if it has no TLS, write http://",
            ),
            None => Self::new(format!("the TLS handshake was cut: {}", error.kind())),
        }
    }

    /// The fault of a server that speaks TLS on a connection without TLS.
    pub(crate) fn expected() -> Self {
        Self::new("it speaks TLS; write https://")
    }

    /// Describes an error of TLS after the handshake, in an error of a stream. Others stay unchanged: a server that
    /// requires a client certificate rejects the connection here.
    pub(crate) fn in_io(error: io::Error) -> io::Error {
        match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::AlertReceived(alert)) => Self::new(received(*alert, "it")).into(),
            _ => error,
        }
    }

    /// Returns the fault in an error of a stream.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Self>().cloned()
    }

    /// Returns true if the server's certificate is not accepted.
    pub(crate) fn is_of_certificate(&self) -> bool {
        self.is_of_certificate
    }
}

impl From<TlsFault> for io::Error {
    fn from(fault: TlsFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}

/// Returns the rest of a sentence that begins with the certificate.
fn certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => format!("expired on {}", date(*not_after)),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is not valid before {}; check the clock of this machine, too", date(*not_before))
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("is for {}; correct the URL, or set server_name to one of them", names(presented))
        }
        CertificateError::Revoked => "is revoked".to_owned(),
        CertificateError::BadSignature => {
            "is not signed with the key of the trusted issuer of that name; if the issuer has a new key, update ca".to_owned()
        },
        CertificateError::InvalidPurposeContext { .. } => "is not a server certificate".to_owned(),
        CertificateError::Other(other) => match other.0.downcast_ref::<Untrusted>() {
            Some(untrusted) => untrusted.to_string(),
            None => format!("cannot be verified: {}", other.0),
        },
        other => format!("is invalid: {other}"),
    }
}

/// Describes an alert of the server of this name.
fn received(alert: AlertDescription, server: &str) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            "it requires a client certificate; set cert and key".to_owned()
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => {
            format!("it rejects the client certificate (TLS alert {alert:?}); check cert and key")
        }
        AlertDescription::UnrecognisedName => format!("it has no certificate for {server}; set server_name"),
        AlertDescription::ProtocolVersion => "it has neither TLS 1.3 nor TLS 1.2".to_owned(),
        // With TLS 1.2 also the answer to a missing client certificate.
        AlertDescription::HandshakeFailure => {
            "it rejects the TLS handshake (alert HandshakeFailure): it requires a \
             client certificate (set cert and key), or shares no cipher suite or type of key with tokenmeter"
                .to_owned()
        }
        other => format!("it ended TLS with the alert {other:?}"),
    }
}

/// Returns the date of a time, in UTC.
fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match Timestamp::from_second(seconds) {
        Ok(time) => time.to_zoned(TimeZone::UTC).date().to_string(),
        Err(_) => "a date beyond the calendar".to_owned(),
    }
}

/// Lists the names of a certificate, which rustls formats as `DnsName("a")` and `IpAddress(1.2.3.4)`.
fn names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')')).unwrap_or(name);
        printable(inner.trim_matches('"'))
    };
    let mut listed: Vec<String> = presented.iter().take(NAMES_MAX).map(plain).collect();
    if presented.len() > NAMES_MAX {
        listed.push(format!("{} more", presented.len() - NAMES_MAX));
    }
    match (listed.pop(), listed.is_empty()) {
        (None, _) => "no name at all".to_owned(),
        (Some(only), true) => only,
        (Some(last), false) => format!("{} and {last}", listed.join(", ")),
    }
}

/// Returns the beginning of a text from a certificate, without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(NAME_MAX_CHARS).collect()
}

/// Names of a certificate that a text lists.
const NAMES_MAX: usize = 5;

/// Characters of a name that a text quotes.
const NAME_MAX_CHARS: usize = 100;
