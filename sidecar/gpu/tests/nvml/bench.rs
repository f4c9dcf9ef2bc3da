//! A bench of devices, upstreams and time under a test's control. The stub's counters grow by the power
//! that the devices draw. Each sample is checked against those counters.

use std::time::Duration;

use gpu::attribution::Rules;
use gpu::nvml::Nvml;
use gpu::sample::Sample;
use gpu::sampler::Sampler;
use gpu::source::Source;
use gpu::{DeviceUse, Ended, ExchangeUse, Gpus, Prices, Settled, Upstream};
use meter::{Load, LoadReading, Tick};

use super::stub::Stub;

const SECOND: u64 = 1_000_000_000;

/// A bench.
pub(crate) struct Bench {
    /// The stub driver.
    pub(crate) stub: Stub,
    /// The power of each device in watts.
    pub(crate) watts: Vec<u64>,
    /// Each device's counter, in millijoules.
    pub(crate) energy: Vec<u64>,
    /// The sampler.
    pub(crate) sampler: Sampler<u32>,
    source: Nvml,
    cells: Vec<Load>,
    now: u64,
    back: Vec<Settled<u32>>,
    there: Vec<(u32, usize, LoadReading)>,
}

impl Bench {
    /// Returns a bench with devices of these watts, and one upstream per `gpus` setting.
    pub(crate) fn new(watts: &[u64], upstreams: &[&str]) -> Self {
        Self::with(Stub::new(), watts, upstreams)
    }

    /// Returns a bench of devices without an energy counter; the test sets their power.
    pub(crate) fn without_counters(devices: usize, upstreams: &[&str]) -> Self {
        let mut bench = Self::with(Stub::minimal(), &[], upstreams);
        for device in 0..devices {
            bench.stub.set(format!("{device}.uuid"), format!("GPU-{device}"));
        }
        bench.stub.set("count", devices);
        bench
    }

    /// Returns a bench with this staleness limit.
    pub(crate) fn with_stale(watts: &[u64], upstreams: &[&str], stale: Duration) -> Self {
        Self::make(Stub::new(), watts, upstreams, stale)
    }

    /// Returns a bench with this driver.
    pub(crate) fn with(stub: Stub, watts: &[u64], upstreams: &[&str]) -> Self {
        Self::make(stub, watts, upstreams, Duration::from_secs(5))
    }

    fn make(mut stub: Stub, watts: &[u64], upstreams: &[&str], stale: Duration) -> Self {
        stub.set("count", watts.len());
        for device in 0..watts.len() {
            stub.set(format!("{device}.uuid"), format!("GPU-{device}"));
        }
        let source = Nvml::start(Some(stub.library()), Duration::from_secs(20)).expect("a thread");
        let upstreams: Vec<Upstream> = upstreams
            .iter()
            .map(|gpus| Upstream { name: (*gpus).into(), gpus: Some(Gpus::parse(gpus)) })
            .collect();
        let loads = vec![LoadReading::default(); upstreams.len()];
        let prices = Prices { hour_pico: 3_600_000_000_000, kwh_pico: 300_000_000_000, pue_micro: 1_200_000 };
        let rules = Rules { stale, prices, tenants: 10, models: 10 };
        let sampler = Sampler::new(rules, &upstreams, &loads).expect("all set their gpus");
        let (watts, energy) = (watts.to_vec(), watts.iter().map(|_| 5_000).collect());
        let cells = loads.iter().map(|_| Load::default()).collect();
        let mut bench =
            Self { stub, watts, energy, sampler, source, cells, now: 0, back: Vec::new(), there: Vec::new() };
        bench.say();
        bench.sample(false);
        bench
    }

    /// Adds a device, present from the next sample on.
    pub(crate) fn plug_in(&mut self, watts: u64) {
        self.stub.set(format!("{}.uuid", self.watts.len()), format!("GPU-{}", self.watts.len()));
        self.watts.push(watts);
        self.energy.push(5_000);
        self.stub.set("count", self.watts.len());
        self.say();
    }

    /// Advances the clock.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms * 1_000_000;
        for (energy, watts) in self.energy.iter_mut().zip(&self.watts) {
            *energy += watts * ms;
        }
    }

    /// Advances the clock in seconds, each with a sample at its end.
    pub(crate) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.pass(1000);
            self.say();
            self.sample(false);
        }
    }

    /// Writes the counters into the stub.
    pub(crate) fn say(&mut self) {
        for (device, energy) in self.energy.clone().into_iter().enumerate() {
            self.stub.set(format!("{device}.energy"), energy);
        }
    }

    /// Starts an exchange.
    pub(crate) fn enter(&mut self, name: u32, upstream: usize) {
        let entered = self.cells[upstream].enter(Tick(self.now));
        self.there.push((name, upstream, entered));
    }

    /// Ends an exchange and delivers its notice.
    pub(crate) fn leave(&mut self, name: u32) {
        let ended = self.vanish(name);
        assert_eq!(self.sampler.ended(ended), None, "it is in time");
    }

    /// Ends an exchange; the caller delivers the notice, or does not.
    pub(crate) fn vanish(&mut self, name: u32) -> Ended<u32> {
        let place = self.there.iter().position(|there| there.0 == name).expect("it is there");
        let (context, upstream, entered) = self.there.remove(place);
        let left = self.cells[upstream].leave(Tick(self.now), &entered);
        let (model, tenant) = ("m".into(), "t".into());
        Ended { upstream, model, tenant, entered, left, output_tokens: 100, context }
    }

    /// Takes a sample, and checks that energy and time are conserved.
    pub(crate) fn sample(&mut self, last: bool) -> Sample {
        let at = Tick(self.now);
        let loads: Vec<LoadReading> = self.cells.iter_mut().map(|cell| cell.read(at)).collect();
        let answer = self.source.answer();
        self.sampler.apply(at, &answer, &loads, last, &mut |back| self.back.push(back));
        let gpus = self.sampler.gpus().gpus;
        for device in self.sampler.attribution().devices {
            let energy = device.attributed_nj + device.idle_nj + device.unattributed_nj + device.pending_nj;
            assert_eq!(device.energy_nj, energy, "{device:?}");
            let time = device.attributed_ns + device.idle_ns + device.unattributed_ns + device.pending_ns;
            assert_eq!(device.gpu_ns, time, "{device:?}");
            let gpu = gpus.iter().find(|gpu| gpu.device.uuid == device.uuid).expect("it is shown");
            assert_eq!(gpu.energy_nj.unwrap_or(0), device.energy_nj, "grown since it was seen, in both");
        }
        answer.sample
    }

    /// Returns where a device's energy and time went.
    pub(crate) fn device(&self, number: usize) -> DeviceUse {
        let uuid = format!("GPU-{number}");
        let devices = self.sampler.attribution().devices;
        devices.into_iter().find(|device| *device.uuid == *uuid).expect("it was seen")
    }

    /// Returns the use of an exchange that has come back.
    pub(crate) fn used(&self, name: u32) -> ExchangeUse {
        let back = self.back.iter().find(|back| back.context == name).expect("it came back");
        back.used.expect("it is known")
    }

    /// Returns the nanojoules of an exchange, if known.
    pub(crate) fn energy(&self, name: u32) -> Option<u64> {
        self.used(name).energy_nj
    }

    /// Asserts that an exchange came back without any total.
    pub(crate) fn is_unknown(&self, name: u32) {
        let ExchangeUse { energy_nj, per_token_nj, gpu_ns, utilization, .. } = self.used(name);
        assert_eq!((energy_nj, per_token_nj, gpu_ns, utilization), (None, None, None, None));
    }

    /// Returns the joules of an exchange, rounded to the next millijoule.
    pub(crate) fn joules(&self, name: u32) -> f64 {
        milli(u128::from(self.used(name).energy_nj.expect("it is known")))
    }

    /// Returns the seconds of GPU time of an exchange, rounded to the next millisecond.
    pub(crate) fn seconds(&self, name: u32) -> f64 {
        milli(u128::from(self.used(name).gpu_ns.expect("it is known")))
    }

    /// Returns the exchanges that have come back.
    pub(crate) fn came(&self) -> Vec<u32> {
        self.back.iter().map(|back| back.context).collect()
    }
}

/// Converts billionths to units, rounded to thousandths.
pub(crate) fn milli(nano: u128) -> f64 {
    (nano as f64 / 1e6).round() / 1e3
}

/// Returns growth, attributed, idle, unattributed and pending, in joules.
pub(crate) fn energy(device: &DeviceUse) -> [f64; 5] {
    let DeviceUse { energy_nj, attributed_nj, idle_nj, unattributed_nj, pending_nj, .. } = *device;
    [energy_nj, attributed_nj, idle_nj, unattributed_nj, pending_nj].map(milli)
}
/// Returns growth, attributed, idle, unattributed and pending, in seconds.
/// Grown, attributed, idle, unattributed and pending, in seconds.
pub(crate) fn time(device: &DeviceUse) -> [f64; 5] {
    let DeviceUse { gpu_ns, attributed_ns, idle_ns, unattributed_ns, pending_ns, .. } = *device;
    [gpu_ns, attributed_ns, idle_ns, unattributed_ns, pending_ns].map(milli)
}

/// Converts seconds to nanoseconds.
pub(crate) fn seconds(seconds: u64) -> u64 {
    seconds * SECOND
}
