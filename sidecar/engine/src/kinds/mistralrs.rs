//! mistral.rs.

use relay::Kind;

use crate::vocabulary::{Vocabulary, silent};

/// It says latencies and no quantity of ours: `http_requests_in_flight` counts the reading of the
/// page too, so it is never 0.
pub(super) static PAGE: Vocabulary = silent(Kind::MistralRs, &["mistralrs_"]);
