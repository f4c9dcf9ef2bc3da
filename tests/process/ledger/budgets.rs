//! An enforced budget: a tenant that has spent it gets an error of the API, other tenants are served, and the state
//! survives kills and restarts.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::client::Ask;
use super::hook::Hook;
use super::place::{Place, Rows, server};
use crate::proxy::Proxy;

/// Less than the cost of one exchange.
const LIMIT: &str = "0.000001";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spent_budget_rejects_its_tenant_across_restarts() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let hook = Hook::new();
        let settings = format!(
            "budgets:\n- name: tiny\n  tenants: [spender]\n  max_budget: {LIMIT}\n  budget_duration: month\n  \
             enforce: true\nbudget_webhook: http://{}/notices\n",
            hook.address
        );
        place.write("settings.yaml", &settings);
        let settings = place.text("settings.yaml");
        let options = ["--config", settings.as_str(), "--access-log"];
        let proxy = place.start(server.addr(), "x.db", &options);
        assert_eq!(Ask::of("spender", "small").send(proxy.data).status, 200);
        proxy.page_when("it is on the disk", |page| Rows::of(page).acknowledged == 1);
        refused(&proxy);
        // Each threshold: 50, 80 and 100 %.
        let posted = hook.until_posted(3);
        assert!(posted.iter().any(|notice| notice.contains(r#""refusing":true"#)), "{posted:?}");
        proxy.kill();

        let proxy = place.start(server.addr(), "x.db", &options);
        refused(&proxy);
        let spent = place.spend("x.db", "tenant");
        let of = |tenant: &str| spent.iter().find(|group| group["tenant"] == tenant).cloned();
        assert_eq!(
            of("spender").expect("it spent")["exchanges"],
            1,
            "rejected requests cost nothing: {spent:?}"
        );
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_may_reject_unpriced_requests() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let settings = "budgets:\n- name: priced\n  tenants: [strict]\n  max_budget: 1000\n  budget_duration: month\n  \
                        enforce: true\n  unpriced: refuse\n";
        place.write("settings.yaml", settings);
        let settings = place.text("settings.yaml");
        let proxy = place.start(server.addr(), "x.db", &["--config", &settings, "--access-log"]);
        for (tenant, model, status) in
            [("strict", "small", 200), ("strict", "nobody-knows", 403), ("others", "nobody-knows", 200)]
        {
            let answer = Ask::of(tenant, model).send(proxy.data);
            assert_eq!(answer.status, status, "{tenant} {model}: {}", answer.text);
        }
        let page = proxy.page_when("two are on the disk", |page| Rows::of(page).acknowledged == 2);
        let refused = [("tenant", "strict"), ("reason", "unpriced")];
        assert_eq!(page.sum("tokenmeter_tenant_refused_total", &refused), 1.0);
        let line = proxy.log_line("\"message\":\"refused\"");
        for part in [r#""tenant":"strict""#, r#""reason":"unpriced""#, r#""model":"nobody-knows""#] {
            assert!(line.contains(part), "{part} in {line}");
        }
        // In any spelling of the body, its model is read or the request rejected.
        let unpriced = r#"{"model":"nobody-knows","messages":[]}"#;
        let utf16: Vec<u8> = unpriced.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf32: Vec<u8> = unpriced.chars().map(u32::from).flat_map(u32::to_be_bytes).collect();
        for (body, code) in [
            (br#"{"model":"nobody-knows","MODEL":"x","messages":[]}"#.to_vec(), "model_unpriced"),
            ([b"\xEF\xBB\xBF", unpriced.as_bytes()].concat(), "model_unpriced"),
            (utf16, "model_unpriced"),
            (utf32, "model_unpriced"),
            (br#"{"model":5}"#.to_vec(), "model_unreadable"),
            (b"\x1f\x8b".to_vec(), "model_unreadable"),
        ] {
            let length = body.len();
            let head = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nx-tenant: strict\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n"
            );
            let mut client = TcpStream::connect(proxy.data).unwrap();
            client.write_all(&[head.as_bytes(), &body].concat()).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            assert!(answer.contains(&format!(r#""code":"{code}""#)), "{code}: {answer}");
        }
        let unreadable = [("tenant", "strict"), ("reason", "unreadable")];
        assert_eq!(proxy.page().sum("tokenmeter_tenant_refused_total", &unreadable), 2.0);
    });
}

/// Waits until the budget was evaluated, then sends a request.
fn refused(proxy: &Proxy) {
    let spender = [("tenant", "spender")];
    proxy.page_when("the budget is spent", |page| page.sum("tokenmeter_budget_used_usd", &spender) > 0.0);
    let before = proxy.page().sum("tokenmeter_refused_total", &[("reason", "budget")]);
    for stream in [false, true] {
        let answer = Ask { stream, ..Ask::of("spender", "small") }.send(proxy.data);
        assert_eq!(answer.status, 429, "{}", answer.text);
        let (head, body) = answer.text.split_once("\r\n\r\n").expect("a head and a body");
        let head = head.to_ascii_lowercase();
        let retry = head.lines().find_map(|line| line.strip_prefix("retry-after: ")).expect("when to come");
        assert!(retry.parse::<u64>().is_ok_and(|seconds| (1..=31 * 86_400).contains(&seconds)), "{retry}");
        let body: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
        let error = &body["error"];
        assert!(error["message"].as_str().is_some_and(|message| message.contains("tiny")), "{body}");
        assert!(error["type"].is_string(), "{body}");
    }
    let page = proxy.page();
    assert_eq!(page.sum("tokenmeter_refused_total", &[("reason", "budget")]), before + 2.0);
    let of_spender = [("tenant", "spender"), ("reason", "budget")];
    assert_eq!(page.sum("tokenmeter_tenant_refused_total", &of_spender), before + 2.0);
    let line = proxy.log_line("\"message\":\"refused\"");
    for part in
        [r#""tenant":"spender""#, r#""reason":"budget""#, r#""status":429"#, r#""dialect":"openai_chat""#]
    {
        assert!(line.contains(part), "{part} in {line}");
    }
    let others = Rows::of(&page).acknowledged;
    assert_eq!(Ask::of("somebody-else", "small").send(proxy.data).status, 200);
    proxy.page_when("the other tenants' rows are on the disk", |page| {
        Rows::of(page).acknowledged == others + 1
    });
}
