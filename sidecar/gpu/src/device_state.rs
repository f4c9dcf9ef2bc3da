//! The state of a device over time: presence, gaps, throttle time, and its energy if it reports
//! only power.
//!
//! Law: nothing is inferred about a time that no sample covers; it is counted as a gap.

use std::sync::Arc;
use std::time::Duration;

use meter::Tick;

use crate::attribution::{DeviceSample, MeteredDevice};
use crate::gpus::Assignment;
use crate::limits::MAX_DEVICES;
use crate::sample::{Device, Sample, Throttle};
use crate::source::SourceName;

/// The current state of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuReading {
    /// Its last sample. Its energy counter is `energy_nj` below.
    pub device: Device,
    /// True if that sample is fresh.
    pub up: bool,
    /// The indices of the upstreams that run on it.
    pub upstreams: Vec<usize>,
    /// The source of the sample.
    pub source: SourceName,
    /// The source of its energy.
    pub energy_source: EnergySource,
    /// Its energy in nanojoules since it was first seen: the growth of its counter, by the rule of
    /// attribution, or the integral of its power. Never falls.
    pub energy_nj: Option<u128>,
    /// Time in nanoseconds under each throttle reason, by [`Throttle`].
    pub throttled_ns: [u64; Throttle::ALL.len()],
    /// The number of times its counter went back, or it was absent and came back.
    pub resets: u64,
    /// Time that no sample covers, in nanoseconds.
    pub gap_ns: u64,
}

impl GpuReading {
    /// Returns true if several upstreams run on it, or several pods use it.
    pub fn shared(&self) -> bool {
        self.upstreams.len().max(self.device.pods.len()) > 1
    }

    /// Returns true if more pods use it than upstreams run on it: the upstreams' part of its use is unknown.
    fn has_others(&self) -> bool {
        self.device.pods.len() > self.upstreams.len().max(1)
    }

    /// Returns the label of its source: `power` if the energy is integrated from power.
    pub fn source_name(&self) -> &'static str {
        match self.energy_source {
            EnergySource::Power => "power",
            _ => self.source.name(),
        }
    }
}

/// The source of a device's energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergySource {
    /// No counter and no power yet.
    #[default]
    Unknown,
    /// Its own counter.
    Counter,
    /// Its power, interpolated linearly between samples.
    Power,
}

/// The states of all devices that were ever seen.
#[derive(Debug)]
pub(crate) struct DeviceStates {
    stale: Duration,
    assignment: Assignment,
    states: Vec<DeviceState>,
}

#[derive(Debug)]
struct DeviceState {
    reading: GpuReading,
    /// The tick of the last sample that had it.
    seen: Tick,
    /// The tick up to which gaps are counted.
    gap_until: Tick,
    /// A sample since then lacked it.
    away: bool,
    /// The last value of its counter, or of the integral of its power.
    counter: Option<u128>,
    /// The last power in milliwatts, with its tick.
    power: Option<(Tick, u64)>,
    /// ∫power dt in half milliwatt-nanoseconds, which are half picojoules.
    half_pj: u128,
}

impl DeviceStates {
    pub(crate) fn new(stale: Duration, assignment: Assignment) -> Self {
        Self { stale, assignment, states: Vec::new() }
    }

    /// Takes a sample; returns the state of every device that was ever seen, without MIG instances.
    pub(crate) fn apply(&mut self, at: Tick, source: SourceName, sample: &Sample) -> Vec<MeteredDevice> {
        let devices = match sample {
            Sample::Devices(devices) => Some(&**devices),
            Sample::Failed(_) => None,
        };
        let mut seen: Vec<DeviceSample> = Vec::new();
        for state in &mut self.states {
            let now = devices.map(|all| all.iter().find(|device| device.uuid == state.reading.device.uuid));
            seen.push(state.apply(at, source, now, self.stale));
        }
        for device in devices.unwrap_or_default() {
            let known = self.states.iter().any(|state| state.reading.device.uuid == device.uuid);
            if !known && self.states.len() < MAX_DEVICES {
                let upstreams = self.assignment.of(device, source, devices.unwrap_or_default());
                let mut state = DeviceState::new(at, source, device, upstreams);
                seen.push(state.apply(at, source, Some(Some(device)), self.stale));
                self.states.push(state);
            }
        }
        let whole = |(state, _): &(&DeviceState, DeviceSample)| state.reading.device.parent.is_none();
        let metered = |(state, seen): (&DeviceState, DeviceSample)| MeteredDevice {
            uuid: Arc::clone(&state.reading.device.uuid),
            upstreams: state.reading.upstreams.clone(),
            seen,
        };
        self.states.iter().zip(seen).filter(whole).map(metered).collect()
    }

    pub(crate) fn readings(&self) -> Vec<GpuReading> {
        self.states.iter().map(|state| state.reading.clone()).collect()
    }

    /// Marks every device as down: sampling has ended.
    pub(crate) fn fail(&mut self) {
        self.states.iter_mut().for_each(|state| state.reading.up = false);
    }

    /// Returns true if no device was ever seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the UUIDs in the upstreams' configuration.
    pub(crate) fn uuids(&self) -> Vec<Arc<str>> {
        self.assignment.uuids()
    }

    /// Returns the log text for an upstream that does not set its devices, and true if it is not a warning.
    pub(crate) fn unassigned(&self, source: SourceName, all: &[Device]) -> Option<(bool, String)> {
        let (upstream, has) = self.assignment.unassigned(source, all)?;
        let name = &upstream.name;
        let whole = all.iter().filter(|device| device.parent.is_none());
        let uuids: Vec<&str> = whole.map(|device| &*device.uuid).collect();
        let uuids = uuids.join(", ");
        match (uuids.is_empty(), has) {
            (true, _) => None,
            (_, true) => Some((true, format!("attributed to {name}, which does not set its gpus: {uuids}"))),
            (_, false) => Some((
                false,
                format!(
                    "none attributed to {name}, because other processes may use them; set its gpus to those it \
                     uses (indices, UUIDs, or `all`): {uuids}"
                ),
            )),
        }
    }

    /// Returns the devices of upstreams that other pods use, too, with their pods.
    pub(crate) fn with_others(&self) -> Vec<String> {
        let readings = self.states.iter().map(|state| &state.reading);
        let theirs = readings.filter(|gpu| !gpu.upstreams.is_empty() && gpu.has_others());
        let text = |gpu: &GpuReading| {
            let pods: Vec<&str> = gpu.device.pods.iter().map(String::as_str).collect();
            format!("{} ({})", gpu.device.uuid, pods.join(", "))
        };
        theirs.map(text).collect()
    }

    /// Returns the configured devices that were never seen.
    pub(crate) fn missing(&self) -> Vec<String> {
        let devices: Vec<Device> = self.states.iter().map(|state| state.reading.device.clone()).collect();
        self.assignment.missing(&devices)
    }
}

impl DeviceState {
    fn new(at: Tick, source: SourceName, device: &Device, upstreams: Vec<usize>) -> Self {
        let reading = GpuReading {
            device: device.clone(),
            up: true,
            upstreams,
            source,
            energy_source: EnergySource::Unknown,
            energy_nj: None,
            throttled_ns: [0; Throttle::ALL.len()],
            resets: 0,
            gap_ns: 0,
        };
        Self { reading, seen: at, gap_until: at, away: false, counter: None, power: None, half_pj: 0 }
    }

    /// `now` is `None` if the sample failed, and `Some(None)` if the sample lacks the device.
    fn apply(
        &mut self,
        at: Tick,
        source: SourceName,
        now: Option<Option<&Device>>,
        stale: Duration,
    ) -> DeviceSample {
        let is_gap = |from: Tick| u128::from(at.since(from)) > stale.as_nanos();
        let gap = is_gap(self.seen);
        if gap {
            self.reading.gap_ns += at.since(self.gap_until);
            self.gap_until = at;
        }
        let Some(Some(device)) = now else {
            self.reading.up &= !gap && now.is_none();
            self.away |= now.is_some();
            return DeviceSample::Absent;
        };
        let passed = at.since(self.seen);
        if let (Some(reasons), false) = (device.throttled, gap) {
            for (ns, held) in self.reading.throttled_ns.iter_mut().zip(reasons) {
                *ns += if held { passed } else { 0 };
            }
        }
        let before = self.counter;
        let said = self.energy(at, device, is_gap);
        let back = said.zip(before).is_some_and(|(now, before)| now < before);
        self.reading.resets += u64::from(back || self.away);
        (self.reading.up, self.away) = (true, false);
        (self.seen, self.gap_until) = (at, at);
        self.counter = said.or(before);
        self.reading.energy_nj = match (self.reading.energy_nj, said, before) {
            (Some(energy), Some(now), Some(before)) => Some(energy + now.saturating_sub(before)),
            (energy, now, _) => energy.or(now.map(|_| 0)),
        };
        self.reading.device.clone_from(device);
        self.reading.source = source;
        match (said, before) {
            // It usually reports its energy: wait for the next sample instead of closing the interval without it.
            (None, Some(_)) => DeviceSample::Absent,
            _ => DeviceSample::Present {
                energy_nj: said,
                utilization_ppm: device.utilization_ppm,
                has_others: self.reading.has_others(),
            },
        }
    }

    /// Returns its energy, if this sample has it. The first sample with a counter or power decides the source.
    fn energy(&mut self, at: Tick, device: &Device, is_gap: impl Fn(Tick) -> bool) -> Option<u128> {
        let from = &mut self.reading.energy_source;
        if *from == EnergySource::Unknown {
            *from = match (device.energy_nj, device.power_mw) {
                (Some(_), _) => EnergySource::Counter,
                (None, Some(_)) => EnergySource::Power,
                (None, None) => EnergySource::Unknown,
            };
        }
        match from {
            EnergySource::Unknown => None,
            EnergySource::Counter => device.energy_nj,
            EnergySource::Power => {
                let power = device.power_mw?;
                if let Some((then, before)) = self.power
                    && !is_gap(then)
                {
                    self.half_pj += u128::from(power + before) * u128::from(at.since(then));
                }
                self.power = Some((at, power));
                Some(self.half_pj / 2000)
            }
        }
    }
}
