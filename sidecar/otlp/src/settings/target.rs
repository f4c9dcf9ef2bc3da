//! The target of a signal, from the general variables and those of the signal, which take precedence.

use std::path::PathBuf;

use connect::HttpProxy;
use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use opentelemetry_otlp::{
    Compression, OTEL_EXPORTER_OTLP_PROTOCOL_GRPC as GRPC,
    OTEL_EXPORTER_OTLP_PROTOCOL_HTTP_JSON as HTTP_JSON,
    OTEL_EXPORTER_OTLP_PROTOCOL_HTTP_PROTOBUF as HTTP_PROTOBUF, OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT,
};

use super::Overrides;
use super::header_list::pairs;
use super::reader::Reader;
use super::variables::{
    ALL, CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY, COMPRESSION, ENDPOINT, HEADERS, INSECURE, PROTOCOL,
    TIMEOUT, Variable,
};
use crate::plan::{ClientCertificate, Protocol, Signal, Target};

/// Header fields that only the exporter sets.
const RESERVED_HEADERS: [&str; 9] = [
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

/// Default endpoints of a collector.
const HTTP_ENDPOINT: &str = "http://localhost:4318";
const GRPC_ENDPOINT: &str = "http://localhost:4317";

/// Returns true if any variable of a target is set.
pub(super) fn any_variable(reader: &Reader<'_>) -> bool {
    ALL.into_iter().any(|variable| {
        reader.has(variable.general) || Signal::ALL.iter().any(|&signal| reader.has(variable.own(signal)))
    })
}

/// Returns true if a signal has an endpoint. If no endpoint is set but other variables are, all signals go to
/// localhost, as the specification requires; if only some signals have an endpoint, the others are not exported.
pub(super) fn has_address(reader: &Reader<'_>, overrides: &Overrides, signal: Signal) -> bool {
    let own = |signal: Signal| reader.has(ENDPOINT.own(signal));
    overrides.endpoint.is_some()
        || reader.has(ENDPOINT.general)
        || own(signal)
        || !Signal::ALL.into_iter().any(own)
}

/// Returns the variable that applies to a signal.
fn effective(reader: &Reader<'_>, signal: Signal, variable: Variable) -> &'static str {
    let own = variable.own(signal);
    if reader.has(own) { own } else { variable.general }
}

/// Returns the target of a signal; `None` if its settings are invalid.
pub(super) fn target(reader: &mut Reader<'_>, overrides: &Overrides, signal: Signal) -> Option<Target> {
    reader.has_invalid_target = false;
    let protocol = overrides.protocol.unwrap_or_else(|| protocol(reader, signal));
    let insecure = reader.truth(effective(reader, signal, INSECURE), false);
    let uri = endpoint(reader, overrides, signal, protocol, insecure);
    let compression = effective(reader, signal, COMPRESSION);
    let gzip = Compression::Gzip.to_string();
    let gzip = reader.choice(compression, &[(gzip.as_str(), true), ("none", false)]).unwrap_or(false);
    let file =
        |reader: &Reader<'_>, variable| reader.text(effective(reader, signal, variable)).map(PathBuf::from);
    let certificate = file(reader, CERTIFICATE);
    let client = match (file(reader, CLIENT_CERTIFICATE), file(reader, CLIENT_KEY)) {
        (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
        (None, None) => None,
        (has, _) => {
            let (present, missing) = if has.is_some() {
                (CLIENT_CERTIFICATE, CLIENT_KEY)
            } else {
                (CLIENT_KEY, CLIENT_CERTIFICATE)
            };
            let remedy = format!("set {} too", effective(reader, signal, missing));
            reader.target_error(
                effective(reader, signal, present),
                "is set without its counterpart",
                &remedy,
            );
            None
        }
    };
    let timeout = effective(reader, signal, TIMEOUT);
    let timeout = reader.time(timeout, OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT);
    let headers = headers(reader, signal);
    let proxy = proxy(reader, &uri);
    (!reader.has_invalid_target).then_some(Target {
        protocol,
        uri,
        headers,
        gzip,
        timeout,
        certificate,
        client,
        proxy,
    })
}

/// Returns the proxy that curl would use for the endpoint; none for `http`, which other exporters send directly, too.
fn proxy(reader: &mut Reader<'_>, uri: &Uri) -> Option<HttpProxy> {
    if uri.scheme_str() != Some("https") {
        return None;
    }
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    HttpProxy::of_environment(host, |variable| reader.text(variable)).unwrap_or_else(|error| {
        let remedy = "set it to http://[USER:PASSWORD@]HOST:PORT, or add the collector to NO_PROXY";
        reader.target_error("HTTPS_PROXY", &error.to_string(), remedy);
        None
    })
}

fn protocol(reader: &mut Reader<'_>, signal: Signal) -> Protocol {
    let variable = effective(reader, signal, PROTOCOL);
    let remedy = format!("set it to {HTTP_PROTOBUF} or {GRPC}");
    match reader.text(variable).as_deref() {
        None | Some(HTTP_PROTOBUF) => Protocol::Http,
        Some(GRPC) => Protocol::Grpc,
        Some(HTTP_JSON) => {
            reader.target_error(variable, &format!("is {HTTP_JSON}, which is not supported"), &remedy);
            Protocol::Http
        }
        Some(_) => {
            reader.target_error(variable, "is not a protocol", &remedy);
            Protocol::Http
        }
    }
}

/// Returns the endpoint. Over HTTP, a general one is a base URL, to which the path of each signal is appended, and the
/// endpoint of a signal is used unchanged; gRPC endpoints have no path.
fn endpoint(
    reader: &mut Reader<'_>,
    overrides: &Overrides,
    signal: Signal,
    protocol: Protocol,
    insecure: bool,
) -> Uri {
    let own = ENDPOINT.own(signal);
    let default = match protocol {
        Protocol::Http => HTTP_ENDPOINT,
        Protocol::Grpc => GRPC_ENDPOINT,
    };
    let (variable, text, is_base) = match (&overrides.endpoint, reader.text(own)) {
        (Some(text), _) => ("the OTLP endpoint", text.trim().to_owned(), true),
        (None, Some(text)) => (own, text, false),
        (None, None) => {
            let text = reader.text(ENDPOINT.general).unwrap_or_else(|| default.to_owned());
            (ENDPOINT.general, text, true)
        }
    };
    let text = match (protocol, text.contains("://")) {
        (Protocol::Grpc, false) if insecure => format!("http://{text}"),
        (Protocol::Grpc, false) => format!("https://{text}"),
        _ => text,
    };
    if is_base && Signal::ALL.iter().any(|signal| text.trim_end_matches('/').ends_with(signal.path())) {
        reader.warn(&format!(
            "{variable} ends with the path of a signal, to which each signal's path is appended: remove it"
        ));
    }
    match address(&text, is_base.then_some(signal), protocol) {
        Ok(uri) => {
            let port = uri.port_u16();
            if protocol == Protocol::Http && port == Some(4317) {
                warn_of_port(reader, "port 4317 is usually gRPC, and the protocol is HTTP", GRPC);
            } else if protocol == Protocol::Grpc && port == Some(4318) {
                warn_of_port(reader, "port 4318 is usually HTTP, and the protocol is gRPC", HTTP_PROTOBUF);
            }
            uri
        }
        Err((what, remedy)) => {
            reader.target_error(variable, what, &remedy);
            Uri::from_static("http://localhost")
        }
    }
}

fn warn_of_port(reader: &mut Reader<'_>, what: &str, word: &str) {
    reader.warn(&format!("{what}: if the export fails, set {}={word}", PROTOCOL.general));
}

/// Returns an endpoint with its path, or an error with its remedy.
fn address(text: &str, base_of: Option<Signal>, protocol: Protocol) -> Result<Uri, (&'static str, String)> {
    let wrong = || ("is not a URL", "set it to http://host:port or https://host:port".to_owned());
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || authority.host().is_empty() {
        return Err(wrong());
    }
    if authority.as_str().contains('@') {
        let remedy = format!("send them as a header with {}", HEADERS.general);
        return Err(("contains credentials", remedy));
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
    parts.path_and_query = Some(path.parse().map_err(|_| wrong())?);
    Uri::from_parts(parts).map_err(|_| wrong())
}

fn headers(reader: &mut Reader<'_>, signal: Signal) -> Vec<(HeaderName, HeaderValue)> {
    let variable = effective(reader, signal, HEADERS);
    let Some(text) = reader.text(variable) else { return Vec::new() };
    let remedy = "write it as name=value,name=value with %-codes for special characters";
    let pairs = match pairs(&text) {
        Ok(pairs) => pairs,
        Err(what) => {
            reader.target_error(variable, &what, remedy);
            return Vec::new();
        }
    };
    let mut headers = Vec::new();
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        let at = at + 1;
        let parsed = (name.parse::<HeaderName>(), HeaderValue::try_from(value));
        let (Ok(name), Ok(mut value)) = parsed else {
            reader.target_error(variable, &format!("has an invalid header in member {at}"), remedy);
            continue;
        };
        if RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
            let what = format!("sets {name}, which is reserved");
            reader.target_error(variable, &what, "remove it");
            continue;
        }
        value.set_sensitive(true);
        headers.push((name, value));
    }
    headers
}
