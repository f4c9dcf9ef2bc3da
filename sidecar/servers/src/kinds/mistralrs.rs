//! mistral.rs.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, empty};

/// It exports latencies and none of the common quantities: `http_requests_in_flight` includes the read of the page,
/// so it is never 0.
pub(super) static PAGE: Vocabulary = empty(ServerKind::MistralRs, &["mistralrs_"]);
