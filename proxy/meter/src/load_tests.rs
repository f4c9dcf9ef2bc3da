//! The load cell against its naive twin: a list of exchanges, looked at each nanosecond anew.

use proptest::prelude::*;

use super::{Load, LoadReading, LoadSpan, SHARES_PER_NS};
use crate::Tick;

/// At each number of nanoseconds: one enters, or the one of that number leaves.
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

/// What each exchange was granted, in units of 1/TWIN nanosecond: each nanosecond is cut into as
/// many equal parts as exchanges are there.
#[derive(Default)]
struct Twin {
    there: Vec<(LoadReading, u128)>,
    gone: u128,
}

/// Divisible by every number of exchanges the steps can come to, up to 20; beyond, nobody enters.
const TWIN: u128 = 232_792_560;

impl Twin {
    fn pass(&mut self, ns: u64) {
        let n = self.there.len() as u128;
        for _ in 0..ns {
            self.there.iter_mut().for_each(|(_, part)| *part += TWIN / n);
        }
    }
}

proptest! {
    #![proptest_config(chance::cases(256))]

    #[test]
    fn every_share_belongs_to_somebody(steps in steps()) {
        let (mut load, mut twin, mut now) = (Load::default(), Twin::default(), 0);
        let mut left = 0;
        for (count, step) in steps.into_iter().enumerate() {
            let (Step::Enter(ns) | Step::Leave(ns, _) | Step::Read(ns)) = step;
            twin.pass(ns);
            now += ns;
            let reading = match step {
                Step::Enter(_) if twin.there.len() < 20 => {
                    let entered = load.enter(Tick(now));
                    twin.there.push((entered, 0));
                    entered
                }
                Step::Leave(_, which) if !twin.there.is_empty() => {
                    let (entered, part) = twin.there.swap_remove(which % twin.there.len());
                    let reading = load.leave(Tick(now), &entered);
                    let share = reading.share - entered.share;
                    left += share;
                    twin.gone += part;
                    // Rounded down once at each step, so short of the twin's by less than that.
                    let exact = part * SHARES_PER_NS / TWIN;
                    prop_assert!(share <= exact && exact - share <= count as u128 + 1);
                    reading
                }
                _ => load.read(Tick(now)),
            };
            let in_flight: u128 = twin.there.iter().map(|(entered, _)| reading.share - entered.share).sum();
            prop_assert_eq!(reading.granted, left + in_flight);
            prop_assert_eq!(reading.pending, in_flight);
            prop_assert_eq!(reading.gone(), left);
            prop_assert_eq!(reading.in_flight, twin.there.len() as u64);
            prop_assert!(reading.granted <= u128::from(reading.busy_ns) * SHARES_PER_NS);
            let parts = twin.gone + twin.there.iter().map(|(_, part)| part).sum::<u128>();
            prop_assert_eq!(parts, u128::from(reading.busy_ns) * TWIN);
        }
    }
}

#[test]
fn a_clock_that_goes_back_grants_nothing() {
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
fn alone_is_one_in_flight() {
    let LoadSpan { entered, left } = LoadSpan::alone();
    assert_eq!((entered.in_flight, left.in_flight), (1, 1));
    assert_eq!(LoadSpan::alone().share_ns(), 0);
}

#[test]
fn mean_in_flight_is_of_the_time_between_two_readings() {
    let mut load = Load::default();
    load.enter(Tick(0));
    let earlier = load.enter(Tick(10));
    load.enter(Tick(14));
    let span = LoadSpan { entered: earlier, left: load.read(Tick(18)) };
    assert_eq!(span.concurrency(), 2.5, "4 ns of two and 4 ns of three");
    assert_eq!(earlier.mean_since(&earlier), 2.0);
}
