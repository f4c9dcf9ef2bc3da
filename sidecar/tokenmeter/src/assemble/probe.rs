//! Probes each upstream once a second by a connection that is closed at once, without a request, so that the upstream
//! logs and meters nothing. With TLS, a probe makes a handshake at the start, after a failure and every 30 seconds, so
//! that an expired certificate is reported before a request fails. Results go to readiness, the metrics and the scraper
//! of the upstream's own page; a change is logged once.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use connect::ConnectError;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::assemble::readiness::{Reachability, Readiness};

/// An upstream to probe.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name, a label value.
    pub(crate) name: String,
    /// The URL, for messages.
    pub(crate) url: String,
    /// The server, and how it is reached.
    pub(crate) server: connect::Target,
}

/// The probe thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Prober {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Starts to probe `targets`, which are in the order of `readiness`.
    pub(crate) fn start(
        targets: Vec<Target>,
        readiness: Readiness,
        metrics: metrics::Metrics,
        servers: servers::Reach,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            runtime.block_on(async {
                for (index, target) in targets.into_iter().enumerate() {
                    let (readiness, metrics) = (readiness.clone(), metrics.clone());
                    tokio::spawn(watch(index, target, readiness, metrics, servers.clone()));
                }
                // An error is the sender's drop: the signal itself.
                let _ = stopped.await;
            });
            // A pending name resolution would block the shutdown.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic.
            let _ = thread.join();
        }
    }
}

async fn watch(
    index: usize,
    target: Target,
    readiness: Readiness,
    metrics: metrics::Metrics,
    servers: servers::Reach,
) {
    let mut seconds = interval(PROBE_INTERVAL);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut handshake_at = None;
    loop {
        seconds.tick().await;
        let reach = reach(&target, &mut handshake_at).await;
        metrics.set_upstream_up(&target.name, reach == Reachability::Reachable);
        servers.note(index, reach == Reachability::Reachable);
        let before = readiness.note(index, reach.clone());
        let (upstream, url) = (target.name.as_str(), target.url.as_str());
        match (before, reach) {
            (Reachability::Unknown | Reachability::Reachable, Reachability::Unreachable(why)) => {
                tracing::warn!(
                    upstream,
                    url,
                    "the upstream is unreachable ({why}): its clients get 502 until it is reachable; start it, \
                 or correct its URL"
                )
            }
            (Reachability::Unknown | Reachability::Reachable, Reachability::Unusable(why)) => {
                tracing::warn!(
                    upstream,
                    url,
                    "the upstream cannot be used: {why}; its clients get 502 until that is corrected"
                )
            }
            (Reachability::Unreachable(_), Reachability::Unusable(why)) => {
                tracing::warn!(upstream, url, "the upstream is reachable but cannot be used: {why}")
            }
            (Reachability::Unusable(_), Reachability::Reachable) => {
                tracing::info!(upstream, url, "the upstream can be used");
            }
            (Reachability::Unreachable(_), Reachability::Reachable) => {
                tracing::info!(upstream, url, "the upstream is reachable");
            }
            _ => {}
        }
    }
}

/// Probes once. `handshake_at`: the time of the last TLS handshake that succeeded.
async fn reach(target: &Target, handshake_at: &mut Option<Instant>) -> Reachability {
    let is_fresh = handshake_at.is_some_and(|at| at.elapsed() < HANDSHAKE_INTERVAL);
    let result = match target.server.is_secure() && !is_fresh {
        true => target.server.probe(PROBE_TIMEOUT).await,
        false => target.server.reach(PROBE_TIMEOUT).await,
    };
    match result {
        Ok(()) => {
            if !is_fresh {
                *handshake_at = Some(Instant::now());
            }
            Reachability::Reachable
        }
        Err(error) => {
            *handshake_at = None;
            match error {
                ConnectError::Certificate(_) | ConnectError::Tls(_) => {
                    Reachability::Unusable(error.to_string())
                }
                _ => Reachability::Unreachable(error.to_string()),
            }
        }
    }
}

/// The interval of probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two TLS handshakes of probes that succeed.
const HANDSHAKE_INTERVAL: Duration = Duration::from_secs(30);

/// The timeout of a probe: a connection takes milliseconds, and a lost SYN is repeated after a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
