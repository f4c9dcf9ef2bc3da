//! Closed lists agree between crates that do not depend on each other: reasons of one crate are label values in the
//! table of metrics, in the same order.

#[test]
fn label_values_equal_those_of_their_crates() {
    // A prefill leg has no price of its own, and none is missing.
    let missing = price::Unpriced::ALL.into_iter().filter(|why| *why != price::Unpriced::Leg);
    assert_eq!(missing.map(price::Unpriced::name).collect::<Vec<_>>(), metrics::UNPRICED);
    assert_eq!(ledger::Fault::ALL.map(ledger::Fault::name), metrics::LEDGER_FAULTS);
    assert_eq!(ship::Reason::ALL.map(ship::Reason::name), metrics::SHIP_FAILURES);
    assert_eq!(events::Reason::ALL.map(events::Reason::name), metrics::EVENTS_FAILURES);
    assert_eq!(gpu::Activity::default().units().map(|(unit, _)| unit), metrics::GPU_UNITS);
    assert_eq!(gpu::Clocks::default().units().map(|(clock, _)| clock), metrics::GPU_CLOCKS);
    assert_eq!(gpu::Throttle::ALL.map(gpu::Throttle::name), metrics::GPU_THROTTLES);
    assert_eq!(otlp::Signal::ALL.map(otlp::Signal::name), metrics::SIGNALS);
    assert_eq!(budget::Threshold::ALL.map(budget::Threshold::name), metrics::BUDGET_THRESHOLDS);
    assert_eq!(budget::Period::ALL.map(budget::Period::name), metrics::BUDGET_PERIODS);
}
