//! A load driver: clients that send requests, read the streams and measure what a user would see.
//!
//! The law: it is bounded in requests, in time and in concurrency, it connects to loopback addresses
//! only, and dropping [`run`] drops every connection it opened.
//!
//! It measures on the machine it runs on. Without a spare core for server and driver, the scheduler determines
//! the speeds, which may be higher or lower than the server's own.

mod client;
mod report;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::params::Endpoint;
use crate::text;
use client::Client;

pub use report::{Distribution, Failure, Report};

/// A load to run.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server's address; loopback only.
    pub target: SocketAddr,
    /// The requested endpoint.
    pub endpoint: Endpoint,
    /// The requested model, if any.
    pub model: Option<String>,
    /// Length of each prompt, in the simulator's tokens.
    pub prompt_tokens: u64,
    /// `max_tokens` of each request.
    pub output_tokens: u64,
    /// Requests `stream_options.include_usage`.
    pub usage: bool,
    /// Additional fields of each request body.
    pub fields: Vec<(String, Value)>,
    /// Additional headers of each request.
    pub headers: Vec<(String, String)>,
    /// A header whose value rotates with each request; without values there is none.
    pub round: (String, Vec<String>),
    /// Clients; each sends its next request after the previous response.
    pub concurrency: u32,
    /// Maximum number of requests.
    pub requests: u64,
    /// Time after which no request starts.
    pub time: Duration,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The client hangs up after this number of token frames.
    pub leave_after: Option<u64>,
    /// Determines the prompts, which differ from request to request.
    pub seed: u64,
}

impl Load {
    /// Returns a load of ten sequential requests to `target`.
    pub fn new(target: SocketAddr) -> Self {
        Self {
            target,
            endpoint: Endpoint::default(),
            model: None,
            prompt_tokens: 64,
            output_tokens: 64,
            usage: true,
            fields: Vec::new(),
            headers: Vec::new(),
            round: (String::new(), Vec::new()),
            concurrency: 1,
            requests: 10,
            time: Duration::from_secs(60),
            timeout: Duration::from_secs(60),
            leave_after: None,
            seed: 0,
        }
    }

    fn check(&self) -> io::Result<()> {
        if !self.target.ip().is_loopback() {
            return Err(invalid(format!("{} is not a loopback address", self.target)));
        }
        if self.requests > MAX_REQUESTS {
            return Err(invalid(format!("more than {MAX_REQUESTS} requests")));
        }
        if self.concurrency == 0 || self.concurrency > MAX_CONCURRENCY {
            return Err(invalid(format!("concurrency must be 1 to {MAX_CONCURRENCY}")));
        }
        if self.time > MAX_DURATION || self.timeout > MAX_DURATION {
            return Err(invalid("longer than a day".to_owned()));
        }
        Ok(())
    }

    /// Returns the body of the request with this number.
    fn body(&self, number: u64) -> Vec<u8> {
        let prompt = text::prompt(self.seed.wrapping_add(number), self.prompt_tokens);
        let mut body = match self.endpoint {
            Endpoint::Chat => json!({ "messages": [{ "role": "user", "content": prompt }] }),
            Endpoint::Completion | Endpoint::Native => json!({ "prompt": prompt }),
        };
        let limit = match self.endpoint {
            Endpoint::Native => "n_predict",
            _ => "max_tokens",
        };
        body[limit] = json!(self.output_tokens);
        body["stream"] = json!(true);
        if self.usage && self.endpoint != Endpoint::Native {
            body["stream_options"] = json!({ "include_usage": true });
        }
        if let Some(model) = &self.model {
            body["model"] = json!(model);
        }
        for (name, value) in &self.fields {
            body[name.as_str()] = value.clone();
        }
        body.to_string().into_bytes()
    }
}

/// Runs `load` to its end. Fails only for an invalid load.
pub async fn run(load: &Load) -> io::Result<Report> {
    load.check()?;
    let load = Arc::new(load.clone());
    let started = Instant::now();
    let mut report = clients(&load).await;
    report.settle(started.elapsed());
    Ok(report)
}

/// Runs all clients.
async fn clients(load: &Arc<Load>) -> Report {
    let numbers = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + load.time;
    let mut clients = JoinSet::new();
    for _ in 0..load.concurrency {
        let (load, numbers) = (Arc::clone(load), Arc::clone(&numbers));
        clients.spawn(async move {
            let mut client = Client::new(&load);
            let mut outcomes = Vec::new();
            while Instant::now() < end {
                let number = numbers.fetch_add(1, Relaxed);
                if number >= load.requests {
                    break;
                }
                outcomes.push(client.send(&load, number).await);
            }
            outcomes
        });
    }
    let mut report = Report::default();
    while let Some(outcomes) = clients.join_next().await {
        // A client does not panic, and is not aborted while this set is alive.
        outcomes.into_iter().flatten().for_each(|outcome| report.add(outcome));
    }
    report
}

/// Concurrencies that show the curve in four rows.
pub const CONCURRENCIES: [u32; 4] = [1, 10, 25, 50];

/// Maximum requests of a load: their samples stay below 64 MiB.
const MAX_REQUESTS: u64 = 1_000_000;

/// Maximum clients: a third of the ephemeral ports of one loopback address.
const MAX_CONCURRENCY: u32 = 10_000;

/// Maximum duration, for soak tests.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3_600);

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
