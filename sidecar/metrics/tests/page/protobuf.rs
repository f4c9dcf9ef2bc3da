//! A naive reader of Prometheus' protobuf form, written from `metrics.proto` and the wire format and
//! not from the encoder. What it does not know, it refuses.

use std::collections::BTreeMap;

use metrics::{Format, Reading};

use crate::openmetrics::{Exemplar, Family, Page, Series};

/// A page and what only this form has.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) page: Page,
    /// By series, with the name of the family.
    pub(crate) natives: BTreeMap<Series, Native>,
}

/// A native histogram, its buckets by number.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Native {
    pub(crate) schema: i64,
    pub(crate) zero_threshold: f64,
    pub(crate) zero_count: u64,
    pub(crate) buckets: BTreeMap<i64, i64>,
}

/// Prints a reading in this form and reads it.
pub(crate) fn of(reading: &Reading) -> Pages {
    let mut bytes = Vec::new();
    reading.write(Format::Protobuf, &mut bytes).unwrap();
    let mut pages = Pages::default();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let length = varint(&mut rest) as usize;
        let (family, after) = rest.split_at(length);
        read_family(family, &mut pages);
        rest = after;
    }
    pages
}

/// A field's value as the wire has it.
enum Wire<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn number(self) -> u64 {
        let Self::Number(n) = self else { panic!("not a varint") };
        assert!(n != 0, "a zero is left out");
        n
    }

    fn signed(self) -> i64 {
        unzigzag(self.number())
    }

    fn double(self) -> f64 {
        let Self::Double(n) = self else { panic!("not a double") };
        n
    }

    fn bytes(self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else { panic!("not bytes") };
        bytes
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut n = 0;
    for at in 0.. {
        let (byte, after) = rest.split_first().unwrap();
        *rest = after;
        n |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    n
}

fn fields(mut rest: &[u8]) -> Vec<(u64, Wire<'_>)> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut rest)),
            1 => {
                let (eight, after) = rest.split_at(8);
                rest = after;
                Wire::Double(f64::from_le_bytes(eight.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut rest) as usize;
                let (bytes, after) = rest.split_at(length);
                rest = after;
                Wire::Bytes(bytes)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, wire));
    }
    fields
}

fn read_family(bytes: &[u8], pages: &mut Pages) {
    let (mut name, mut kind, mut metrics) = (String::new(), "counter", Vec::new());
    let mut family = Family::default();
    for (field, wire) in fields(bytes) {
        match field {
            1 => name = wire.text(),
            2 => family.help = Some(wire.text()),
            3 => kind = ["counter", "gauge", "", "", "histogram"][wire.number() as usize],
            4 => metrics.push(wire.bytes()),
            5 => family.unit = Some(wire.text()),
            other => panic!("MetricFamily has no field {other}"),
        }
    }
    let before = pages.page.samples.len();
    metrics.into_iter().for_each(|metric| read_metric(metric, &name, kind, pages));
    family.samples = pages.page.samples.len() - before;
    family.kind = kind.to_owned();
    family.name = name.strip_suffix("_total").unwrap_or(&name).to_owned();
    pages.page.families.push(family);
}

fn read_metric(bytes: &[u8], name: &str, kind: &str, pages: &mut Pages) {
    let mut labels = BTreeMap::new();
    let mut value = None;
    for (field, wire) in fields(bytes) {
        match (field, kind) {
            (1, _) => {
                let (name, value) = read_label(wire.bytes());
                assert!(labels.insert(name, value).is_none());
            }
            (2, "gauge") | (3, "counter") | (7, "histogram") => value = Some(wire.bytes()),
            other => panic!("Metric has no field {other:?}"),
        }
    }
    let (value, series) = (value.unwrap(), Series { name: name.to_owned(), labels });
    if kind == "histogram" {
        return read_histogram(value, &series, pages);
    }
    let number = fields(value).into_iter().map(|(field, wire)| (field, wire.double())).collect::<Vec<_>>();
    let number = match number[..] {
        [] => 0.0,
        [(1, number)] => number,
        _ => panic!("{number:?}"),
    };
    assert!(pages.page.samples.insert(series, number).is_none());
}

fn read_label(bytes: &[u8]) -> (String, String) {
    let (mut name, mut value) = (String::new(), String::new());
    for (field, wire) in fields(bytes) {
        match field {
            1 => name = wire.text(),
            2 => value = wire.text(),
            other => panic!("LabelPair has no field {other}"),
        }
    }
    (name, value)
}

fn read_histogram(bytes: &[u8], series: &Series, pages: &mut Pages) {
    let named = |suffix: &str, le: Option<f64>| {
        let mut series = Series { name: format!("{}{suffix}", series.name), ..series.clone() };
        if let Some(le) = le {
            let le = if le == f64::INFINITY { "+Inf".to_owned() } else { le.to_string() };
            series.labels.insert("le".to_owned(), le);
        }
        series
    };
    let (mut count, mut sum, mut native, mut spans, mut deltas) =
        (0, 0.0, Native::default(), Vec::new(), Vec::new());
    for (field, wire) in fields(bytes) {
        match field {
            1 => count = wire.number(),
            2 => sum = wire.double(),
            3 => {
                let (mut below, mut upper, mut exemplar) = (0, 0.0, None);
                for (field, wire) in fields(wire.bytes()) {
                    match field {
                        1 => below = wire.number(),
                        2 => upper = wire.double(),
                        3 => exemplar = Some(read_exemplar(wire.bytes())),
                        other => panic!("Bucket has no field {other}"),
                    }
                }
                let bucket = named("_bucket", Some(upper));
                if let Some(exemplar) = exemplar {
                    pages.page.exemplars.insert(bucket.clone(), exemplar);
                }
                pages.page.samples.insert(bucket, below as f64);
            }
            5 => native.schema = wire.signed(),
            6 => native.zero_threshold = wire.double(),
            7 => native.zero_count = wire.number(),
            12 => {
                let mut span = (0, 0);
                for (field, wire) in fields(wire.bytes()) {
                    match field {
                        1 => span.0 = wire.signed(),
                        2 => span.1 = wire.number(),
                        other => panic!("BucketSpan has no field {other}"),
                    }
                }
                spans.push(span);
            }
            13 => {
                let mut packed = wire.bytes();
                while !packed.is_empty() {
                    deltas.push(unzigzag(varint(&mut packed)));
                }
            }
            other => panic!("Histogram has no field {other}"),
        }
    }
    pages.page.samples.insert(named("_count", None), count as f64);
    pages.page.samples.insert(named("_sum", None), sum);
    if native.zero_threshold == 0.0 {
        assert!(spans.is_empty() && deltas.is_empty(), "half a native histogram");
        return;
    }
    let (mut at, mut n, mut deltas) = (0, 0, deltas.into_iter());
    for (gap, length) in spans {
        at += gap;
        for _ in 0..length {
            n += deltas.next().expect("a count for each bucket");
            native.buckets.insert(at, n);
            at += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    // Prometheus refuses a native histogram whose buckets do not make its count.
    assert_eq!(native.zero_count as i64 + native.buckets.values().sum::<i64>(), count as i64, "{series:?}");
    pages.natives.insert(series.clone(), native);
}

fn read_exemplar(bytes: &[u8]) -> Exemplar {
    let (mut labels, mut value, mut at) = (BTreeMap::new(), 0.0, 0.0);
    for (field, wire) in fields(bytes) {
        match field {
            1 => labels.extend([read_label(wire.bytes())]),
            2 => value = wire.double(),
            3 => {
                for (field, wire) in fields(wire.bytes()) {
                    at += wire.number() as f64 * if field == 1 { 1.0 } else { 1e-9 };
                }
            }
            other => panic!("Exemplar has no field {other}"),
        }
    }
    Exemplar { labels, value, at }
}
