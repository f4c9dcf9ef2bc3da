//! GPU monitoring: samples the GPUs, tracks each one over time, and attributes its energy, its time and
//! their cost to the exchanges that used it.
//!
//! [`start()`] takes a [`Plan`]. A thread samples the devices periodically, reads the
//! upstreams' load cells at the same tick, and hands the results out through [`Hooks`]. Ended
//! exchanges come in through [`Notices`] and go out again, settled, when a sample covers their end.
//!
//! The path of a sample: [`mod@sampling_thread`] decides when; a [`source`] is called on a thread
//! of its own ([`nvml`] in this process, or an [`exporter`]) and returns a [`sample`]; `device_state` tracks
//! each device; [`gpus`] assigns it to upstreams; [`attribution`] distributes it by the rule in `attribution.md`.
//!
//! Laws: nothing here blocks a request, and a driver call can block only this crate's
//! threads. A value that a device does not report is absent, never 0. Energy, time and money are conserved.

pub mod attribution;
mod device_state;
pub mod exporter;
pub mod gpus;
pub mod limits;
pub mod nvml;
pub mod sample;
pub mod sampler;
pub mod sampling_thread;
pub mod source;
mod source_thread;

pub use attribution::{
    AttributionReading, Cost, DeviceUse, Ended, ExchangeUse, ModelUse, Prices, Settled, TenantUse,
};
pub use device_state::{EnergySource, GpuReading};
pub use exporter::ExporterPlan;
pub use gpus::{AssignmentError, GpuName, Gpus, Upstream};
pub use sample::{Activity, Clocks, Device, Throttle};
pub use sampler::GpusReading;
pub use sampling_thread::{Hooks, Notices, Plan, Running, start};
pub use source::{SourceChoice, SourceName};
