//! Routes a request to its response.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, StatusCode};

use super::Engine;
use crate::params::{Defaults, GenerationParams, Rejection};
use crate::reply::{ConnectionLost, Reply};
use crate::shape::Shape;

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, ConnectionLost>;

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// A page, or an error.
    Page(Response<Body>),
    /// A generation with these parameters, which has not begun.
    Generation(Box<GenerationParams>),
}

/// Maximum bytes of a request body: above the longest prompt in use.
const MAX_BODY_BYTES: usize = 64 << 20;

impl<S: Shape> Engine<S> {
    /// Responds to one request. An error drops the connection.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Result<Response<Body>, ConnectionLost> {
        let params = match self.answer(request).await? {
            Answer::Page(page) => return Ok(page),
            Answer::Generation(params) => *params,
        };
        let is_streamed = params.stream;
        let reply = self.reply(params);
        Ok(match is_streamed {
            true => self.headed(reply.stream().boxed_unsync(), true),
            false => self.page(200, reply.whole().await?),
        })
    }

    /// Reads a request. An error drops the connection.
    pub async fn answer(&self, request: Request<Incoming>) -> Result<Answer, ConnectionLost> {
        self.counters.requests.add(1);
        let path = request.uri().path();
        let endpoint = match (request.method(), self.options.shape.endpoint(path)) {
            (&Method::POST, Some(endpoint)) => endpoint,
            (_, Some(_)) => {
                let (status, message) = self.options.shape.wrong_method();
                return Ok(Answer::Page(self.reject(status, message)));
            }
            (&Method::GET | &Method::HEAD, None) => return Ok(Answer::Page(self.named_page(path))),
            _ => return Ok(Answer::Page(self.reject(404, "Not Found"))),
        };
        let body = match Limited::new(request.into_body(), MAX_BODY_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Ok(Answer::Page(self.reject(413, "Request body too large")));
            }
            Err(_) => return Err(ConnectionLost),
        };
        let defaults = Defaults {
            seed: self.options.seed,
            output_tokens: self.options.output_tokens,
            models: &self.options.models,
        };
        let params = GenerationParams::parse(endpoint, &body, &defaults)
            .and_then(|params| self.options.shape.check(&params).map(|()| params));
        Ok(match params {
            Ok(params) => Answer::Generation(Box::new(params)),
            Err(Rejection { status, message }) => Answer::Page(self.reject(status, &message)),
        })
    }

    /// Begins a generation. A client that leaves from now on counts as an aborted one.
    pub fn reply(&self, params: GenerationParams) -> Reply {
        let model = self.options.speed.clone();
        let writer = self.options.shape.writer(&params, &model);
        let generation = self.batch.generation(&params);
        Reply::new(params, generation, writer, model)
    }

    /// Returns the page of a path besides generation.
    fn named_page(&self, path: &str) -> Response<Body> {
        let shape = &self.options.shape;
        let mut names: Vec<&str> = self.options.models.iter().map(String::as_str).collect();
        if names.is_empty() {
            names.push("simulated");
        }
        match path {
            "/v1/models" => self.page(200, shape.models(&names)),
            "/health" => self.page(200, shape.health().to_owned()),
            "/metrics" => {
                let mut page = self.page(200, shape.metrics(&self.counters.read(), names[0]));
                let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                page.headers_mut().insert("content-type", kind);
                page
            }
            _ => self.reject(404, "Not Found"),
        }
    }

    /// Returns an error response, and counts it.
    pub fn reject(&self, status: u16, message: &str) -> Response<Body> {
        self.counters.refused.add(1);
        self.page(status, self.options.shape.error_body(status, message))
    }

    /// Returns a response with this body.
    pub fn page(&self, status: u16, body: String) -> Response<Body> {
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        let mut response = self.headed(body.boxed_unsync(), false);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
    }

    /// Returns a response with this body and the server's headers.
    pub fn headed(&self, body: Body, is_streamed: bool) -> Response<Body> {
        let mut response = Response::new(body);
        for (name, value) in self.options.shape.head(is_streamed) {
            response.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        response
    }
}
