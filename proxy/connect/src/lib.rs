//! Connections to servers, below HTTP: their names, sockets, TLS and the proxies in between; and the certificates with
//! which this program is a server itself.
//!
//! A [`Target`] is a server and how it is reached; [`Target::connect`] yields a [`Stream`], or a [`ConnectError`] whose
//! text names the fault for people. The relay, the probes and the readers of metrics pages use the same target, so that
//! they share its certificates and TLS sessions.
//!
//! Invariants: every wait ends at the caller's time limit. The certificate of a server is verified, unless the
//! operator turned that off for this server. No text contains a key, a session secret or a password.

mod address;
pub mod certificate;
mod error;
mod fault;
mod http_proxy;
pub mod pem;
mod race;
mod resolve;
mod socket;
mod stream;
mod target;
mod tls;
mod verifier;

#[cfg(test)]
mod tests;

pub use address::Address;
pub use error::{ConnectError, Step};
pub use fault::TlsFault;
pub use http_proxy::{HttpProxy, HttpProxyError, ProxyFault};
pub use stream::{Protocol, Stream};
pub use target::Target;
pub use tls::{ClientFiles, Offer, Tls, TlsError, TlsFiles, Verification};
