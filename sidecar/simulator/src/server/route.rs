//! Routes a request to its response.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::sleep;

use super::{Engine, Shape};
use crate::batch::Outcome;
use crate::faults::{Faults, Usage};
use crate::params::{Defaults, Endpoint, GenerationParams, Rejection, SIMULATE_HEADER};
use crate::reply::{ConnectionLost, Reply, Stream, UnstreamedResponse};
use crate::socket::Reset;

type Body = UnsyncBoxBody<Bytes, ConnectionLost>;

/// Responds to one request. An error drops the connection.
pub(super) async fn answer(
    request: Request<Incoming>,
    engine: Arc<Engine>,
    reset: Reset,
) -> Result<Response<Body>, ConnectionLost> {
    engine.counters.requests.add(1);
    let shape = engine.options.shape;
    let own = match request.headers().get(SIMULATE_HEADER).map(faults) {
        None => None,
        Some(Ok(faults)) => Some(faults),
        Some(Err(message)) => return Ok(engine.reject(400, &message)),
    };
    let endpoint = match (request.method(), request.uri().path()) {
        (&Method::POST, path) => endpoint(shape, path),
        (&Method::GET | &Method::HEAD, path) => {
            return engine.serve_page(path, own.unwrap_or_default()).await;
        }
        (_, path) if endpoint(shape, path).is_some() && shape == Shape::Vllm => {
            return Ok(engine.reject(405, "Method Not Allowed"));
        }
        _ => None,
    };
    let Some(endpoint) = endpoint else {
        return Ok(engine.reject(404, "Not Found"));
    };

    let body = match Limited::new(request.into_body(), MAX_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Ok(engine.reject(413, "Request body too large"));
        }
        Err(_) => return Err(ConnectionLost),
    };
    let faults = own.unwrap_or_else(|| engine.options.faults.clone());
    engine.generate(endpoint, &body, faults, reset).await
}

/// Maximum bytes of a request body: above the longest prompt in use.
const MAX_BODY_BYTES: usize = 64 << 20;

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
    /// Serves the pages besides generation.
    async fn serve_page(&self, path: &str, faults: Faults) -> Result<Response<Body>, ConnectionLost> {
        if let Some(wait) = faults.slow_head {
            sleep(wait).await;
        }
        if faults.no_head {
            return Err(ConnectionLost);
        }
        if let Some(status) = faults.error_status {
            return Ok(self.reject(status, "Simulated failure."));
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
                self.reject(405, "Method Not Allowed")
            }
            _ => self.reject(404, "Not Found"),
        })
    }

    async fn generate(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        faults: Faults,
        reset: Reset,
    ) -> Result<Response<Body>, ConnectionLost> {
        let defaults = Defaults {
            seed: self.options.seed,
            output_tokens: self.options.output_tokens,
            models: &self.options.models,
        };
        let params = match GenerationParams::parse(endpoint, body, &defaults)
            .and_then(|params| self.admit(params, &faults))
        {
            Ok(params) => params,
            Err(Rejection { status, message }) => return Ok(self.reject(status, &message)),
        };
        // Before the first wait, so that a client that leaves during it counts as an aborted generation.
        let generation = self.batch.generation(&params);
        if let Some(wait) = faults.slow_head {
            sleep(wait).await;
        }
        if faults.no_head {
            generation.end(Outcome::Faulted);
            return Err(ConnectionLost);
        }
        if let Some(status) = faults.error_status {
            generation.end(Outcome::Faulted);
            return Ok(self.reject(status, "Simulated failure."));
        }

        let shape = self.options.shape;
        let model = self.options.speed.clone();
        let streamed = params.stream;
        let close = faults.close;
        let reply = Reply { writer: shape.writer(&params, &model), params, faults, model, generation, reset };
        let mut response = match streamed {
            true => {
                let mut response = Response::new(reply.stream().boxed_unsync());
                self.set_headers(&mut response, true);
                response
            }
            false => match reply.whole().await {
                UnstreamedResponse::Body(body) => self.respond(200, body),
                UnstreamedResponse::Error => self.reject(500, "Simulated engine failure."),
                UnstreamedResponse::Cut(body) => self.cut(body),
            },
        };
        if close {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(response)
    }

    /// Applies the faults and this server's own rules on usage.
    fn admit(&self, mut params: GenerationParams, faults: &Faults) -> Result<GenerationParams, Rejection> {
        let reject = |message: &str| Err(Rejection { status: 400, message: message.to_owned() });
        if params.stream_options && faults.usage == Usage::Refused {
            return reject("stream_options: Extra inputs are not permitted");
        }
        if params.stream_options && !params.stream && self.options.shape == Shape::Vllm {
            return reject("Stream options can only be defined when `stream=True`.");
        }
        match faults.usage {
            Usage::Never => (params.usage, params.usage_withheld) = (false, true),
            Usage::Always => params.usage = true,
            Usage::AsAsked | Usage::Refused => {}
        }
        Ok(params)
    }

    fn reject(&self, status: u16, message: &str) -> Response<Body> {
        self.counters.refused.add(1);
        let shape = self.options.shape;
        let mut response = self.respond(status, shape.error_body(status, message));
        if shape == Shape::LlamaCpp {
            // As recorded: llama.cpp closes after each error.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    fn respond(&self, status: u16, body: String) -> Response<Body> {
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.set_headers(&mut response, false);
        response
    }

    /// Returns the first half of `body` with the length of all of it.
    fn cut(&self, body: String) -> Response<Body> {
        let whole = body.len();
        let mut half = Bytes::from(body);
        half.truncate(whole / 2);
        let mut response = Response::new(Stream::cut(half).boxed_unsync());
        self.set_headers(&mut response, false);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(whole));
        response
    }

    fn set_headers(&self, response: &mut Response<Body>, streamed: bool) {
        for (name, value) in self.options.shape.head(streamed) {
            response.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
    }
}
