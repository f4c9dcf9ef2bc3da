//! The opening of a client connection: the header of a load balancer, and the handshake of TLS.

use super::Client;
use crate::Dropped;
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
}
