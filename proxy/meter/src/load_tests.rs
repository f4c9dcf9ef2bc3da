//! The load cell against its oracle: a list of exchanges that is evaluated every nanosecond.

use proptest::prelude::*;

use super::{Load, LoadReading, LoadSpan, SHARES_PER_NS};
use crate::Tick;

/// After the given nanoseconds, an exchange enters, or the one at that index leaves.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(u64),
    Leave(u64, usize),
    Read(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0u64..40).prop_map(Step::Enter),
        (0u64..40, any::<prop::sample::Index>()).prop_map(|(ns, which)| Step::Leave(ns, which.index(64))),
        (0u64..40).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 1..80)
}

/// The grants of each exchange, in units of 1/PARTS nanosecond: each nanosecond is divided by the
/// number of exchanges in flight.
#[derive(Default)]
struct Oracle {
    in_flight: Vec<(LoadReading, u128)>,
    released: u128,
}

/// Divisible by every number of exchanges up to 20, the most that the steps allow.
const PARTS: u128 = 232_792_560;

impl Oracle {
    fn pass(&mut self, ns: u64) {
        let n = self.in_flight.len() as u128;
        for _ in 0..ns {
            self.in_flight.iter_mut().for_each(|(_, part)| *part += PARTS / n);
        }
    }
}

proptest! {
    #![proptest_config(chance::cases(256))]

    #[test]
    fn every_share_belongs_to_one_exchange(steps in steps()) {
        let (mut load, mut oracle, mut now) = (Load::default(), Oracle::default(), 0);
        let mut left = 0;
        for (count, step) in steps.into_iter().enumerate() {
            let (Step::Enter(ns) | Step::Leave(ns, _) | Step::Read(ns)) = step;
            oracle.pass(ns);
            now += ns;
            let reading = match step {
                Step::Enter(_) if oracle.in_flight.len() < 20 => {
                    let entered = load.enter(Tick(now));
                    oracle.in_flight.push((entered, 0));
                    entered
                }
                Step::Leave(_, which) if !oracle.in_flight.is_empty() => {
                    let (entered, part) = oracle.in_flight.swap_remove(which % oracle.in_flight.len());
                    let reading = load.leave(Tick(now), &entered);
                    let share = reading.share - entered.share;
                    left += share;
                    oracle.released += part;
                    // Each step rounds down once, so the difference to the oracle is below the number of steps.
                    let exact = part * SHARES_PER_NS / PARTS;
                    prop_assert!(share <= exact && exact - share <= count as u128 + 1);
                    reading
                }
                _ => load.read(Tick(now)),
            };
            let in_flight: u128 = oracle.in_flight.iter().map(|(entered, _)| reading.share - entered.share).sum();
            prop_assert_eq!(reading.granted, left + in_flight);
            prop_assert_eq!(reading.pending, in_flight);
            prop_assert_eq!(reading.released(), left);
            prop_assert_eq!(reading.in_flight, oracle.in_flight.len() as u64);
            prop_assert!(reading.granted <= u128::from(reading.busy_ns) * SHARES_PER_NS);
            let parts = oracle.released + oracle.in_flight.iter().map(|(_, part)| part).sum::<u128>();
            prop_assert_eq!(parts, u128::from(reading.busy_ns) * PARTS);
        }
    }
}

#[test]
fn a_backward_clock_grants_nothing() {
    let mut load = Load::default();
    let entered = load.enter(Tick(100));
    let left = load.leave(Tick(40), &entered);
    assert_eq!((left.granted, left.pending, left.at), (0, 0, Tick(100)));
}

#[test]
fn share_of_an_exchange_is_in_nanoseconds() {
    let at = |ns: u128| LoadReading { share: ns * SHARES_PER_NS + 1, ..LoadReading::default() };
    assert_eq!(LoadSpan { entered: at(5), left: at(12) }.share_ns(), 7);
    assert_eq!(LoadSpan { entered: at(12), left: at(5) }.share_ns(), 0);
    assert_eq!(LoadSpan { entered: at(0), left: at(1 << 80) }.share_ns(), u64::MAX);
}

#[test]
fn a_single_span_has_one_in_flight() {
    let LoadSpan { entered, left } = LoadSpan::single();
    assert_eq!((entered.in_flight, left.in_flight), (1, 1));
    assert_eq!(LoadSpan::single().share_ns(), 0);
}

#[test]
fn mean_in_flight_covers_the_time_between_readings() {
    let mut load = Load::default();
    load.enter(Tick(0));
    let earlier = load.enter(Tick(10));
    load.enter(Tick(14));
    let span = LoadSpan { entered: earlier, left: load.read(Tick(18)) };
    assert_eq!(span.concurrency(), 2.5, "4 ns of two and 4 ns of three");
    assert_eq!(earlier.mean_since(&earlier), 2.0);
}
