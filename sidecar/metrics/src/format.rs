//! The formats of the metrics page, encoded by prometheus-client. Invariant: every format contains the same numbers
//! of the same [`Reading`], except for what the format cannot express.

mod collector;
mod protobuf;
mod splice;
mod text;

use std::io::{self, Write};

use crate::reading::Reading;

meter::listed_enum! {
    /// A format of the metrics page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Format {
        /// OpenMetrics 1.0 text: with units and exemplars, without native histograms.
        OpenMetrics = "openmetrics",
        /// Prometheus' protobuf, length-delimited: with units, exemplars and native histograms.
        Protobuf = "protobuf",
        /// Prometheus' text 0.0.4, which every scraper reads: classic histograms only.
        Text = "text",
    }
    /// Returns the label value.
    pub fn name(self);
}

impl Format {
    /// Returns the content type of a page in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the format that an `Accept` field prefers: the highest `q`, then the most specific range, then the
    /// first. The fallback is [`Format::Text`], as in other exporters: a scraper that reads another format names it.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (0.0, 0, Self::Text);
        for range in accept.split(',') {
            let mut words = range.split(';').map(str::trim);
            let name = words.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<_> = words.filter_map(parameter).collect();
            let value =
                |key: &str| parameters.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
            let quality = value("q").map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0)).clamp(0.0, 1.0);
            if let Some((exact, format)) = format_of(&name, value)
                && quality > 0.0
                && (quality, exact) > (best.0, best.1)
            {
                best = (quality, exact, format);
            }
        }
        best.2
    }
}

/// Returns the format of a media range, and how specific the range is.
fn format_of<'a>(name: &str, value: impl Fn(&str) -> Option<&'a str>) -> Option<(u8, Format)> {
    let version = |known: &str| value("version").is_none_or(|version| version == known);
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

/// Parses `key=value`: the key in lower case, the value without quotes.
fn parameter(word: &str) -> Option<(String, &str)> {
    let (key, value) = word.split_once('=')?;
    Some((key.trim().to_ascii_lowercase(), value.trim().trim_matches('"')))
}

impl Reading {
    /// Writes the page in small pieces, so that `out` should be buffered.
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
