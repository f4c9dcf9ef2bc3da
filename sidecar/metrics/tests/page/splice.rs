//! The additions to prometheus-client's page: every exemplar is at its bucket for any size of writes, and counts that
//! overflow do not stop the library.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use metrics::{
    Currency, Exemplar, FamilyReading, Format, HistogramReading, Metric, NativeReading, Reading, Sample,
    Value,
};

use crate::{openmetrics, protobuf};

/// The edges; the last bucket is open.
const EDGES: [f64; 3] = [0.001, 30.0, f64::INFINITY];

/// Returns exemplars in the buckets whose bit is set, the last bucket first, because readings promise no order.
fn exemplars(set: usize) -> Vec<Exemplar> {
    let at = |bucket: usize| Exemplar {
        bucket,
        value: [1e-7, 0.001953125, 1e21][bucket],
        trace_id: [0, 0xab, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, set as u8, bucket as u8],
        span_id: [0x0f, 2, 3, 4, 5, 6, set as u8, bucket as u8],
        at_unix_ns: [1, 1_700_000_000_000_000_000, 1_700_000_000_151_000_009][bucket],
    };
    (0..EDGES.len()).rev().filter(|bucket| set & 1 << bucket != 0).map(at).collect()
}

fn histogram(set: usize, native: Option<NativeReading>) -> Value {
    let buckets = EDGES.into_iter().zip([1, 7, 2]).collect();
    Value::Histogram(Box::new(HistogramReading { sum: 1.5, buckets, native, exemplars: exemplars(set) }))
}

fn family(metric: Metric, values: impl IntoIterator<Item = Value>) -> Arc<FamilyReading> {
    let sample = |(at, value): (usize, Value)| {
        let label = |name: &&str| Arc::from(format!("\\\n\"é\" {name} {at} # {{}}"));
        Sample { labels: metric.entry().labels.iter().map(label).collect(), value }
    };
    let samples = values.into_iter().enumerate().map(sample).collect();
    Arc::new(FamilyReading { metric, currency: Currency::USD, samples })
}

/// Returns histograms with these sets of exemplars, one with native buckets, and families of other kinds between and
/// after them.
fn reading(sets: [usize; 3]) -> Reading {
    let native =
        NativeReading { schema: 3, zero_threshold: 1e-6, zero_count: 4, buckets: vec![(-9, 1), (5, 5)] };
    let families = vec![
        family(Metric::FirstToken, [histogram(sets[0], None), histogram(sets[1], None)]),
        family(Metric::Exchanges, [Value::Count(3), Value::Number(0.5)]),
        family(Metric::ChunkGap, []),
        family(Metric::InterToken, [histogram(sets[2], Some(native))]),
        family(Metric::InFlight, [Value::Count(0), Value::Number(2.25)]),
    ];
    Reading { at_unix_ns: 0, since_unix_ns: 0, families }
}

/// Returns the expected place of each exemplar, by the format's specification.
fn expected(reading: &Reading) -> BTreeMap<openmetrics::Series, openmetrics::Exemplar> {
    let mut expected = BTreeMap::new();
    for family in &reading.families {
        let entry = family.metric.entry();
        for sample in &family.samples {
            let Value::Histogram(of) = &sample.value else { continue };
            for exemplar in &of.exemplars {
                let le = ["0.001", "30", "+Inf"][exemplar.bucket];
                let mut labels: Vec<_> =
                    entry.labels.iter().zip(&sample.labels).map(|(name, value)| (*name, &**value)).collect();
                labels.push(("le", le));
                let series = openmetrics::Series::new(&format!("{}_bucket", entry.name), &labels);
                expected.insert(series, printed(exemplar));
            }
        }
    }
    expected
}

fn printed(exemplar: &Exemplar) -> openmetrics::Exemplar {
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let ids = [("trace_id", hex(&exemplar.trace_id)), ("span_id", hex(&exemplar.span_id))];
    openmetrics::Exemplar {
        labels: ids.map(|(name, id)| (name.to_owned(), id)).into(),
        value: exemplar.value,
        at: (exemplar.at_unix_ns / 1_000_000_000) as f64
            + (exemplar.at_unix_ns % 1_000_000_000) as f64 * 1e-9,
    }
}

fn print(reading: &Reading, format: Format) -> Vec<u8> {
    let mut page = Vec::new();
    reading.write(format, &mut page).unwrap();
    page
}

fn text(reading: &Reading, format: Format) -> String {
    String::from_utf8(print(reading, format)).unwrap()
}

#[test]
fn exemplar_changes_only_its_bucket() {
    let without = reading([0; 3]);
    let (plain, classic) = (openmetrics::read(&text(&without, Format::OpenMetrics)), protobuf::of(&without));
    for sets in 0..1 << (3 * EDGES.len()) {
        let reading = reading([sets & 7, sets >> 3 & 7, sets >> 6]);
        let expected = expected(&reading);
        assert_eq!(expected.len(), sets.count_ones() as usize);
        let page = openmetrics::read(&text(&reading, Format::OpenMetrics));
        assert_eq!(page.exemplars, expected, "{sets:b}");
        assert_eq!((&page.families, &page.samples), (&plain.families, &plain.samples), "{sets:b}");

        let pages = protobuf::of(&reading);
        assert_eq!(pages.page.exemplars, expected, "{sets:b}");
        assert_eq!(pages.page.samples, classic.page.samples, "{sets:b}");
        let [native] = &pages.natives.into_values().collect::<Vec<_>>()[..] else { panic!("one is native") };
        assert_eq!(native.exemplars, exemplars(sets >> 6).iter().map(printed).collect::<Vec<_>>());

        assert_eq!(print(&reading, Format::Text), print(&without, Format::Text), "0.0.4 has no exemplars");
    }
}

/// A writer that accepts a few bytes at a time, and fails when it is full.
struct NarrowWriter {
    taken: Vec<u8>,
    at_a_time: usize,
    capacity: usize,
}

impl Write for NarrowWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.at_a_time).min(self.capacity - self.taken.len());
        if n == 0 {
            return Err(io::Error::new(ErrorKind::ConnectionReset, "gone"));
        }
        self.taken.extend(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn page_is_independent_of_write_sizes() {
    let reading = reading([0b101, 0b010, 0b111]);
    for format in Format::ALL {
        let whole = print(&reading, format);
        for at_a_time in [1, 2, 3, 7, 64] {
            let mut narrow = NarrowWriter { taken: Vec::new(), at_a_time, capacity: whole.len() };
            reading.write(format, &mut narrow).unwrap();
            assert_eq!(narrow.taken, whole, "{format:?}, {at_a_time} bytes at a time");
        }
        for capacity in 0..whole.len() {
            let mut narrow = NarrowWriter { taken: Vec::new(), at_a_time: usize::MAX, capacity };
            let error = reading.write(format, &mut narrow).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the error of the writer");
            assert_eq!(narrow.taken, whole[..capacity], "{format:?}");
        }
    }
}

#[test]
fn overflowing_buckets_saturate() {
    let buckets: Vec<_> = EDGES.into_iter().zip([u64::MAX - 3, 5, u64::MAX]).collect();
    let of = HistogramReading { buckets, ..HistogramReading::default() };
    let reading = Reading {
        at_unix_ns: 0,
        since_unix_ns: 0,
        families: vec![family(Metric::ChunkGap, [Value::Histogram(Box::new(of))])],
    };
    for format in [Format::OpenMetrics, Format::Text] {
        let page = text(&reading, format);
        let counts = page.lines().filter(|line| line.contains("_bucket{") || line.contains("_count{"));
        let counts: Vec<u64> = counts.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
        assert_eq!(counts, [u64::MAX, u64::MAX - 3, u64::MAX, u64::MAX]);
    }
    let pages = protobuf::of(&reading);
    assert_eq!(pages.page.samples.len(), 2 + EDGES.len());
}
