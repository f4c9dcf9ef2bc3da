//! The watcher in front of fakes, and what it said.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use engine::{Detected, Hooks, Ours, Plan, Reach, Running, Scrape, Target};
use metrics::EngineReading;
use relay::Kind;

use crate::fake::Fake;

/// A busy machine gets this long for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// One watched upstream.
pub(crate) struct Watched {
    pub(crate) reach: Reach,
    detected: Receiver<Detected>,
    readings: Receiver<EngineReading>,
    ours: Arc<[AtomicU64; 3]>,
    _running: Running,
}

impl Watched {
    /// Watches a fake that can be reached from the start.
    pub(crate) fn start(fake: &Fake, kind: Option<Kind>, scrape: Scrape) -> Self {
        let watched = Self::unreached(fake, kind, scrape);
        watched.reach.note(0, true);
        watched
    }

    /// Watches a fake of which nobody has said yet that it can be reached.
    pub(crate) fn unreached(fake: &Fake, kind: Option<Kind>, scrape: Scrape) -> Self {
        Self::below(fake, "", kind, scrape)
    }

    /// The same for a server whose paths lie below a prefix.
    pub(crate) fn below(fake: &Fake, prefix: &str, kind: Option<Kind>, scrape: Scrape) -> Self {
        let ours: Arc<[AtomicU64; 3]> = Arc::default();
        let (tell_detected, detected) = channel();
        let (tell_reading, readings) = channel();
        let totals = Arc::clone(&ours);
        let hooks = Hooks {
            detected: Box::new(move |upstream, detected| {
                assert_eq!(upstream, 0);
                // The test may have ended.
                let _ = tell_detected.send(detected);
            }),
            reading: Box::new(move |_, reading| drop(tell_reading.send(reading))),
            ours: Box::new(move |_| {
                let totals = [&totals[0], &totals[1], &totals[2]];
                let [input, output, cached] = totals.map(|total| total.load(Ordering::SeqCst));
                Ours { input, cached, output }
            }),
        };
        let target = Target {
            name: "fake".into(),
            host: fake.address.ip().to_string().into(),
            port: fake.address.port(),
            prefix: prefix.into(),
            kind,
            scrape,
        };
        let plan = Plan { targets: vec![target], every: Duration::from_millis(5) };
        let running = engine::start(plan, hooks).unwrap();
        Self { reach: running.reach(), detected, readings, ours, _running: running }
    }

    /// What we ourselves are said to have counted.
    pub(crate) fn ours(&self, input: u64, output: u64) {
        self.ours[0].store(input, Ordering::SeqCst);
        self.ours[1].store(output, Ordering::SeqCst);
    }

    /// The cached tokens that usage reported to us.
    pub(crate) fn cached(&self, cached: u64) {
        self.ours[2].store(cached, Ordering::SeqCst);
    }

    /// The next that was recognised.
    pub(crate) fn detected(&self) -> Detected {
        self.detected.recv_timeout(PATIENCE).expect("it is recognised")
    }

    /// Whether something was recognised that was not asked for yet.
    pub(crate) fn has_detected(&self) -> bool {
        self.detected.try_recv().is_ok()
    }

    /// The next reading.
    pub(crate) fn reading(&self) -> EngineReading {
        self.readings.recv_timeout(PATIENCE).expect("there are readings")
    }

    /// The first reading that is as wanted.
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
