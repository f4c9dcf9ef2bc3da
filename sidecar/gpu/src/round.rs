//! One round: a sample is taken, devices are followed, energy is attributed, exchanges are settled.
//! Knows no clock and no thread: who calls it says when.

use std::sync::Arc;

use meter::{LoadReading, Tick};

use crate::attribution::{Attribution, AttributionReading, Ended, Rules, Settled};
use crate::gpus::{Assignment, Mistake, Upstream};
use crate::life::{GpuReading, Lives};
use crate::sample::Sample;
use crate::source::{Answer, SourceName};

/// All that goes from one sample to the next.
pub struct Rounds<T> {
    lives: Lives,
    attribution: Attribution<T>,
    source: SourceName,
    refused: u64,
    failed: u64,
    broken: bool,
    /// What was logged last, so that nothing is logged twice.
    told: String,
}

/// What is known of the devices.
#[derive(Clone, Debug, PartialEq)]
pub struct GpusReading {
    /// Every device that was ever seen.
    pub gpus: Vec<GpuReading>,
    /// Where the last sample came from.
    pub source: SourceName,
    /// Samples that could not be taken.
    pub failed: u64,
    /// Samples that were refused because they were of another machine.
    pub refused: u64,
    /// There will be no other sample: watching failed. That is one of those that failed.
    pub broken: bool,
}

impl<T> Rounds<T> {
    /// Begins; `loads` are the upstreams' cells now.
    pub fn new(rules: Rules, upstreams: &[Upstream], loads: &[LoadReading]) -> Result<Self, Mistake> {
        Ok(Self {
            lives: Lives::new(rules.stale, Assignment::new(upstreams)?),
            attribution: Attribution::new(rules, loads),
            source: SourceName::None,
            refused: 0,
            failed: 0,
            broken: false,
            told: String::new(),
        })
    }

    /// An exchange ended; it comes back at once if what it used cannot be known any more.
    pub fn ended(&mut self, ended: Ended<T>) -> Option<Settled<T>> {
        self.attribution.ended(ended)
    }

    /// Takes a sample. `at` and `loads` are of the moment it was asked for; `last` says that there
    /// will be no other.
    pub fn take(
        &mut self,
        at: Tick,
        answer: &Answer,
        loads: &[LoadReading],
        last: bool,
        settled: &mut dyn FnMut(Settled<T>),
    ) {
        (self.source, self.refused) = (answer.source, answer.refused);
        let metered = self.lives.take(at, self.source, &answer.sample);
        self.tell(&answer.sample);
        self.attribution.sample(at, &metered, loads, last, settled);
    }

    /// Notices that found no room on their way here.
    pub fn refused(&mut self, count: u64) {
        self.attribution.refused(count);
    }

    /// Whether any device was ever seen.
    pub fn has_devices(&self) -> bool {
        !self.lives.is_empty()
    }

    /// Exchanges that wait to be settled.
    pub fn waiting(&self) -> usize {
        self.attribution.waiting()
    }

    /// Gives back who still waits, without what they used.
    pub fn finish(&mut self, settled: &mut dyn FnMut(Settled<T>)) {
        self.attribution.finish(settled);
    }

    /// Watching failed, and there will be no other sample: no device is up any more.
    pub fn fail(&mut self) {
        self.broken = true;
        self.failed += 1;
        self.lives.fail();
    }

    /// UUIDs of devices that upstreams were given.
    pub fn uuids(&self) -> Vec<Arc<str>> {
        self.lives.uuids()
    }

    /// What is known of the devices.
    pub fn gpus(&self) -> GpusReading {
        GpusReading {
            gpus: self.lives.readings(),
            source: self.source,
            failed: self.failed,
            refused: self.refused,
            broken: self.broken,
        }
    }

    /// Where everything went.
    pub fn attribution(&self) -> AttributionReading {
        self.attribution.reading()
    }

    /// Says what changed: calmly where there simply are no devices, as without NVML and an exporter.
    fn tell(&mut self, sample: &Sample) {
        let name = self.source.name();
        let (calm, what) = match sample {
            Sample::Nothing(why) => {
                self.failed += 1;
                let never = self.source == SourceName::Nvml && self.lives.is_empty();
                (
                    never,
                    if never {
                        format!("no GPU is read: {why}")
                    } else {
                        format!("the GPUs say nothing: {why}")
                    },
                )
            }
            Sample::Devices(devices) => {
                let count = devices.iter().filter(|device| device.parent.is_none()).count();
                let (mut calm, mut what) = (true, format!("{count} GPUs are read by {name}"));
                if let Some((its_calm, unsaid)) = self.lives.unsaid(self.source, devices) {
                    (calm, what) = (its_calm, format!("{what}; {unsaid}"));
                }
                match &*self.lives.missing() {
                    [] => (calm, what),
                    missing => (false, format!("{what}; not among them: {}", missing.join(", "))),
                }
            }
        };
        if self.told != what {
            if calm {
                tracing::info!("{what}");
            } else {
                tracing::warn!("{what}");
            }
            self.told = what;
        }
    }
}
