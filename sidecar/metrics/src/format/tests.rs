//! The format by `Accept`.

use super::Format;

#[test]
fn accept_field_selects_format() {
    const PROTOBUF: &str =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    // `Accept` of Prometheus 3.x, without and with `scrape_native_histograms`.
    let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                      application/openmetrics-text;version=0.0.1;q=0.5,\
                      text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let native = format!("{PROTOBUF};q=0.7,{prometheus}");
    let cases: [(&str, Format); 22] = [
        (prometheus, Format::OpenMetrics),
        (&native, Format::Protobuf),
        (&format!("{PROTOBUF};q=0.2,{prometheus}"), Format::OpenMetrics),
        // Prometheus 2.5 to 2.30 asks for a draft of OpenMetrics.
        (
            "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::Text,
        ),
        // curl, a browser, and a request without `Accept`.
        ("*/*", Format::Text),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Format::Text),
        ("", Format::Text),
        ("application/openmetrics-text", Format::OpenMetrics),
        ("Application/OpenMetrics-Text; Version=\"1.0.0\"", Format::OpenMetrics),
        ("application/openmetrics-text; version=2.0.0", Format::Text),
        (PROTOBUF, Format::Protobuf),
        (&PROTOBUF.replace("delimited", "text"), Format::Text),
        ("application/vnd.google.protobuf", Format::Text),
        ("text/plain, application/openmetrics-text", Format::Text),
        ("application/openmetrics-text, text/plain", Format::OpenMetrics),
        ("*/*, application/openmetrics-text", Format::OpenMetrics),
        ("text/*, application/*;q=0.9", Format::Text),
        ("application/*", Format::OpenMetrics),
        ("application/openmetrics-text;q=0", Format::Text),
        ("application/openmetrics-text;q=nonsense, text/plain;q=0.1", Format::Text),
        ("application/openmetrics-text;q=NaN", Format::Text),
        (";;,,=;q=,\u{0};/", Format::Text),
    ];
    for (accept, format) in cases {
        assert_eq!(Format::accepted(accept), format, "{accept}");
    }
}

#[test]
fn own_content_type_selects_format() {
    for format in Format::ALL {
        assert_eq!(Format::accepted(format.content_type()), format);
    }
}
