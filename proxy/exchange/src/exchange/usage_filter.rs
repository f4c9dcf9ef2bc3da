//! Creates the filter of a stream: it removes the usage that the client did not request.

use meter::ServerKind;
use usage::{AddedOptions, UsageFilter};

use super::Exchange;
use crate::usage_policy::{adds_placeholders, counts_each_answer};

impl Exchange {
    /// Returns the filter of a stream from a server of this kind, from which the effects of `edits` are removed.
    pub(super) fn usage_filter(&self, edits: Option<AddedOptions>, kind: Option<ServerKind>) -> UsageFilter {
        let Some(meter) = &self.meter else { return UsageFilter::new(edits, true) };
        let request = meter.request();
        let client_asked = match self.sent.added {
            // The client keeps running counts if it asked for them, or if its request could not be parsed.
            Some(added) => !added.include || request.continuous_usage || !request.whole,
            // A request that could not be read whole may request usage.
            None => request.stream_options || !request.whole,
        };
        let mut usage_filter = UsageFilter::new(edits, client_asked);
        if adds_placeholders(kind) {
            usage_filter = usage_filter.without_placeholders();
        }
        match counts_each_answer(kind) {
            true => usage_filter,
            false => usage_filter.expecting(request.answers),
        }
    }
}
