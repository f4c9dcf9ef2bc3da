//! A server and how it is reached.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use crate::address::Address;
use crate::error::{ConnectError, Step};
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tls::{Offer, Tls, Verification};

/// A server and how it is reached. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct Target(Arc<Inner>);

struct Inner {
    address: Address,
    tls: Option<Tls>,
}

impl Target {
    /// A server at an address, with TLS if there is a configuration of it.
    pub fn new(address: Address, tls: Option<Tls>) -> Self {
        Self(Arc::new(Inner { address, tls }))
    }

    /// Returns the address.
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns true if connections have TLS.
    pub fn is_secure(&self) -> bool {
        self.0.tls.is_some()
    }

    /// Returns true if every certificate of the server is accepted.
    pub fn is_unverified(&self) -> bool {
        self.0.tls.as_ref().is_some_and(|tls| tls.verification() == Verification::Off)
    }

    /// Connects, with TLS if it is configured, within `timeout`.
    pub async fn connect(&self, offer: Offer, timeout: Duration) -> Result<Stream, ConnectError> {
        let deadline = Instant::now() + timeout;
        let socket = self.open(deadline).await?;
        match &self.0.tls {
            None => Ok(Stream::clear(socket)),
            Some(tls) => tls.handshake(socket, &self.0.address.name(), offer, deadline).await,
        }
    }

    /// Connects without a TLS handshake, within `timeout`: proves only that the address accepts connections.
    pub async fn reach(&self, timeout: Duration) -> Result<(), ConnectError> {
        self.open(Instant::now() + timeout).await.map(drop)
    }

    async fn open(&self, deadline: Instant) -> Result<Socket, ConnectError> {
        match &self.0.address {
            Address::Unix(path) => match timeout_at(deadline, UnixStream::connect(path)).await {
                Ok(connected) => connected.map(Socket::Unix).map_err(ConnectError::of),
                Err(_elapsed) => Err(ConnectError::Timeout(Step::Connect)),
            },
            Address::Host { host, port } => {
                let found = timeout_at(deadline, lookup_host((&**host, *port))).await;
                let found = found.map_err(|_elapsed| ConnectError::Timeout(Step::Resolve))?;
                let addresses = found.map_err(ConnectError::of_name)?;
                let connected = timeout_at(deadline, try_each(addresses)).await;
                connected.map_err(|_elapsed| ConnectError::Timeout(Step::Connect))?
            }
        }
    }
}

/// Connects to the first address that accepts.
async fn try_each(addresses: impl Iterator<Item = std::net::SocketAddr>) -> Result<Socket, ConnectError> {
    let mut last = ConnectError::Name(io::Error::new(io::ErrorKind::NotFound, "the list is empty"));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(ConnectError::of)?;
                return Ok(Socket::Tcp(stream));
            }
            Err(error) => last = ConnectError::of(error),
        }
    }
    Err(last)
}

/// Writes the URL: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.address, &self.0.tls) {
            (Address::Unix(_), _) => {}
            (Address::Host { .. }, None) => f.write_str("http://")?,
            (Address::Host { .. }, Some(_)) => f.write_str("https://")?,
        }
        self.0.address.fmt(f)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
