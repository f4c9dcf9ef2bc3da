//! The watch over a stream that notes the usage in it, and what of that the client did not ask for.

use usage::{Added, Watch};

use super::Exchange;
use crate::request::usage_policy;

impl Exchange {
    /// A watch over a stream from which `edits` is to be taken out.
    pub(super) fn watch_for(&self, edits: Option<Added>) -> Watch {
        let Some(meter) = &self.meter else { return Watch::new(edits, true) };
        let request = meter.request();
        let client_asked = match self.added {
            // Who asked for running counts gets them, and may not have been readable in asking.
            Some(added) => !added.include || request.continuous_usage || !request.whole,
            // What could not be read may have asked.
            None => request.stream_options || !request.whole,
        };
        let watch = Watch::new(edits, client_asked);
        match usage_policy::counts_each_answer(self.kind()) {
            true => watch,
            false => watch.awaiting(request.answers),
        }
    }
}
