//! One sampling cycle: devices are tracked, energy is attributed, exchanges are settled.
//! Has no clock and no thread: the caller decides when.

use std::sync::Arc;

use meter::{LoadReading, Tick};

use crate::attribution::{Attribution, AttributionReading, Ended, Rules, Settled};
use crate::device_state::{DeviceStates, GpuReading};
use crate::gpus::{Assignment, AssignmentError, Upstream};
use crate::sample::Sample;
use crate::source::{Answer, SourceName};

/// The state between samples.
pub struct Sampler<T> {
    states: DeviceStates,
    attribution: Attribution<T>,
    source: SourceName,
    refused: u64,
    failed: u64,
    broken: bool,
    /// The last log line, so that none repeats.
    last_message: String,
}

/// The current state of the devices.
#[derive(Clone, Debug, PartialEq)]
pub struct GpusReading {
    /// Every device that was ever seen.
    pub gpus: Vec<GpuReading>,
    /// The source of the last sample.
    pub source: SourceName,
    /// Failed samples.
    pub failed: u64,
    /// Samples that were rejected because they were of another machine.
    pub refused: u64,
    /// Sampling has stopped by a defect, which also counts in `failed`.
    pub broken: bool,
}

impl<T> Sampler<T> {
    /// Returns an empty one; `loads` are the upstreams' cells now.
    pub fn new(rules: Rules, upstreams: &[Upstream], loads: &[LoadReading]) -> Result<Self, AssignmentError> {
        Ok(Self {
            states: DeviceStates::new(rules.stale, Assignment::new(upstreams)?),
            attribution: Attribution::new(rules, loads),
            source: SourceName::None,
            refused: 0,
            failed: 0,
            broken: false,
            last_message: String::new(),
        })
    }

    /// Takes an ended exchange; returns it at once if its use cannot be known.
    pub fn ended(&mut self, ended: Ended<T>) -> Option<Settled<T>> {
        self.attribution.ended(ended)
    }

    /// Takes a sample. `at` and `loads` are of the moment of the request for it; `last` marks the last
    /// sample.
    pub fn apply(
        &mut self,
        at: Tick,
        answer: &Answer,
        loads: &[LoadReading],
        last: bool,
        settled: &mut dyn FnMut(Settled<T>),
    ) {
        (self.source, self.refused) = (answer.source, answer.refused);
        let metered = self.states.apply(at, self.source, &answer.sample);
        self.log_change(&answer.sample);
        self.attribution.sample(at, &metered, loads, last, settled);
    }

    /// Counts notices that the queue rejected.
    pub fn refused(&mut self, count: u64) {
        self.attribution.refused(count);
    }

    /// Returns true if any device was ever seen.
    pub fn has_devices(&self) -> bool {
        !self.states.is_empty()
    }

    /// Exchanges that wait to be settled.
    pub fn waiting(&self) -> usize {
        self.attribution.waiting()
    }

    /// Gives the waiting exchanges back without their use.
    pub fn finish(&mut self, settled: &mut dyn FnMut(Settled<T>)) {
        self.attribution.finish(settled);
    }

    /// Marks every device as down: sampling has stopped by a defect.
    pub fn fail(&mut self) {
        self.broken = true;
        self.failed += 1;
        self.states.fail();
    }

    /// Returns the UUIDs in the upstreams' configuration.
    pub fn uuids(&self) -> Vec<Arc<str>> {
        self.states.uuids()
    }

    /// Returns the current state of the devices.
    pub fn gpus(&self) -> GpusReading {
        GpusReading {
            gpus: self.states.readings(),
            source: self.source,
            failed: self.failed,
            refused: self.refused,
            broken: self.broken,
        }
    }

    /// Returns the totals of attribution.
    pub fn attribution(&self) -> AttributionReading {
        self.attribution.reading()
    }

    /// Logs a change of state. The absence of all devices, without NVML and an exporter, is information and no warning.
    fn log_change(&mut self, sample: &Sample) {
        let name = self.source.name();
        let (informational, message) = match sample {
            Sample::Failed(reason) => {
                self.failed += 1;
                let never = self.source == SourceName::Nvml && self.states.is_empty();
                (
                    never,
                    if never {
                        format!("no GPU found: {reason}")
                    } else {
                        format!("GPU sample failed: {reason}")
                    },
                )
            }
            Sample::Devices(devices) => {
                let count = devices.iter().filter(|device| device.parent.is_none()).count();
                let (mut informational, mut message) = (true, format!("{count} GPUs sampled by {name}"));
                if let Some((its_informational, unassigned)) = self.states.unassigned(self.source, devices) {
                    (informational, message) = (its_informational, format!("{message}; {unassigned}"));
                }
                for (text, devices) in [
                    ("not attributed while several pods use them", self.states.with_others()),
                    ("configured but not found", self.states.missing()),
                ] {
                    if !devices.is_empty() {
                        informational = false;
                        message = format!("{message}; {text}: {}", devices.join(", "));
                    }
                }
                (informational, message)
            }
        };
        if self.last_message != message {
            if informational {
                tracing::info!("{message}");
            } else {
                tracing::warn!("{message}");
            }
            self.last_message = message;
        }
    }
}
