//! The samples of GPUs on the page.

use std::sync::Arc;

use gpu::{
    Activity, AttributionReading, Clocks, Cost, Device, DeviceUse, EnergySource, GpuReading, GpusReading,
    Prices, SourceName,
};
use metrics::{Part, Samples};

use super::GpuSamples;
use crate::written_samples::written;

fn samples() -> GpuSamples {
    let prices = Prices { hour_pico: 1, kwh_pico: 0, pue_micro: 1_000_000 };
    let upstreams = ["a", "b"].map(Arc::from).into();
    GpuSamples { upstreams, prices, gpus: None, attribution: Arc::default() }
}

fn gpu(device: Device) -> GpuReading {
    GpuReading {
        device,
        up: true,
        upstreams: Vec::new(),
        source: SourceName::Dcgm,
        energy_source: EnergySource::Unknown,
        energy_nj: None,
        throttled_ns: [0; 7],
        resets: 0,
        gap_ns: 0,
    }
}

fn reading(gpus: Vec<GpuReading>) -> GpusReading {
    GpusReading { gpus, source: SourceName::Dcgm, failed: 3, refused: 2, broken: false }
}

fn of(samples: GpuSamples) -> Vec<String> {
    written(Part::Gpus, move |to| samples.write(to))
}

fn whole() -> GpuReading {
    let device = Device {
        uuid: "GPU-1".into(),
        name: Some("NVIDIA H100".to_owned()),
        vendor: Some("nvidia"),
        driver: Some("580.1".to_owned()),
        utilization_ppm: Some(500_000),
        memory_used: Some(20 << 30),
        memory_total: Some(80 << 30),
        power_mw: Some(350_500),
        power_limit_mw: Some(700_000),
        temperature_c: Some(61.5),
        clocks: Clocks { sm: Some(1_980_000_000), ..Clocks::default() },
        activity: Activity { sm: Some(0.25), ..Activity::default() },
        processes: Some(2),
        errors_corrected: Some(3),
        ..Device::default()
    };
    GpuReading {
        upstreams: vec![0, 1],
        energy_source: EnergySource::Power,
        energy_nj: Some(1_000_000_000_000_000),
        throttled_ns: [1_500_000_000, 0, 0, 0, 0, 0, 0],
        resets: 1,
        gap_ns: 250_000_000,
        ..gpu(device)
    }
}

#[test]
fn each_number_of_gpus_has_sample() {
    let mut samples = samples();
    let away = GpuReading { up: false, ..gpu(Device { uuid: "GPU-0".into(), ..whole().device }) };
    samples.gpus = Some(reading(vec![whole(), away]).into());
    samples.attribution = AttributionReading { late: 3, refused: 1, ..AttributionReading::default() }.into();
    assert_eq!(
        of(samples),
        [
            "hw_gpu_utilization_ratio{GPU-1} 0.5",
            "hw_gpu_memory_usage_bytes{GPU-1} 21474836480",
            "hw_gpu_memory_limit_bytes{GPU-1} 85899345920",
            "hw_gpu_memory_utilization_ratio{GPU-1} 0.25",
            "hw_power_watts{GPU-1,gpu} 350.5",
            "hw_energy_joules_total{GPU-1,gpu} 1000000",
            "hw_temperature_celsius{GPU-1,gpu} 61.5",
            "hw_errors_total{GPU-0,gpu,corrected} 3",
            "hw_errors_total{GPU-1,gpu,corrected} 3",
            "tokenmeter_gpu_info{GPU-0,NVIDIA H100,nvidia,580.1,,dcgm,,false} 1",
            "tokenmeter_gpu_info{GPU-1,NVIDIA H100,nvidia,580.1,,power,a,b,true} 1",
            "tokenmeter_gpu_up{GPU-0} 0",
            "tokenmeter_gpu_up{GPU-1} 1",
            "tokenmeter_gpu_activity_ratio{GPU-1,sm} 0.25",
            "tokenmeter_gpu_clock_hertz{GPU-1,sm} 1980000000",
            "tokenmeter_gpu_power_limit_watts{GPU-1} 700",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,power_cap} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,hw_slowdown} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,hw_thermal} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,hw_power_brake} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,sw_thermal} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,sync_boost} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-0,other} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,power_cap} 1.5",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,hw_slowdown} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,hw_thermal} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,hw_power_brake} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,sw_thermal} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,sync_boost} 0",
            "tokenmeter_gpu_throttled_seconds_total{GPU-1,other} 0",
            "tokenmeter_gpu_processes{GPU-1} 2",
            "tokenmeter_gpu_resets_total{GPU-0} 0",
            "tokenmeter_gpu_resets_total{GPU-1} 1",
            "tokenmeter_gpu_gap_seconds_total{GPU-0} 0",
            "tokenmeter_gpu_gap_seconds_total{GPU-1} 0.25",
            "tokenmeter_dropped_total{gpu_sample} 3",
            "tokenmeter_dropped_total{gpu_share} 4",
        ]
    );
}

#[test]
fn each_number_of_unused_share_has_sample() {
    let mut samples = samples();
    let cost = |hours_pico| Cost { hours_pico, energy_pico: 5 };
    let device = DeviceUse {
        uuid: "GPU-1".into(),
        idle_nj: 7_000_000_000,
        idle_ns: 70_000_000,
        idle_cost: cost(1_000_000_000_000),
        unattributed_nj: 3_000_000_000,
        unattributed_ns: 30_000_000,
        unattributed_cost: cost(2_000_000_000_000),
        pending_nj: 5_000_000_000,
        pending_ns: 500_000_000,
        ..DeviceUse::default()
    };
    samples.attribution =
        AttributionReading { devices: vec![device], ..AttributionReading::default() }.into();
    assert_eq!(
        of(samples),
        [
            "tokenmeter_energy_idle_joules_total{GPU-1} 7",
            "tokenmeter_energy_unattributed_joules_total{GPU-1} 3",
            "tokenmeter_energy_pending_joules{GPU-1} 5",
            "tokenmeter_gpu_idle_seconds_total{GPU-1} 0.07",
            "tokenmeter_gpu_unattributed_seconds_total{GPU-1} 0.03",
            "tokenmeter_gpu_pending_seconds{GPU-1} 0.5",
            "tokenmeter_gpu_idle_cost_usd_total{GPU-1,hours} 1",
            "tokenmeter_gpu_unattributed_cost_usd_total{GPU-1,hours} 2",
        ],
        "no price of energy, no cost of energy"
    );
}

#[test]
fn process_without_gpus_has_losses_only() {
    assert!(of(samples()).is_empty());
    let mut samples = samples();
    samples.gpus = Some(reading(Vec::new()).into());
    samples.attribution = AttributionReading { refused: 1, ..AttributionReading::default() }.into();
    let losses = ["tokenmeter_dropped_total{gpu_sample} 2", "tokenmeter_dropped_total{gpu_share} 1"];
    assert_eq!(of(samples), losses);
}
