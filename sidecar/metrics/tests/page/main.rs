//! The metrics page contains the workers' observations, in formats that every scraper reads.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

mod openmetrics; // a strict reader of the text format
mod protobuf; // a reader of the protobuf format
mod random; // random exchanges
mod records; // exchanges to observe
mod traces; // traces of exchanges
mod twin; // the naive twin: one number per series

mod agree; // page and twin agree
mod cap; // names beyond the cap
mod concurrent; // a scrape while a worker writes
mod control; // readings of the control plane
mod escape; // names that could break a line
mod exemplars; // the traces of outliers
mod formats; // the three formats agree
mod golden; // one page, byte by byte
mod live; // the live counter's overcount
mod manual; // metrics.md
mod meanings; // the meanings of its label values
mod money; // spend, budgets, the ledger
mod names; // the table keeps Prometheus' rules
mod native; // native buckets against a naive computation
mod objectives; // objectives, and a thousand tenants
mod otlp; // names in OTLP, translated back
mod rate_limits; // the latest of all workers
mod semconv; // the enabled families of the convention
mod snapshot; // the numbers of the live page
mod splice; // exemplars, which the encoder does not accept
