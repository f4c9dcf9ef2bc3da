//! Devices that appear after the traffic: earlier exchanges are not counted, and
//! take nothing from later ones.

use super::bench::{Bench, energy};

/// Runs exchanges of a second each, without notices.
fn traffic(bench: &mut Bench, exchanges: u32) {
    for name in 0..exchanges {
        bench.enter(1000 + name, 0);
        bench.run(1);
        drop(bench.vanish(1000 + name));
    }
}

#[test]
fn exchanges_before_the_device_leave_later_ones_unchanged() {
    let mut bench = Bench::new(&[], &["all"]);
    traffic(&mut bench, 100);
    bench.plug_in(300);
    bench.sample(false);
    bench.enter(1, 0);
    bench.run(50);
    bench.leave(1);
    bench.run(20);
    assert_eq!((bench.joules(1), bench.seconds(1)), (15_000.0, 50.0));
    assert_eq!(energy(&bench.device(0)), [21_000.0, 15_000.0, 6000.0, 0.0, 0.0]);
}

#[test]
fn exchanges_before_a_second_device_leave_it_unchanged() {
    let mut bench = Bench::new(&[100], &["all"]);
    traffic(&mut bench, 100);
    bench.plug_in(300);
    bench.sample(false);
    bench.enter(1, 0);
    bench.run(50);
    bench.leave(1);
    bench.run(70);
    assert_eq!(bench.joules(1), 20_000.0);
    assert_eq!(energy(&bench.device(0))[3..], [10_000.0, 0.0], "the hundred earlier exchanges");
    assert_eq!(energy(&bench.device(1)), [36_000.0, 15_000.0, 21_000.0, 0.0, 0.0]);
}

#[test]
fn attribution_starts_with_the_upstreams_own_device() {
    let mut bench = Bench::new(&[100], &["0", "1"]);
    for name in 0..100 {
        bench.enter(1000 + name, 1);
        bench.run(1);
        let back = bench.vanish(1000 + name);
        assert_eq!(bench.sampler.ended(back).expect("at once: it has no device").used, None);
    }
    bench.plug_in(300);
    bench.sample(false);
    bench.enter(1, 1);
    bench.run(50);
    bench.leave(1);
    bench.run(20);
    assert_eq!(bench.joules(1), 15_000.0);
    let reading = bench.sampler.attribution();
    assert_eq!((reading.late, reading.refused), (0, 0), "without a device nothing is lost");
}

#[test]
fn lost_exchange_from_before_takes_only_later_use() {
    let mut bench = Bench::new(&[], &["all"]);
    bench.enter(1, 0);
    bench.run(100);
    bench.plug_in(300);
    bench.sample(false);
    // Both share 10 s; the first ends without a notice, and the other stays.
    bench.enter(2, 0);
    bench.run(10);
    drop(bench.vanish(1));
    bench.run(70);
    bench.leave(2);
    bench.run(1);
    let [grown, attributed, idle, unattributed, pending] = energy(&bench.device(0));
    assert_eq!((grown, idle, pending), (24_300.0, 300.0, 0.0));
    // 22,500 J would have been exact: the first one's use is a mean, as attribution.md explains.
    assert!((22_300.0..=22_700.0).contains(&attributed), "{attributed} and {unattributed}");
}

#[test]
fn several_exchanges_from_before_leave_nothing_pending() {
    let mut bench = Bench::new(&[], &["all"]);
    bench.enter(1, 0);
    bench.enter(2, 0);
    bench.run(100);
    bench.plug_in(300);
    bench.sample(false);
    // 1500 J each; then the first ends without a notice, and the other stays.
    bench.run(10);
    drop(bench.vanish(1));
    bench.run(90);
    bench.leave(2);
    bench.run(1);
    // The share of each from before the device is known only with the second's notice: the first's part is
    // written off then, and does not stay pending.
    assert_eq!(energy(&bench.device(0)), [30_300.0, 28_500.0, 300.0, 1500.0, 0.0]);
    bench.is_unknown(2);
}

#[test]
fn notice_after_the_device_appeared_is_not_late() {
    let mut bench = Bench::new(&[], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    let ended = bench.vanish(1);
    bench.plug_in(300);
    bench.sample(false);
    assert_eq!(bench.sampler.ended(ended).expect("at once").used, None);
    assert_eq!(bench.sampler.attribution().late, 0);
}
