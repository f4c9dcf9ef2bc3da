//! From a request to an answer.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::sleep;

use super::{Engine, Shape};
use crate::ask::{Ask, Defaults, Endpoint, Refusal, SIMULATE_HEADER};
use crate::batch::Outcome;
use crate::faults::{Faults, Usage};
use crate::reply::{Dropped, Reply, Stream, Whole};
use crate::socket::Reset;

type Body = UnsyncBoxBody<Bytes, Dropped>;

/// Answers one request. An error drops the connection.
pub(super) async fn answer(
    request: Request<Incoming>,
    engine: Arc<Engine>,
    reset: Reset,
) -> Result<Response<Body>, Dropped> {
    engine.counters.requests.add(1);
    let shape = engine.options.shape;
    let own = match request.headers().get(SIMULATE_HEADER).map(faults) {
        None => None,
        Some(Ok(faults)) => Some(faults),
        Some(Err(message)) => return Ok(engine.refuse(400, &message)),
    };
    let endpoint = match (request.method(), request.uri().path()) {
        (&Method::POST, path) => endpoint(shape, path),
        (&Method::GET | &Method::HEAD, path) => {
            return engine.look_up(path, own.unwrap_or_default()).await;
        }
        (_, path) if endpoint(shape, path).is_some() && shape == Shape::Vllm => {
            return Ok(engine.refuse(405, "Method Not Allowed"));
        }
        _ => None,
    };
    let Some(endpoint) = endpoint else {
        return Ok(engine.refuse(404, "Not Found"));
    };

    let body = match Limited::new(request.into_body(), MOST_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Ok(engine.refuse(413, "Request body too large"));
        }
        Err(_) => return Err(Dropped),
    };
    let faults = own.unwrap_or_else(|| engine.options.faults.clone());
    engine.generate(endpoint, &body, faults, reset).await
}

/// 64 MiB: above the longest prompt that anyone sends, below what a test machine minds.
const MOST_BODY: usize = 64 << 20;

fn faults(header: &HeaderValue) -> Result<Faults, String> {
    header.to_str().map_err(|_| "x-simulate: not text".to_owned())?.parse()
}

fn endpoint(shape: Shape, path: &str) -> Option<Endpoint> {
    match (shape, path) {
        (_, "/v1/chat/completions") => Some(Endpoint::Chat),
        (_, "/v1/completions") => Some(Endpoint::Completion),
        (Shape::LlamaCpp, "/chat/completions") => Some(Endpoint::Chat),
        (Shape::LlamaCpp, "/completion" | "/completions") => Some(Endpoint::Native),
        _ => None,
    }
}

impl Engine {
    /// The pages that are only looked at.
    async fn look_up(&self, path: &str, faults: Faults) -> Result<Response<Body>, Dropped> {
        if let Some(wait) = faults.slow_head {
            sleep(wait).await;
        }
        if faults.no_head {
            return Err(Dropped);
        }
        if let Some(status) = faults.error_status {
            return Ok(self.refuse(status, "Simulated failure."));
        }
        let shape = self.options.shape;
        let mut names: Vec<&str> = self.options.models.iter().map(String::as_str).collect();
        if names.is_empty() {
            names.push("simulated");
        }
        Ok(match path {
            "/v1/models" => self.respond(200, shape.models(&names)),
            "/health" => self.respond(200, shape.health().to_owned()),
            "/metrics" => {
                let page = shape.metrics(&self.counters.read(), names[0]);
                let mut response = self.respond(200, page);
                let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert("content-type", kind);
                response
            }
            path if endpoint(shape, path).is_some() && shape == Shape::Vllm => {
                self.refuse(405, "Method Not Allowed")
            }
            _ => self.refuse(404, "Not Found"),
        })
    }

    async fn generate(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        faults: Faults,
        reset: Reset,
    ) -> Result<Response<Body>, Dropped> {
        let defaults = Defaults {
            seed: self.options.seed,
            output_tokens: self.options.output_tokens,
            models: &self.options.models,
        };
        let ask = match Ask::parse(endpoint, body, &defaults).and_then(|ask| self.admit(ask, &faults)) {
            Ok(ask) => ask,
            Err(Refusal { status, message }) => return Ok(self.refuse(status, &message)),
        };
        // Before the first wait: a client that leaves during it has left a generation.
        let generation = self.batch.generation(&ask);
        if let Some(wait) = faults.slow_head {
            sleep(wait).await;
        }
        if faults.no_head {
            generation.end(Outcome::Faulted);
            return Err(Dropped);
        }
        if let Some(status) = faults.error_status {
            generation.end(Outcome::Faulted);
            return Ok(self.refuse(status, "Simulated failure."));
        }

        let shape = self.options.shape;
        let model = self.options.speed.clone();
        let streamed = ask.stream;
        let close = faults.close;
        let reply = Reply { voice: shape.voice(&ask, &model), ask, faults, model, generation, reset };
        let mut response = match streamed {
            true => {
                let mut response = Response::new(reply.stream().boxed_unsync());
                self.dress(&mut response, true);
                response
            }
            false => match reply.whole().await {
                Whole::Body(body) => self.respond(200, body),
                Whole::Error => self.refuse(500, "Simulated engine failure."),
                Whole::Cut(body) => self.cut(body),
            },
        };
        if close {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(response)
    }

    /// Decides about usage, where a fault or this server's manners have a say.
    fn admit(&self, mut ask: Ask, faults: &Faults) -> Result<Ask, Refusal> {
        let refuse = |message: &str| Err(Refusal { status: 400, message: message.to_owned() });
        if ask.stream_options && faults.usage == Usage::Refused {
            return refuse("stream_options: Extra inputs are not permitted");
        }
        if ask.stream_options && !ask.stream && self.options.shape == Shape::Vllm {
            return refuse("Stream options can only be defined when `stream=True`.");
        }
        match faults.usage {
            Usage::Never => (ask.usage, ask.usage_withheld) = (false, true),
            Usage::Always => ask.usage = true,
            Usage::AsAsked | Usage::Refused => {}
        }
        Ok(ask)
    }

    fn refuse(&self, status: u16, message: &str) -> Response<Body> {
        self.counters.refused.add(1);
        let shape = self.options.shape;
        let mut response = self.respond(status, shape.refusal(status, message));
        if shape == Shape::LlamaCpp {
            // Recorded: it closes after each error.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    fn respond(&self, status: u16, body: String) -> Response<Body> {
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.dress(&mut response, false);
        response
    }

    /// The length of all of `body`, and its first half.
    fn cut(&self, body: String) -> Response<Body> {
        let whole = body.len();
        let mut half = Bytes::from(body);
        half.truncate(whole / 2);
        let mut response = Response::new(Stream::cut(half).boxed_unsync());
        self.dress(&mut response, false);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(whole));
        response
    }

    fn dress(&self, response: &mut Response<Body>, streamed: bool) {
        for (name, value) in self.options.shape.head(streamed) {
            response.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
    }
}
