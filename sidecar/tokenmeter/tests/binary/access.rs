//! The access log has tenant and cost of an exchange, under the names of the other exports; the live page has the
//! spend of the process and, from the ledger, of the month.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::child::{Running, get};
use crate::proxying::{ask, server};

const TENANTS: &str = "trusted_peers: [127.0.0.1]\nhash_principals: false\n\
                       rules:\n- header: x-tenant\n  principal: x-principal\n";

const PRICES: &str = "version: v7\ncurrency: EUR\nmodels:\n- {name: tiny, input: 1, output: 0.3}\n";

/// A folder of one test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-access-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file; returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The next access line.
fn line(running: &Running) -> Value {
    let line = running.line("\"target\":\"access\"");
    assert!(!line.contains("canary"), "{line}");
    serde_json::from_str(&line).unwrap()
}

/// The state of the live page, sampled after this call.
fn sampled(running: &Running) -> Value {
    let called = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (_, now) = get(running.admin, "/api/now");
        let now: Value = serde_json::from_str(&now).unwrap();
        if now["at_unix_ms"].as_u64().is_some_and(|at| u128::from(at) > called) {
            return now;
        }
        assert!(Instant::now() < deadline, "{now}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// These members, in this order; `null` for those it lacks.
fn members(line: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| line.get(*name).cloned().unwrap_or_default()).collect()
}

const MONEY: [&str; 4] = ["cost", "currency", "price_version", "unpriced"];

#[test]
fn line_has_tenant_and_cost() {
    let folder = Folder::new("priced");
    let (tenants, prices) = (folder.file("t.yaml", TENANTS), folder.file("p.yaml", PRICES));
    let options = ["--access-log", "--log-level", "warn", "--tenants", &tenants, "--prices", &prices];
    let running = Running::start(server(), &options);

    ask(&running, "X-Tenant: acme\r\nX-Principal: batch\r\n", r#"{"model":"tiny","stream":true}"#);
    let one = line(&running);
    assert_eq!(members(&one, &["tenant", "principal"]), json!(["acme", "batch"]), "{one}");
    assert_eq!(one["path"], "/v1/chat/completions", "the route: {one}");
    assert_eq!(one["id"].as_str().map(str::len), Some(36), "the key of the ledger's row: {one}");
    for member in ["duration_ms", "first_token_ms", "output_rate", "concurrency"] {
        let Some(number) = one[member].as_f64() else { continue };
        assert!((number * 1e3 - (number * 1e3).round()).abs() < 1e-6, "{member}: three digits: {one}");
    }
    // The line comes after the charge, and so does the next sample.
    let now = sampled(&running);
    assert_eq!((&now["currency"], &now["tenants"][0]["name"]), (&json!("EUR"), &json!("acme")), "{now}");
    assert_eq!(now["tenants"][0]["totals"]["spend"], json!(0.0000131), "{now}");
    // 11 × 1/10⁶ + 7 × 0.3/10⁶, as text: a float would round it.
    assert_eq!(members(&one, &MONEY), json!(["0.0000131", "EUR", "v7", null]), "{one}");
}

#[test]
fn line_has_the_reason_without_a_price() {
    let folder = Folder::new("unpriced");
    let prices = folder.file("p.yaml", &PRICES.replace("tiny", "another"));
    let running = Running::start(server(), &["--access-log", "--log-level", "warn", "--prices", &prices]);
    ask(&running, "", r#"{"model":"tiny","stream":true}"#);
    let two = line(&running);
    let now = sampled(&running);
    let model = &now["models"][0]["totals"];
    assert_eq!((&model["spend"], &model["unpriced_exchanges"]), (&json!(0.0), &json!(1)), "{now}");
    assert_eq!(model["cost_per_million_tokens"], Value::Null, "{now}");
    assert_eq!(members(&two, &["tenant", "principal"]), json!(["default", null]), "{two}");
    assert_eq!(members(&two, &MONEY), json!([null, null, null, "model"]), "{two}");
}

#[test]
fn restarted_process_shows_the_ledgers_month() {
    let folder = Folder::new("restarted");
    let (prices, ledger) = (folder.file("p.yaml", PRICES), folder.0.join("x.db").display().to_string());
    let options = ["--access-log", "--prices", &prices, "--ledger", &ledger, "--drain-delay-ms", "0"];
    let mut first = Running::start(server(), &options);
    ask(&first, "", r#"{"model":"tiny","stream":true}"#);
    line(&first);
    first.signal("TERM");
    assert_eq!(first.ended(), Some(0));
    let second = Running::start(server(), &options);
    let (status, spend) = get(second.admin, "/api/spend");
    let spend: Value = serde_json::from_str(&spend).unwrap();
    assert_eq!(
        (status, &spend["currency"], &spend["cost"]),
        (200, &json!("EUR"), &json!("0.0000131")),
        "{spend}"
    );
    let tenant = json!({"name": "default", "cost": "0.0000131", "exchanges": 1, "unpriced_exchanges": 0});
    assert_eq!(spend["days"][0]["tenants"], json!([tenant]), "{spend}");
}

#[test]
fn line_has_no_money_without_prices() {
    let running = Running::start(server(), &["--access-log", "--log-level", "warn"]);
    ask(&running, "", r#"{"model":"tiny","stream":true}"#);
    let line = line(&running);
    let now = sampled(&running);
    assert_eq!((&now["currency"], &now["all"]["totals"]["spend"]), (&Value::Null, &Value::Null), "{now}");
    let (status, error) = get(running.admin, "/api/spend");
    assert!(status == 404 && error.contains("--ledger"), "{status} {error}");
    assert_eq!(members(&line, &MONEY), json!([null, null, null, null]), "{line}");
    assert_eq!(line["tenant"], "default");
}
