//! The two text forms: OpenMetrics 1.0, and Prometheus' older 0.0.4, which calls a counter's family
//! by its sample's name and knows neither UNIT nor exemplars nor an end. Written here and not by
//! prometheus-client, because no one outside that crate can hand it an exemplar and it has no 0.0.4.

use std::io::{self, Write};

use crate::reading::{Exemplar, HistogramReading, Reading, Sample, Value};
use crate::table::Entry;

pub(super) fn open_metrics(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    page(reading, &mut Page { out, open_metrics: true })?;
    out.write_all(b"# EOF\n")
}

pub(super) fn plain(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    page(reading, &mut Page { out, open_metrics: false })
}

struct Page<'a> {
    out: &'a mut dyn Write,
    open_metrics: bool,
}

fn page(reading: &Reading, page: &mut Page<'_>) -> io::Result<()> {
    for family in &reading.families {
        let entry = family.metric.entry();
        page.describe(entry)?;
        for sample in &family.samples {
            page.sample(entry, sample)?;
        }
    }
    Ok(())
}

impl Page<'_> {
    fn describe(&mut self, entry: &Entry) -> io::Result<()> {
        let family = if self.open_metrics { entry.family() } else { entry.name };
        writeln!(self.out, "# HELP {family} {}", entry.meaning)?;
        writeln!(self.out, "# TYPE {family} {}", entry.kind.name())?;
        match entry.unit.word() {
            Some(unit) if self.open_metrics => writeln!(self.out, "# UNIT {family} {unit}"),
            _ => Ok(()),
        }
    }

    fn sample(&mut self, entry: &Entry, sample: &Sample) -> io::Result<()> {
        match &sample.value {
            Value::Histogram(histogram) => self.histogram(entry, sample, histogram),
            value => {
                self.series(entry, "", sample, None)?;
                self.value(value)?;
                self.out.write_all(b"\n")
            }
        }
    }

    fn histogram(&mut self, entry: &Entry, sample: &Sample, of: &HistogramReading) -> io::Result<()> {
        self.series(entry, "_sum", sample, None)?;
        self.number(of.sum)?;
        self.out.write_all(b"\n")?;
        self.series(entry, "_count", sample, None)?;
        write!(self.out, "{}", of.count())?;
        let mut below = 0u64;
        for (at, (upper, n)) in of.buckets.iter().enumerate() {
            below = below.saturating_add(*n);
            self.out.write_all(b"\n")?;
            self.series(entry, "_bucket", sample, Some(*upper))?;
            write!(self.out, "{below}")?;
            if let Some(exemplar) = of.exemplars.iter().find(|exemplar| exemplar.bucket == at) {
                self.exemplar(exemplar)?;
            }
        }
        self.out.write_all(b"\n")
    }

    /// A sample's name and labels, and the blank before its value.
    fn series(&mut self, entry: &Entry, suffix: &str, sample: &Sample, le: Option<f64>) -> io::Result<()> {
        write!(self.out, "{}{suffix}", entry.name)?;
        let mut before = "{";
        if let Some(upper) = le {
            self.out.write_all(b"{le=\"")?;
            self.number(upper)?;
            self.out.write_all(b"\"")?;
            before = ",";
        }
        for (name, value) in entry.labels.iter().zip(&sample.labels) {
            write!(self.out, "{before}{name}=\"")?;
            self.escaped(value)?;
            self.out.write_all(b"\"")?;
            before = ",";
        }
        self.out.write_all(if before == "{" { b" " } else { b"} " })
    }

    fn exemplar(&mut self, exemplar: &Exemplar) -> io::Result<()> {
        if !self.open_metrics {
            return Ok(());
        }
        let (trace, span) = (hex(&exemplar.trace_id), hex(&exemplar.span_id));
        write!(self.out, " # {{trace_id=\"{trace}\",span_id=\"{span}\"}} ")?;
        self.number(exemplar.value)?;
        let (seconds, ns) = (exemplar.at_unix_ns / 1_000_000_000, exemplar.at_unix_ns % 1_000_000_000);
        write!(self.out, " {seconds}.{ns:09}")
    }

    fn value(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Count(n) => write!(self.out, "{n}"),
            Value::Number(n) => self.number(*n),
            Value::Histogram(_) => Ok(()),
        }
    }

    /// A number with a point, the form OpenMetrics recommends for edges too.
    fn number(&mut self, n: f64) -> io::Result<()> {
        match n {
            f64::INFINITY => self.out.write_all(b"+Inf"),
            f64::NEG_INFINITY => self.out.write_all(b"-Inf"),
            n if n.fract() == 0.0 => write!(self.out, "{n:.1}"),
            n => write!(self.out, "{n}"),
        }
    }

    /// A label's value between its quotes.
    fn escaped(&mut self, value: &str) -> io::Result<()> {
        let mut rest = value;
        while let Some(at) = rest.find(['\\', '"', '\n']) {
            self.out.write_all(&rest.as_bytes()[..at])?;
            self.out.write_all(match rest.as_bytes()[at] {
                b'\n' => b"\\n",
                b'"' => b"\\\"",
                _ => b"\\\\",
            })?;
            rest = &rest[at + 1..];
        }
        self.out.write_all(rest.as_bytes())
    }
}

/// Lower-case hexadecimal digits, as W3C Trace Context writes ids.
pub(super) fn hex(id: &[u8]) -> String {
    id.iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[digit as usize]))
        .collect()
}
