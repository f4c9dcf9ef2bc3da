//! The `error.type` of the semantic convention. A closed list, except for HTTP statuses: no text of a server
//! or client is part of it.

use std::fmt;

use crate::{Ending, Record};

/// The `error.type` of a failed exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// The server's status, 400 or above.
    Status(u16),
    /// The client left before the end.
    ClientDisconnect,
    /// The answer broke off.
    StreamTruncated,
    /// The connection broke before the first byte of the answer.
    UpstreamReset,
    /// The server reported an error inside its answer.
    ErrorInBand,
    /// The answer ended without any output.
    NoOutput,
    /// Any other failure, such as the proxy's own.
    Other,
}

impl Record {
    /// The type of its error; `None` for a success.
    pub fn error_type(&self) -> Option<ErrorType> {
        Some(match self.ending {
            Ending::Complete | Ending::Length => return None,
            Ending::ErrorStatus => ErrorType::Status(self.status),
            Ending::ClientAbort => ErrorType::ClientDisconnect,
            Ending::UpstreamCut if self.timing.first_byte_ns.is_some() => ErrorType::StreamTruncated,
            Ending::UpstreamCut => ErrorType::UpstreamReset,
            Ending::ErrorInBand => ErrorType::ErrorInBand,
            Ending::NoOutput | Ending::Detached => ErrorType::NoOutput,
            Ending::ProxyError => ErrorType::Other,
        })
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status(status) => return write!(f, "{status}"),
            Self::ClientDisconnect => "client_disconnect",
            Self::StreamTruncated => "stream_truncated",
            Self::UpstreamReset => "upstream_reset",
            Self::ErrorInBand => "error_in_band",
            Self::NoOutput => "no_output",
            Self::Other => "_OTHER",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorType;

    #[test]
    fn error_type_is_a_status_or_a_word() {
        assert_eq!(ErrorType::Status(503).to_string(), "503");
        assert_eq!(ErrorType::ClientDisconnect.to_string(), "client_disconnect");
        assert_eq!(ErrorType::Other.to_string(), "_OTHER");
    }
}
