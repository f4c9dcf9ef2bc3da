//! An open NVML session. Law: a field that cannot be read costs that
//! field; a device that cannot be read costs that device; only an unloaded driver ends the session.

use std::collections::HashMap;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::GpmSample;

use super::fields;
use crate::limits::MAX_DEVICES;
use crate::sample::{Device, cut};

/// An open driver.
pub(super) struct Session<'nvml> {
    nvml: &'nvml Nvml,
    driver: Option<String>,
    /// The last sample of each device's performance monitor: activity is the difference of two.
    monitors: HashMap<String, GpmSample<'nvml>>,
    lost: bool,
}

impl<'nvml> Session<'nvml> {
    pub(super) fn new(nvml: &'nvml Nvml) -> Self {
        let driver = nvml.sys_driver_version().ok().map(|version| cut(&version));
        Self { nvml, driver, monitors: HashMap::new(), lost: false }
    }

    /// Returns true if the last sample lacked a device that had fallen off the bus.
    pub(super) fn lost_device(&self) -> bool {
        self.lost
    }

    /// Samples every device.
    pub(super) fn sample(&mut self) -> Result<Vec<Device>, NvmlError> {
        self.lost = false;
        let count = self.nvml.device_count()?;
        let mut handles = Vec::new();
        for index in 0..count.min(MAX_DEVICES as u32) {
            match self.nvml.device_by_index(index) {
                Ok(handle) => handles.push((index, handle)),
                Err(error) if is_driver_gone(&error) => return Err(error),
                Err(error) => self.lost |= is_device_gone(&error),
            }
        }
        // All the counters first, so that they are of the same moment.
        let energies: Vec<_> = handles.iter().map(|(_, handle)| handle.total_energy_consumption()).collect();
        let mut devices = Vec::new();
        for ((index, handle), energy) in handles.into_iter().zip(energies) {
            match energy {
                Err(error) if is_driver_gone(&error) => return Err(error),
                Err(error) if is_device_gone(&error) => {
                    self.lost = true;
                    continue;
                }
                _ => {}
            }
            let mut device = fields::read(&handle);
            if device.uuid.is_empty() {
                device.uuid = format!("GPU-of-index-{index}").into();
            }
            device.index = Some(index);
            device.driver.clone_from(&self.driver);
            device.energy_nj = energy.ok().map(|millijoules| u128::from(millijoules) * 1_000_000);
            self.monitor(&handle, &mut device);
            let instances = fields::instances(&handle, &device);
            devices.push(device);
            devices.extend(instances);
        }
        devices.truncate(MAX_DEVICES);
        Ok(devices)
    }

    /// Reads the activity since the last call from the performance monitor, which Hopper and later have.
    fn monitor(&mut self, handle: &nvml_wrapper::Device<'nvml>, device: &mut Device) {
        if !handle.gpm_support().unwrap_or(false) {
            return;
        }
        let Ok(now) = handle.gpm_sample() else { return };
        if let Some(before) = self.monitors.get(&*device.uuid) {
            fields::activity(self.nvml, before, &now, &mut device.activity);
        }
        self.monitors.insert(device.uuid.to_string(), now);
    }
}

/// Returns true if the driver can answer for no device any more.
fn is_driver_gone(error: &NvmlError) -> bool {
    matches!(error, NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch)
}

/// Returns true if the device has fallen off the bus, or must be reset before use.
fn is_device_gone(error: &NvmlError) -> bool {
    matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::NotFound)
}
