//! Insertion of exemplars into the text that prometheus-client writes. The library writes exemplars only of its own
//! histograms: the `Exemplar` that its encoders take has no public constructor
//! (`metrics/exemplar.rs` in <https://docs.rs/crate/prometheus-client/0.25.2/source/src>). Remove this module when it
//! has one.
//!
//! Invariant: the lines of a histogram are its sum, its count and its buckets in order. The collector queues the
//! exemplars of a histogram just before the library encodes it, and the writer inserts each before the line feed of
//! its bucket.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::reading::{Exemplar, HistogramReading};

/// The exemplars of the next lines, one entry per line; shared by the collector and the writer.
#[derive(Clone, Debug, Default)]
pub(super) struct Exemplars(Arc<Mutex<VecDeque<Option<Exemplar>>>>);

impl Exemplars {
    /// Queues the exemplars of a histogram whose lines are written next.
    pub(super) fn queue(&self, of: &HistogramReading) {
        if of.exemplars.is_empty() {
            return;
        }
        let of_bucket = |at| of.exemplars.iter().copied().find(|exemplar: &Exemplar| exemplar.bucket == at);
        let lines = [None, None].into_iter().chain((0..of.buckets.len()).map(of_bucket));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    }

    fn next_line(&self) -> Option<Exemplar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
    }
}

/// The writer for the library, which writes a few bytes at a time.
pub(super) struct Splice<'a> {
    out: &'a mut dyn Write,
    exemplars: Exemplars,
    failed: Option<io::Error>,
}

impl<'a> Splice<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, exemplars: Exemplars::default(), failed: None }
    }

    /// Returns the queue for the collector.
    pub(super) fn exemplars(&self) -> Exemplars {
        self.exemplars.clone()
    }

    /// Returns the result with the I/O error; the library reports only that formatting failed.
    pub(super) fn finish(self, written: fmt::Result) -> io::Result<()> {
        written.map_err(|error| self.failed.unwrap_or_else(|| io::Error::other(error)))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        for piece in text.split_inclusive('\n') {
            let Some(line) = piece.strip_suffix('\n') else { return self.out.write_all(piece.as_bytes()) };
            self.out.write_all(line.as_bytes())?;
            if let Some(exemplar) = self.exemplars.next_line() {
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
    /// Returns its labels, with the ids in the form of W3C Trace Context.
    pub(super) fn labels(&self) -> [(&'static str, String); 2] {
        let trace_id = format!("{:032x}", u128::from_be_bytes(self.trace_id));
        let span_id = format!("{:016x}", u64::from_be_bytes(self.span_id));
        [("trace_id", trace_id), ("span_id", span_id)]
    }
}
