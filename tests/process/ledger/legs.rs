//! Requests whose prefill and decode run on two servers are counted and charged once. The bodies are those of vLLM's toy
//! proxy.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::place::{Place, Rows, command};
use crate::meter_page::Page;
use crate::proxy::Proxy;
use crate::scripted;

/// The request of the client to the router.
fn whole() -> Value {
    json!({"model": "small", "messages": [{"role": "user", "content": "hi"}], "stream": true, "max_tokens": 64})
}

fn prefill() -> Value {
    let mut body = whole();
    body["stream"] = json!(false);
    body["max_tokens"] = json!(1);
    body["kv_transfer_params"] = json!({
        "do_remote_decode": true,
        "do_remote_prefill": false,
        "remote_engine_id": null,
        "remote_block_ids": null,
        "remote_host": null,
        "remote_port": null,
    });
    body
}

fn decode() -> Value {
    let mut body = whole();
    body["kv_transfer_params"] = json!({
        "do_remote_prefill": true,
        "do_remote_decode": false,
        "remote_block_ids": [1, 2, 3],
        "remote_engine_id": "engine-1",
        "remote_host": "10.0.0.7",
        "remote_port": 5559,
    });
    body
}

/// Answers with one token in one body if the request is a prefill leg, else with a stream of three.
fn server() -> SocketAddr {
    scripted::server(|head| match head {
        _ if head.contains("x-test: prefill") => answer(
            "application/json",
            r#"{"id":"chatcmpl-r","object":"chat.completion","model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"H"},"finish_reason":"length"}],"usage":{"prompt_tokens":20,"completion_tokens":1,"total_tokens":21},"kv_transfer_params":{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[1,2,3],"remote_engine_id":"engine-1","remote_host":"10.0.0.7","remote_port":5559}}"#,
        ),
        _ if head.contains("x-test: excess") => answer(
            "application/json",
            r#"{"id":"chatcmpl-e","object":"chat.completion","model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2023,"completion_tokens":2,"total_tokens":2025,"prompt_tokens_details":{"cached_tokens":3968}}}"#,
        ),
        _ if head.contains("x-test: refuses") && head.contains("identity") => {
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".to_vec()
        }
        _ if head.contains("x-test: fails") => {
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".to_vec()
        }
        _ => {
            let text = |text: &str| {
                format!(
                    "data: {{\"id\":\"chatcmpl-r\",\"object\":\"chat.completion.chunk\",\"model\":\"small\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
                )
            };
            let end = "data: {\"id\":\"chatcmpl-r\",\"object\":\"chat.completion.chunk\",\"model\":\"small\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"chatcmpl-r\",\"object\":\"chat.completion.chunk\",\"model\":\"small\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":3,\"total_tokens\":23,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n";
            answer("text/event-stream", &[&text("H"), &text("e"), &text("y"), end].concat())
        }
    })
}

fn answer(content_type: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends a request with further fields; returns the status.
fn send(to: SocketAddr, fields: &str, body: &Value) -> u16 {
    let body = body.to_string();
    let mut socket = TcpStream::connect(to).expect("the data port is open");
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nx-tenant: acme\r\n{fields}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut text = String::new();
    socket.read_to_string(&mut text).expect("an answer in UTF-8");
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

fn written(proxy: &Proxy, rows: u64) -> Page {
    proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == rows)
}

/// The sums that a whole run and its legs have in common: every count of exchanges, tokens and money.
fn counted(page: &Page) -> Vec<(&'static str, f64)> {
    [
        "tokenmeter_exchanges_total",
        "tokenmeter_tokens_total",
        "tokenmeter_live_output_tokens_total",
        "tokenmeter_usage_provenance_total",
        "tokenmeter_tenant_tokens_total",
        "tokenmeter_tenant_exchanges_total",
        "tokenmeter_tenant_spend_usd_total",
        "tokenmeter_model_spend_usd_total",
        "tokenmeter_unpriced_exchanges_total",
        "tokenmeter_no_first_token_total",
        "tokenmeter_time_to_first_token_seconds_count",
        "tokenmeter_time_to_first_byte_seconds_count",
        "tokenmeter_objective_exchanges_total",
        "tokenmeter_goodput_tokens_total",
        "tokenmeter_visible_characters_total",
        "gen_ai_server_request_duration_seconds_count",
        "gen_ai_server_time_to_first_token_seconds_count",
        "gen_ai_client_inference_usage_input_tokens_total",
        "gen_ai_client_inference_usage_output_tokens_total",
        "gen_ai_client_inference_operation_input_tokens_count",
        "tokenmeter_exchanges_in_flight",
    ]
    .map(|name| (name, page.sum(name, &[])))
    .to_vec()
}

/// The sums of each group in a report, without the name of the upstream.
fn spent(place: &Place) -> Vec<Value> {
    place.spend("x.db", "tenant,model")
}

fn one<T: rusqlite::types::FromSql>(ledger: &Path, sql: &str) -> T {
    Connection::open(ledger).expect("a database").query_row(sql, [], |row| row.get(0)).expect(sql)
}

#[test]
fn pair_of_legs_counts_as_one_whole_run() {
    let (alone, pair) = (Place::new(), Place::new());
    let objective = ["--objective", "chat"];
    let proxy = alone.start(server(), "x.db", &objective);
    assert_eq!(send(proxy.data, "x-request-id: req-7\r\n", &whole()), 200);
    let page_alone = written(&proxy, 1);
    drop(proxy);

    let mut proxy = pair.start(server(), "x.db", &["--role", "auto", "--objective", "chat", "--access-log"]);
    assert_eq!(send(proxy.data, "x-request-id: req-7\r\nx-test: prefill\r\n", &prefill()), 200);
    assert_eq!(send(proxy.data, "x-request-id: req-7\r\n", &decode()), 200);
    let page = written(&proxy, 2);
    assert_eq!(counted(&page), counted(&page_alone), "{}", page.text);
    assert_eq!(spent(&pair), spent(&alone));
    let legs = |role| page.sum("tokenmeter_leg_exchanges_total", &[("model", "small"), ("role", role)]);
    assert_eq!((legs("prefill"), legs("decode")), (1.0, 1.0));
    assert_eq!(page.sum("tokenmeter_leg_duration_seconds_count", &[("role", "prefill")]), 1.0);
    assert_eq!(page.sum("tokenmeter_leg_prompt_tokens_total", &[]), 20.0);
    let line = proxy.log_line("\"prefill\"");
    assert!(line.contains("req-7"), "{line}");

    proxy.terminate();
    assert!(proxy.ended(std::time::Duration::from_secs(15)).success(), "{}", proxy.log());
    let ledger = pair.path("x.db");
    command(&["ledger", "verify", "--ledger", &pair.text("x.db")]);
    assert_eq!(spent(&pair), spent(&alone));
    assert_eq!(one::<i64>(&ledger, "SELECT count(*) FROM exchanges"), 1);
    assert_eq!(one::<i64>(&ledger, "SELECT count(*) FROM legs"), 1);
    let joined = "SELECT request || ' ' || exchanges || ' ' || prefill_legs || ' ' || decode_legs || ' ' || \
                  failed_exchanges FROM requests";
    assert_eq!(one::<String>(&ledger, joined), "id:req-7 1 1 1 0");
}

#[test]
fn untrusted_client_cannot_claim_a_prefill_leg() {
    let place = Place::new();
    place.write("tenants.yaml", "trusted_peers: [10.0.0.0/8]\nrules:\n- header: x-tenant\n");
    let proxy = place.start(server(), "x.db", &["--role", "auto"]);
    assert_eq!(send(proxy.data, "x-test: prefill\r\n", &prefill()), 200);
    assert_eq!(send(proxy.data, "", &decode()), 200);
    let page = written(&proxy, 2);
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[]), 2.0);
    assert_eq!(page.sum("tokenmeter_tokens_total", &[]), 44.0);
    assert_eq!(page.sum("tokenmeter_leg_exchanges_total", &[]), 0.0);
    assert!(page.sum("tokenmeter_model_spend_usd_total", &[("model", "small")]) > 0.0);
    assert_eq!(one::<i64>(&place.path("x.db"), "SELECT count(*) FROM exchanges WHERE role = 'whole'"), 2);
}

#[test]
fn trusted_router_leaves_answers_charged() {
    let place = Place::new();
    let proxy = place.start(server(), "x.db", &["--role", "auto"]);
    let mut body = prefill();
    body["max_tokens"] = json!(64);
    assert_eq!(send(proxy.data, "", &body), 200);
    assert_eq!(send(proxy.data, "", &whole()), 200);
    let page = written(&proxy, 2);
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[]), 2.0);
    assert_eq!(page.sum("tokenmeter_leg_exchanges_total", &[]), 0.0);
}

/// SGLang's router sends the same body to both servers: it shows that there are legs, but not which.
#[test]
fn setting_marks_legs_without_transfer_params() {
    let mut body = whole();
    body["bootstrap_host"] = json!("10.0.0.7");
    body["bootstrap_port"] = json!(8998);
    body["bootstrap_room"] = json!(7_304_912_555_302_117_888_u64);
    for (role, exchanges, tokens) in [("prefill", 0.0, 0.0), ("decode", 1.0, 23.0), ("whole", 1.0, 23.0)] {
        let place = Place::new();
        let proxy = place.start(server(), "x.db", &["--role", role]);
        assert_eq!(send(proxy.data, "", &body), 200);
        let page = written(&proxy, 1);
        assert_eq!(page.sum("tokenmeter_exchanges_total", &[]), exchanges, "{role}");
        assert_eq!(page.sum("tokenmeter_tokens_total", &[]), tokens, "{role}");
        assert_eq!(
            page.sum("tokenmeter_live_output_tokens_total", &[]),
            if tokens > 0.0 { 3.0 } else { 0.0 }
        );
        let legs = page.sum("tokenmeter_leg_exchanges_total", &[("role", role)]);
        assert_eq!(legs, if role == "whole" { 0.0 } else { 1.0 }, "{role}");
    }
}

#[test]
fn cached_tokens_beyond_the_prompt_are_flagged() {
    let place = Place::new();
    let proxy = place.start(server(), "x.db", &[]);
    assert_eq!(send(proxy.data, "x-test: excess\r\n", &prefill()), 200);
    assert_eq!(send(proxy.data, "", &whole()), 200);
    let page = written(&proxy, 2);
    let excess = [("disagreement", "cached_excess"), ("dialect", "openai_chat")];
    assert_eq!(page.sum("tokenmeter_usage_disagreements_total", &excess), 1.0);
    assert_eq!(page.sum("tokenmeter_tokens_total", &[("type", "input_cached")]), 2027.0);
    let ledger = place.path("x.db");
    assert_eq!(one::<i64>(&ledger, "SELECT max(cached_excess) FROM exchanges"), 1_945);
    assert_eq!(one::<i64>(&ledger, "SELECT count(*) FROM exchanges WHERE cached_excess > 0"), 1);
}

#[test]
fn repeated_and_retried_exchanges_are_one_request() {
    let place = Place::new();
    let proxy = place.start(server(), "x.db", &[]);
    assert_eq!(send(proxy.data, "idempotency-key: key-1\r\nx-test: fails\r\n", &whole()), 500);
    assert_eq!(send(proxy.data, "idempotency-key: key-1\r\nx-test: refuses\r\n", &whole()), 200);
    assert_eq!(send(proxy.data, "", &whole()), 200);
    written(&proxy, 3);
    let ledger = place.path("x.db");
    let found =
        |of: &str| -> i64 { one(&ledger, &format!("SELECT {of} FROM requests WHERE request = 'id:key-1'")) };
    assert_eq!([found("exchanges"), found("failed_exchanges"), found("upstream_attempts")], [2, 1, 3]);
    assert_eq!(found("is_success"), 1);
    assert_eq!(one::<i64>(&ledger, "SELECT count(*) FROM requests"), 2);
}
