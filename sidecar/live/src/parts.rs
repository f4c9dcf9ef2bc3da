//! The GPUs, the ledger and the meter's own cost, from the samples of a snapshot.

use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{Metric, Sample, Snapshot, Value};

use crate::gpu::{Energy, Gpu};
use crate::meter::{LedgerState, MeterCost};

/// Returns milliseconds since 1970; 0 for an earlier time.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the currency of the price book; `None` without one.
pub(crate) fn currency(snapshot: &Snapshot) -> Option<String> {
    of(&snapshot.parts, Metric::PriceBookInfo).next().map(|_| snapshot.currency.code())
}

/// Returns the sum of a metric; `None` without a sample.
pub(crate) fn sum(parts: &[(Metric, Sample)], metric: Metric) -> Option<f64> {
    of(parts, metric).map(|sample| number(&sample.value)).reduce(|sum, n| sum + n)
}

/// Returns the GPUs, in the order of the metrics page.
pub(crate) fn gpus(parts: &[(Metric, Sample)]) -> Vec<Gpu> {
    let gpu = |info: &Sample| {
        let id = &info.labels[0];
        let its = |metric| {
            of(parts, metric).find(|sample| sample.labels[0] == *id).map(|sample| number(&sample.value))
        };
        Gpu {
            id: id.to_string(),
            name: info.labels[1].to_string(),
            up: its(Metric::GpuUp) == Some(1.0),
            utilization_ratio: its(Metric::HwUtilization),
            memory_used_bytes: its(Metric::HwMemoryUsage),
            memory_limit_bytes: its(Metric::HwMemoryLimit),
            power_watts: its(Metric::HwPower),
            power_limit_watts: its(Metric::GpuPowerLimit),
            temperature_celsius: its(Metric::HwTemperature),
        }
    };
    of(parts, Metric::GpuInfo).map(gpu).collect()
}

/// Returns the energy of all GPUs; `None` without one.
pub(crate) fn energy(snapshot: &Snapshot) -> Option<Energy> {
    let parts = &snapshot.parts;
    of(parts, Metric::GpuInfo).next()?;
    let joules = |metric| sum(parts, metric).unwrap_or_default();
    Some(Energy {
        attributed_joules: snapshot.attributed_joules,
        idle_joules: joules(Metric::EnergyIdle),
        unattributed_joules: joules(Metric::EnergyUnattributed),
        pending_joules: joules(Metric::EnergyPending),
    })
}

/// Returns what the metering costs and misses.
pub(crate) fn meter(snapshot: &Snapshot, cpu_cores: Option<f64>) -> MeterCost {
    MeterCost {
        overhead_p50_seconds: snapshot.overhead.quantile(0.5),
        overhead_p99_seconds: snapshot.overhead.quantile(0.99),
        cpu_cores,
        resident_bytes: snapshot.memory_bytes.map(|bytes| bytes as f64),
        connections: count(&snapshot.parts, Metric::Connections),
        dropped: snapshot.dropped,
        passthrough: snapshot.passthrough,
        refused: snapshot.refused,
    }
}

/// Returns the ledger; `None` without one.
pub(crate) fn ledger(parts: &[(Metric, Sample)]) -> Option<LedgerState> {
    of(parts, Metric::LedgerRows).next()?;
    Some(LedgerState {
        up: count(parts, Metric::LedgerUp) == 1,
        rows: count(parts, Metric::LedgerRows),
        commit_lag_seconds: sum(parts, Metric::LedgerLag).unwrap_or_default(),
        lost_rows: count(parts, Metric::LedgerLost),
    })
}

fn of(parts: &[(Metric, Sample)], metric: Metric) -> impl Iterator<Item = &Sample> {
    parts.iter().filter(move |(known, _)| *known == metric).map(|(_, sample)| sample)
}

fn count(parts: &[(Metric, Sample)], metric: Metric) -> u64 {
    let counts = of(parts, metric).map(|sample| match sample.value {
        Value::Count(n) => n,
        Value::Number(_) | Value::Histogram(_) => 0,
    });
    counts.fold(0, u64::saturating_add)
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Count(n) => *n as f64,
        Value::Number(number) => *number,
        Value::Histogram(of) => of.sum,
    }
}
