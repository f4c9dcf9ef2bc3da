//! The server: serves each connection so that its responses can fail.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use simulator::batch::Outcome;
use simulator::reply::{ConnectionLost, Stream};
use simulator::server::{Answer, Body, Engine, Handle};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::faults::{Faults, Usage};
use crate::play::{self, Whole};
use crate::shape::Shape;
use crate::simulate;
use crate::socket::{Reset, Socket};

/// The request header that carries [`Faults`].
const HEADER: &str = "x-simulate";

/// The configuration of a server.
pub type Options = simulator::server::Options<Shape>;

/// The simulated server, whose responses can fail.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Listens on `addr` (port 0 for any free one) and serves until the handle is dropped.
    pub async fn bind(addr: SocketAddr, options: Options) -> io::Result<Handle> {
        let shape = options.shape;
        let serve = move |stream, engine| serve(stream, engine, shape);
        simulator::server::Server::bind_with(addr, options, serve).await
    }
}

async fn serve(stream: TcpStream, engine: Arc<Engine<Shape>>, shape: Shape) {
    // Without it the kernel may delay a token until the previous one is acknowledged.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let is_llamacpp = shape == Shape::LlamaCpp;
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let service = service_fn(|request| respond(request, &engine, shape, &reset));
    // An error is a client that left or a fault; both are counted elsewhere.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        // As recorded: llama.cpp sends `Server` without a date, vLLM `server` with one.
        .title_case_headers(is_llamacpp)
        .auto_date_header(!is_llamacpp)
        .serve_connection(socket, service)
        .await;
}

/// Responds to one request. An error drops the connection.
async fn respond(
    request: Request<Incoming>,
    engine: &Engine<Shape>,
    shape: Shape,
    reset: &Reset,
) -> Result<Response<Body>, ConnectionLost> {
    let faults = request.headers().get(HEADER).map_or_else(|| Ok(Faults::default()), faults);
    let (mut response, closes) = match faults {
        Ok(faults) => {
            let closes = faults.close;
            (answer(request, faults, engine, shape, reset).await?, closes)
        }
        Err(message) => (engine.reject(400, &message), false),
    };
    // As recorded: llama.cpp closes after each error.
    if closes || (shape == Shape::LlamaCpp && response.status().as_u16() >= 400) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

fn faults(header: &HeaderValue) -> Result<Faults, String> {
    header.to_str().map_err(|_| format!("{HEADER}: not text"))?.parse()
}

async fn answer(
    request: Request<Incoming>,
    faults: Faults,
    engine: &Engine<Shape>,
    shape: Shape,
    reset: &Reset,
) -> Result<Response<Body>, ConnectionLost> {
    // The generation exists before the first wait, so that a client that leaves during it counts as an aborted one.
    let answer = match engine.answer(request).await? {
        Answer::Page(page) => Err(page),
        Answer::Generation(mut params) => {
            if let Err(message) = simulate::apply(&mut params) {
                return Ok(engine.reject(400, &message));
            }
            match faults.usage {
                Usage::Refused if params.stream_options => {
                    return Ok(engine.reject(400, "stream_options: Extra inputs are not permitted"));
                }
                Usage::Never => params.usage = false,
                Usage::Always => params.usage = true,
                Usage::AsAsked | Usage::Refused => {}
            }
            Ok(engine.reply(*params))
        }
    };
    if let Some(wait) = faults.slow_head {
        sleep(wait).await;
    }
    if faults.no_head || faults.error_status.is_some() {
        if let Ok(reply) = answer {
            reply.generation.end(Outcome::Faulted);
        }
        return match faults.error_status {
            Some(status) if !faults.no_head => Ok(engine.reject(status, "Simulated failure.")),
            _ => Err(ConnectionLost),
        };
    }
    let reply = match answer {
        Ok(reply) => reply,
        Err(page) => return Ok(page),
    };
    if reply.params.stream {
        let reset = reset.clone();
        let stream = Stream::new(|chunks| play::stream(reply, faults, shape, reset, chunks));
        return Ok(engine.headed(stream.boxed_unsync(), true));
    }
    Ok(match play::whole(reply, faults, reset).await? {
        Whole::Body(body) => engine.page(200, body),
        Whole::Error => engine.reject(500, "Simulated engine failure."),
        Whole::Cut(body) => cut(engine, body),
    })
}

/// Returns the first half of `body` with the length of all of it.
fn cut(engine: &Engine<Shape>, body: String) -> Response<Body> {
    let length = body.len();
    let mut half = Bytes::from(body);
    half.truncate(length / 2);
    let stream = Stream::new(|chunks| async move {
        // The receiver is the body that polls this, so it still exists.
        let _ = chunks.send(half).await;
        Err(ConnectionLost)
    });
    let mut response = engine.headed(stream.boxed_unsync(), false);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}
