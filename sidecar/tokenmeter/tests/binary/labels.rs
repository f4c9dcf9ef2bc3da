//! Crates that do not see each other agree about closed lists: what one calls a reason, the table of
//! metrics lists as a label's value, in the same order where numbers go by place.

#[test]
fn label_values_are_those_of_the_crates_they_come_from() {
    // A prefill leg has no price of its own, and none is missing.
    let missing = price::Unpriced::ALL.into_iter().filter(|why| *why != price::Unpriced::Leg);
    assert_eq!(missing.map(price::Unpriced::name).collect::<Vec<_>>(), metrics::UNPRICED);
    assert_eq!(ledger::Fault::ALL.map(ledger::Fault::name), metrics::LEDGER_FAULTS);
    assert_eq!(ship::Reason::ALL.map(ship::Reason::name), metrics::SHIP_FAILURES);
    assert_eq!(budget::Threshold::ALL.map(budget::Threshold::name), metrics::BUDGET_THRESHOLDS);
    assert_eq!(budget::Period::ALL.map(budget::Period::name), metrics::BUDGET_PERIODS);
}
