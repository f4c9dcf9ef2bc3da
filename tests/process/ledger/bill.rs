//! A bill equals the usage in the clients' responses times the prices, to the last digit; the metrics page equals the
//! ledger.

use std::collections::BTreeSet;

use super::client::{Ask, Bill};
use super::place::{Place, Rows, is_up, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bill_is_counts_times_prices() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let mut proxy = place.start(server.addr(), "x.db", &[]);
        let mut bill = Bill::default();
        for (tenant, model, output, cached) in [
            ("acme", "small", 5, 0),
            ("acme", "small", 31, 32),
            ("acme", "large", 3, 16),
            ("beta", "large", 77, 0),
            ("beta", "nobody-priced-this", 9, 0),
            ("gamma", "small", 1, 48),
        ] {
            for stream in [false, true] {
                bill.ask(proxy.data, Ask { tenant, model, output, cached, stream });
            }
        }
        let all = bill.exchanges();
        // Another thread publishes the series of an exchange, so they may come after its row.
        let spend = bill.0.values().filter_map(|sum| sum.pico).sum::<i128>() as f64 / 1e12;
        let output = bill.0.values().map(|sum| sum.output).sum::<u64>() as f64;
        let page = proxy.page_when("all is on the disk and published", |page| {
            Rows::of(page).acknowledged == all
                && (page.sum("tokenmeter_tenant_spend_usd_total", &[("basis", "price")]) - spend).abs()
                    < 1e-12
                && page.sum("tokenmeter_tenant_tokens_total", &[("type", "output")]) == output
        });
        assert!(is_up(&page));
        assert_eq!(Rows::of(&page).all(), all);

        // While the ledger is being written.
        let report = place.spend("x.db", "tenant,model");
        assert_eq!(Bill::of_report(&report), bill);
        let members: BTreeSet<&str> = MEMBERS.into_iter().collect();
        for group in &report {
            let object = group.as_object().expect("an object");
            assert_eq!(object.keys().map(String::as_str).collect::<BTreeSet<_>>(), members);
            let unpriced = group["model"] == "nobody-priced-this";
            assert_eq!(group["unpriced_exchanges"], if unpriced { 2 } else { 0 }, "{group}");
            assert_eq!(group["currency"].as_str(), (!unpriced).then_some("USD"), "{group}");
            assert_eq!(group["input_tokens"].as_u64(), sum(group, "input"), "{group}");
            assert_eq!(group["output_tokens"].as_u64(), sum(group, "output"), "{group}");
            let reported = serde_json::json!({"input": {"reported": "1"}, "output": {"reported": "1"}});
            assert_eq!(group["provenance"], reported);
        }

        for tenant in ["acme", "beta", "gamma"] {
            let ours = bill.0.iter().filter(|((name, _), _)| name == tenant).map(|(_, sum)| sum);
            let (mut pico, mut tokens) = (0, [0; 3]);
            for sum in ours {
                pico += sum.pico.unwrap_or(0);
                for (all, some) in tokens.iter_mut().zip([sum.input, sum.cached, sum.output]) {
                    *all += some;
                }
            }
            let labels = [("tenant", tenant), ("basis", "price")];
            let told = page.sum("tokenmeter_tenant_spend_usd_total", &labels);
            assert!((told * 1e12 - pico as f64).abs() < 1.0, "{tenant}: {told} of {pico}");
            for (kind, count) in ["input", "input_cached", "output"].into_iter().zip(tokens) {
                let told = page.sum("tokenmeter_tenant_tokens_total", &[("tenant", tenant), ("type", kind)]);
                assert_eq!(told, count as f64, "{tenant} {kind}");
            }
        }
        let unpriced = [("model", "nobody-priced-this"), ("reason", "model")];
        assert_eq!(page.sum("tokenmeter_unpriced_exchanges_total", &unpriced), 2.0, "{}", page.text);

        // And after its writer has ended.
        proxy.terminate();
        assert!(proxy.ended(std::time::Duration::from_secs(15)).success(), "{}", proxy.log());
        assert_eq!(Bill::of_report(&place.spend("x.db", "tenant,model")), bill);
        let whole = super::audit::audit(&place.path("x.db"));
        assert_eq!((whole.rows(), whole.gaps, whole.shed), (all, 0, 0));
        super::place::command(&["ledger", "verify", "--ledger", &place.text("x.db")]);
    });
}

fn sum(group: &serde_json::Value, side: &str) -> Option<u64> {
    let of_side = |name: &&&str| **name == side || name.starts_with(&format!("{side}_"));
    let types = MEMBERS.iter().filter(of_side).filter(|name| !name.ends_with("_tokens"));
    types.map(|name| group[*name].as_u64()).sum()
}

/// The report's columns and notes, exactly.
const MEMBERS: [&str; 28] = [
    "tenant",
    "model",
    "exchanges",
    "input_tokens",
    "output_tokens",
    "input",
    "input_cached",
    "input_cache_write",
    "input_cache_write_1h",
    "input_audio",
    "input_image",
    "input_video",
    "input_cached_audio",
    "input_cached_image",
    "output",
    "output_reasoning",
    "output_audio",
    "output_image",
    "output_video",
    "cost",
    "cost_per_1m_input",
    "cost_per_1m_output",
    "cost_per_1m_tokens",
    "cost_per_exchange",
    "currency",
    "unpriced_exchanges",
    "uncounted_prompts",
    "provenance",
];
