//! The HTTPS server of reviews: one thread, bounded connections, files that are read again when they change.
//!
//! Only the API server is a client. It calls with a deadline of seconds and admits the pod if there is no answer.

mod connection;
mod files;
mod limits;
mod slots;

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use connection::Phase;
use files::{Files, Loaded};
use limits::{ACCEPT_PAUSE, CONNECTIONS, RELOAD_INTERVAL, STOP_DELAY, STOP_MAX_TIME};
use slots::Slots;

/// The address and the files of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The address of the HTTPS listener.
    pub listen: SocketAddr,
    /// The injection config, YAML.
    pub config: PathBuf,
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    /// The authorities of the API server's client certificate, PEM: with them a review needs one, and a probe does not.
    pub client_ca: Option<PathBuf>,
}

/// A bound webhook that does not serve yet.
#[derive(Debug)]
pub struct Webhook {
    listener: TcpListener,
    files: Files,
}

/// The error of a failed start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address could not be bound.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A file cannot be used.
    #[error("{0}")]
    File(String),
}

impl Webhook {
    /// Reads the files and binds the address.
    ///
    /// # Errors
    ///
    /// A file cannot be used, or the address cannot be bound.
    pub fn bind(options: &Options) -> Result<Self, Error> {
        let files = Files::load(options).map_err(Error::File)?;
        let bind = |cause| Error::Bind { address: options.listen, cause };
        let listener = TcpListener::bind(options.listen).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        Ok(Self { listener, files })
    }

    /// Returns the bound address; the port is the actual one if 0 was requested.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, then for [`STOP_DELAY`] more, and returns when the requests in flight are answered. Runs on
    /// a `LocalSet`.
    ///
    /// # Errors
    ///
    /// The listener cannot be polled.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let (phases, phase) = watch::channel(Phase::Ready);
        let current = Rc::new(RefCell::new(self.files.loaded().clone()));
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let reload = spawn_local(reload(self.files, current.clone()));
        let connections = Rc::new(Slots::default());
        let large = Rc::new(Semaphore::new(1));
        let accept = async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        if slots.available_permits() == 0 {
                            connections.evict();
                        }
                        // Never closed, so a permit comes.
                        let Ok(permit) = slots.clone().acquire_owned().await else { return };
                        let slot = connections.add();
                        let serving =
                            connection::serve(stream, current.clone(), phase.clone(), large.clone(), slot);
                        spawn_local(async move {
                            serving.await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the webhook could not accept");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        let stopped = async {
            stop.await;
            tracing::info!("stopping: readiness fails now");
            let _ = phases.send(Phase::Stopping);
            sleep(STOP_DELAY).await;
        };
        {
            let (accept, stopped) = (pin!(accept), pin!(stopped));
            tokio::select! {
                () = accept => {}
                () = stopped => {}
            }
        }
        reload.abort();
        drop(listener);
        // Connections without a request close now.
        let _ = phases.send(Phase::Closing);
        let all = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
        if timeout(STOP_MAX_TIME, slots.acquire_many(all)).await.is_err() {
            tracing::warn!("connections are cut");
        }
        Ok(())
    }
}

/// Reads the files again and again. Files that cannot be used change nothing.
async fn reload(mut files: Files, current: Rc<RefCell<Loaded>>) {
    loop {
        sleep(RELOAD_INTERVAL).await;
        let changed = files.reload();
        if changed.is_some() {
            *current.borrow_mut() = files.loaded().clone();
        }
        match changed {
            None => {}
            Some(Ok(())) => tracing::info!("config and certificate are read again"),
            Some(Err(error)) => {
                tracing::warn!(%error, "a file changed and cannot be used; the old one stays in use")
            }
        }
    }
}
