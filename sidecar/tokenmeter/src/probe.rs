//! Tries to reach each upstream once a second, by a TCP connection that is closed at once: no
//! request, so nothing is logged or metered on the other side. What it finds goes to readiness, to
//! the metrics and to who reads the upstream's own page; a change is logged once.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::readiness::{Reach, Readiness};

/// An upstream to try.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its name, a label.
    pub(crate) name: String,
    /// Its URL, for messages.
    pub(crate) url: String,
    /// Host, resolved anew for each try.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
}

/// The prober's thread. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Prober {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Begins to try `targets`, which are in the order `readiness` has them.
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
            // A name that is still being resolved would hold us up.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported when it happened.
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
    let mut seconds = interval(EVERY);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let reach = reach(&target).await;
        metrics.set_upstream_up(&target.name, reach == Reach::Reached);
        engines.note(index, reach == Reach::Reached);
        let before = readiness.note(index, reach.clone());
        let (upstream, url) = (target.name.as_str(), target.url.as_str());
        match (before, reach) {
            (Reach::Untried | Reach::Reached, Reach::Unreachable(why)) => tracing::warn!(
                upstream,
                url,
                "the upstream is unreachable ({why}): its clients get 502 until it answers; start it, \
                 or correct its URL"
            ),
            (Reach::Unreachable(_), Reach::Reached) => {
                tracing::info!(upstream, url, "the upstream is reachable");
            }
            _ => {}
        }
    }
}

async fn reach(target: &Target) -> Reach {
    let connecting = TcpStream::connect((target.host.as_str(), target.port));
    match timeout(PATIENCE, connecting).await {
        Ok(Ok(_)) => Reach::Reached,
        Ok(Err(error)) => Reach::Unreachable(error.to_string()),
        Err(_) => Reach::Unreachable(format!("no connection within {} s", PATIENCE.as_secs())),
    }
}

/// Often enough that a restarted upstream gets traffic again before anyone looks.
const EVERY: Duration = Duration::from_secs(1);

/// A connection within a cluster takes milliseconds; one lost SYN is sent again after a second.
const PATIENCE: Duration = Duration::from_secs(2);
