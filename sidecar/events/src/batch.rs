//! The delivery of a batch. A receiver that rejects a list may reject one event of it, so the list is halved until that
//! one stands alone.

use agent::{Failure, Kind};
use serde_json::Value;

/// The number of consecutive single events whose rejection means that the receiver rejects all.
const REJECTED_MAX: usize = 8;

/// The outcome of a delivery.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Delivery {
    /// The number of accepted events.
    pub(crate) accepted: u64,
    /// The ids of the events that the receiver rejects, though it accepts others.
    pub(crate) rejected: Vec<String>,
}

/// Delivers events by `post`, which sends a list.
///
/// # Errors
/// If a list is not accepted for another reason than its events, or no event at all is accepted: then the receiver
/// does not take this kind of event, and none of them is given up.
pub(crate) fn deliver(
    events: &[Value],
    post: &mut dyn FnMut(&[Value]) -> Result<(), Failure>,
) -> Result<Delivery, Failure> {
    let mut delivery = Delivery::default();
    let mut last = None;
    part(events, post, &mut delivery, &mut last)?;
    match last {
        Some(failure) if delivery.accepted == 0 => Err(failure),
        _ => Ok(delivery),
    }
}

fn part(
    events: &[Value],
    post: &mut dyn FnMut(&[Value]) -> Result<(), Failure>,
    delivery: &mut Delivery,
    last: &mut Option<Failure>,
) -> Result<(), Failure> {
    match (post(events), events) {
        (Ok(()), _) => {
            delivery.accepted += events.len() as u64;
            Ok(())
        }
        (Err(failure), [one]) if failure.kind == Kind::Rejected => {
            delivery.rejected.push(one["id"].as_str().unwrap_or_default().to_owned());
            if delivery.accepted == 0 && delivery.rejected.len() >= REJECTED_MAX {
                return Err(failure);
            }
            *last = Some(failure);
            Ok(())
        }
        (Err(failure), _) if failure.kind == Kind::Rejected => {
            let (first, second) = events.split_at(events.len() / 2);
            part(first, post, delivery, last)?;
            part(second, post, delivery, last)
        }
        (Err(failure), _) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use agent::{Failure, Kind};
    use serde_json::{Value, json};

    use super::{Delivery, deliver};

    fn failure(kind: Kind) -> Failure {
        Failure { kind, reason: "status".to_owned(), retry_after: None }
    }

    fn events(count: u64) -> Vec<Value> {
        (0..count).map(|n| json!({ "id": n.to_string() })).collect()
    }

    /// Delivers to a receiver that rejects lists with these events; returns the outcome and the number of lists.
    fn delivered(count: u64, bad: &[&str]) -> (Result<Delivery, Failure>, usize) {
        let mut lists = 0;
        let outcome = deliver(&events(count), &mut |list| {
            lists += 1;
            let is_bad = |event: &Value| bad.iter().any(|bad| event["id"] == *bad);
            if list.iter().any(is_bad) { Err(failure(Kind::Rejected)) } else { Ok(()) }
        });
        (outcome, lists)
    }

    #[test]
    fn rejected_events_are_found_among_accepted_ones() {
        let (outcome, lists) = delivered(100, &["0", "63"]);
        let rejected = ["0", "63"].map(str::to_owned).to_vec();
        assert_eq!(outcome, Ok(Delivery { accepted: 98, rejected }));
        assert!(lists < 30, "{lists}");
        assert_eq!(delivered(100, &[]), (Ok(Delivery { accepted: 100, rejected: vec![] }), 1));
    }

    #[test]
    fn receiver_that_rejects_all_loses_none() {
        let all: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let (outcome, lists) = delivered(100, &all);
        assert_eq!(outcome.map_err(|failure| failure.kind), Err(Kind::Rejected));
        assert!(lists < 30, "{lists}");
        assert_eq!(delivered(1, &["0"]).0.map_err(|failure| failure.kind), Err(Kind::Rejected));
    }

    #[test]
    fn other_failures_end_the_delivery() {
        for kind in [Kind::Busy, Kind::Unreachable, Kind::Refused] {
            let mut lists = 0;
            let outcome = deliver(&events(10), &mut |_| {
                lists += 1;
                Err(failure(kind))
            });
            assert_eq!((outcome.map_err(|failure| failure.kind), lists), (Err(kind), 1));
        }
    }
}
