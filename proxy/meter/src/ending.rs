//! How an exchange ended and whose doing it was. Every exchange has exactly one ending; a dropped
//! one has the ending its drop proves.

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The dialect's own end mark was seen.
    Complete,
    /// The server's length limit ended it; a success.
    Length,
    /// The client left. What was generated until then is counted.
    ClientAbort,
    /// The upstream's bytes stopped before the dialect's end mark.
    UpstreamCut,
    /// An error frame under HTTP 200.
    ErrorInBand,
    /// An HTTP status of 400 or above.
    ErrorStatus,
    /// A clean end without any output.
    NoOutput,
    /// Our own doing: no upstream could be reached, or a bug.
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

    /// Whether the `gen_ai.*` series, which are for successes only, count it.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Complete | Self::Length)
    }
}

#[cfg(test)]
mod tests {
    use super::Ending;

    #[test]
    fn names_are_the_labels_values() {
        let names = Ending::ALL.map(Ending::name).join(" ");
        let expected =
            "complete length client_abort upstream_cut error_in_band error_status no_output proxy_error";
        assert_eq!(names, expected);
    }
}
