//! Each field from its call, in its unit, and absent if the call fails or is missing.

use std::collections::BTreeSet;

use gpu::sample::{Activity, Clocks, Device, Sample};

use super::bench::{Bench, energy};
use super::stub::Stub;

fn devices(sample: Sample) -> Vec<Device> {
    match sample {
        Sample::Devices(devices) => devices,
        Sample::Failed(reason) => panic!("{reason}"),
    }
}

#[test]
fn every_field_has_its_unit() {
    let mut bench = Bench::new(&[250], &["all"]);
    for (key, value) in [
        ("driver", "580.95.05"),
        ("0.name", "NVIDIA H200"),
        ("0.energy", "7000"),
        ("0.power", "251000"),
        ("0.utilization", "97"),
        ("0.memory_total", "1000"),
        ("0.memory_used", "250"),
        ("0.temperature", "66"),
        ("0.clock_graphics", "1980"),
        ("0.clock_sm", "1965"),
        ("0.clock_memory", "3201"),
        // Power cap, and idle, which is no throttle reason.
        ("0.throttle", "5"),
        ("0.encoder", "3"),
        ("0.processes", "2"),
        ("0.corrected", "4"),
        ("0.uncorrected", "0"),
        ("0.power_limit", "700000"),
        ("0.gpm", "1"),
        // GraphicsUtil, SmUtil, AnyTensorUtil, DramBwUtil.
        ("0.gpm_1", "90"),
        ("0.gpm_2", "80"),
        ("0.gpm_5", "40"),
    ] {
        bench.stub.set(key, value);
    }
    // The driver's version is read when the driver is opened.
    bench.stub.set("epoch", 2);
    bench.pass(10);
    bench.sample(false);
    bench.pass(10);
    let first = devices(bench.sample(false)).remove(0);
    assert_eq!(first.activity.sm, None, "it takes two samples");
    let device = devices(bench.sample(false)).remove(0);
    let expected = Device {
        uuid: "GPU-0".into(),
        index: Some(0),
        name: Some("NVIDIA H200".into()),
        vendor: Some("nvidia"),
        driver: Some("580.95.05".into()),
        parent: None,
        utilization_ppm: Some(970_000),
        memory_used: Some(250),
        memory_total: Some(1000),
        power_mw: Some(251_000),
        energy_nj: Some(7_000_000_000),
        temperature_c: Some(66.0),
        clocks: Clocks {
            graphics: Some(1_980_000_000),
            sm: Some(1_965_000_000),
            memory: Some(3_201_000_000),
        },
        throttled: Some([true, false, false, false, false, false, false]),
        activity: Activity {
            graphics: Some(0.9),
            sm: Some(0.8),
            tensor: Some(0.4),
            dram: None,
            encoder: Some(0.03),
            decoder: None,
        },
        processes: Some(2),
        pods: BTreeSet::new(),
        errors_corrected: Some(4),
        errors_uncorrected: Some(0),
        power_limit_mw: Some(700_000),
    };
    assert_eq!(device, expected);
    bench.run(3);
    let gpu = bench.sampler.gpus().gpus.remove(0);
    assert_eq!(gpu.throttled_ns, [3_020_000_000, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn missing_function_costs_only_its_fields() {
    let mut bench = Bench::with(Stub::minimal(), &[300], &["all"]);
    bench.stub.set("0.power", 1);
    bench.stub.set("0.memory_total", 5);
    bench.enter(1, 0);
    bench.run(2);
    bench.leave(1);
    bench.run(1);
    let device = devices(bench.sample(false)).remove(0);
    assert_eq!((device.power_mw, device.memory_total, device.processes), (Some(1), None, None));
    assert_eq!(bench.joules(1), 600.0);
}

#[test]
fn mig_instances_are_listed_and_parent_has_energy() {
    let mut bench = Bench::new(&[300], &["MIG-0-1"]);
    for (key, value) in [
        ("0.migs", "7"),
        ("0.mig.0.uuid", "MIG-0-0"),
        ("0.mig.0.memory_total", "40"),
        ("0.mig.1.uuid", "MIG-0-1"),
        ("0.mig.1.memory_total", "40"),
        ("0.mig.1.memory_used", "7"),
        ("0.mig.1.processes", "1"),
    ] {
        bench.stub.set(key, value);
    }
    let all = devices(bench.sample(false));
    let [parent, one, two] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*one.uuid, one.parent.as_ref(), one.memory_used), ("MIG-0-0", Some(&parent.uuid), None));
    assert_eq!((&*two.uuid, two.memory_used, two.processes), ("MIG-0-1", Some(7), Some(1)));
    assert_eq!((two.energy_nj, two.power_mw), (None, None));
    bench.run(1);
    assert_eq!(bench.sampler.attribution().devices.len(), 1);
    assert_eq!(energy(&bench.device(0))[0], 300.0);
}

#[test]
fn lost_device_returns_after_reopening_the_library() {
    let mut bench = Bench::new(&[300, 300], &["all"]);
    bench.stub.set("1.back_after", 2);
    let counts: Vec<usize> = (0..4).map(|_| devices(bench.sample(false)).len()).collect();
    assert_eq!(counts, [1, 2, 2, 2]);
    bench.stub.set("1.back_after", 4);
    let counts: Vec<usize> = (0..8).map(|_| devices(bench.sample(false)).len()).collect();
    assert_eq!(counts, [1, 1, 1, 2, 2, 2, 2, 2], "retried after the first and the third");
}
