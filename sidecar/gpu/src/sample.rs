//! A sample of all devices at one moment. The law: a value that a device does not report is absent, never 0.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::limits::NAME_MAX_BYTES;

/// The outcome of sampling.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// The present devices; any other device is absent.
    Devices(Vec<Device>),
    /// The sample failed, for this reason: the state of every device is unknown.
    Failed(String),
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Its globally unique name.
    pub uuid: Arc<str>,
    /// Its index on its machine.
    pub index: Option<u32>,
    /// The product name.
    pub name: Option<String>,
    /// The manufacturer: `nvidia` or `amd`.
    pub vendor: Option<&'static str>,
    /// Version of its driver.
    pub driver: Option<String>,
    /// The parent device of a MIG instance, which has no energy of its own.
    pub parent: Option<Arc<str>>,
    /// The fraction of the time with work running on it, in millionths, over the source's last period.
    pub utilization_ppm: Option<u32>,
    /// Memory in use, in bytes.
    pub memory_used: Option<u64>,
    /// Total memory, in bytes.
    pub memory_total: Option<u64>,
    /// Power in milliwatts.
    pub power_mw: Option<u64>,
    /// Its energy counter, in nanojoules.
    pub energy_nj: Option<u128>,
    /// Temperature of the chip, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Its clock rates.
    pub clocks: Clocks,
    /// The active throttle reasons, by [`Throttle`].
    pub throttled: Option<[bool; Throttle::ALL.len()]>,
    /// The activity of its units.
    pub activity: Activity,
    /// The number of compute processes on it.
    pub processes: Option<u32>,
    /// The pods that use it, each with its namespace, if the source names them.
    pub pods: BTreeSet<String>,
    /// Corrected memory errors, over its life or since a reset of the counter.
    pub errors_corrected: Option<u64>,
    /// Uncorrected memory errors.
    pub errors_uncorrected: Option<u64>,
    /// The enforced power limit, in milliwatts.
    pub power_limit_mw: Option<u64>,
}

/// Clock rates in hertz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// The graphics clock.
    pub graphics: Option<u64>,
    /// The clock of the streaming multiprocessors.
    pub sm: Option<u64>,
    /// The memory clock.
    pub memory: Option<u64>,
}

/// The fraction of time or bandwidth in which each unit was active, 0–1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Graphics or compute engine.
    pub graphics: Option<f64>,
    /// Streaming multiprocessors.
    pub sm: Option<f64>,
    /// Tensor cores.
    pub tensor: Option<f64>,
    /// Memory.
    pub dram: Option<f64>,
    /// Video encoder.
    pub encoder: Option<f64>,
    /// Video decoder.
    pub decoder: Option<f64>,
}

impl Activity {
    /// Returns each unit with its label value.
    pub fn units(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("graphics", self.graphics),
            ("sm", self.sm),
            ("tensor", self.tensor),
            ("dram", self.dram),
            ("encoder", self.encoder),
            ("decoder", self.decoder),
        ]
    }
}

impl Clocks {
    /// Returns each clock with its label value.
    pub fn units(&self) -> [(&'static str, Option<u64>); 3] {
        [("graphics", self.graphics), ("sm", self.sm), ("memory", self.memory)]
    }
}

meter::listed_enum! {
    /// A throttle reason: why a device's clocks are reduced.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Throttle {
        /// It is at its power limit.
        PowerCap = "power_cap",
        /// A hardware slowdown.
        HwSlowdown = "hw_slowdown",
        /// Temperature: the hardware reduced the clocks.
        HwThermal = "hw_thermal",
        /// The power supply's brake signal.
        HwPowerBrake = "hw_power_brake",
        /// Temperature: the driver reduced the clocks.
        SwThermal = "sw_thermal",
        /// The slower devices of its sync-boost group.
        SyncBoost = "sync_boost",
        /// Any other reason, such as an application's or a display's clock setting.
        Other = "other",
    }
    /// The label value.
    pub fn name(self);
}

impl Throttle {
    /// Decodes NVML's bits, which DCGM also uses. Idle is not a throttle reason.
    pub(crate) fn from_bits(bits: u64) -> [bool; Self::ALL.len()] {
        const GPU_IDLE: u64 = 0x1;
        const NAMED: [u64; 6] = [0x4, 0x8, 0x40, 0x80, 0x20, 0x10];
        let mut reasons = [false; Self::ALL.len()];
        for (reason, bit) in reasons.iter_mut().zip(NAMED) {
            *reason = bits & bit != 0;
        }
        reasons[Self::Other as usize] = bits & !(GPU_IDLE | NAMED.iter().sum::<u64>()) != 0;
        reasons
    }
}

/// Returns a name, cut to [`NAME_MAX_BYTES`].
pub(crate) fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_MAX_BYTES)].to_owned()
}
