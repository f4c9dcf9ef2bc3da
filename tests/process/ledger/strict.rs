//! A budget that refuses whatever cannot be counted or priced: no odd request passes it free or cheap.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::place::{Place, Rows};
use crate::scripted;

const STRICT: &str = "budgets:\n- name: strict\n  max_budget: 1000\n  budget_duration: month\n  enforce: true\n  \
                      unpriced: refuse\n  unreadable: refuse\n  uncountable: refuse\n  unknown_paths: refuse\n";

const CHAT: &str = "/v1/chat/completions";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const GEMINI: &str = "/v1beta/models/small:generateContent";

/// A gateway that answers as the model `small`, whatever it ran; a list of models gets a list of answers.
fn gateway() -> SocketAddr {
    scripted::server(|head| {
        let answer = r#"{"id":"c","model":"small","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10}}"#;
        let answer = match head {
            _ if head.contains("x-list: yes") => format!("[{answer},{answer}]"),
            // Its compressed answers are not read.
            _ if head.contains("gzip") => "{}".to_owned(),
            _ if head.contains("x-late: yes") => r#"{"request_id":"job-1"}"#.to_owned(),
            _ => answer.to_owned(),
        };
        let length = answer.len();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
        )
        .into_bytes()
    })
}

/// Sends a request; returns the status.
fn send(to: SocketAddr, method: &str, target: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    let mut client = TcpStream::connect(to).expect("the data port is open");
    write!(
        client,
        "{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("UTF-8");
    answer.get(9..12).unwrap_or_default().to_owned()
}

#[test]
fn odd_requests_are_refused() {
    let place = Place::new();
    place.write("settings.yaml", STRICT);
    let settings = place.text("settings.yaml");
    let proxy = place.start(gateway(), "x.db", &["--config", &settings]);
    let small = r#"{"model":"small","messages":[]}"#;
    for (method, target, fields, body) in [
        // The model.
        ("POST", "/engines/dear/chat/completions", "", small),
        ("POST", "/openai/deployments/a/dear/chat/completions", "", small),
        ("POST", "/v1/chat/completions?model=dear", "", small),
        ("POST", CHAT, "X-Gateway-Model-Name: dear\r\n", small),
        ("POST", CHAT, "", r#"{"model":"small,dear","messages":[]}"#),
        ("POST", CHAT, "", r#"{"model":"small","fallbacks":["dear"],"messages":[]}"#),
        ("POST", CHAT, "", r#"{"model":"small","models":["small","dear"],"messages":[]}"#),
        // A form, as some gateways would read it.
        ("POST", CHAT, FORM, r#"{"model":"small","x":"&model=dear&","messages":[]}"#),
        ("POST", CHAT, FORM, "model=small&messages=[]"),
        ("POST", CHAT, FORM, "model[]=small&model[]=dear&messages=[]"),
        ("POST", CHAT, "Content-Type: multipart/form-data; boundary=b\r\n", small),
        ("POST", CHAT, "Content-Type: application/json\r\nContent-Type: multipart/form-data\r\n", small),
        (
            "POST",
            CHAT,
            "Content-Type: application/json; charset=utf-7\r\n",
            r#"{"model":"small","x":"+ACI-,+ACI-model+ACI-:+ACI-dear"}"#,
        ),
        // Paths and methods.
        ("POST", "/v1/chat/completions/cancel", "", small),
        ("POST", "/%00/tokenize", "", small),
        ("PATCH", CHAT, "", small),
        ("QUERY", CHAT, "", small),
        ("FOO", CHAT, "", small),
        ("GET", CHAT, "", small),
        ("PUT", GEMINI, "X-HTTP-Method-Override: POST\r\n", "{}"),
        ("GET", CHAT, "X-Method-Override: POST\r\n", ""),
        ("POST", "/tokenize", "X-Original-URL: /v1/chat/completions\r\n", small),
        // Another name for a model.
        ("POST", "/api/copy", "", r#"{"source":"large","destination":"small"}"#),
        ("POST", "/api/creat%65", "", r#"{"model":"small","from":"large"}"#),
        // Forms of the answer.
        ("POST", "/v1beta/models/small:generateContent?fields=candidates", "", "{}"),
        ("POST", "/v1beta/models/small:streamGenerateContent?alt=sse&$fields=candidates", "", "{}"),
        ("POST", "/v1beta/models/small:generateContent?alt=proto", "", "{}"),
        ("POST", "/v1beta/models/small:generateContent?callback=x", "", "{}"),
        ("POST", GEMINI, "X-Goog-FieldMask: candidates\r\n", "{}"),
        ("POST", CHAT, "", r#"{"model":"small","stream":true,"additional_drop_params":["stream_options"]}"#),
        ("POST", CHAT, "", r#"{"model":"small","stream":true,"extra_body":{"stream_options":{}}}"#),
        ("POST", "/vertex_generate", "", r#"{"instances":[{"text":"a"}],"model":"small"}"#),
        // Detached work.
        ("POST", CHAT, "", r#"{"model":"small","messages":[],"deferred":true}"#),
        ("POST", "/async/chat/completions", "", small),
        ("POST", "/v1/batch/jobs", "", small),
        ("POST", "/v1/projects/p/locations/l/batchPredictionJobs", "", small),
        ("POST", "/v1/embed-jobs", "", small),
        ("POST", "/v1/threads/t/runs/r/submit_tool_outputs", "", "{}"),
    ] {
        assert_eq!(
            send(proxy.data, method, target, fields, body),
            "403",
            "{method} {target} {fields} {body}"
        );
    }
    assert_eq!(proxy.page().sum("tokenmeter_exchanges_total", &[]), 0.0, "nothing was sent");
}

/// A coding could hide the count.
#[test]
fn countable_answer_is_not_compressed() {
    let place = Place::new();
    place.write("settings.yaml", STRICT);
    let settings = place.text("settings.yaml");
    let proxy = place.start(gateway(), "x.db", &["--config", &settings]);
    for fields in
        ["Accept-Encoding: gzip\r\n", "Accept-Encoding: gzip, br\r\nConnection: accept-encoding\r\n"]
    {
        assert_eq!(send(proxy.data, "POST", CHAT, fields, r#"{"model":"small","messages":[]}"#), "200");
    }
    proxy.page_when("they have ended", |page| Rows::of(page).acknowledged == 2);
    let spent = place.spend("x.db", "model");
    assert_eq!([&spent[0]["input_tokens"], &spent[0]["output_tokens"]], [200, 20], "{spent:?}");
}

/// A request that passes is charged by the dearest model that it names, for every answer.
#[test]
fn dearest_of_several_models_is_charged() {
    let place = Place::new();
    place.write("settings.yaml", STRICT);
    let settings = place.text("settings.yaml");
    let proxy = place.start(gateway(), "x.db", &["--config", &settings]);
    let small = r#"{"model":"small","messages":[]}"#;
    let rows = [
        ("/engines/large/chat/completions", "", small),
        ("/v1/chat/completions?model=large", "", small),
        (CHAT, "X-Gateway-Model-Name: large\r\n", small),
        (CHAT, "", r#"{"model":"small","fallbacks":["large"],"messages":[]}"#),
    ];
    for (target, fields, body) in rows {
        assert_eq!(send(proxy.data, "POST", target, fields, body), "200", "{target} {fields} {body}");
    }
    // The type that curl states for any body.
    assert_eq!(send(proxy.data, "POST", CHAT, FORM, small), "200");
    // A list of answers, and work that only its answer shows: the next such request is refused.
    assert_eq!(send(proxy.data, "POST", CHAT, "x-list: yes\r\n", r#"{"model":"small"}"#), "200");
    assert_eq!(send(proxy.data, "POST", "/v1/messages", "x-late: yes\r\n", small), "200");
    proxy.page_when("it has ended", |page| Rows::of(page).acknowledged == 7);
    for path in ["/v1/messages", "/v1//messages", "/v1/./message%73", "/V1/messages/", "/x/v1/messages?y"] {
        assert_eq!(send(proxy.data, "POST", path, "x-late: yes\r\n", small), "403", "{path}");
    }
    let page = proxy.page();
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[("ending", "detached")]), 1.0);
    let spent = place.spend("x.db", "model");
    let of = |model: &str| spent.iter().find(|row| row["model"] == model).expect("it was charged");
    let (large, small) = (of("large"), of("small"));
    assert_eq!(
        [&large["exchanges"], &large["input_tokens"], &large["output_tokens"]],
        [4, 400, 40],
        "{spent:?}"
    );
    // 4 × (100 × 2.50 + 10 × 10.01 + 3) millionths
    assert_eq!(large["cost"], "0.0014124", "{spent:?}");
    assert_eq!([&small["input_tokens"], &small["output_tokens"]], [300, 30], "both answers of the list");
    assert_eq!(small["unpriced_exchanges"], 1, "{spent:?}");
}
