//! Tables of cases, one file for each noun. Recordings, the oracle and generated streams are in the
//! end-to-end tests, where the fuzzers use them too.

mod editor;
mod inject_usage;
mod usage_filter;
