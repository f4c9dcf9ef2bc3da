//! The ending of an exchange, and its cause. Every exchange has exactly one; a dropped exchange gets the
//! ending that its drop proves.

/// The ending of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The dialect's own end mark arrived.
    Complete,
    /// The server's length limit ended the answer; a success.
    Length,
    /// The client left. The tokens generated until then are counted.
    ClientAbort,
    /// The upstream's bytes stopped before the dialect's end mark.
    UpstreamCut,
    /// An error frame under HTTP 200.
    ErrorInBand,
    /// An HTTP status of 400 or above.
    ErrorStatus,
    /// A clean end without any output.
    NoOutput,
    /// A failure of the proxy: no upstream could be reached, or a bug.
    ProxyError,
}

impl Ending {
    /// Every ending, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Complete,
        Self::Length,
        Self::ClientAbort,
        Self::UpstreamCut,
        Self::ErrorInBand,
        Self::ErrorStatus,
        Self::NoOutput,
        Self::ProxyError,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Length => "length",
            Self::ClientAbort => "client_abort",
            Self::UpstreamCut => "upstream_cut",
            Self::ErrorInBand => "error_in_band",
            Self::ErrorStatus => "error_status",
            Self::NoOutput => "no_output",
            Self::ProxyError => "proxy_error",
        }
    }

    /// Returns true if the `gen_ai.*` series, which describe successes only, count it.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Complete | Self::Length)
    }
}

#[cfg(test)]
mod tests {
    use super::Ending;

    #[test]
    fn names_are_the_label_values() {
        let names = Ending::ALL.map(Ending::name).join(" ");
        let expected =
            "complete length client_abort upstream_cut error_in_band error_status no_output proxy_error";
        assert_eq!(names, expected);
    }
}
