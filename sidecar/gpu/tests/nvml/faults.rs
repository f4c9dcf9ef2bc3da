//! Faults: devices, drivers, processes and notices that come and go.

use std::time::Duration;

use gpu::EnergySource;
use gpu::nvml::Nvml;
use gpu::sample::Sample;
use gpu::source::Source;

use super::bench::{Bench, energy, seconds, time};
use super::stub::Stub;

#[test]
fn counter_reset_starts_a_new_baseline() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.energy = vec![0];
    // The growth of this second, before and after the reset, is unknown.
    bench.run(1);
    bench.run(2);
    bench.leave(1);
    bench.run(1);
    assert_eq!((bench.energy(1), bench.seconds(1)), (None, 5.0));
    assert_eq!(energy(&bench.device(0)), [1500.0, 1200.0, 300.0, 0.0, 0.0]);
    assert_eq!(bench.sampler.gpus().gpus[0].resets, 1);
}

#[test]
fn lost_device_with_reset_counter_has_unknown_gap() {
    let mut bench = Bench::new(&[300, 100], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.stub.set("0.handle", "!15");
    bench.run(10);
    let gpu = bench.sampler.gpus().gpus[0].clone();
    assert_eq!((gpu.up, gpu.gap_ns), (false, seconds(10)));
    // It comes back with a counter at 0.
    bench.stub.unset("0.handle");
    bench.energy[0] = 0;
    bench.run(3);
    bench.leave(1);
    bench.run(1);
    let gpu = bench.sampler.gpus().gpus[0].clone();
    assert_eq!((gpu.up, gpu.resets), (true, 1));
    // 2 s before the loss; then the library is reopened, so that it is seen after 1 to 3 s.
    let [grown, attributed, idle, unattributed, pending] = energy(&bench.device(0));
    assert_eq!((idle, unattributed, pending), (300.0, 0.0, 0.0));
    assert_eq!(grown, attributed + idle);
    assert_eq!(time(&bench.device(0))[3], 0.0, "it was absent, so its time does not count");
    assert!((600.0..=1500.0).contains(&attributed), "{attributed}");
    // The other device was there all the time.
    assert_eq!(energy(&bench.device(1)), [1600.0, 1500.0, 100.0, 0.0, 0.0]);
}

#[test]
fn growth_during_absence_is_unattributed() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.stub.set("count", 0);
    bench.run(9);
    bench.stub.set("count", 1);
    bench.run(1);
    bench.leave(1);
    bench.run(1);
    bench.is_unknown(1);
    assert_eq!(energy(&bench.device(0)), [3900.0, 600.0, 300.0, 3000.0, 0.0]);
    assert_eq!(time(&bench.device(0)), [13.0, 2.0, 1.0, 10.0, 0.0]);
    let gpu = &bench.sampler.gpus().gpus[0];
    assert_eq!((gpu.gap_ns, gpu.resets), (seconds(10), 1));
}

#[test]
fn reloaded_driver_is_reopened() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.stub.set("epoch", 1);
    bench.run(3);
    bench.stub.set("epoch", 2);
    bench.stub.set("init", "!9");
    bench.energy = vec![0];
    bench.run(8);
    assert!(!bench.sampler.gpus().gpus[0].up);
    assert!(bench.sampler.gpus().failed >= 8);
    bench.stub.unset("init");
    bench.run(60);
    assert!(bench.sampler.gpus().gpus[0].up);
    let before = bench.device(0);
    bench.enter(1, 0);
    bench.run(4);
    bench.leave(1);
    bench.run(1);
    assert_eq!(bench.joules(1), 1200.0);
    assert_eq!(bench.device(0).energy_nj - before.energy_nj, 1500 * 1_000_000_000);
}

#[test]
fn suspend_leaves_only_the_sum() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.pass(3_600_000);
    bench.say();
    bench.sample(false);
    bench.run(2);
    bench.leave(1);
    bench.run(1);
    bench.is_unknown(1);
    assert_eq!(energy(&bench.device(0)), [1_081_500.0, 1200.0, 300.0, 1_080_000.0, 0.0]);
    assert_eq!(time(&bench.device(0)), [3605.0, 4.0, 1.0, 3600.0, 0.0]);
    assert_eq!(bench.sampler.gpus().gpus[0].gap_ns, seconds(3600));
}

#[test]
fn unmeasured_use_is_unknown_not_zero() {
    let mut bench = Bench::new(&[300], &["all"]);
    // 1 is in flight before and after the driver's absence, 2 during it, 3 until after its return.
    bench.enter(1, 0);
    bench.run(2);
    bench.stub.set("init", "!9");
    bench.stub.set("epoch", 1);
    bench.run(6);
    bench.enter(2, 0);
    bench.run(2);
    bench.leave(2);
    bench.leave(1);
    bench.run(1);
    bench.enter(3, 0);
    bench.run(1);
    bench.stub.unset("init");
    bench.run(60);
    bench.leave(3);
    bench.enter(4, 0);
    bench.run(2);
    bench.leave(4);
    bench.run(1);
    for name in [1, 2, 3] {
        bench.is_unknown(name);
    }
    assert_eq!((bench.joules(4), bench.seconds(4)), (600.0, 2.0));
    // Their known use still counts for them.
    let device = bench.device(0);
    let [_, attributed, .., pending] = energy(&device);
    assert!(attributed > 1200.0 && pending == 0.0, "{device:?}");
    assert_eq!(bench.sampler.attribution().tenants[0].1.energy_nj, device.attributed_nj);
}

#[test]
fn sum_lacking_one_device_is_none() {
    let mut bench = Bench::new(&[300, 100], &["all"]);
    bench.run(1);
    bench.stub.set("1.handle", "!15");
    bench.run(10);
    bench.enter(1, 0);
    bench.run(2);
    bench.leave(1);
    bench.run(2);
    bench.is_unknown(1);
    let device = bench.device(0);
    assert_eq!(energy(&device)[1..], [600.0, energy(&device)[2], 0.0, 0.0]);
}

#[test]
fn frozen_counter_leaves_energy_unknown() {
    // An exporter whose own source hangs serves the same page again and again.
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    for _ in 0..70 {
        bench.pass(1000);
        bench.sample(false);
    }
    bench.leave(1);
    for _ in 0..70 {
        bench.pass(1000);
        bench.sample(false);
    }
    assert_eq!((bench.energy(1), bench.used(1).per_token_nj, bench.seconds(1)), (None, None, 70.0));
}

#[test]
fn missing_sample_only_lengthens_the_interval() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.run(1);
    bench.stub.set("0.energy", "!999");
    bench.pass(2000);
    bench.sample(false);
    bench.leave(1);
    bench.run(1);
    assert_eq!(bench.joules(1), 900.0);
    assert_eq!(energy(&bench.device(0)), [1200.0, 900.0, 300.0, 0.0, 0.0]);
}

#[test]
fn unchanged_counter_delays_settlement() {
    // An exporter may refresh its page only every ten seconds.
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    for _ in 0..10 {
        bench.pass(1000);
        bench.sample(false);
    }
    bench.leave(1);
    bench.pass(1000);
    bench.sample(false);
    assert_eq!(bench.came(), [], "its last ten seconds are unknown");
    bench.run(1);
    assert_eq!(bench.joules(1), 3000.0);
    assert_eq!(energy(&bench.device(0)), [3600.0, 3000.0, 600.0, 0.0, 0.0]);
}

#[test]
fn power_is_integrated_without_a_counter() {
    let mut bench = Bench::without_counters(1, &["all"]);
    bench.stub.set("0.power", 100_000);
    bench.sample(false);
    bench.enter(1, 0);
    // Linear interpolation: 150 J and 300 J.
    for watts in [200, 400] {
        bench.stub.set("0.power", watts * 1000);
        bench.run(1);
    }
    bench.leave(1);
    bench.stub.set("0.power", "!3");
    bench.run(1);
    // Across the missing second the interpolation goes from 400 W to 200 W: 2 s at 300 W in the mean.
    bench.stub.set("0.power", 200_000);
    bench.run(1);
    assert_eq!(bench.joules(1), 450.0);
    assert_eq!(energy(&bench.device(0)), [1050.0, 450.0, 600.0, 0.0, 0.0]);
    let gpu = bench.sampler.gpus().gpus[0].clone();
    assert_eq!((gpu.energy_source, gpu.source_name()), (EnergySource::Power, "power"));
}

#[test]
fn device_without_counter_and_power_has_time_only() {
    let mut bench = Bench::without_counters(1, &["all"]);
    bench.sample(false);
    bench.enter(1, 0);
    bench.run(2);
    bench.leave(1);
    bench.run(1);
    assert_eq!((bench.used(1).energy_nj, bench.seconds(1)), (None, 2.0));
}

#[test]
fn missing_notice_becomes_unattributed() {
    let mut bench = Bench::new(&[300], &["all"]);
    for name in 1..=3 {
        bench.enter(name, 0);
    }
    bench.run(3);
    bench.leave(1);
    bench.leave(2);
    let lost = bench.vanish(3);
    bench.run(1);
    assert_eq!(energy(&bench.device(0)), [1200.0, 600.0, 300.0, 0.0, 300.0]);
    bench.run(61);
    assert_eq!(energy(&bench.device(0)), [19_500.0, 600.0, 18_600.0, 300.0, 0.0]);
    // A notice that comes after all returns at once, without its use.
    let back = bench.sampler.ended(lost).expect("at once");
    assert_eq!((back.context, back.used), (3, None));
    assert_eq!(bench.sampler.attribution().late, 1);
}

#[test]
fn notice_within_a_minute_is_not_late() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.enter(2, 0);
    bench.run(2);
    let late = bench.vanish(1);
    bench.run(30);
    assert_eq!(bench.sampler.ended(late), None, "a minute has not passed");
    bench.run(1);
    assert_eq!(bench.joules(1), 300.0);
    bench.run(60);
    bench.leave(2);
    bench.run(70);
    assert_eq!(bench.joules(2), 300.0 + 91.0 * 300.0);
    assert_eq!(energy(&bench.device(0))[3..], [0.0, 0.0], "nothing was written off");
}

#[test]
fn lost_use_is_written_off_only_when_known() {
    // A sample a minute, of which two are missing.
    let mut bench = Bench::with_stale(&[300], &["all"], Duration::from_secs(300));
    let minute = |bench: &mut Bench, says: bool| {
        bench.pass(60_000);
        match says {
            true => bench.say(),
            false => bench.stub.set("0.energy", "!999"),
        }
        bench.sample(false);
    };
    minute(&mut bench, true);
    bench.enter(1, 0);
    bench.pass(30_000);
    drop(bench.vanish(1));
    bench.enter(2, 0);
    for says in [false, false, true, true, true] {
        minute(&mut bench, says);
    }
    bench.leave(2);
    minute(&mut bench, true);
    minute(&mut bench, true);
    let [_, attributed, _, unattributed, pending] = energy(&bench.device(0));
    assert_eq!(pending, 0.0, "{attributed} {unattributed}");
    assert_eq!((attributed, unattributed), (300.0 * 300.0, 30.0 * 300.0));
}

#[test]
fn write_off_uses_the_mean_at_exit() {
    // Both share 10 s at 100 W; then one is alone for 70 s at 700 W, and the other sends no notice.
    let mut bench = Bench::new(&[100], &["all"]);
    bench.enter(1, 0);
    bench.enter(2, 0);
    bench.run(10);
    drop(bench.vanish(2));
    bench.watts = vec![700];
    bench.run(70);
    // The first sample after its end was at 11 s: 1700 J were pending, over a share of 11 s, of which
    // it had 5 s. 500 J would have been exact.
    let lost = 772.727;
    assert_eq!(energy(&bench.device(0)), [50_000.0, 0.0, 0.0, lost, 50_000.0 - lost]);
    bench.leave(1);
    bench.run(1);
    assert_eq!(bench.joules(1), 50_000.0 - lost, "the rest");
}

#[test]
fn hanging_call_is_a_missing_sample() {
    let mut stub = Stub::new();
    stub.set("count", 1);
    stub.set("0.uuid", "GPU-0");
    let mut source = Nvml::start(Some(stub.library()), Duration::from_millis(100)).expect("a thread");
    assert!(matches!(source.sample(), Sample::Devices(_)));
    stub.set("sleep_ms", 1000);
    let Sample::Failed(reason) = source.sample() else { panic!("it hangs") };
    assert_eq!(reason, "NVML did not answer within 100 ms");
    let Sample::Failed(reason) = source.sample() else { panic!("it still hangs") };
    assert_eq!(reason, "NVML has not answered the previous call");
    stub.unset("sleep_ms");
    while !matches!(source.sample(), Sample::Devices(_)) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn missing_library_is_a_failed_sample() {
    let mut source = Nvml::start(Some("/nonexistent/libnvidia-ml.so.1".into()), Duration::from_secs(20))
        .expect("a thread");
    for _ in 0..4 {
        let Sample::Failed(reason) = source.sample() else { panic!("there is none") };
        assert!(reason.starts_with("NVML could not be opened: /nonexistent/libnvidia-ml.so.1: "), "{reason}");
        assert!(
            reason.ends_with("; install the NVIDIA driver, or make it visible to the container"),
            "{reason}"
        );
    }
}
