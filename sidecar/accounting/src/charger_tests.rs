//! The charge and the row of a record: which tier and which model apply.

use meter::{Body, Close, EnginePrompt, EngineStep, ExchangeId, Identity, LoadSpan, Meter, Role, Tick};
use metrics::Options;
use relay::{Observer, ServerKind};
use scan::{Dialect, Finish};

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
        is_tier_reported: tier.is_some_and(|(_, said)| said),
        ..Identity::new("u", "openai", Dialect::OpenaiChat, model)
    };
    meter.end(identity, Close::Clean { whole: true }, LoadSpan::single(), Tick(1))
}

fn spend(metrics: &Metrics) -> Charger {
    let (book, _) = Book::read(PRICES).unwrap();
    let prices = Arc::new(ArcSwapOption::from_pointee(book));
    Charger::new(prices, None, metrics.clone())
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
        let charge = spend.charge(&record).charge;
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
        for kind in ServerKind::ALL.into_iter().map(Some).chain([None]) {
            let mut record = record("m", None, Some((tier, true)));
            // An unknown server has OpenAI's name.
            let provider = kind.map_or("openai", ServerKind::provider);
            record.identity.provider = provider.into();
            record.identity.is_provider_known = kind.is_some();
            let is_hosted = kind.is_some() && price::is_hosted(provider);
            let units = if is_hosted { own } else { repeated };
            let charge = spend.charge(&record).charge;
            assert_eq!(charge.cost(), Some(units * UNIT), "{tier} of {kind:?}");
            let kept = (is_hosted || tier == "priority").then_some(tier);
            assert_eq!(Row::of(&record, charge).service_tier.as_deref(), kept, "{tier} of {kind:?}");
        }
    }
}

/// The server may have used any of the models, so all that is made of the record names the dearest.
#[test]
fn dearest_of_several_models_is_charged() {
    let prices = "version: v\ncurrency: EUR\nmodels:\n  - {name: cheap, input: 0, output: 0, per_request: 1}\n  \
                  - {name: dear, input: 0, output: 0, per_request: 40}\n  - {name: 'dated', input: 0, output: 0, per_request: 7}\n";
    let book = Arc::new(ArcSwapOption::from_pointee(Book::read(prices).unwrap().0));
    let spend = Charger::new(book, None, Metrics::new(Options::default()));
    for (model, others, answered, provider, named, units) in [
        ("cheap", &[][..], None, "vllm", "cheap", Some(1)),
        ("cheap", &["dear", "x"], None, "vllm", "dear", Some(40)),
        ("dear", &["cheap"], None, "vllm", "dear", Some(40)),
        ("cheap,dear", &["cheap", "dear"], None, "vllm", "dear", Some(40)),
        ("x", &["y"], None, "vllm", "x", None),
        // A server that no vendor hosts may only repeat the name.
        ("cheap", &["dear"], Some("cheap"), "vllm", "dear", Some(40)),
        // Neither does a gateway with OpenAI's interface say which model answered.
        ("cheap", &["dear"], Some("cheap"), "openai", "dear", Some(40)),
        ("cheap", &["dear"], Some("dated"), "openai", "cheap", Some(7)),
        // A vendor bills the model that answered.
        ("cheap", &["dear"], Some("dated"), "openrouter", "cheap", Some(7)),
        ("dear", &[], Some("dated"), "openai", "dear", Some(7)),
        // An unknown server is no vendor.
        ("dear", &[], Some("dated"), "", "dear", Some(40)),
        ("cheap", &[], Some("dated"), "", "cheap", Some(7)),
        ("cheap", &["dear"], Some("dated"), "", "dear", Some(40)),
        ("x", &[], Some("dated"), "", "x", Some(7)),
    ] {
        let mut record = record(model, answered, None);
        record.identity.is_provider_known = !provider.is_empty();
        record.identity.provider = if provider.is_empty() { "openai" } else { provider }.into();
        record.identity.other_models = others.iter().map(|&name| name.into()).collect();
        let mut record = Arc::new(record);
        spend.name_dearest(&mut record);
        assert_eq!(&*record.identity.model, named, "{model} {others:?}");
        let cost = units.map(|units| units * UNIT);
        assert_eq!(spend.charge(&record).charge.cost(), cost, "{model} {others:?}");
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
        assert_eq!(spend.charge(&record(model, answered, None)).charge.cost(), cost, "{model} {answered:?}");
    }
}

#[test]
fn book_in_force_is_on_the_page() {
    let metrics = Metrics::new(Options::default());
    let spend = spend(&metrics);
    for (text, version) in [(PRICES.to_owned(), "v"), (PRICES.replace("version: v", "version: w"), "w")] {
        let (book, _) = Book::read(&text).unwrap();
        let labels = format!("version=\"{version}\",hash=\"{}\",currency=\"EUR\"", book.hash());
        spend.replace_book(book, "prices.yaml").unwrap();
        let page = metrics.text();
        assert!(page.contains(&format!("\ntokenmeter_price_book_info{{{labels}}} 1\n")), "{page}");
        assert_eq!(page.matches("\ntokenmeter_price_book_info{").count(), 1, "{page}");
    }
}

#[test]
fn unpriced_tier_is_counted_and_logged_once() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    worker.model("m");
    let spend = spend(&metrics);
    for tier in [("turbo", true), ("turbo", true), ("turbo", false), ("flex", true), ("default", true)] {
        spend.charge(&record("m", None, Some(tier)));
    }
    // A known word beside an unknown one.
    spend.charge(&record("m", None, Some(("flex+mars", true))));
    let page = metrics.text();
    let line = "tokenmeter_unpriced_tier_exchanges_total{model=\"m\"} 3\n";
    assert!(page.contains(line), "{page}");

    let Charge::Priced { rate, .. } = spend.charge(&record("m", None, None)).charge else {
        panic!("it has a price")
    };
    let tiers = MissingTiers::default();
    assert_eq!([tiers.record(&rate, "turbo"), tiers.record(&rate, "turbo")], [true, false]);
    let named = (0..100).filter(|n| tiers.record(&rate, &n.to_string())).count();
    assert_eq!(named, 63, "servers choose the names, so their number is limited");
}

/// An enforced budget counts the dearest tier where the tier of the response has no price.
#[test]
fn unpriced_tier_counts_most_against_an_enforced_budget() {
    let spend = spend(&Metrics::new(Options::default()));
    for (tier, counted) in
        [(None, 4), (Some(("flex", true)), 2), (Some(("turbo", true)), 8), (Some(("turbo", false)), 4)]
    {
        let record = record("m", None, tier);
        let row = spend.charge(&record);
        assert_eq!(spend.most(&record, &row.charge), Some(counted * UNIT), "{tier:?}");
    }
    let unpriced = record("other", None, Some(("turbo", true)));
    assert_eq!(spend.most(&unpriced, &spend.charge(&unpriced).charge), None);
}

/// The law: a server chooses the names.
#[test]
fn unknown_counts_are_named_within_a_bound() {
    let metrics = Metrics::new(Options::default());
    let spend = spend(&metrics);
    let with = |names: &[&str]| {
        let mut record = record("m", None, None);
        record.unknown_counts = names.iter().map(|name| scan::MemberName::cut(name.as_bytes())).collect();
        spend.charge(&record);
    };
    with(&[]);
    with(&["vision_tokens", "tool_tokens"]);
    with(&["vision_tokens"]);
    let line = |member: &str, n: u32| {
        format!("tokenmeter_unknown_usage_total{{dialect=\"openai_chat\",member=\"{member}\"}} {n}\n")
    };
    let page = metrics.text();
    assert!(page.contains(&line("vision_tokens", 2)) && page.contains(&line("tool_tokens", 1)), "{page}");
    (0..100).for_each(|n| with(&[&format!("invented_tokens_{n}")]));
    let page = metrics.text();
    assert!(page.contains(&line("_other", 70)), "{page}");
    assert_eq!(page.matches("\ntokenmeter_unknown_usage_total{").count(), 33);
    assert_eq!(
        spend.unknown_counts().troubles(),
        [
            "openai_chat: servers report tokens that are not read (_other, invented_tokens_0, invented_tokens_1, \
          invented_tokens_10, …)"
        ]
    );
}

/// Embeddings as bytes only, and transcripts as text, have no token counts.
#[test]
fn uncounted_exchange_has_no_price() {
    let book = "version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 1, output: 1}\n  - {name: free, input: 0, output: 0}\n";
    let prices = Arc::new(ArcSwapOption::from_pointee(Book::read(book).unwrap().0));
    let spend = Charger::new(prices, None, Metrics::new(Options::default()));
    let uncounted = |status| {
        let mut record = record("m", None, None);
        (record.tokens, record.status) = (meter::Tokens::NONE, status);
        record
    };
    assert_eq!(spend.charge(&uncounted(200)).charge, Charge::Unpriced(Unpriced::Uncounted));
    assert_eq!(
        spend.charge(&uncounted(0)).charge,
        Charge::Unpriced(Unpriced::Uncounted),
        "its client disconnected"
    );
    assert_eq!(spend.charge(&uncounted(101)).charge, Charge::Unpriced(Unpriced::Uncounted));
    assert_eq!(spend.charge(&uncounted(400)).charge.cost(), Some(0), "a rejected request has no cost");
    let mut unsent = uncounted(0);
    unsent.upstream_attempts = 0;
    assert_eq!(
        spend.charge(&unsent).charge.cost(),
        Some(0),
        "a request that never went upstream has no cost"
    );
    let mut counted = uncounted(200);
    counted.tokens.input_provenance = meter::Provenance::Reported;
    assert_eq!(spend.charge(&counted).charge.cost(), Some(0), "a counted zero costs nothing");
    let mut failed = counted.clone();
    (failed.status, failed.tokens.by_type) = (500, [7; meter::TokenType::ALL.len()]);
    failed.tokens.output_provenance = meter::Provenance::Engine;
    assert_eq!(
        spend.charge(&failed).charge.cost(),
        Some(0),
        "an error costs nothing, though the engine worked"
    );
    let mut free = uncounted(200);
    free.identity.model = "free".into();
    assert_eq!(spend.charge(&free).charge.cost(), Some(0), "a free model costs nothing");
}

/// Records of every kind, charged, written and charged again by the same book. No charge overflows.
#[test]
fn charged_row_reprices_to_nothing() {
    const BOOK: &str = "version: v\ncurrency: EUR\nmodels:\n  \
        - {name: m, input: 3, output: 7, cached_input: 1, per_request: 4, \
           tiers: {flex: {multiply: 0.5}, priority: {multiply: 2}, dear: {multiply: 9}}}\n  \
        - {name: other, input: 5, output: 6, tiers: {priority: {multiply: 0.1}, flex: {multiply: 3}}}\n  \
        - {pattern: 'm-*', provider: vllm, input: 2, output: 2}\n  \
        - {name: late, valid_from: 2026-10-15, input: 2, output: 2}\n";
    /// The 31st of October 2026, noon, and a day.
    const NOON_US: i64 = 1_793_448_000_000_000;
    const DAY_US: u64 = 86_400_000_000;
    let place = ledger::testing::Place::new();
    let path = place.ledger();
    let mut chance = chance::Chance::new(7);
    let mut pick = |names: &[&'static str]| names[chance.place(names.len())];
    let mut records: Vec<Record> = (0..2_000)
        .map(|_| {
            let tier = pick(&["", "flex", "priority", "dear", "turbo", "default", "Priority"]);
            let tier = (!tier.is_empty()).then(|| (tier, pick(&["said", "requested"]) == "said"));
            let answered = pick(&["", "m", "other", "m-1", "late"]);
            let models = ["m", "other", "m-1", "late", "made-up"];
            let mut record = record(pick(&models), (!answered.is_empty()).then_some(answered), tier);
            // Failures without a tenant have no row.
            record.identity.tenant = "acme".into();
            record.identity.provider = pick(&["openai", "anthropic", "vllm"]).into();
            record.identity.role = match pick(&["whole", "whole", "prefill", "decode"]) {
                "whole" => Role::Whole,
                "prefill" => Role::Prefill,
                _ => Role::Decode,
            };
            record.status = pick(&["200", "200", "404", "0"]).parse().unwrap();
            record
        })
        .collect();
    for (n, record) in records.iter_mut().enumerate() {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(n as u64 + 1).to_be_bytes());
        record.identity.exchange = ExchangeId(bytes);
        record.identity.started_unix_ns = 1_000 * (NOON_US as u64 - chance.below(30 * DAY_US));
        record.upstream_attempts = u8::try_from(chance.below(3)).unwrap();
        if chance.below(4) > 0 {
            record.tokens.input_provenance = meter::Provenance::Reported;
            record.tokens.by_type.iter_mut().take(3).for_each(|count| *count = chance.below(1 << 30));
        }
    }
    let book = Book::read(BOOK).unwrap().0;
    let ledger =
        ledger::start(ledger::Plan { clock: Arc::new(|| NOON_US), ..ledger::Plan::new(path.clone()) });
    let prices = Arc::new(ArcSwapOption::from_pointee(book.clone()));
    let metrics = Metrics::new(Options::default());
    let spend = Charger::new(prices, Some(ledger.clone()), metrics);
    let rows: Vec<_> = records.iter().map(|record| spend.charge(record)).collect();
    for (record, row) in records.iter().zip(&rows) {
        assert_eq!(Facts::of(record).charge(Some(&book)), row.charge, "a caller without a ledger");
    }
    let priced = rows.iter().filter(|row| row.rate().is_some()).count();
    rows.into_iter().for_each(|row| ledger.enter(row));
    assert!(ledger.shutdown(std::time::Duration::from_secs(60)), "{:?}", ledger.status());
    let request = report::Reprice {
        range: source::Range::ALL,
        filters: &[],
        unpriced_only: false,
        book: &book,
        who: "a test",
        at_us: ledger::now_us(),
    };
    let outcome = report::rehearse(&ledger::Store::open_read(&path).unwrap(), &request).unwrap();
    assert_eq!((outcome.differing, outcome.unchanged), (0, priced as u64), "{outcome:?}");
    assert!(priced > 500);
}

/// An answer that its client left, counted by the engine: its tokens are exact, and charged, everywhere.
#[test]
fn engine_counts_reach_page_ledger_and_report() {
    let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1_000_000_000);
    meter.answered(200, Body::Frames);
    meter.engine_prompt(EnginePrompt { input: 1_000, cached: Some(400), ..EnginePrompt::default() });
    meter.engine_step(EngineStep { choice: 0, tokens: 7, reasoning: 0 }, Tick(10));
    meter.engine_finish(0, Finish::Abort);
    let identity = Identity::new("u", "vllm", Dialect::OpenaiChat, "m");
    let record = meter.end(identity, Close::ClientGone { whole: false }, LoadSpan::single(), Tick(20));

    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    worker.begin(model);
    worker.end(model, &record);
    let page = metrics.text();
    for (kind, tokens) in [("input", 600), ("input_cached", 400), ("output", 7)] {
        let labels = format!(r#"{{model="m",type="{kind}",provenance="engine"}}"#);
        let series = format!("tokenmeter_tokens_total{labels} {tokens}\n");
        assert!(page.contains(&series), "{series}{page}");
    }

    const BOOK: &str =
        "version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 3, output: 7, cached_input: 1}\n";
    let place = ledger::testing::Place::new();
    let ledger = ledger::start(ledger::Plan::new(place.ledger()));
    let prices = Arc::new(ArcSwapOption::from_pointee(Book::read(BOOK).unwrap().0));
    let row = Charger::new(prices, Some(ledger.clone()), metrics).charge(&record);
    assert_eq!(row.charge.cost(), Some((600 * 3 + 400 + 7 * 7) * (UNIT / 1_000_000)));
    ledger.enter(row);
    assert!(ledger.shutdown(std::time::Duration::from_secs(60)), "{:?}", ledger.status());

    let store = ledger::Store::open_read(&place.ledger()).unwrap();
    let query = report::Query {
        range: source::Range::ALL,
        by: vec![report::Key::InputProvenance, report::Key::OutputProvenance],
        ..report::Query::all(ledger::now_us())
    };
    let mut text = Vec::new();
    report::json::write(&report::make(&store, &query).unwrap(), None, &mut text).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let all = serde_json::json!({"input": {"engine": "1"}, "output": {"engine": "1"}});
    assert_eq!(report["rows"][0]["provenance"], all);
    assert_eq!(report["rows"][0]["input_provenance"], "engine");
}
