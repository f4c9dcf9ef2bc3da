//! The forms a reading is printed in, by prometheus-client. The law: every form holds the same
//! numbers, made from the same [`Reading`]; a form leaves out only what it has no words for.

mod collector;
mod protobuf;
mod splice;
mod text;

use std::io::{self, Write};

use crate::reading::Reading;

/// A form of the scrape page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0 text: with units and exemplars, without native histograms.
    OpenMetrics,
    /// Prometheus' protobuf, each family after its length: with units, exemplars and native
    /// histograms.
    Protobuf,
    /// Prometheus' text 0.0.4, which every scraper reads: classic histograms alone.
    Text,
}

impl Format {
    /// Every form, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::OpenMetrics, Self::Protobuf, Self::Text];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMetrics => "openmetrics",
            Self::Protobuf => "protobuf",
            Self::Text => "text",
        }
    }

    /// The content type of a page in this form.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The form that an `Accept` field asks for: the highest `q`, then the most exact name, then the
    /// first named. Whoever asks for nothing, for anything or for nothing we have gets
    /// [`Format::Text`], as from any other exporter: a scraper that understands more says so.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (0.0, 0, Self::Text);
        for range in accept.split(',') {
            let mut words = range.split(';').map(str::trim);
            let name = words.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<_> = words.filter_map(parameter).collect();
            let value =
                |key: &str| parameters.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
            let quality = value("q").map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0)).clamp(0.0, 1.0);
            if let Some((exact, format)) = named(&name, value)
                && quality > 0.0
                && (quality, exact) > (best.0, best.1)
            {
                best = (quality, exact, format);
            }
        }
        best.2
    }
}

/// What a media range names, and how exactly.
fn named<'a>(name: &str, value: impl Fn(&str) -> Option<&'a str>) -> Option<(u8, Format)> {
    let version = |ours: &str| value("version").is_none_or(|version| version == ours);
    match name {
        "application/openmetrics-text" if version("1.0.0") => Some((3, Format::OpenMetrics)),
        "application/vnd.google.protobuf"
            if value("proto") == Some("io.prometheus.client.MetricFamily")
                && value("encoding") == Some("delimited") =>
        {
            Some((3, Format::Protobuf))
        }
        "text/plain" if version("0.0.4") => Some((3, Format::Text)),
        "text/*" => Some((2, Format::Text)),
        "application/*" => Some((2, Format::OpenMetrics)),
        "*/*" => Some((1, Format::Text)),
        _ => None,
    }
}

/// `key=value`, the key in lower case, the value without its quotes.
fn parameter(word: &str) -> Option<(String, &str)> {
    let (key, value) = word.split_once('=')?;
    Some((key.trim().to_ascii_lowercase(), value.trim().trim_matches('"')))
}

impl Reading {
    /// Prints it; in pieces, so that `out` should have a buffer.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::OpenMetrics => text::open_metrics(self, out),
            Format::Protobuf => protobuf::delimited(self, out),
            Format::Text => text::plain(self, out),
        }
    }
}

#[cfg(test)]
mod tests;
