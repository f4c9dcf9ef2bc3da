//! Devices, upstreams and time under a test's hand: a second passes when the test says so, and the
//! stub's counters grow by what the devices draw. Each sample is checked against those counters.

use std::time::Duration;

use gpu::attribution::Rules;
use gpu::nvml::Nvml;
use gpu::round::Rounds;
use gpu::sample::Sample;
use gpu::source::Source;
use gpu::{DeviceUse, Ended, Gpus, Prices, Settled, Upstream, Used};
use meter::{Load, LoadReading, Tick};

use super::stub::Stub;

const SECOND: u64 = 1_000_000_000;

/// A test bench.
pub(crate) struct Bench {
    /// The driver.
    pub(crate) stub: Stub,
    /// Watts that each device draws.
    pub(crate) watts: Vec<u64>,
    /// Each device's counter, in millijoules.
    pub(crate) energy: Vec<u64>,
    /// The rounds.
    pub(crate) rounds: Rounds<u32>,
    source: Nvml,
    cells: Vec<Load>,
    now: u64,
    back: Vec<Settled<u32>>,
    there: Vec<(u32, usize, LoadReading)>,
}

impl Bench {
    /// Devices that draw this much, and upstreams on these devices.
    pub(crate) fn new(watts: &[u64], upstreams: &[&str]) -> Self {
        Self::with(Stub::new(), watts, upstreams)
    }

    /// Devices that have no energy counter; their power is what the test says.
    pub(crate) fn without_counters(devices: usize, upstreams: &[&str]) -> Self {
        let mut bench = Self::with(Stub::minimal(), &[], upstreams);
        for device in 0..devices {
            bench.stub.set(format!("{device}.uuid"), format!("GPU-{device}"));
        }
        bench.stub.set("count", devices);
        bench
    }

    /// Of which nothing may be seen for so long.
    pub(crate) fn with_stale(watts: &[u64], upstreams: &[&str], stale: Duration) -> Self {
        Self::make(Stub::new(), watts, upstreams, stale)
    }

    /// With this driver.
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
        let rounds = Rounds::new(rules, &upstreams, &loads).expect("all say their devices");
        let (watts, energy) = (watts.to_vec(), watts.iter().map(|_| 5_000).collect());
        let cells = loads.iter().map(|_| Load::default()).collect();
        let mut bench =
            Self { stub, watts, energy, rounds, source, cells, now: 0, back: Vec::new(), there: Vec::new() };
        bench.say();
        bench.sample(false);
        bench
    }

    /// Another device is there from the next sample on.
    pub(crate) fn plug_in(&mut self, watts: u64) {
        self.stub.set(format!("{}.uuid", self.watts.len()), format!("GPU-{}", self.watts.len()));
        self.watts.push(watts);
        self.energy.push(5_000);
        self.stub.set("count", self.watts.len());
        self.say();
    }

    /// Milliseconds pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms * 1_000_000;
        for (energy, watts) in self.energy.iter_mut().zip(&self.watts) {
            *energy += watts * ms;
        }
    }

    /// Seconds pass, each with a sample at its end.
    pub(crate) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.pass(1000);
            self.say();
            self.sample(false);
        }
    }

    /// The counters say what they are at.
    pub(crate) fn say(&mut self) {
        for (device, energy) in self.energy.clone().into_iter().enumerate() {
            self.stub.set(format!("{device}.energy"), energy);
        }
    }

    /// An exchange begins.
    pub(crate) fn enter(&mut self, name: u32, upstream: usize) {
        let entered = self.cells[upstream].enter(Tick(self.now));
        self.there.push((name, upstream, entered));
    }

    /// It ends, and says so.
    pub(crate) fn leave(&mut self, name: u32) {
        let ended = self.vanish(name);
        assert_eq!(self.rounds.ended(ended), None, "it is in time");
    }

    /// It ends; the notice is the caller's to deliver.
    pub(crate) fn vanish(&mut self, name: u32) -> Ended<u32> {
        let place = self.there.iter().position(|there| there.0 == name).expect("it is there");
        let (ticket, upstream, entered) = self.there.remove(place);
        let left = self.cells[upstream].leave(Tick(self.now), &entered);
        let (model, tenant) = ("m".into(), "t".into());
        Ended { upstream, model, tenant, entered, left, output_tokens: 100, ticket }
    }

    /// A sample is taken, and nothing is missing from it.
    pub(crate) fn sample(&mut self, last: bool) -> Sample {
        let at = Tick(self.now);
        let loads: Vec<LoadReading> = self.cells.iter_mut().map(|cell| cell.read(at)).collect();
        let answer = self.source.answer();
        self.rounds.take(at, &answer, &loads, last, &mut |back| self.back.push(back));
        let gpus = self.rounds.gpus().gpus;
        for device in self.rounds.attribution().devices {
            let energy = device.attributed_nj + device.idle_nj + device.unattributed_nj + device.pending_nj;
            assert_eq!(device.energy_nj, energy, "{device:?}");
            let time = device.attributed_ns + device.idle_ns + device.unattributed_ns + device.pending_ns;
            assert_eq!(device.gpu_ns, time, "{device:?}");
            let gpu = gpus.iter().find(|gpu| gpu.device.uuid == device.uuid).expect("it is shown");
            assert_eq!(gpu.energy_nj.unwrap_or(0), device.energy_nj, "grown since it was seen, in both");
        }
        answer.sample
    }

    /// Where a device's energy and time went.
    pub(crate) fn device(&self, number: usize) -> DeviceUse {
        let uuid = format!("GPU-{number}");
        let devices = self.rounds.attribution().devices;
        devices.into_iter().find(|device| *device.uuid == *uuid).expect("it was seen")
    }

    /// What an exchange used; it has come back.
    pub(crate) fn used(&self, name: u32) -> Used {
        let back = self.back.iter().find(|back| back.ticket == name).expect("it came back");
        back.used.expect("it is known")
    }

    /// Nanojoules an exchange used, if that is known.
    pub(crate) fn energy(&self, name: u32) -> Option<u64> {
        self.used(name).energy_nj
    }

    /// An exchange came back, and claims no total of anything.
    pub(crate) fn is_unknown(&self, name: u32) {
        let Used { energy_nj, per_token_nj, gpu_ns, utilization, .. } = self.used(name);
        assert_eq!((energy_nj, per_token_nj, gpu_ns, utilization), (None, None, None, None));
    }

    /// Joules an exchange used, rounded to the next millijoule.
    pub(crate) fn joules(&self, name: u32) -> f64 {
        milli(u128::from(self.used(name).energy_nj.expect("it is known")))
    }

    /// Seconds of GPU time an exchange used, rounded to the next millisecond.
    pub(crate) fn seconds(&self, name: u32) -> f64 {
        milli(u128::from(self.used(name).gpu_ns.expect("it is known")))
    }

    /// Which have come back.
    pub(crate) fn came(&self) -> Vec<u32> {
        self.back.iter().map(|back| back.ticket).collect()
    }
}

/// Billionths in wholes, rounded to thousandths.
pub(crate) fn milli(nano: u128) -> f64 {
    (nano as f64 / 1e6).round() / 1e3
}

/// Grown, attributed, idle, unattributed and pending, in joules.
pub(crate) fn energy(device: &DeviceUse) -> [f64; 5] {
    let DeviceUse { energy_nj, attributed_nj, idle_nj, unattributed_nj, pending_nj, .. } = *device;
    [energy_nj, attributed_nj, idle_nj, unattributed_nj, pending_nj].map(milli)
}

/// Grown, attributed, idle, unattributed and pending, in seconds.
pub(crate) fn time(device: &DeviceUse) -> [f64; 5] {
    let DeviceUse { gpu_ns, attributed_ns, idle_ns, unattributed_ns, pending_ns, .. } = *device;
    [gpu_ns, attributed_ns, idle_ns, unattributed_ns, pending_ns].map(milli)
}

/// A second, in nanoseconds.
pub(crate) fn seconds(seconds: u64) -> u64 {
    seconds * SECOND
}
