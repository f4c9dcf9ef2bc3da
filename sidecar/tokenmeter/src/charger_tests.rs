//! The charge and the row of a record: which tier and which model apply.

use meter::{Body, Close, Identity, LoadSpan, Meter, Tick};
use metrics::Options;
use relay::{Observer, ServerKind};
use scan::Dialect;

use super::*;

const PRICES: &str = "version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 0, output: 0, per_request: 4, \
                      tiers: {flex: {multiply: 0.5}, priority: {multiply: 2}}}\n";

const UNIT: i64 = 1_000_000_000_000;

fn record(model: &str, response_model: Option<&str>, tier: Option<(&str, bool)>) -> Record {
    let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1_000_000_000);
    meter.answered(200, Body::Whole);
    let identity = Identity {
        response_model: response_model.map(Into::into),
        service_tier: tier.map(|(tier, _)| tier.into()),
        tier_said: tier.is_some_and(|(_, said)| said),
        ..Identity::new("u", "openai", Dialect::OpenaiChat, model)
    };
    meter.end(identity, Close::Clean { whole: true }, LoadSpan::single(), Tick(1))
}

fn spend(metrics: &Metrics) -> Charger {
    let (book, _) = Book::read(PRICES).unwrap();
    let prices = Arc::new(ArcSwapOption::from_pointee(book));
    Charger::new(prices, None, metrics.clone(), Box::new(|_, _, _| {}))
}

#[test]
fn requested_tier_never_lowers_the_price() {
    let spend = spend(&Metrics::new(Options::default()));
    for (tier, units, kept) in [
        (None, 4, None),
        (Some(("flex", false)), 4, None),
        (Some(("flex", true)), 2, Some("flex")),
        (Some(("priority", false)), 8, Some("priority")),
        (Some(("priority", true)), 8, Some("priority")),
        (Some(("turbo", false)), 4, None),
        (Some(("turbo", true)), 4, Some("turbo")),
    ] {
        let record = record("m", None, tier);
        let charge = spend.enter(&record);
        assert_eq!(charge.cost(), Some(units * UNIT), "{tier:?}");
        // A later price book charges by the tier of the row.
        assert_eq!(Row::of(&record, charge).service_tier.as_deref(), kept, "{tier:?}");
    }
    let unpriced = Charge::Unpriced(Unpriced::NoBook);
    for (said, kept) in [(false, None), (true, Some("flex"))] {
        let row = Row::of(&record("m", None, Some(("flex", said))), unpriced.clone());
        assert_eq!(row.service_tier.as_deref(), kept);
    }
}

/// vLLM's Responses API answers with the request's own `service_tier`.
#[test]
fn repeated_request_tier_never_lowers_the_price() {
    let spend = spend(&Metrics::new(Options::default()));
    for (tier, own, repeated) in [("flex", 2, 4), ("priority", 8, 8)] {
        for kind in ServerKind::ALL {
            let mut record = record("m", None, Some((tier, true)));
            record.identity.provider = kind.name().into();
            let has_tiers = matches!(kind, ServerKind::Openai | ServerKind::Anthropic | ServerKind::Gemini);
            let units = if has_tiers { own } else { repeated };
            let charge = spend.enter(&record);
            assert_eq!(charge.cost(), Some(units * UNIT), "{tier} of {kind:?}");
            let kept = (has_tiers || tier == "priority").then_some(tier);
            assert_eq!(Row::of(&record, charge).service_tier.as_deref(), kept, "{tier} of {kind:?}");
        }
    }
}

#[test]
fn unpriced_model_is_charged_as_the_response_model() {
    let spend = spend(&Metrics::new(Options::default()));
    for (model, answered, cost) in [
        ("made-up", Some("m"), Some(4 * UNIT)),
        ("made-up", Some("other"), None),
        ("made-up", None, None),
        ("m", Some("other"), Some(4 * UNIT)),
    ] {
        assert_eq!(spend.enter(&record(model, answered, None)).cost(), cost, "{model} {answered:?}");
    }
}

#[test]
fn unpriced_tier_is_counted_and_logged_once() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    worker.model("m");
    let spend = spend(&metrics);
    for tier in [("turbo", true), ("turbo", true), ("turbo", false), ("flex", true), ("default", true)] {
        spend.enter(&record("m", None, Some(tier)));
    }
    let page = metrics.text();
    let line = "tokenmeter_unpriced_tier_exchanges_total{model=\"m\"} 2\n";
    assert!(page.contains(line), "{page}");

    let Charge::Priced { rate, .. } = spend.enter(&record("m", None, None)) else { panic!("it has a price") };
    let tiers = MissingTiers::default();
    assert_eq!([tiers.record(&rate, "turbo"), tiers.record(&rate, "turbo")], [true, false]);
    let named = (0..100).filter(|n| tiers.record(&rate, &n.to_string())).count();
    assert_eq!(named, 63, "servers choose the names, so their number is limited");
}

/// Embeddings as bytes only, and transcripts as text, have no token counts.
#[test]
fn uncounted_exchange_has_no_price() {
    let book = "version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 1, output: 1}\n  - {name: free, input: 0, output: 0}\n";
    let prices = Arc::new(ArcSwapOption::from_pointee(Book::read(book).unwrap().0));
    let spend = Charger::new(prices, None, Metrics::new(Options::default()), Box::new(|_, _, _| {}));
    let uncounted = |status| {
        let mut record = record("m", None, None);
        (record.tokens, record.status) = (meter::Tokens::NONE, status);
        record
    };
    assert_eq!(spend.enter(&uncounted(200)), Charge::Unpriced(Unpriced::Uncounted));
    assert_eq!(spend.enter(&uncounted(0)), Charge::Unpriced(Unpriced::Uncounted), "its client disconnected");
    assert_eq!(spend.enter(&uncounted(101)), Charge::Unpriced(Unpriced::Uncounted));
    assert_eq!(spend.enter(&uncounted(400)).cost(), Some(0), "a rejected request has no cost");
    let mut unsent = uncounted(0);
    unsent.upstream_attempts = 0;
    assert_eq!(spend.enter(&unsent).cost(), Some(0), "a request that never went upstream has no cost");
    let mut counted = uncounted(200);
    counted.tokens.input_provenance = meter::Provenance::Reported;
    assert_eq!(spend.enter(&counted).cost(), Some(0), "a counted zero costs nothing");
    let mut free = uncounted(200);
    free.identity.model = "free".into();
    assert_eq!(spend.enter(&free).cost(), Some(0), "a free model costs nothing");
}
