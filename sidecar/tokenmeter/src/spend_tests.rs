//! From a record to its charge and its row: whose word about the tier and the model counts.

use meter::{Body, Close, Identity, LoadSpan, Meter, Tick};
use metrics::Options;
use relay::{Kind, Observer};
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

fn spend(metrics: &Metrics) -> Spend {
    let (book, _) = Book::read(PRICES).unwrap();
    let prices = Arc::new(ArcSwapOption::from_pointee(book));
    Spend::new(prices, None, metrics.clone(), Box::new(|_, _, _| {}))
}

#[test]
fn a_tier_that_was_only_asked_for_makes_nothing_cheaper() {
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
        // What the row keeps is what a later price book goes by.
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
fn a_tier_that_the_server_says_after_its_client_makes_nothing_cheaper() {
    let spend = spend(&Metrics::new(Options::default()));
    for (tier, own, repeated) in [("flex", 2, 4), ("priority", 8, 8)] {
        for kind in Kind::ALL {
            let mut record = record("m", None, Some((tier, true)));
            record.identity.provider = kind.name().into();
            let has_tiers = matches!(kind, Kind::Openai | Kind::Anthropic | Kind::Gemini);
            let units = if has_tiers { own } else { repeated };
            let charge = spend.enter(&record);
            assert_eq!(charge.cost(), Some(units * UNIT), "{tier} of {kind:?}");
            let kept = (has_tiers || tier == "priority").then_some(tier);
            assert_eq!(Row::of(&record, charge).service_tier.as_deref(), kept, "{tier} of {kind:?}");
        }
    }
}

#[test]
fn a_model_without_a_price_is_charged_as_the_one_that_answered() {
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
fn a_tier_without_prices_is_counted_and_named_once() {
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
    let tiers = Tiers::default();
    assert_eq!([tiers.missed(&rate, "turbo"), tiers.missed(&rate, "turbo")], [true, false]);
    let named = (0..100).filter(|n| tiers.missed(&rate, &n.to_string())).count();
    assert_eq!(named, 63, "servers choose the words, so not all are kept");
}

/// Embeddings as bytes alone, transcripts as text: the server worked, and nothing says how much.
#[test]
fn uncounted_exchange_has_no_price() {
    let book = "version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 1, output: 1}\n  - {name: free, input: 0, output: 0}\n";
    let prices = Arc::new(ArcSwapOption::from_pointee(Book::read(book).unwrap().0));
    let spend = Spend::new(prices, None, Metrics::new(Options::default()), Box::new(|_, _, _| {}));
    let uncounted = |status| {
        let mut record = record("m", None, None);
        (record.tokens, record.status) = (meter::Tokens::NONE, status);
        record
    };
    assert_eq!(spend.enter(&uncounted(200)), Charge::Unpriced(Unpriced::Uncounted));
    assert_eq!(spend.enter(&uncounted(0)), Charge::Unpriced(Unpriced::Uncounted), "its client left");
    assert_eq!(spend.enter(&uncounted(101)), Charge::Unpriced(Unpriced::Uncounted));
    assert_eq!(spend.enter(&uncounted(400)).cost(), Some(0), "what was refused made nothing");
    let mut unsent = uncounted(0);
    unsent.upstream_attempts = 0;
    assert_eq!(spend.enter(&unsent).cost(), Some(0), "what never went upstream made nothing");
    let mut counted = uncounted(200);
    counted.tokens.input_provenance = meter::Provenance::Reported;
    assert_eq!(spend.enter(&counted).cost(), Some(0), "a counted zero is a zero");
    let mut free = uncounted(200);
    free.identity.model = "free".into();
    assert_eq!(spend.enter(&free).cost(), Some(0), "however many there were");
}
