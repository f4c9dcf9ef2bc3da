//! The time between opening NVML and closing it. Law: a field that cannot be read costs that
//! field; a device that cannot be read costs that device; only a driver that is gone ends it.

use std::collections::HashMap;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::GpmSample;

use super::fields;
use crate::limits::DEVICES;
use crate::sample::{Device, cut};

/// An open driver.
pub(super) struct Session<'nvml> {
    nvml: &'nvml Nvml,
    driver: Option<String>,
    /// The last sample of each device's performance monitor: what it says is between two.
    monitors: HashMap<String, GpmSample<'nvml>>,
    lost: bool,
}

impl<'nvml> Session<'nvml> {
    pub(super) fn new(nvml: &'nvml Nvml) -> Self {
        let driver = nvml.sys_driver_version().ok().map(|version| cut(&version));
        Self { nvml, driver, monitors: HashMap::new(), lost: false }
    }

    /// Whether the last sample missed a device that had fallen off the bus.
    pub(super) fn has_lost(&self) -> bool {
        self.lost
    }

    /// Asks every device.
    pub(super) fn sample(&mut self) -> Result<Vec<Device>, NvmlError> {
        self.lost = false;
        let count = self.nvml.device_count()?;
        let mut handles = Vec::new();
        for index in 0..count.min(DEVICES as u32) {
            match self.nvml.device_by_index(index) {
                Ok(handle) => handles.push((index, handle)),
                Err(error) if is_over(&error) => return Err(error),
                Err(error) => self.lost |= is_lost(&error),
            }
        }
        // All the counters first, so that they are of one moment.
        let energies: Vec<_> = handles.iter().map(|(_, handle)| handle.total_energy_consumption()).collect();
        let mut devices = Vec::new();
        for ((index, handle), energy) in handles.into_iter().zip(energies) {
            match energy {
                Err(error) if is_over(&error) => return Err(error),
                Err(error) if is_lost(&error) => {
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
        devices.truncate(DEVICES);
        Ok(devices)
    }

    /// What the performance monitor saw since it was asked last; Hopper and later have one.
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

/// Whether no device can be asked any more.
fn is_over(error: &NvmlError) -> bool {
    matches!(error, NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch)
}

/// Whether the device has fallen off the bus, or must be reset before it can be used.
fn is_lost(error: &NvmlError) -> bool {
    matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::NotFound)
}
