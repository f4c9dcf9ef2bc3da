//! Attribution without faults.

use super::bench::{Bench, energy, milli, time};

#[test]
fn single_exchange_has_the_whole_device() {
    let mut bench = Bench::new(&[300], &["all"]);
    bench.stub.set("0.utilization", 80);
    bench.run(2);
    bench.enter(1, 0);
    bench.run(6);
    bench.leave(1);
    assert_eq!(bench.came(), []);
    bench.run(2);
    assert_eq!((bench.joules(1), bench.seconds(1)), (1800.0, 6.0));
    assert_eq!(bench.used(1).utilization, Some(0.8));
    assert_eq!(energy(&bench.device(0)), [3000.0, 1800.0, 1200.0, 0.0, 0.0]);
    assert_eq!(time(&bench.device(0)), [10.0, 6.0, 4.0, 0.0, 0.0]);
}

#[test]
fn device_without_exchanges_is_idle() {
    let mut bench = Bench::new(&[70], &["all"]);
    bench.run(30);
    assert_eq!(energy(&bench.device(0)), [2100.0, 0.0, 2100.0, 0.0, 0.0]);
    assert_eq!(time(&bench.device(0)), [30.0, 0.0, 30.0, 0.0, 0.0]);
}

#[test]
fn concurrent_exchanges_share_equally() {
    // 1: 2 s alone and half of 2 s; 2: the other half and 2 s alone.
    let mut bench = Bench::new(&[300], &["all"]);
    bench.enter(1, 0);
    bench.run(2);
    bench.enter(2, 0);
    bench.run(2);
    bench.leave(1);
    bench.run(2);
    bench.leave(2);
    bench.run(1);
    assert_eq!((bench.joules(1), bench.joules(2)), (900.0, 900.0));
    assert_eq!((bench.seconds(1), bench.seconds(2)), (3.0, 3.0));
    assert_eq!(energy(&bench.device(0)), [2100.0, 1800.0, 300.0, 0.0, 0.0]);
}

#[test]
fn bursts_are_spread_over_their_interval() {
    let mut bench = Bench::new(&[100], &["all"]);
    bench.run(1);
    // An interval of 700 J, busy for half of it.
    bench.watts = vec![700];
    bench.pass(500);
    bench.enter(1, 0);
    bench.pass(500);
    bench.say();
    bench.sample(false);
    bench.watts = vec![100];
    bench.pass(250);
    bench.leave(1);
    bench.pass(750);
    bench.say();
    bench.sample(false);
    assert_eq!(bench.joules(1), 350.0 + 25.0);
    assert_eq!(energy(&bench.device(0)), [900.0, 375.0, 525.0, 0.0, 0.0]);
}

#[test]
fn two_devices_of_one_upstream_add_up() {
    let mut bench = Bench::new(&[300, 200], &["all"]);
    bench.enter(1, 0);
    bench.run(4);
    bench.leave(1);
    bench.run(1);
    assert_eq!((bench.joules(1), bench.seconds(1)), (2000.0, 8.0));
    assert_eq!(energy(&bench.device(1)), [1000.0, 800.0, 200.0, 0.0, 0.0]);
}

#[test]
fn two_upstreams_use_their_own_devices() {
    let mut bench = Bench::new(&[300, 200], &["0", "GPU-1"]);
    bench.enter(1, 0);
    bench.enter(2, 1);
    bench.run(3);
    bench.leave(1);
    bench.run(2);
    bench.leave(2);
    bench.run(1);
    assert_eq!((bench.joules(1), bench.joules(2)), (900.0, 1000.0));
    assert_eq!(energy(&bench.device(0)), [1800.0, 900.0, 900.0, 0.0, 0.0]);
    assert!(bench.sampler.gpus().gpus.iter().all(|gpu| !gpu.shared()));
}

#[test]
fn shared_device_is_split_by_grants() {
    // 2 s of both, half each; then 2 s of the second alone.
    let mut bench = Bench::new(&[300], &["0", "0"]);
    bench.enter(1, 0);
    bench.enter(2, 1);
    bench.run(2);
    bench.leave(1);
    bench.run(2);
    bench.leave(2);
    bench.run(1);
    assert_eq!((bench.joules(1), bench.joules(2)), (300.0, 900.0));
    assert_eq!(energy(&bench.device(0)), [1500.0, 1200.0, 300.0, 0.0, 0.0]);
    assert!(bench.sampler.gpus().gpus[0].shared());
}

#[test]
fn cost_is_conserved() {
    // 0.001 $ a second, and 0.3 $ a kilowatt-hour at a PUE of 1.2: 100 nano-dollars a joule.
    let mut bench = Bench::new(&[360], &["all"]);
    bench.enter(1, 0);
    bench.run(10);
    bench.leave(1);
    bench.run(5);
    let cost = bench.used(1).cost;
    assert_eq!((cost.hours_pico, cost.energy_pico), (10_000_000_000, 360_000_000));
    let reading = bench.sampler.attribution();
    assert_eq!(reading.tenants[0].1.cost, cost);
    assert_eq!(reading.devices[0].idle_cost.energy_pico, 180_000_000);
    assert_eq!(reading.cost.energy_pico, 540_000_000);
    assert_eq!(reading.cost.hours_pico, 15_000_000_000);
    // 3600 J for 100 tokens.
    assert_eq!(bench.used(1).per_token_nj, Some(36_000_000_000));
    assert_eq!(milli(reading.models[0].1.energy_nj), 3600.0);
}
