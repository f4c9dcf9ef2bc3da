//! A server and how it is reached.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout_at};

use crate::address::Address;
use crate::error::{ConnectError, Step};
use crate::http_proxy::HttpProxy;
use crate::race::race;
use crate::resolve::{Names, Source};
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tls::{Offer, Tls, Verification};

/// A server and how it is reached. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct Target(Arc<Inner>);

struct Inner {
    address: Address,
    endpoint: Endpoint,
    tls: Option<Tls>,
    proxy: Option<HttpProxy>,
}

/// The places to which sockets are connected.
enum Endpoint {
    Unix(Arc<Path>),
    Ip(SocketAddr),
    Names(Arc<Names>),
}

impl Endpoint {
    fn of(address: &Address) -> Self {
        match address {
            Address::Unix(path) => Self::Unix(Arc::clone(path)),
            Address::Host { host, port } => match host.parse::<IpAddr>() {
                Ok(ip) => Self::Ip(SocketAddr::new(ip, *port)),
                Err(_) => Self::Names(Names::new(host, *port, Source::System)),
            },
        }
    }
}

impl Target {
    /// A server at an address, with TLS if there is a configuration of it.
    pub fn new(address: Address, tls: Option<Tls>) -> Self {
        Self::through(address, tls, None)
    }

    /// The same through a proxy, which resolves the name.
    pub fn through(address: Address, tls: Option<Tls>, proxy: Option<HttpProxy>) -> Self {
        let endpoint = Endpoint::of(proxy.as_ref().map_or(&address, HttpProxy::address));
        Self(Arc::new(Inner { address, endpoint, tls, proxy }))
    }

    /// Returns the address.
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns the TLS of connections, if they have it.
    pub fn tls(&self) -> Option<&Tls> {
        self.0.tls.as_ref()
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
        let mut socket = self.open(deadline).await?;
        if let Some(proxy) = &self.0.proxy {
            let authority = self.0.address.authority();
            match timeout_at(deadline, proxy.tunnel(&mut socket, &authority)).await {
                Ok(opened) => opened.map_err(ConnectError::Proxy)?,
                Err(_elapsed) => return Err(ConnectError::Timeout(Step::Proxy)),
            }
        }
        match &self.0.tls {
            None => Ok(Stream::clear(socket)),
            Some(tls) => tls.handshake(socket, &self.0.address.name(), offer, deadline).await,
        }
    }

    /// Connects with all protocols and closes the connection, within `timeout`, to find out whether the server accepts
    /// this client's handshake. With TLS 1.3, a server checks the client's certificate after the handshake. A server
    /// that sends nothing for [`SILENCE_MAX`] counts as accepting it.
    pub async fn probe(&self, timeout: Duration) -> Result<(), ConnectError> {
        let mut stream = self.connect(Offer::Http1OrHttp2, timeout).await?;
        let rejected = tokio::time::timeout(SILENCE_MAX, stream.rejected()).await;
        rejected.ok().flatten().map_or(Ok(()), |fault| Err(ConnectError::Tls(fault)))
    }

    /// Connects without a tunnel and a TLS handshake, within `timeout`: proves only that the server, or the proxy to it,
    /// accepts connections.
    pub async fn reach(&self, timeout: Duration) -> Result<(), ConnectError> {
        self.open(Instant::now() + timeout).await.map(drop)
    }

    /// Returns the proxy in between.
    pub fn proxy(&self) -> Option<&HttpProxy> {
        self.0.proxy.as_ref()
    }

    /// Returns the number of servers that the name may stand for, by the addresses of one family in its last answer.
    pub fn server_count(&self) -> usize {
        match &self.0.endpoint {
            Endpoint::Names(names) if self.0.proxy.is_none() => names.server_count(),
            Endpoint::Names(_) | Endpoint::Unix(_) | Endpoint::Ip(_) => 1,
        }
    }

    async fn open(&self, deadline: Instant) -> Result<Socket, ConnectError> {
        let opened = self.open_endpoint(deadline).await;
        match (&self.0.proxy, opened) {
            (
                Some(proxy),
                Err(error @ (ConnectError::Io(_) | ConnectError::Name(_) | ConnectError::Timeout(_))),
            ) => Err(ConnectError::Proxy(proxy.fault(format!("cannot be reached: {error}")))),
            (_, opened) => opened,
        }
    }

    async fn open_endpoint(&self, deadline: Instant) -> Result<Socket, ConnectError> {
        let addresses = match &self.0.endpoint {
            Endpoint::Unix(path) => return open_unix(path, deadline).await,
            Endpoint::Ip(address) => vec![*address],
            Endpoint::Names(names) => match timeout_at(deadline, names.addresses()).await {
                Ok(resolved) => resolved?,
                Err(_elapsed) => return Err(ConnectError::Timeout(Step::Resolve)),
            },
        };
        let racing = race(&addresses, |address| async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Socket::Tcp(stream))
        });
        match timeout_at(deadline, racing).await {
            Ok(connected) => connected.map_err(ConnectError::of),
            Err(_elapsed) => Err(ConnectError::Timeout(Step::Connect)),
        }
    }
}

async fn open_unix(path: &Path, deadline: Instant) -> Result<Socket, ConnectError> {
    let connecting = async {
        loop {
            match UnixStream::connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(QUEUE_PAUSE).await,
                connected => break connected,
            }
        }
    };
    match timeout_at(deadline, connecting).await {
        Ok(connected) => connected.map(Socket::Unix).map_err(ConnectError::of),
        Err(_elapsed) => Err(ConnectError::Timeout(Step::Connect)),
    }
}

/// The time in which a server rejects a client after the handshake. Most servers send a session ticket instead, which
/// ends the wait.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The pause before another attempt while the server's queue of connections is full: a Unix socket then rejects a
/// connection at once, where TCP waits.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);

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
