//! What is said and what is not when devices, drivers, processes and notices come and go.

use std::time::Duration;

use gpu::EnergyFrom;
use gpu::nvml::Nvml;
use gpu::sample::Sample;
use gpu::source::Source;

use super::bench::{Bench, energy, seconds, time};
use super::stub::Stub;

#[test]
fn a_counter_that_restarts_begins_anew() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.energy = vec![0];
    // What it grew by in this second before and after is not known.
    bench.run(1);
    bench.run(2);
    bench.leave(1);
    bench.run(1);
    assert_eq!((bench.energy(1), bench.seconds(1)), (None, 5.0));
    assert_eq!(energy(&bench.device(0)), [1500.0, 1200.0, 300.0, 0.0, 0.0]);
    assert_eq!(bench.rounds.gpus().gpus[0].resets, 1);
}

#[test]
fn a_device_that_falls_off_and_comes_back_is_not_guessed_at() {
    let mut bench = Bench::new(&[300, 100], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.stub.set("0.handle", "!15");
    bench.run(10);
    let gpu = bench.rounds.gpus().gpus[0].clone();
    assert_eq!((gpu.up, gpu.gap_ns), (false, seconds(10)));
    // It comes back as from the factory.
    bench.stub.unset("0.handle");
    bench.energy[0] = 0;
    bench.run(3);
    bench.leave(1);
    bench.run(1);
    let gpu = bench.rounds.gpus().gpus[0].clone();
    assert_eq!((gpu.up, gpu.resets), (true, 1));
    // 2 s before; then the library has to be opened anew, so that it is seen after 1 to 3 s.
    let [grown, attributed, idle, unattributed, pending] = energy(&bench.device(0));
    assert_eq!((idle, unattributed, pending), (300.0, 0.0, 0.0));
    assert_eq!(grown, attributed + idle);
    assert_eq!(time(&bench.device(0))[3], 0.0, "it was not there, so its time is nobody's loss");
    assert!((600.0..=1500.0).contains(&attributed), "{attributed}");
    // The other device was there all the time.
    assert_eq!(energy(&bench.device(1)), [1600.0, 1500.0, 100.0, 0.0, 0.0]);
}

#[test]
fn a_device_that_counted_on_while_it_was_away_is_nobodys_meanwhile() {
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
    let gpu = &bench.rounds.gpus().gpus[0];
    assert_eq!((gpu.gap_ns, gpu.resets), (seconds(10), 1));
}

#[test]
fn a_driver_that_is_loaded_anew_is_opened_anew() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.stub.set("epoch", 1);
    bench.run(3);
    bench.stub.set("epoch", 2);
    bench.stub.set("init", "!9");
    bench.energy = vec![0];
    bench.run(8);
    assert!(!bench.rounds.gpus().gpus[0].up);
    assert!(bench.rounds.gpus().failed >= 8);
    bench.stub.unset("init");
    bench.run(60);
    assert!(bench.rounds.gpus().gpus[0].up);
    let before = bench.device(0);
    bench.enter(1, 0);
    bench.run(4);
    bench.leave(1);
    bench.run(1);
    assert_eq!(bench.joules(1), 1200.0);
    assert_eq!(bench.device(0).energy_nj - before.energy_nj, 1500 * 1_000_000_000);
}

#[test]
fn of_a_time_asleep_only_the_sum_is_known() {
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
    assert_eq!(bench.rounds.gpus().gpus[0].gap_ns, seconds(3600));
}

#[test]
fn what_nobody_measured_is_not_nothing() {
    let mut bench = Bench::new(&[300], &["all"]);
    // 1 is there before the driver goes and after, 2 when nobody answers, 3 before it comes back.
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
    // What is known of them is theirs all the same.
    let device = bench.device(0);
    let [_, attributed, .., pending] = energy(&device);
    assert!(attributed > 1200.0 && pending == 0.0, "{device:?}");
    assert_eq!(bench.rounds.attribution().tenants[0].1.energy_nj, device.attributed_nj);
}

#[test]
fn a_sum_without_one_of_two_devices_is_none() {
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
fn a_counter_that_never_moves_again_says_nothing() {
    // As of an exporter whose own source hangs: the page comes, and is always the same.
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
fn a_missing_sample_only_makes_the_interval_longer() {
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
fn a_counter_that_stands_still_is_waited_for() {
    // As behind an exporter that refreshes its page every ten seconds.
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    for _ in 0..10 {
        bench.pass(1000);
        bench.sample(false);
    }
    bench.leave(1);
    bench.pass(1000);
    bench.sample(false);
    assert_eq!(bench.came(), [], "nothing is known of its last ten seconds");
    bench.run(1);
    assert_eq!(bench.joules(1), 3000.0);
    assert_eq!(energy(&bench.device(0)), [3600.0, 3000.0, 600.0, 0.0, 0.0]);
}

#[test]
fn without_a_counter_the_power_is_integrated_and_that_is_said() {
    let mut bench = Bench::without_counters(1, &["all"]);
    bench.stub.set("0.power", 100_000);
    bench.sample(false);
    bench.enter(1, 0);
    // Along straight lines: 150 J and 300 J.
    for watts in [200, 400] {
        bench.stub.set("0.power", watts * 1000);
        bench.run(1);
    }
    bench.leave(1);
    bench.stub.set("0.power", "!3");
    bench.run(1);
    // Of a second without, the line goes from before it to after it: 2 s at 300 W in the mean.
    bench.stub.set("0.power", 200_000);
    bench.run(1);
    assert_eq!(bench.joules(1), 450.0);
    assert_eq!(energy(&bench.device(0)), [1050.0, 450.0, 600.0, 0.0, 0.0]);
    let gpu = bench.rounds.gpus().gpus[0].clone();
    assert_eq!((gpu.energy_from, gpu.source_name()), (EnergyFrom::Power, "power"));
}

#[test]
fn without_either_there_is_time_and_no_energy() {
    let mut bench = Bench::without_counters(1, &["all"]);
    bench.sample(false);
    bench.enter(1, 0);
    bench.run(2);
    bench.leave(1);
    bench.run(1);
    assert_eq!((bench.used(1).energy_nj, bench.seconds(1)), (None, 2.0));
}

#[test]
fn a_notice_that_never_comes_is_nobodys() {
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
    // And when it comes after all, it comes back with nothing.
    let back = bench.rounds.ended(lost).expect("at once");
    assert_eq!((back.ticket, back.used), (3, None));
    assert_eq!(bench.rounds.attribution().late, 1);
}

#[test]
fn a_notice_may_come_after_the_sample_that_saw_it_leave() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.enter(2, 0);
    bench.run(2);
    let late = bench.vanish(1);
    bench.run(30);
    assert_eq!(bench.rounds.ended(late), None, "a minute has not passed");
    bench.run(1);
    assert_eq!(bench.joules(1), 300.0);
    bench.run(60);
    bench.leave(2);
    bench.run(70);
    assert_eq!(bench.joules(2), 300.0 + 91.0 * 300.0);
    assert_eq!(energy(&bench.device(0))[3..], [0.0, 0.0], "nothing was written off");
}

#[test]
fn what_was_lost_is_not_written_off_before_it_is_known() {
    // A sample in a minute, and two of them are missing.
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
    let [_, attributed, _, nobodys, pending] = energy(&bench.device(0));
    assert_eq!(pending, 0.0, "{attributed} {nobodys}");
    assert_eq!((attributed, nobodys), (300.0 * 300.0, 30.0 * 300.0));
}

#[test]
fn what_was_written_off_is_as_it_was_when_they_left() {
    // Both share 10 s at 100 W; then one is alone for 70 s at 700 W, and the other never tells.
    let mut bench = Bench::new(&[100], &["all"]);
    bench.enter(1, 0);
    bench.enter(2, 0);
    bench.run(10);
    drop(bench.vanish(2));
    bench.watts = vec![700];
    bench.run(70);
    // The sample that first saw it gone was at 11 s: 1700 J were pending then, of a share of 11 s, 5 s
    // of which were its. 500 J would have been right.
    let lost = 772.727;
    assert_eq!(energy(&bench.device(0)), [50_000.0, 0.0, 0.0, lost, 50_000.0 - lost]);
    bench.leave(1);
    bench.run(1);
    assert_eq!(bench.joules(1), 50_000.0 - lost, "what is left, and no more");
}

#[test]
fn a_call_that_hangs_is_a_missing_sample() {
    let mut stub = Stub::new();
    stub.set("count", 1);
    stub.set("0.uuid", "GPU-0");
    let mut source = Nvml::start(Some(stub.library()), Duration::from_millis(100)).expect("a thread");
    assert!(matches!(source.sample(), Sample::Devices(_)));
    stub.set("sleep_ms", 1000);
    let Sample::Nothing(why) = source.sample() else { panic!("it hangs") };
    assert_eq!(why, "NVML has not answered within 100 ms");
    let Sample::Nothing(why) = source.sample() else { panic!("it still hangs") };
    assert_eq!(why, "NVML still has not answered");
    stub.unset("sleep_ms");
    while !matches!(source.sample(), Sample::Devices(_)) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn no_library_is_no_device_and_no_error() {
    let mut source = Nvml::start(Some("/nonexistent/libnvidia-ml.so.1".into()), Duration::from_secs(20))
        .expect("a thread");
    for _ in 0..4 {
        let Sample::Nothing(why) = source.sample() else { panic!("there is none") };
        assert!(why.starts_with("NVML cannot be used: "), "{why}");
    }
}
