//! The opening of a client connection: the header of a load balancer, and the TLS session with the certificate that it
//! names.

use std::future::poll_fn;
use std::sync::Arc;

use tenant::CertificateNames;

use super::Client;
use crate::Dropped;
use crate::conn::socket::Output;
use crate::conn::tls::HandshakeError;
use crate::state::WorkerState;

impl Client {
    /// Reads the header of a load balancer, and establishes the session of a listener with TLS. Returns false, and counts
    /// the connection where it is at fault, if it can have no request.
    pub(crate) async fn establish(&self, worker: &WorkerState) -> bool {
        if let Err(error) = self.read_proxy_header(worker).await {
            worker.dropped(Dropped::ProxyHeader);
            tracing::debug!(peer = %self.peer(), %error, "the header of the PROXY protocol is missing");
            return false;
        }
        match self.handshake().await {
            Ok(()) => true,
            Err(HandshakeError::Unbegun) => false,
            Err(error) => {
                worker.dropped(Dropped::Handshake);
                tracing::debug!(peer = %self.peer(), %error, "the TLS handshake failed");
                false
            }
        }
    }

    /// Counts a connection that is ended because its first request takes too long, by what it waited for.
    pub(crate) fn count_overdue(&self, worker: &WorkerState) {
        if self.awaits_header() {
            worker.dropped(Dropped::ProxyHeader);
            tracing::debug!(peer = %self.peer(), "the header of the PROXY protocol takes too long");
        } else if self.is_handshaking() {
            worker.dropped(Dropped::Handshake);
            tracing::debug!(peer = %self.peer(), "the TLS handshake takes too long");
        }
    }

    /// Establishes the session, if the listener has TLS.
    async fn handshake(&self) -> Result<(), HandshakeError> {
        let Some(tls) = &self.tls else { return Ok(()) };
        let done = poll_fn(|cx| tls.poll_handshake(&self.socket, cx)).await;
        if matches!(done, Err(HandshakeError::Http)) {
            // A new socket takes so few bytes.
            let _ = self.socket.try_write(Output::Slice(TLS_EXPECTED));
        }
        if matches!(done, Err(HandshakeError::Http | HandshakeError::Tls(_))) {
            self.leave_unread();
        }
        done
    }

    /// Returns true if its listener has TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns true if the listener has TLS and no session is established.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// The names in the client's verified certificate, if it presented one.
    pub(crate) fn certificate(&self) -> Option<&Arc<CertificateNames>> {
        self.tls.as_ref()?.certificate()
    }
}

/// The answer to HTTP on a listener with TLS.
const TLS_EXPECTED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 44\r\n\
    Connection: close\r\n\r\nThis listener expects TLS: use an https URL\n";
