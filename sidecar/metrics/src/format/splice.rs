//! Exemplars, spliced into the text that prometheus-client writes. That library writes exemplars, but
//! only of its own histograms: nobody outside it can construct the `Exemplar` that its encoders take
//! (`metrics/exemplar.rs` in <https://docs.rs/crate/prometheus-client/0.25.2/source/src>). To be
//! removed when one can.
//!
//! The law: a histogram's lines are its sum, its count and its buckets in order. The collector hands
//! over the exemplars of one histogram just before it has that histogram encoded, and the writer puts
//! each before its own bucket's line feed.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::reading::{Exemplar, HistogramReading};

/// What the lines to come end in; shared by the collector and the writer.
#[derive(Clone, Debug, Default)]
pub(super) struct Exemplars(Arc<Mutex<VecDeque<Option<Exemplar>>>>);

impl Exemplars {
    /// Says that this histogram's lines come next.
    pub(super) fn hand_over(&self, of: &HistogramReading) {
        if of.exemplars.is_empty() {
            return;
        }
        let of_bucket = |at| of.exemplars.iter().copied().find(|exemplar: &Exemplar| exemplar.bucket == at);
        let lines = [None, None].into_iter().chain((0..of.buckets.len()).map(of_bucket));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    }

    fn of_this_line(&self) -> Option<Exemplar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
    }
}

/// Where the library writes to, a few bytes at a time.
pub(super) struct Splice<'a> {
    out: &'a mut dyn Write,
    exemplars: Exemplars,
    failed: Option<io::Error>,
}

impl<'a> Splice<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, exemplars: Exemplars::default(), failed: None }
    }

    /// To be handed to the collector.
    pub(super) fn exemplars(&self) -> Exemplars {
        self.exemplars.clone()
    }

    /// What came of it all: the library passes on only that something failed.
    pub(super) fn finish(self, written: fmt::Result) -> io::Result<()> {
        written.map_err(|error| self.failed.unwrap_or_else(|| io::Error::other(error)))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        for piece in text.split_inclusive('\n') {
            let Some(line) = piece.strip_suffix('\n') else { return self.out.write_all(piece.as_bytes()) };
            self.out.write_all(line.as_bytes())?;
            if let Some(exemplar) = self.exemplars.of_this_line() {
                self.exemplar(&exemplar)?;
            }
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn exemplar(&mut self, exemplar: &Exemplar) -> io::Result<()> {
        let [(trace, trace_id), (span, span_id)] = exemplar.labels();
        let (seconds, ns) = (exemplar.at_unix_ns / 1_000_000_000, exemplar.at_unix_ns % 1_000_000_000);
        let value = exemplar.value;
        write!(self.out, " # {{{trace}=\"{trace_id}\",{span}=\"{span_id}\"}} {value:?} {seconds}.{ns:09}")
    }
}

impl fmt::Write for Splice<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

impl Exemplar {
    /// Its labels, the ids as W3C Trace Context writes them.
    pub(super) fn labels(&self) -> [(&'static str, String); 2] {
        let trace_id = format!("{:032x}", u128::from_be_bytes(self.trace_id));
        let span_id = format!("{:016x}", u64::from_be_bytes(self.span_id));
        [("trace_id", trace_id), ("span_id", span_id)]
    }
}
