//! The ending of an exchange, and its cause. Every exchange has exactly one; a dropped exchange gets the
//! ending that its drop proves.

scan::listed_enum! {
    /// The ending of an exchange, in the order of the documentation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Ending {
        /// The dialect's own end mark arrived.
        Complete = "complete",
        /// The server's length limit ended the answer; a success.
        Length = "length",
        /// The client left. The tokens generated until then are counted.
        ClientAbort = "client_abort",
        /// The upstream's bytes stopped before the dialect's end mark.
        UpstreamCut = "upstream_cut",
        /// An error frame under HTTP 200.
        ErrorInBand = "error_in_band",
        /// An HTTP status of 400 or above.
        ErrorStatus = "error_status",
        /// A clean end without any output.
        NoOutput = "no_output",
        /// The server accepted work whose result is fetched later: a success without output and without usage.
        Detached = "detached",
        /// A failure of the proxy: no upstream could be reached, or a bug.
        ProxyError = "proxy_error",
    }
    /// The label value.
    pub fn name(self);
}

impl Ending {
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
        let expected = "complete length client_abort upstream_cut error_in_band error_status no_output detached proxy_error";
        assert_eq!(names, expected);
    }
}
