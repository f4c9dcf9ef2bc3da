//! Connections to servers that behave, that have a wrong certificate, and that do not speak TLS.

mod authority;
mod faults;
mod files;
mod proxies;
mod sessions;
mod streams;

use authority::{Authority, Server};

use crate::{Address, ConnectError, Offer, Stream, Target, Tls, TlsFiles};

use std::time::Duration;

/// The time limit of connections that must succeed, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects to a server under the name `localhost`, by the roots of a file.
async fn connect(server: &Server, authority: &Authority) -> Result<Stream, ConnectError> {
    target(server, authority.files()).connect(Offer::Http1OrHttp2, PATIENCE).await
}

/// The server under the name `localhost`.
fn target(server: &Server, files: TlsFiles) -> Target {
    Target::new(Address::host("localhost", server.port), Some(Tls::read(&files).unwrap()))
}
