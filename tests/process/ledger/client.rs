//! A client that sums the usage of its responses by tenant and model, and computes the cost independently, in whole
//! numbers.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) model: &'a str,
    pub(crate) output: u64,
    pub(crate) cached: u64,
    pub(crate) stream: bool,
}

/// The response: status and the whole text.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Ask<'_> {
    /// A request of `tenant` for some tokens of `model`.
    pub(crate) fn of<'a>(tenant: &'a str, model: &'a str) -> Ask<'a> {
        Ask { tenant, model, output: 7, cached: 0, stream: false }
    }

    /// Sends the request.
    pub(crate) fn send(self, to: SocketAddr) -> Answer {
        let mut body = json!({
            "model": self.model,
            "max_tokens": self.output,
            "stream": self.stream,
            "messages": [{"role": "user", "content": "what does it cost to ask what it costs? ".repeat(9)}],
            "simulate": {"cached": self.cached},
        });
        if self.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        let body = body.to_string();
        let mut socket = TcpStream::connect(to).expect("the data port is open");
        write!(
            socket,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nx-tenant: {}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.tenant,
            body.len()
        )
        .expect("it reads");
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).expect("the whole answer");
        // A chunk may end within a character.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.unwrap_or_else(|| panic!("no status in {text:?}")), text }
    }
}

/// The usage of one model by one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) exchanges: u64,
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    /// `None` for a model without a price.
    pub(crate) pico: Option<i128>,
}

/// The client's own sums, by tenant and model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bill(pub(crate) BTreeMap<(String, String), Sum>);

impl Bill {
    /// Sends a request, and adds the usage of its response.
    #[track_caller]
    pub(crate) fn ask(&mut self, to: SocketAddr, ask: Ask<'_>) {
        let answer = ask.send(to);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let at = answer.text.rfind("\"usage\":{").expect("the response has usage");
        let mut usage = serde_json::Deserializer::from_str(&answer.text[at + "\"usage\":".len()..]);
        let usage = <Value as serde::Deserialize>::deserialize(&mut usage).expect("an object");
        let of = |value: &Value| value.as_u64().unwrap_or(0);
        let cached = of(&usage["prompt_tokens_details"]["cached_tokens"]);
        assert_eq!(cached, ask.cached, "{usage}");
        let (input, output) = (of(&usage["prompt_tokens"]) - cached, of(&usage["completion_tokens"]));
        assert!(input > 0 && output > 0, "{usage}");
        let sum = self.0.entry((ask.tenant.to_owned(), ask.model.to_owned())).or_default();
        sum.exchanges += 1;
        sum.input += input;
        sum.cached += cached;
        sum.output += output;
        let counts = [input, cached, output].map(i128::from);
        sum.pico = price(ask.model).map(|[per_request, per_token @ ..]| {
            let tokens: i128 = counts.iter().zip(per_token).map(|(count, price)| count * price).sum();
            sum.pico.unwrap_or(0) + per_request + tokens
        });
    }

    /// The ledger's report, in the same form.
    pub(crate) fn of_report(groups: &[Value]) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no count"));
        let sum = |group: &Value| Sum {
            exchanges: number(&group["exchanges"]),
            input: number(&group["input"]),
            cached: number(&group["input_cached"]),
            output: number(&group["output_tokens"]),
            pico: group["cost"].as_str().map(pico),
        };
        let text = |value: &Value| value.as_str().expect("a name").to_owned();
        Self(
            groups
                .iter()
                .map(|group| ((text(&group["tenant"]), text(&group["model"])), sum(group)))
                .collect(),
        )
    }

    pub(crate) fn exchanges(&self) -> u64 {
        self.0.values().map(|sum| sum.exchanges).sum()
    }
}

/// Pico-dollars: a request, an input token, a cached one, an output token.
fn price(model: &str) -> Option<[i128; 4]> {
    match model {
        "small" => Some([0, 130_000, 70_000, 610_000]),
        "large" => Some([3_000_000, 2_500_000, 1_250_000, 10_010_000]),
        _ => None,
    }
}

/// Decimal text as pico-units.
pub(crate) fn pico(text: &str) -> i128 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    assert!(part.len() <= 12, "{text} has too many digits");
    format!("{whole}{part:0<12}").parse().unwrap_or_else(|_| panic!("{text} is no number"))
}
