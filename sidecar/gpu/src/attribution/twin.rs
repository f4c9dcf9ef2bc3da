//! Attribution against its naive twin, which visits every nanosecond, integrates every exchange in every
//! interval by itself, and accumulates nothing.

use std::time::Duration;

use meter::{Load, LoadReading, Tick};
use proptest::prelude::*;

use super::{Attribution, DeviceSample, Ended, MeteredDevice, Prices, Rules, Settled};

/// The length of a scene in nanoseconds.
const END: u64 = 160;

/// Fractions of a share: divisible by any number of exchanges in flight.
const PARTS: u128 = 5040;

#[derive(Clone, Debug)]
struct Exchange {
    upstream: usize,
    from: u64,
    to: u64,
    dropped: bool,
}

/// A sample of each device.
#[derive(Clone, Debug)]
struct Shot {
    at: u64,
    /// Growth of the counter since the last shot; `None`: it restarts from 0.
    grown: Vec<Option<u128>>,
    missing: Vec<bool>,
}

/// The earliest time at which each device appears.
type Appear = Vec<u64>;

#[derive(Clone, Debug)]
struct Scene {
    /// The upstreams of each device.
    devices: Vec<Vec<usize>>,
    exchanges: Vec<Exchange>,
    shots: Vec<Shot>,
}

fn appear() -> impl Strategy<Value = Appear> {
    prop::collection::vec(prop_oneof![1 => Just(0), 1 => 0..=END], 3)
}

fn scenes(drops: bool) -> impl Strategy<Value = Scene> {
    let exchange =
        (0usize..2, 0..END, 0..60u64, any::<bool>()).prop_map(move |(upstream, from, long, dropped)| {
            Exchange { upstream, from, to: (from + long).min(END), dropped: dropped && drops }
        });
    let growth = prop_oneof![8 => (0..5_000_000u128).prop_map(Some), 1 => Just(Some(0)), 1 => Just(None)];
    let shot =
        (1..30u64, prop::collection::vec(growth, 3), prop::collection::vec(prop::bool::weighted(0.1), 3));
    (prop::collection::vec(exchange, 0..7), prop::collection::vec(shot, 1..20), appear()).prop_map(
        |(exchanges, raw, appear)| {
            let mut at = 0;
            let mut shots: Vec<Shot> = raw
                .into_iter()
                .map(|(later, grown, missing)| {
                    at += later;
                    Shot { at, grown, missing }
                })
                .take_while(|shot| shot.at < END)
                .collect();
            shots.insert(0, Shot { at: 0, grown: vec![Some(0); 3], missing: vec![false; 3] });
            shots.push(Shot { at: END, grown: vec![Some(7); 3], missing: vec![false; 3] });
            for shot in &mut shots {
                for (missing, appear) in shot.missing.iter_mut().zip(&appear) {
                    *missing |= shot.at < *appear;
                }
            }
            Scene { devices: vec![vec![0], vec![0, 1], vec![]], exchanges, shots }
        },
    )
}

/// Start (inclusive) and end (exclusive).
type Interval = (u64, u64);

impl Scene {
    fn in_flight(&self, upstream: usize, ns: u64) -> u128 {
        let there = |e: &&Exchange| e.upstream == upstream && e.from <= ns && ns < e.to;
        self.exchanges.iter().filter(there).count() as u128
    }

    /// Returns the nanoseconds of an interval with an exchange in flight.
    fn busy(&self, upstream: usize, (from, to): Interval) -> u128 {
        (from..to).filter(|ns| self.in_flight(upstream, *ns) > 0).count() as u128
    }

    /// Returns an exchange's share of an interval, in 1/PARTS ns.
    fn share(&self, exchange: &Exchange, (from, to): Interval) -> u128 {
        (from.max(exchange.from)..to.min(exchange.to))
            .map(|ns| PARTS / self.in_flight(exchange.upstream, ns))
            .sum()
    }

    /// Returns the intervals of a device with their known energy, or 0, and the total growth.
    fn intervals(&self, device: usize) -> (Vec<(Interval, u128)>, u128) {
        let (mut intervals, mut begin) = (Vec::new(), None);
        let (mut counter, mut before, mut all) = (1000, 1000, 0);
        for shot in &self.shots {
            match shot.grown[device] {
                Some(grown) => counter += grown,
                None => counter = 0,
            }
            if shot.missing[device] {
                continue;
            }
            if let Some(begin) = begin {
                if counter == before && shot.at < END || shot.at == begin {
                    continue;
                }
                let known = u128::saturating_sub(counter, before);
                intervals.push(((begin, shot.at), known));
                all += known;
            }
            (begin, before) = (Some(shot.at), counter);
        }
        (intervals, all)
    }

    /// Returns when a device is first seen.
    fn seen(&self, device: usize) -> u64 {
        let first = self.shots.iter().find(|shot| !shot.missing[device]);
        first.expect("all are at the end").at
    }

    /// Returns the devices of an exchange that were seen before it ended.
    fn devices_of(&self, exchange: &Exchange) -> impl Iterator<Item = usize> {
        let of = |device: &usize| {
            self.devices[*device].contains(&exchange.upstream) && self.seen(*device) < exchange.to
        };
        (0..3).filter(of).collect::<Vec<_>>().into_iter()
    }

    /// Returns for energy and time: true if an exchange's use of a device is known completely.
    fn known(&self, exchange: &Exchange, device: usize) -> [bool; 2] {
        let time = exchange.from == exchange.to || self.seen(device) <= exchange.from;
        let met = |(begin, end): Interval| begin.max(exchange.from) < end.min(exchange.to);
        let unknown = |(interval, energy)| energy == 0 && met(interval);
        [time && !self.intervals(device).0.into_iter().any(unknown), time]
    }

    /// Returns an exchange's use of a device, in millionths of a nanojoule.
    fn used(&self, exchange: &Exchange, device: usize) -> u128 {
        let upstreams = &self.devices[device];
        if !upstreams.contains(&exchange.upstream) {
            return 0;
        }
        let one = |(interval, energy): (Interval, u128)| {
            let length = u128::from(interval.1 - interval.0);
            let busy: Vec<u128> = upstreams.iter().map(|u| self.busy(*u, interval)).collect();
            let (most, all) = (busy.iter().max().copied().unwrap_or(0), busy.iter().sum::<u128>());
            let share = self.share(exchange, interval);
            if all == 0 { 0 } else { energy * most * share * 1_000_000 / (length * all * PARTS) }
        };
        self.intervals(device).0.into_iter().map(one).sum()
    }

    /// Runs the scene; `unit` is the number of nanoseconds of one of its ticks.
    fn run(&self, unit: u64, mut check: impl FnMut(&Attribution<usize>)) -> Attribution<usize> {
        let mut cells = [Load::default(), Load::default()];
        let mut attribution = Attribution::new(rules(), &[LoadReading::default(); 2]);
        let mut entered = vec![LoadReading::default(); self.exchanges.len()];
        let (mut counters, mut back) = (vec![1000u128; 3], Vec::new());
        let mut shots = self.shots.iter().peekable();
        for ns in 0..=END {
            let at = Tick(ns * unit);
            for (number, exchange) in self.exchanges.iter().enumerate() {
                if exchange.from == ns {
                    entered[number] = cells[exchange.upstream].enter(at);
                }
                if exchange.to == ns {
                    let left = cells[exchange.upstream].leave(at, &entered[number]);
                    if !exchange.dropped {
                        let known = self.devices_of(exchange).next().is_some();
                        let at_once =
                            attribution.ended(ended(exchange.upstream, entered[number], left, number));
                        assert_eq!(at_once.is_none(), known, "{exchange:?}");
                        back.extend(at_once);
                    }
                }
            }
            while let Some(shot) = shots.next_if(|shot| shot.at == ns) {
                for (counter, grown) in counters.iter_mut().zip(&shot.grown) {
                    *counter = grown.map_or(0, |grown| *counter + grown);
                }
                let loads = cells.each_mut().map(|cell| cell.read(at));
                let devices = self.devices.iter().enumerate().map(|(number, upstreams)| {
                    let there = DeviceSample::Present {
                        energy_nj: Some(counters[number]),
                        utilization_ppm: Some(500_000),
                        has_others: false,
                    };
                    let seen = if shot.missing[number] { DeviceSample::Absent } else { there };
                    MeteredDevice { uuid: format!("GPU-{number}").into(), upstreams: upstreams.clone(), seen }
                });
                let devices: Vec<MeteredDevice> = devices.collect();
                attribution.sample(at, &devices, &loads, ns == END, &mut |settled| back.push(settled));
                check(&attribution);
            }
        }
        attribution.finish(&mut |settled| back.push(settled));
        self.compare(unit, &back);
        attribution
    }

    fn compare(&self, unit: u64, back: &[Settled<usize>]) {
        let told = self.exchanges.iter().filter(|exchange| !exchange.dropped).count();
        assert_eq!(back.len(), told, "each notice comes back once");
        if unit > 1 || told < self.exchanges.len() {
            return;
        }
        for settled in back {
            let exchange = &self.exchanges[settled.context];
            let Some(used) = settled.used else {
                assert_eq!(self.devices_of(exchange).count(), 0, "{exchange:?}");
                continue;
            };
            let known = self.devices_of(exchange).map(|device| self.known(exchange, device));
            let known = known.fold([true; 2], |all, one| [all[0] && one[0], all[1] && one[1]]);
            assert_eq!([used.energy_nj.is_some(), used.gpu_ns.is_some()], known, "{used:?}: {exchange:?}");
            let Some(energy) = used.energy_nj else { continue };
            let twin: u128 = (0..3).map(|device| self.used(exchange, device)).sum();
            let energy = u128::from(energy) * 1_000_000;
            // The fraction of a nanojoule on each of two devices, and one for every interval.
            let far = energy.abs_diff(twin);
            assert!(
                far <= 3_000_000 + 2_000_000 * self.shots.len() as u128,
                "{used:?} for {twin}: {exchange:?}"
            );
            if self.devices_of(exchange).any(|device| exchange.to > exchange.from.max(self.seen(device))) {
                assert!((used.utilization.expect("it is known") - 0.5).abs() < 1e-9);
            }
        }
    }
}

fn ended(upstream: usize, entered: LoadReading, left: LoadReading, context: usize) -> Ended<usize> {
    Ended { upstream, model: "m".into(), tenant: "t".into(), entered, left, output_tokens: 1, context }
}

fn rules() -> Rules {
    let prices = Prices { hour_pico: 2_500_000_000_123, kwh_pico: 300_000_000_007, pue_micro: 1_250_000 };
    Rules { stale: Duration::from_secs(5), prices, tenants: 10, models: 10 }
}

/// Asserts that no energy, time or money is invented or lost.
fn conserved(attribution: &Attribution<usize>) {
    let reading = attribution.reading();
    let mut tenants = [0; 2];
    let mut cost = reading.pending_cost;
    for (_, tenant) in &reading.tenants {
        tenants = [tenants[0] + tenant.energy_nj, tenants[1] + tenant.gpu_ns];
        cost.add(tenant.cost);
    }
    for device in &reading.devices {
        let energy = device.attributed_nj + device.idle_nj + device.unattributed_nj + device.pending_nj;
        assert_eq!(device.energy_nj, energy, "{device:?}");
        let time = device.attributed_ns + device.idle_ns + device.unattributed_ns + device.pending_ns;
        assert_eq!(device.gpu_ns, time, "{device:?}");
        tenants = [tenants[0] - device.attributed_nj, tenants[1] - device.attributed_ns];
        cost.add(device.idle_cost);
        cost.add(device.unattributed_cost);
    }
    assert_eq!(tenants, [0, 0], "the tenants' sum is the devices'");
    assert_eq!(cost, reading.cost);
    assert!(reading.pending_cost.hours_pico >= 0 && reading.pending_cost.energy_pico >= 0);
    let models: u128 = reading.models.iter().map(|(_, model)| model.energy_nj).sum();
    assert_eq!(models, reading.tenants.iter().map(|(_, tenant)| tenant.energy_nj).sum());
}

proptest! {
    #![proptest_config(chance::cases(256))]

    #[test]
    fn attribution_agrees_with_its_naive_twin(scene in scenes(false)) {
        let attribution = scene.run(1, conserved);
        for device in &attribution.reading().devices {
            let number = device.uuid["GPU-".len()..].parse().expect("it was named so");
            let (intervals, all) = scene.intervals(number);
            assert_eq!(device.energy_nj, all);
            assert_eq!(device.gpu_ns, u128::from(END - scene.seen(number)));
            // All exchanges have ended with a notice: all busy energy is attributed, but for fractions.
            let busy: u128 = intervals.iter().map(|(interval, energy)| {
                let busy = |upstream: &usize| scene.busy(*upstream, *interval);
                energy * scene.devices[number].iter().map(busy).max().unwrap_or(0) / u128::from(interval.1 - interval.0)
            }).sum();
            let parts = 2 * (scene.exchanges.len() + scene.shots.len()) as u128;
            assert!(device.attributed_nj.abs_diff(busy) <= parts, "{device:?}: {busy}");
            assert!(device.pending_nj == 0 && device.unattributed_nj <= parts, "{device:?}");
        }
    }

    /// A tick of the scene is a second, so that there are gaps, and lost records are written off.
    #[test]
    fn use_of_dropped_exchanges_is_unattributed(scene in scenes(true)) {
        let mut attribution = scene.run(1_000_000_000, conserved);
        let uuid = |number: usize| format!("GPU-{number}").into();
        let devices: Vec<MeteredDevice> = (0..3)
            .map(|number| MeteredDevice { uuid: uuid(number), upstreams: vec![], seen: DeviceSample::Absent })
            .collect();
        let mut cells = [Load::default(), Load::default()];
        let at = Tick((END + 61) * 1_000_000_000);
        let loads = cells.each_mut().map(|cell| cell.read(at));
        attribution.sample(at, &devices, &loads, false, &mut |_| {});
        conserved(&attribution);
        for device in attribution.reading().devices {
            assert_eq!((device.pending_nj, device.pending_ns), (0, 0), "{device:?}");
        }
    }
}
