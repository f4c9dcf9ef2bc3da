//! The scrape page, seen from outside: what workers observed is what the page says, in a form that
//! every scraper reads.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

mod openmetrics; // a strict reader of the text form
mod protobuf; // a reader of the protobuf form
mod random; // random exchanges
mod records; // exchanges to observe
mod traces; // traces to belong to
mod twin; // the naive twin: sums made of a list of everything observed

mod agree; // the page says what the twin says
mod cap; // names beyond the cap
mod concurrent; // a scrape while a worker writes
mod control; // what the control plane says
mod escape; // names that could break a line
mod exemplars; // the traces of outliers
mod forms; // three forms, one story
mod golden; // one page, byte by byte
mod live; // the live counter's debt
mod manual; // metrics.md
mod money; // what exchanges cost, and where it is written down
mod names; // the table keeps Prometheus' rules
mod native; // native buckets, sorted out naively
mod objectives; // which are counted for whom, and a thousand tenants
mod otlp; // names in OTLP, translated back
mod people; // the snapshot
mod semconv; // which vintage of the convention is there
mod splice; // exemplars, where the official encoder has no words for them
