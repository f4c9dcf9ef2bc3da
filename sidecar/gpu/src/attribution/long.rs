//! A stream that outlives the full-resolution half of the curve: the error that thinning causes, and for whom.

use std::time::Duration;

use meter::{Load, LoadReading, Tick};

use super::{Attribution, DeviceSample, Ended, MeteredDevice, Prices, Rules};

const SECOND: u64 = 1_000_000_000;

/// The power in watts at a second: bursts, so that the position of a boundary matters.
fn watts(second: u64) -> u128 {
    if second % 7 < 3 { 700 } else { 100 }
}

#[test]
fn day_long_stream_stays_within_its_error() {
    let rules = Rules { stale: Duration::from_secs(5), prices: Prices::default(), tenants: 2, models: 2 };
    let mut attribution = Attribution::new(rules, &[LoadReading::default()]);
    let (mut cell, mut energy, mut back) = (Load::default(), 0, Vec::new());
    let begins = [0, 1_003, 40_001, 86_000, 86_395];
    let mut entered = Vec::new();
    for second in 0..=86_401u64 {
        let at = Tick(second * SECOND);
        let loads = [cell.read(at)];
        let there =
            DeviceSample::Present { energy_nj: Some(energy), utilization_ppm: None, has_others: false };
        let device = MeteredDevice { uuid: "GPU-0".into(), upstreams: vec![0], seen: there };
        attribution.sample(at, &[device], &loads, false, &mut |settled| back.push(settled));
        energy += watts(second) * u128::from(SECOND);
        if begins.contains(&second) {
            entered.push(cell.enter(at));
        }
        if second == 86_400 {
            for (context, entered) in entered.iter().enumerate() {
                let left = cell.leave(at, entered);
                let (model, tenant) = ("m".into(), "t".into());
                let entered = *entered;
                let ended = Ended { upstream: 0, model, tenant, entered, left, output_tokens: 1, context };
                assert!(attribution.ended(ended).is_none());
            }
        }
    }
    let mut lost = 0;
    for settled in &back {
        let begin = begins[settled.context];
        // In 60ths of a second: divisible by up to five exchanges in flight.
        let share = |second: u64| 60 / begins.iter().filter(|begin| **begin <= second).count() as u128;
        let second = u128::from(SECOND);
        let exact = (begin..86_400).map(|second| watts(second) * share(second)).sum::<u128>() * second / 60;
        let said = u128::from(settled.used.and_then(|used| used.energy_nj).expect("it is known"));
        // Its beginning is known to a 256th of its granted share, at 700 W; the rest is unattributed.
        let granted = (begin..86_400).map(share).sum::<u128>() * second / 60;
        let error = if 86_400 - begin < 256 { 10_000 } else { granted * 700 / 256 };
        assert!(said <= exact + 10_000 && exact <= said + error, "from {begin}: {said} for {exact}");
        lost += exact - said.min(exact);
    }
    let device = &attribution.reading().devices[0];
    assert_eq!(device.energy_nj, device.attributed_nj + device.idle_nj + device.unattributed_nj);
    assert!(device.unattributed_nj.abs_diff(lost) < 1_000_000, "{device:?}: {lost}");
}
