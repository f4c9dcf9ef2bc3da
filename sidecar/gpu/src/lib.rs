//! The GPUs: what they do, and for whom. Samples them, follows each over time, and attributes its
//! energy, its time and their cost to the exchanges that used it.
//!
//! [`start()`] takes a [`Plan`] and begins: a thread asks the devices every so often, reads the
//! upstreams' load cells at the same moment, and hands what comes of it out through [`Hooks`]. Ended
//! exchanges come in through [`Notices`] and go out again, settled, when a sample covers their end.
//!
//! In the order of the path of a sample: [`mod@watch`] decides when; a [`source`] is asked, on a thread
//! of its own ([`nvml`] in this process, or an [`exporter`]), and gives a [`sample`]; `life` follows each device; [`gpus`]
//! says whose it is; [`attribution`] shares it out, by the rule in `attribution.md`.
//!
//! Laws: nothing here is on anyone's way, and no call into a driver can hold up more than this
//! thread. What a device does not say is absent, never 0. Energy, time and money are conserved.

mod ask;
pub mod attribution;
pub mod exporter;
pub mod gpus;
mod life;
pub mod limits;
pub mod nvml;
pub mod round;
pub mod sample;
pub mod source;
pub mod watch;

pub use attribution::{
    AttributionReading, Cost, DeviceUse, Ended, ModelUse, Prices, Settled, TenantUse, Used,
};
pub use exporter::ExporterPlan;
pub use gpus::{GpuName, Gpus, Mistake, Upstream};
pub use life::{EnergyFrom, GpuReading};
pub use round::GpusReading;
pub use sample::{Activity, Clocks, Device, Throttle};
pub use source::{SourceName, Wanted};
pub use watch::{Hooks, Notices, Plan, Running, start};
