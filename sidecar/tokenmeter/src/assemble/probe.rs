//! Probes each upstream once a second by a TCP connection that is closed at once, without a request, so that the
//! upstream logs and meters nothing. Results go to readiness, the metrics and the scraper of the upstream's own page; a
//! change is logged once.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::assemble::readiness::{Reachability, Readiness};

/// An upstream to probe.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name, a label value.
    pub(crate) name: String,
    /// The URL, for messages.
    pub(crate) url: String,
    /// The host, resolved for each probe.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
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
        engines: engine::Reach,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            runtime.block_on(async {
                for (index, target) in targets.into_iter().enumerate() {
                    let (readiness, metrics) = (readiness.clone(), metrics.clone());
                    tokio::spawn(watch(index, target, readiness, metrics, engines.clone()));
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
    engines: engine::Reach,
) {
    let mut seconds = interval(PROBE_INTERVAL);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let reach = reach(&target).await;
        metrics.set_upstream_up(&target.name, reach == Reachability::Reachable);
        engines.note(index, reach == Reachability::Reachable);
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
            (Reachability::Unreachable(_), Reachability::Reachable) => {
                tracing::info!(upstream, url, "the upstream is reachable");
            }
            _ => {}
        }
    }
}

async fn reach(target: &Target) -> Reachability {
    let connecting = TcpStream::connect((target.host.as_str(), target.port));
    match timeout(PROBE_TIMEOUT, connecting).await {
        Ok(Ok(_)) => Reachability::Reachable,
        Ok(Err(error)) => Reachability::Unreachable(error.to_string()),
        Err(_) => Reachability::Unreachable(format!("no connection within {} s", PROBE_TIMEOUT.as_secs())),
    }
}

/// The interval of probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The timeout of a probe: a connection takes milliseconds, and a lost SYN is repeated after a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
