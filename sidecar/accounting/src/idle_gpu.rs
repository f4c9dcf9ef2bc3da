//! Enters idle and unattributed GPU use in the ledger: readings are sums since the start of the process, the ledger
//! gets differences. The law: the entered differences add up to the last reading, to the nanojoule.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpu::{AttributionReading, Cost, DeviceUse};
use ledger::GpuSums;
use ledger::Ledger;
use ledger::source::{DeviceTotal, Share};

/// The interval of entries.
const ENTRY_INTERVAL: Duration = Duration::from_secs(10);

/// The sums entered so far, and the latest reading.
pub(crate) struct IdleGpu {
    ledger: Ledger,
    entered: HashMap<(Arc<str>, Share), Sums>,
    latest: Vec<DeviceUse>,
    since: Instant,
}

/// Sums since the process began: nanojoules, nanoseconds, money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    energy_nj: u128,
    gpu_ns: u128,
    cost: Cost,
}

impl IdleGpu {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, entered: HashMap::new(), latest: Vec::new(), since: Instant::now() }
    }

    /// Takes a reading; its difference is entered every [`ENTRY_INTERVAL`].
    pub(crate) fn read(&mut self, reading: &AttributionReading) {
        self.latest.clone_from(&reading.devices);
        if self.since.elapsed() >= ENTRY_INTERVAL {
            self.since = Instant::now();
            self.enter();
        }
    }

    fn enter(&mut self) {
        let day = self.ledger.calendar().day(ledger::now_us());
        let lines: Vec<DeviceTotal> = self
            .latest
            .iter()
            .flat_map(|device| Share::ALL.map(|share| (device, share)))
            .filter_map(|(device, share)| {
                let before = self.entered.entry((Arc::clone(&device.uuid), share)).or_default();
                added(day, device, share, before)
            })
            .collect();
        if !lines.is_empty() {
            self.ledger.device(lines);
        }
    }
}

impl Drop for IdleGpu {
    fn drop(&mut self) {
        self.enter();
    }
}

/// Returns the difference of a share since `before`, and updates `before`; `None` if it is zero.
fn added(day: i32, device: &DeviceUse, share: Share, before: &mut Sums) -> Option<DeviceTotal> {
    let now = match share {
        Share::Idle => Sums { energy_nj: device.idle_nj, gpu_ns: device.idle_ns, cost: device.idle_cost },
        Share::Unattributed => Sums {
            energy_nj: device.unattributed_nj,
            gpu_ns: device.unattributed_ns,
            cost: device.unattributed_cost,
        },
    };
    let was = std::mem::replace(before, now);
    let grown = |now: u128, was: u128| now.cast_signed() - was.cast_signed();
    (now != was).then(|| DeviceTotal {
        day,
        hw_id: Arc::clone(&device.uuid),
        share,
        sums: GpuSums {
            energy_nj: grown(now.energy_nj, was.energy_nj),
            gpu_ns: grown(now.gpu_ns, was.gpu_ns),
            gpu_hours_pico: now.cost.hours_pico - was.cost.hours_pico,
            gpu_energy_pico: now.cost.energy_pico - was.cost.energy_pico,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_to_the_last_reading() {
        let device = |idle_nj, idle_ns, hours_pico| DeviceUse {
            uuid: "GPU-1".into(),
            idle_nj,
            idle_ns,
            idle_cost: Cost { hours_pico, energy_pico: 0 },
            ..DeviceUse::default()
        };
        let mut before = Sums::default();
        let mut sums = (0, 0, 0);
        for reading in [device(5, 1, 7), device(5, 1, 7), device(900, 3, 8), device(901, 4, 8)] {
            let line = added(1, &reading, Share::Idle, &mut before);
            let Some(line) = line else { continue };
            let added = line.sums;
            sums = (sums.0 + added.energy_nj, sums.1 + added.gpu_ns, sums.2 + added.gpu_hours_pico);
        }
        assert_eq!(sums, (901, 4, 8));
        assert_eq!(
            added(1, &device(901, 4, 8), Share::Idle, &mut before),
            None,
            "a difference of zero makes no row"
        );
        assert_eq!(added(1, &device(901, 4, 8), Share::Unattributed, &mut Sums::default()), None);
    }
}
