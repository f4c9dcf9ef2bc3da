//! Prometheus' protobuf form, `io.prometheus.client.MetricFamily`: the one form that carries native
//! histograms. Five messages of plain fields, written straight from the reading: generated types
//! would hold the whole page a second time, and need a compiler of schemas at build time.
//!
//! The law: a message's bytes are gathered before its length is written, a family at a time, so
//! that what is held is the largest family and not the page.

use std::io::{self, Write};

use super::text::hex;
use crate::reading::{Exemplar, FamilyReading, HistogramReading, NativeReading, Reading, Sample, Value};
use crate::table::Kind;

/// Every family, each after its length.
pub(super) fn delimited(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut message = Message::default();
    let mut length = Message::default();
    for family in &reading.families {
        message.0.clear();
        length.0.clear();
        metric_family(family, &mut message);
        length.varint(message.0.len() as u64);
        out.write_all(&length.0)?;
        out.write_all(&message.0)?;
    }
    Ok(())
}

fn metric_family(family: &FamilyReading, out: &mut Message) {
    let entry = family.metric.entry();
    out.text(1, entry.name);
    out.text(2, entry.meaning);
    out.number(
        3,
        match entry.kind {
            Kind::Counter => 0,
            Kind::Gauge => 1,
            Kind::Histogram(_) => 4,
        },
    );
    for sample in &family.samples {
        out.message(4, |out| metric(entry.kind, entry.labels, sample, out));
    }
    out.text(5, entry.unit.word().unwrap_or_default());
}

fn metric(kind: Kind, names: &[&str], sample: &Sample, out: &mut Message) {
    for (name, value) in names.iter().zip(&sample.labels) {
        out.message(1, |out| label(name, value, out));
    }
    let field = if kind == Kind::Gauge { 2 } else { 3 };
    match &sample.value {
        Value::Count(n) => out.message(field, |out| out.double(1, *n as f64)),
        Value::Number(n) => out.message(field, |out| out.double(1, *n)),
        Value::Histogram(of) => out.message(7, |out| histogram(of, out)),
    }
}

fn label(name: &str, value: &str, out: &mut Message) {
    out.text(1, name);
    out.text(2, value);
}

fn histogram(of: &HistogramReading, out: &mut Message) {
    out.number(1, of.count());
    out.double(2, of.sum);
    let mut below = 0u64;
    for (at, (upper, n)) in of.buckets.iter().enumerate() {
        below = below.saturating_add(*n);
        let seen = of.exemplars.iter().find(|exemplar| exemplar.bucket == at);
        out.message(3, |out| {
            out.number(1, below);
            out.double(2, *upper);
            if let Some(seen) = seen {
                out.message(3, |out| exemplar(seen, out));
            }
        });
    }
    if let Some(native) = &of.native {
        native_buckets(native, out);
    }
}

fn exemplar(seen: &Exemplar, out: &mut Message) {
    out.message(1, |out| label("trace_id", &hex(&seen.trace_id), out));
    out.message(1, |out| label("span_id", &hex(&seen.span_id), out));
    out.double(2, seen.value);
    out.message(3, |out| {
        out.number(1, seen.at_unix_ns / 1_000_000_000);
        out.number(2, seen.at_unix_ns % 1_000_000_000);
    });
}

/// Runs of buckets, each as the gap before it and its length, and every bucket's count as the
/// difference to the one before.
fn native_buckets(native: &NativeReading, out: &mut Message) {
    out.number(5, zigzag(i64::from(native.schema)));
    out.double(6, native.zero_threshold);
    out.number(7, native.zero_count);
    let mut spans: Vec<(i32, u64)> = Vec::new();
    let mut next = 0;
    for (at, _) in &native.buckets {
        match spans.last_mut() {
            Some((_, length)) if *at == next => *length += 1,
            _ => spans.push((at - next, 1)),
        }
        next = at + 1;
    }
    for (gap, length) in spans {
        out.message(12, |out| {
            out.number(1, zigzag(i64::from(gap)));
            out.number(2, length);
        });
    }
    if !native.buckets.is_empty() {
        out.message(13, |out| {
            let mut before = 0;
            for (_, n) in &native.buckets {
                let n = i64::try_from(*n).unwrap_or(i64::MAX);
                out.varint(zigzag(n - before));
                before = n;
            }
        });
    }
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// A message's fields, one after the other. A field that has its type's zero is left out, as proto3
/// wants it.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn number(&mut self, field: u64, n: u64) {
        if n != 0 {
            self.varint(field << 3);
            self.varint(n);
        }
    }

    fn double(&mut self, field: u64, n: f64) {
        if n.to_bits() != 0 {
            self.varint(field << 3 | 1);
            self.0.extend(n.to_le_bytes());
        }
    }

    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.varint(field << 3 | 2);
            self.varint(text.len() as u64);
            self.0.extend(text.as_bytes());
        }
    }

    /// A message within. Its length is let in before it once it is known, which moves some bytes and
    /// saves a buffer for each.
    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        self.varint(field << 3 | 2);
        let start = self.0.len();
        write(self);
        let mut length = Self::default();
        length.varint((self.0.len() - start) as u64);
        self.0.splice(start..start, length.0);
    }
}
