//! What a device says of itself at one moment. The law: what it does not say is absent, never 0.

use std::sync::Arc;

use crate::limits::NAME_BYTES;

/// What came of asking all devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// These are there; who was there before and is not among them is gone.
    Devices(Vec<Device>),
    /// Nobody answered, and why. Nothing is known of any device.
    Nothing(String),
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Its name among all in the world.
    pub uuid: Arc<str>,
    /// Its number on its machine.
    pub index: Option<u32>,
    /// The product.
    pub name: Option<String>,
    /// Who makes it: `nvidia` or `amd`.
    pub vendor: Option<&'static str>,
    /// Version of its driver.
    pub driver: Option<String>,
    /// The device it is a part of: it is a MIG instance, with no energy of its own.
    pub parent: Option<Arc<str>>,
    /// Part of the time in which something ran on it, in millionths, over the source's last period.
    pub utilization_ppm: Option<u32>,
    /// Memory in use, in bytes.
    pub memory_used: Option<u64>,
    /// All its memory, in bytes.
    pub memory_total: Option<u64>,
    /// Power in milliwatts.
    pub power_mw: Option<u64>,
    /// Its energy counter, in nanojoules.
    pub energy_nj: Option<u128>,
    /// Temperature of the chip, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Its clocks.
    pub clocks: Clocks,
    /// Whether each reason holds it back now, by [`Throttle`].
    pub throttled: Option<[bool; Throttle::ALL.len()]>,
    /// How busy its parts are.
    pub activity: Activity,
    /// Compute processes on it.
    pub processes: Option<u32>,
    /// Memory errors that were corrected, since it was made or its counter reset.
    pub errors_corrected: Option<u64>,
    /// Memory errors that were not.
    pub errors_uncorrected: Option<u64>,
    /// The power it may draw, in milliwatts.
    pub power_limit_mw: Option<u64>,
}

/// Clocks in hertz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Of graphics.
    pub graphics: Option<u64>,
    /// Of the streaming multiprocessors.
    pub sm: Option<u64>,
    /// Of memory.
    pub memory: Option<u64>,
}

/// Parts of the time or the bandwidth in which a unit worked, 0–1.
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
    /// Each with its name.
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
    /// Each with its name.
    pub fn units(&self) -> [(&'static str, Option<u64>); 3] {
        [("graphics", self.graphics), ("sm", self.sm), ("memory", self.memory)]
    }
}

/// What holds a device's clocks down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// It draws as much power as it may.
    PowerCap,
    /// The hardware slowed it, for reasons of its own.
    HwSlowdown,
    /// Too hot: the hardware halved its clocks.
    HwThermal,
    /// The power supply asked for it.
    HwPowerBrake,
    /// Too hot: the driver lowered its clocks.
    SwThermal,
    /// It waits for slower devices of its group.
    SyncBoost,
    /// A reason that has no name here: an applications' or display's clock setting, say.
    Other,
}

impl Throttle {
    /// All, in the order of [`Device::throttled`].
    pub const ALL: [Self; 7] = [
        Self::PowerCap,
        Self::HwSlowdown,
        Self::HwThermal,
        Self::HwPowerBrake,
        Self::SwThermal,
        Self::SyncBoost,
        Self::Other,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerCap => "power_cap",
            Self::HwSlowdown => "hw_slowdown",
            Self::HwThermal => "hw_thermal",
            Self::HwPowerBrake => "hw_power_brake",
            Self::SwThermal => "sw_thermal",
            Self::SyncBoost => "sync_boost",
            Self::Other => "other",
        }
    }

    /// From NVML's bits, which DCGM hands on. Being idle holds nothing down.
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

/// A name, cut to what is kept of it.
pub(crate) fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_BYTES)].to_owned()
}
