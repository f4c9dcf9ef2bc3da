//! Content of the live page, and escaping of names.

use super::{Grouped, Rate, Seconds, Uptime, page};
use crate::source::{Model, Readiness, Spend, Tenant, Upstream, View};

fn tenant(name: &str, cost: &str, exchanges: u64, unpriced: u64) -> Tenant {
    Tenant { name: name.to_owned(), cost: cost.to_owned(), exchanges, unpriced }
}

fn view(name: &str) -> View {
    View {
        version: "1.2.3".to_owned(),
        uptime_s: 61,
        upstreams: vec![Upstream {
            name: name.to_owned(),
            listen: ([127, 0, 0, 1], 9800).into(),
            url: "http://gpu:8000".to_owned(),
            up: Some(false),
            fault: Some(format!("{name} hides")),
        }],
        models: vec![Model {
            name: name.to_owned(),
            in_flight: 7,
            exchanges: 1234,
            errors: 2,
            aborts: 3,
            output_tokens: 1_234_567,
            first_token_p50_s: Some(0.042),
            first_token_p99_s: Some(1.5),
            request_rate_p50: None,
        }],
        spend: Some(Spend {
            since: Some("09:30".to_owned()),
            currency: "EUR".to_owned(),
            tenants: vec![tenant(name, "1.234567", 1200, 7)],
            rest: Some(tenant("3 others", "0.50", 9, 0)),
            all: tenant("all", "1.734567", 1209, 7),
        }),
        provenances: vec![("reported", 3), ("frames", 1), ("none", 0)],
    }
}

#[test]
fn page_shows_all_values() {
    let page = page(&view("llama"), &Readiness::Ready, &[Some(512.4)]);
    for part in [
        "1.2.3",
        "up 1 min 1 s",
        ">ready<",
        "http://127.0.0.1:9800",
        "http://gpu:8000",
        "<bdi>llama</bdi><td>7<td>512<td>42 ms<td>1.50 s<td>–<td>1\u{202f}234\u{202f}567<td>1\u{202f}234<td>2<td>3",
        "<h2>Spent today, in UTC, since 09:30, when this process started</h2>",
        "<th>cost, EUR<th>",
        "<bdi>llama</bdi><td>1.234567<td>1\u{202f}200<td>7</tr>",
        "<bdi>3 others</bdi><td>0.50<td>9<td>0</tr>",
        "<bdi>all</bdi><td>1.734567<td>1\u{202f}209<td>7</tr>",
        "reported 75.0 % · frames 25.0 %</p>",
        "http-equiv=\"refresh\" content=\"2\"",
    ] {
        assert!(page.contains(part), "missing {part} in {page}");
    }
    assert!(!page.contains("none"), "a provenance without exchanges: {page}");
}

#[test]
fn names_and_reasons_are_escaped() {
    let hostile = "</td><script>alert('1')</script>&\"\u{1b}[31m";
    let unready = Readiness::NotReady(vec![hostile.to_owned()]);
    let page = page(&view(hostile), &unready, &[None]);
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains('\u{1b}'), "{page}");
    let escaped = "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}[31m";
    assert_eq!(page.matches(escaped).count(), 6, "{page}");
}

#[test]
fn page_without_models_has_instruction() {
    let page = page(&View::default(), &Readiness::Ready, &[]);
    assert!(page.contains("No exchange yet"));
    assert!(!page.contains("Provenance of output tokens"));
    assert!(!page.contains("Spent"), "nobody charges");
}

#[test]
fn numbers_are_formatted() {
    for (seconds, shown) in [(5, "5 s"), (3600, "1 h 0 min"), (90_000, "1 d 1 h")] {
        assert_eq!(Uptime(seconds).to_string(), shown);
    }
    for (count, shown) in [(0, "0"), (999, "999"), (1000, "1\u{202f}000")] {
        assert_eq!(Grouped(count).to_string(), shown);
    }
    for (seconds, shown) in [(0.0042, "4.2 ms"), (0.25, "250 ms"), (2.0, "2.00 s")] {
        assert_eq!(Seconds(Some(seconds)).to_string(), shown);
    }
    for (rate, shown) in [(31.25, "31.2"), (250.6, "251")] {
        assert_eq!(Rate(Some(rate)).to_string(), shown);
    }
}

#[test]
fn upstream_fault_is_shown_with_its_name() {
    let page = page(&view("gpu-1"), &Readiness::Ready, &[None]);
    assert!(page.contains("<bdi>gpu-1</bdi>: gpu-1 hides</p>"), "{page}");
}
