//! Where a signal goes: the general variables and its own ones, which win.

use std::path::PathBuf;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};

use super::header_list::pairs;
use super::reader::Reader;
use super::{Overrides, TIMEOUT};
use crate::plan::{ClientCertificate, Protocol, Signal, Target};

/// What the variables end in, each also in a form of its own for every signal.
const VARIABLES: [&str; 9] = [
    "ENDPOINT",
    "PROTOCOL",
    "HEADERS",
    "TIMEOUT",
    "COMPRESSION",
    "CERTIFICATE",
    "CLIENT_KEY",
    "CLIENT_CERTIFICATE",
    "INSECURE",
];

/// Fields of a request that only we may set.
const OURS: [&str; 9] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

fn general(variable: &str) -> String {
    format!("OTEL_EXPORTER_OTLP_{variable}")
}

fn own(signal: Signal, variable: &str) -> String {
    format!("OTEL_EXPORTER_OTLP_{}_{variable}", signal.word())
}

/// Whether anyone has said anything about where to send to.
pub(super) fn any_variable(reader: &Reader<'_>) -> bool {
    VARIABLES.iter().any(|variable| {
        reader.has(&general(variable)) || Signal::ALL.iter().any(|&signal| reader.has(&own(signal, variable)))
    })
}

/// The variable that counts for a signal.
fn effective(reader: &Reader<'_>, signal: Signal, variable: &str) -> String {
    let own = own(signal, variable);
    if reader.has(&own) { own } else { general(variable) }
}

pub(super) fn target(reader: &mut Reader<'_>, overrides: &Overrides, signal: Signal) -> Target {
    let protocol = overrides.protocol.unwrap_or_else(|| protocol(reader, signal));
    let insecure = reader.truth(&effective(reader, signal, "INSECURE"), false);
    let uri = endpoint(reader, overrides, signal, protocol, insecure);
    let compression = effective(reader, signal, "COMPRESSION");
    let gzip = reader.choice(&compression, &[("gzip", true), ("none", false)]).unwrap_or(false);
    let file =
        |reader: &Reader<'_>, variable| reader.text(&effective(reader, signal, variable)).map(PathBuf::from);
    let certificate = file(reader, "CERTIFICATE");
    let client = match (file(reader, "CLIENT_CERTIFICATE"), file(reader, "CLIENT_KEY")) {
        (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
        (None, None) => None,
        (has, _) => {
            let (there, missing) = if has.is_some() {
                ("CLIENT_CERTIFICATE", "CLIENT_KEY")
            } else {
                ("CLIENT_KEY", "CLIENT_CERTIFICATE")
            };
            let remedy = format!("set {} too", effective(reader, signal, missing));
            reader.mistake(&effective(reader, signal, there), "is only half of what is needed", &remedy);
            None
        }
    };
    let timeout = effective(reader, signal, "TIMEOUT");
    let timeout = reader.millis(&timeout, TIMEOUT.as_millis() as u64);
    Target { protocol, uri, headers: headers(reader, signal), gzip, timeout, certificate, client }
}

fn protocol(reader: &mut Reader<'_>, signal: Signal) -> Protocol {
    let variable = effective(reader, signal, "PROTOCOL");
    match reader.text(&variable).as_deref() {
        None | Some("http/protobuf") => Protocol::Http,
        Some("grpc") => Protocol::Grpc,
        Some("http/json") => {
            reader.mistake(
                &variable,
                "is http/json, which is not spoken here",
                "set it to http/protobuf or grpc",
            );
            Protocol::Http
        }
        Some(_) => {
            reader.mistake(&variable, "is no protocol", "set it to http/protobuf or grpc");
            Protocol::Http
        }
    }
}

/// The address. Over HTTP a general one is a base below which each signal has its path, and a
/// signal's own is taken as it is; over gRPC there are no paths.
fn endpoint(
    reader: &mut Reader<'_>,
    overrides: &Overrides,
    signal: Signal,
    protocol: Protocol,
    insecure: bool,
) -> Uri {
    let own = own(signal, "ENDPOINT");
    let default = match protocol {
        Protocol::Http => "http://localhost:4318",
        Protocol::Grpc => "http://localhost:4317",
    };
    let (variable, text, is_base) = match (&overrides.endpoint, reader.text(&own)) {
        (Some(text), _) => ("the OTLP endpoint".to_owned(), text.trim().to_owned(), true),
        (None, Some(text)) => (own, text, false),
        (None, None) => {
            let variable = general("ENDPOINT");
            let text = reader.text(&variable).unwrap_or_else(|| default.to_owned());
            (variable, text, true)
        }
    };
    let text = match (protocol, text.contains("://")) {
        (Protocol::Grpc, false) if insecure => format!("http://{text}"),
        (Protocol::Grpc, false) => format!("https://{text}"),
        _ => text,
    };
    match address(&text, is_base.then_some(signal), protocol) {
        Ok(uri) => {
            let port = uri.port_u16();
            if protocol == Protocol::Http && port == Some(4317) {
                reader.warn("port 4317 is usually gRPC's, and http/protobuf is spoken: if nothing arrives, set OTEL_EXPORTER_OTLP_PROTOCOL=grpc");
            } else if protocol == Protocol::Grpc && port == Some(4318) {
                reader.warn("port 4318 is usually HTTP's, and gRPC is spoken: if nothing arrives, set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf");
            }
            uri
        }
        Err((what, remedy)) => {
            reader.mistake(&variable, what, remedy);
            Uri::from_static("http://localhost")
        }
    }
}

/// An address with its path, or what is wrong with it and what to do.
fn address(
    text: &str,
    base_of: Option<Signal>,
    protocol: Protocol,
) -> Result<Uri, (&'static str, &'static str)> {
    let wrong = ("is no address", "set it to http://host:port or https://host:port");
    let uri: Uri = text.parse().map_err(|_| wrong)?;
    let authority = uri.authority().ok_or(wrong)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || authority.host().is_empty() {
        return Err(wrong);
    }
    if authority.as_str().contains('@') {
        return Err(("has credentials in it", "send them as a header, by OTEL_EXPORTER_OTLP_HEADERS"));
    }
    let path = match (protocol, base_of) {
        (Protocol::Grpc, _) => "/".to_owned(),
        (Protocol::Http, None) => uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        (Protocol::Http, Some(signal)) => {
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            format!("{}/{}{query}", uri.path().trim_end_matches('/'), signal.path())
        }
    };
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(path.parse().map_err(|_| wrong)?);
    Uri::from_parts(parts).map_err(|_| wrong)
}

fn headers(reader: &mut Reader<'_>, signal: Signal) -> Vec<(HeaderName, HeaderValue)> {
    let variable = effective(reader, signal, "HEADERS");
    let Some(text) = reader.text(&variable) else { return Vec::new() };
    let remedy = "write it as name=value,name=value with %-codes for special characters";
    let pairs = match pairs(&text) {
        Ok(pairs) => pairs,
        Err(what) => {
            reader.mistake(&variable, &what, remedy);
            return Vec::new();
        }
    };
    let mut headers = Vec::new();
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        let at = at + 1;
        let parsed = (name.parse::<HeaderName>(), HeaderValue::try_from(value));
        let (Ok(name), Ok(mut value)) = parsed else {
            reader.mistake(
                &variable,
                &format!("has something in its part {at} that no header may have"),
                remedy,
            );
            continue;
        };
        if OURS.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
            let what = format!("sets {name}, which is ours to set");
            reader.mistake(&variable, &what, "take it out");
            continue;
        }
        value.set_sensitive(true);
        headers.push((name, value));
    }
    headers
}
