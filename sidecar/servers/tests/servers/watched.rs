//! The watcher of a fake server, and its results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use metrics::EngineReading;
use metrics::ServerKind;
use scrape::Fetcher;
use servers::{Detected, Hooks, Plan, ProxyTotals, Reach, Running, Scrape, Target};

use crate::fake::Fake;

/// Timeout of an event that takes milliseconds, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// One watched upstream.
pub(crate) struct Watched {
    pub(crate) reach: Reach,
    detected: Receiver<Detected>,
    readings: Receiver<EngineReading>,
    totals: Arc<[AtomicU64; 3]>,
    _running: Running,
}

impl Watched {
    /// Watches a fake that is reachable from the start.
    pub(crate) fn start(fake: &Fake, kind: Option<ServerKind>, scrape: Scrape) -> Self {
        let watched = Self::unreached(fake, kind, scrape);
        watched.reach.note(0, true);
        watched
    }

    /// Watches a fake that was not reported reachable yet.
    pub(crate) fn unreached(fake: &Fake, kind: Option<ServerKind>, scrape: Scrape) -> Self {
        Self::below(fake, "", kind, scrape)
    }

    /// Watches a server whose paths have a prefix.
    pub(crate) fn below(fake: &Fake, prefix: &str, kind: Option<ServerKind>, scrape: Scrape) -> Self {
        let totals: Arc<[AtomicU64; 3]> = Arc::default();
        let (tell_detected, detected) = channel();
        let (tell_reading, readings) = channel();
        let shared = Arc::clone(&totals);
        let hooks = Hooks {
            detected: Box::new(move |upstream, detected| {
                assert_eq!(upstream, 0);
                // The test may have ended.
                let _ = tell_detected.send(detected);
            }),
            reading: Box::new(move |_, reading| drop(tell_reading.send(reading))),
            totals: Box::new(move |_| {
                let totals = [&shared[0], &shared[1], &shared[2]];
                let [input, output, cached] = totals.map(|total| total.load(Ordering::SeqCst));
                ProxyTotals { input, cached, output }
            }),
        };
        let target = Target {
            name: "fake".into(),
            fetcher: Fetcher::http(&fake.address.ip().to_string(), fake.address.port(), prefix),
            kind,
            scrape,
        };
        let plan = Plan { targets: vec![target], every: Duration::from_millis(5) };
        let running = servers::start(plan, hooks).unwrap();
        Self { reach: running.reach(), detected, readings, totals, _running: running }
    }

    /// Sets the proxy's totals.
    pub(crate) fn set_totals(&self, input: u64, output: u64) {
        self.totals[0].store(input, Ordering::SeqCst);
        self.totals[1].store(output, Ordering::SeqCst);
    }

    /// Sets the cached tokens that usage reported.
    pub(crate) fn cached(&self, cached: u64) {
        self.totals[2].store(cached, Ordering::SeqCst);
    }

    /// Returns the next detection.
    pub(crate) fn detected(&self) -> Detected {
        self.detected.recv_timeout(PATIENCE).expect("a detection")
    }

    /// Returns true if there is a further detection.
    pub(crate) fn has_detected(&self) -> bool {
        self.detected.try_recv().is_ok()
    }

    /// Returns the next reading.
    pub(crate) fn reading(&self) -> EngineReading {
        self.readings.recv_timeout(PATIENCE).expect("a reading")
    }

    /// Returns the first reading that satisfies a condition.
    pub(crate) fn reading_when(&self, what: &str, wanted: impl Fn(&EngineReading) -> bool) -> EngineReading {
        let end = Instant::now() + PATIENCE;
        loop {
            let reading = self.reading();
            if wanted(&reading) {
                return reading;
            }
            assert!(Instant::now() < end, "{what}: not yet, but {reading:?}");
        }
    }
}
