//! A device over time: what a single sample cannot say. Whether it is there, since when it was not,
//! what it was throttled by and for how long, and its energy where it only says its power.
//!
//! Law: nothing is concluded about a time that no sample covers; it is counted instead.

use std::sync::Arc;
use std::time::Duration;

use meter::Tick;

use crate::attribution::{Metered, Seen};
use crate::gpus::Assignment;
use crate::limits::DEVICES;
use crate::sample::{Device, Sample, Throttle};
use crate::source::SourceName;

/// A device, as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuReading {
    /// What it said last. Its energy counter is `energy_nj` below.
    pub device: Device,
    /// Whether that is fresh.
    pub up: bool,
    /// The numbers of the upstreams that run on it.
    pub upstreams: Vec<usize>,
    /// Whose word it is.
    pub source: SourceName,
    /// How its energy is known.
    pub energy_from: EnergyFrom,
    /// Its energy in nanojoules since it was first seen: what its counter grew by, by the rule of
    /// attribution, or what its power came to. Never less than before.
    pub energy_nj: Option<u128>,
    /// How long each reason held it back, in nanoseconds, by [`Throttle`].
    pub throttled_ns: [u64; Throttle::ALL.len()],
    /// How often its counter went back, or it went away and came again.
    pub resets: u64,
    /// Time that no sample covers, in nanoseconds.
    pub gap_ns: u64,
}

impl GpuReading {
    /// Whether several upstreams run on it.
    pub fn shared(&self) -> bool {
        self.upstreams.len() > 1
    }

    /// The label of its source: `power` where the energy is reckoned from the power.
    pub fn source_name(&self) -> &'static str {
        match self.energy_from {
            EnergyFrom::Power => "power",
            _ => self.source.name(),
        }
    }
}

/// How a device's energy is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergyFrom {
    /// Not.
    #[default]
    Nothing,
    /// By its own counter.
    Counter,
    /// By its power, from sample to sample along straight lines.
    Power,
}

/// All devices that were ever seen.
#[derive(Debug)]
pub(crate) struct Lives {
    stale: Duration,
    assignment: Assignment,
    lives: Vec<Life>,
}

#[derive(Debug)]
struct Life {
    reading: GpuReading,
    /// When it was there last.
    seen: Tick,
    /// Until when gaps are counted.
    gap_until: Tick,
    /// A sample came without it since.
    away: bool,
    /// What its counter said last, or its power came to.
    counter: Option<u128>,
    /// Power and when it was said.
    power: Option<(Tick, u64)>,
    /// ∫power dt in half milliwatt-nanoseconds, which are half picojoules.
    half_pj: u128,
}

impl Lives {
    pub(crate) fn new(stale: Duration, assignment: Assignment) -> Self {
        Self { stale, assignment, lives: Vec::new() }
    }

    /// Takes a sample; what it says of every device that was ever seen, but for MIG instances.
    pub(crate) fn take(&mut self, at: Tick, source: SourceName, sample: &Sample) -> Vec<Metered> {
        let devices = match sample {
            Sample::Devices(devices) => Some(&**devices),
            Sample::Nothing(_) => None,
        };
        let mut seen: Vec<Seen> = Vec::new();
        for life in &mut self.lives {
            let now = devices.map(|all| all.iter().find(|device| device.uuid == life.reading.device.uuid));
            seen.push(life.take(at, source, now, self.stale));
        }
        for device in devices.unwrap_or_default() {
            let known = self.lives.iter().any(|life| life.reading.device.uuid == device.uuid);
            if !known && self.lives.len() < DEVICES {
                let upstreams = self.assignment.of(device, source, devices.unwrap_or_default());
                let mut life = Life::new(at, source, device, upstreams);
                seen.push(life.take(at, source, Some(Some(device)), self.stale));
                self.lives.push(life);
            }
        }
        let whole = |(life, _): &(&Life, Seen)| life.reading.device.parent.is_none();
        let metered = |(life, seen): (&Life, Seen)| Metered {
            uuid: Arc::clone(&life.reading.device.uuid),
            upstreams: life.reading.upstreams.clone(),
            seen,
        };
        self.lives.iter().zip(seen).filter(whole).map(metered).collect()
    }

    pub(crate) fn readings(&self) -> Vec<GpuReading> {
        self.lives.iter().map(|life| life.reading.clone()).collect()
    }

    /// Nobody looks any more: nothing is fresh.
    pub(crate) fn fail(&mut self) {
        self.lives.iter_mut().for_each(|life| life.reading.up = false);
    }

    /// Whether none was ever seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// UUIDs that upstreams were given.
    pub(crate) fn uuids(&self) -> Vec<Arc<str>> {
        self.assignment.uuids()
    }

    /// What is done about an upstream that does not say its devices: whether that is calm, and the text.
    pub(crate) fn unsaid(&self, source: SourceName, all: &[Device]) -> Option<(bool, String)> {
        let (upstream, has) = self.assignment.unsaid(source, all)?;
        let name = &upstream.name;
        let whole = all.iter().filter(|device| device.parent.is_none());
        let uuids: Vec<&str> = whole.map(|device| &*device.uuid).collect();
        let uuids = uuids.join(", ");
        match (uuids.is_empty(), has) {
            (true, _) => None,
            (_, true) => Some((true, format!("taken as {name}'s own, as its gpus are not set: {uuids}"))),
            (_, false) => Some((
                false,
                format!(
                    "none is attributed to {name}: they may be others' too; set gpus to those it uses \
                     (indices, UUIDs, or `all`): {uuids}"
                ),
            )),
        }
    }

    /// What upstreams were given and was never seen.
    pub(crate) fn missing(&self) -> Vec<String> {
        let devices: Vec<Device> = self.lives.iter().map(|life| life.reading.device.clone()).collect();
        self.assignment.missing(&devices)
    }
}

impl Life {
    fn new(at: Tick, source: SourceName, device: &Device, upstreams: Vec<usize>) -> Self {
        let reading = GpuReading {
            device: device.clone(),
            up: true,
            upstreams,
            source,
            energy_from: EnergyFrom::Nothing,
            energy_nj: None,
            throttled_ns: [0; Throttle::ALL.len()],
            resets: 0,
            gap_ns: 0,
        };
        Self { reading, seen: at, gap_until: at, away: false, counter: None, power: None, half_pj: 0 }
    }

    /// `now`: nothing if nobody answered, and nothing in it if it is gone.
    fn take(&mut self, at: Tick, source: SourceName, now: Option<Option<&Device>>, stale: Duration) -> Seen {
        let is_gap = |from: Tick| u128::from(at.since(from)) > stale.as_nanos();
        let gap = is_gap(self.seen);
        if gap {
            self.reading.gap_ns += at.since(self.gap_until);
            self.gap_until = at;
        }
        let Some(Some(device)) = now else {
            self.reading.up &= !gap && now.is_none();
            self.away |= now.is_some();
            return Seen::Nothing;
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
            // It usually says its energy, and will say it again.
            (None, Some(_)) => Seen::Nothing,
            _ => Seen::There { energy_nj: said, utilization_ppm: device.utilization_ppm },
        }
    }

    /// Its energy, if this sample says it. How is decided by what the first one that does has.
    fn energy(&mut self, at: Tick, device: &Device, is_gap: impl Fn(Tick) -> bool) -> Option<u128> {
        let from = &mut self.reading.energy_from;
        if *from == EnergyFrom::Nothing {
            *from = match (device.energy_nj, device.power_mw) {
                (Some(_), _) => EnergyFrom::Counter,
                (None, Some(_)) => EnergyFrom::Power,
                (None, None) => EnergyFrom::Nothing,
            };
        }
        match from {
            EnergyFrom::Nothing => None,
            EnergyFrom::Counter => device.energy_nj,
            EnergyFrom::Power => {
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
