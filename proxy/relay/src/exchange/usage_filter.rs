//! The watch over a stream that notes the usage in it, and what of that the client did not ask for.

use usage::{Added, UsageFilter};

use super::Exchange;
use crate::request::usage_policy;

impl Exchange {
    /// A watch over a stream from which `edits` is to be taken out.
    pub(super) fn usage_filter(&self, edits: Option<Added>) -> UsageFilter {
        let Some(meter) = &self.meter else { return UsageFilter::new(edits, true) };
        let request = meter.request();
        let client_asked = match self.added {
            // Who asked for running counts gets them, and may not have been readable in asking.
            Some(added) => !added.include || request.continuous_usage || !request.whole,
            // What could not be read may have asked.
            None => request.stream_options || !request.whole,
        };
        let usage_filter = UsageFilter::new(edits, client_asked);
        match usage_policy::counts_each_answer(self.kind()) {
            true => usage_filter,
            false => usage_filter.expecting(request.answers),
        }
    }
}
