//! The client: a number of connections, each of which sends one request after another with keep-alive and checks every
//! byte of the replies. The results go to stdout as one line of JSON.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::reply::Reply;
use crate::socket::Stream;
use crate::tls::Certificate;
use crate::wire::{self, Ask, Frames};
use crate::{Failure, child, cpu, quantile, socket};

/// The parameters of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Connections at once.
    pub(crate) connections: u32,
    /// Requests on each, one after the other.
    pub(crate) requests: u32,
    /// The reply that each request asks for.
    pub(crate) ask: Ask,
    /// The time for which connections stay open after the last reply. If it is not 0, few are opened at a time.
    pub(crate) idle_ms: u32,
    /// The path of each request.
    pub(crate) path: &'static str,
}

/// The line that reports the first text of every connection, or that all of them are idle.
pub(crate) const FLOWING: &str = "flowing";

/// Maximum time of a reply beyond its pauses.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connections that are opened at a time if they become idle, so that replies need little memory beside them.
const LANES: usize = 16;

/// The time from the first text of a held stream to the client's close; meanwhile the proxy finishes its work.
const HOLD: Duration = Duration::from_millis(5);

/// Minimum time between the starts of paced streams.
const A_START: Duration = Duration::from_millis(1);

/// The results, times in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Complete and correct frames.
    pub(crate) frames: u64,
    /// Complete and correct replies.
    pub(crate) replies: u64,
    /// Other replies.
    pub(crate) failed: u64,
    /// The error of the first of those.
    pub(crate) wrong: Option<String>,
    /// From the first request to the last reply.
    pub(crate) seconds: f64,
    /// CPU time of the client itself.
    pub(crate) cpu_ns: u64,
    /// From a text frame's sending to its arrival: the median.
    pub(crate) frame_p50: Option<f64>,
    /// The 99th percentile.
    pub(crate) frame_p99: Option<f64>,
    /// From a request to its first text, the median.
    pub(crate) first_p50: Option<f64>,
    /// From a request to the end of its reply, the median.
    pub(crate) whole_p50: Option<f64>,
    /// The 99th percentile.
    pub(crate) whole_p99: Option<f64>,
    /// The times at which clients left held streams, as [`wire::now_us`] counts, in order.
    pub(crate) left_at_us: Vec<u32>,
}

impl Load {
    /// A load of metered requests, whose connections are closed after their last reply.
    pub(crate) const fn new(connections: u32, requests: u32, ask: Ask) -> Self {
        Self { connections, requests, ask, idle_ms: 0, path: wire::PATH }
    }

    /// Output tokens of one reply, for a meter.
    pub(crate) fn tokens(&self) -> u64 {
        if self.path == wire::UNMETERED_PATH { 0 } else { self.ask.tokens() }
    }

    /// The arguments that [`run`] reads.
    pub(crate) fn words(&self, target: &Target<'_>) -> Vec<String> {
        let (kind, text, pause_us, pad) = match self.ask {
            Ask::Json => ("json", 0, 0, 0),
            Ask::Held => ("held", 0, 0, 0),
            Ask::Stream { text, pause_us, pad } => ("stream", text, pause_us, pad),
        };
        let rewrites = u32::from(target.rewrites);
        let numbers = [self.connections, self.requests, text, pause_us, pad, self.idle_ms, rewrites];
        let folder = target.tls.map_or_else(|| CLEAR.to_owned(), Certificate::folder);
        let words =
            ["load".to_owned(), target.address.to_owned(), folder, self.path.to_owned(), kind.to_owned()];
        words.into_iter().chain(numbers.iter().map(u32::to_string)).collect()
    }
}

/// The server of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// Its address.
    pub(crate) address: &'a str,
    /// Its certificate, if it speaks TLS.
    pub(crate) tls: Option<&'a Certificate>,
    /// True if its responses have other bytes than the upstream's.
    pub(crate) rewrites: bool,
}

impl<'a> Target<'a> {
    /// A server without TLS.
    pub(crate) fn clear(address: &'a str) -> Self {
        Self { address, tls: None, rewrites: false }
    }
}

/// The word in place of a certificate's folder, without TLS.
const CLEAR: &str = "clear";

/// Sends requests, checks the replies, and prints the results.
pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let [target, folder, path, kind, numbers @ ..] = words else {
        return Err("load TARGET clear|FOLDER PATH json|stream|held …".into());
    };
    let paths = [wire::PATH, wire::UNMETERED_PATH];
    let path =
        paths.into_iter().find(|known| known == path).ok_or_else(|| format!("PATH: one of {paths:?}"))?;
    let numbers = numbers.iter().map(|word| word.parse()).collect::<Result<Vec<u32>, _>>()?;
    let [connections, requests, text, pause_us, pad, idle_ms, rewrites] = numbers[..] else {
        return Err(
            "load TARGET FOLDER PATH KIND CONNECTIONS REQUESTS TEXT PAUSE_US PAD IDLE_MS REWRITES".into()
        );
    };
    let ask = match *kind {
        "json" => Ask::Json,
        "held" => Ask::Held,
        _ => Ask::Stream { text, pause_us, pad },
    };
    let load = Load { path, idle_ms, ..Load::new(connections, requests, ask) };
    let tls = (*folder != CLEAR).then(|| Certificate::of(folder).connector()).transpose()?;
    let mut seen = LocalSet::new().block_on(&socket::runtime()?, all(load, target, tls, rewrites == 1))?;
    seen.cpu_ns = cpu::on_cpu_ns(&[std::process::id()]);
    Ok(child::say(&serde_json::to_string(&seen)?)?)
}

/// The results of one connection.
#[derive(Default)]
struct Own {
    flows: bool,
    frames: u64,
    replies: u64,
    failed: u64,
    wrong: Option<String>,
    frame_us: Vec<f64>,
    first_us: Vec<f64>,
    whole_us: Vec<f64>,
    left_at_us: Vec<u32>,
    /// The connection, until all are idle.
    stream: Option<Stream>,
}

/// The state common to all connections.
struct Shared {
    load: Load,
    target: String,
    tls: Option<TlsConnector>,
    frames: Frames,
    request: Vec<u8>,
    to_flow: Cell<u32>,
    lanes: Semaphore,
    rewrites: bool,
}

async fn all(load: Load, target: &str, tls: Option<TlsConnector>, rewrites: bool) -> Result<Seen, Failure> {
    let pad = if let Ask::Stream { pad, .. } = load.ask { pad } else { 0 };
    let shared = Rc::new(Shared {
        load,
        target: target.to_owned(),
        tls,
        frames: Frames::new(pad),
        request: load.ask.request(load.path, target),
        to_flow: Cell::new(load.connections),
        lanes: Semaphore::new(if load.idle_ms > 0 { LANES } else { load.connections as usize }),
        rewrites,
    });
    let began = Instant::now();
    let tasks: Vec<_> = (0..load.connections)
        .map(|index| {
            let shared = Rc::clone(&shared);
            tokio::task::spawn_local(async move { one(index, &shared).await })
        })
        .collect();
    let mut sum = Own::default();
    let mut idle = Vec::new();
    for task in tasks {
        let own = task.await?;
        sum.frames += own.frames;
        sum.replies += own.replies;
        sum.failed += own.failed;
        sum.wrong = sum.wrong.or(own.wrong);
        sum.frame_us.extend(own.frame_us);
        sum.first_us.extend(own.first_us);
        sum.whole_us.extend(own.whole_us);
        sum.left_at_us.extend(own.left_at_us);
        idle.extend(own.stream);
    }
    let seconds = began.elapsed().as_secs_f64();
    if load.idle_ms > 0 {
        child::say(FLOWING)?;
        sleep(Duration::from_millis(load.idle_ms.into())).await;
    }
    drop(idle);
    Ok(Seen {
        frames: sum.frames,
        replies: sum.replies,
        failed: sum.failed,
        wrong: sum.wrong,
        seconds,
        cpu_ns: 0,
        frame_p50: quantile::of(&mut sum.frame_us, 0.5),
        frame_p99: quantile::of(&mut sum.frame_us, 0.99),
        first_p50: quantile::of(&mut sum.first_us, 0.5),
        whole_p50: quantile::of(&mut sum.whole_us, 0.5),
        whole_p99: quantile::of(&mut sum.whole_us, 0.99),
        left_at_us: sum.left_at_us,
    })
}

async fn one(index: u32, shared: &Shared) -> Own {
    let mut own = Own::default();
    let mut longest = PATIENCE;
    if let Ask::Stream { text, pause_us, .. } = shared.load.ask {
        let pause = Duration::from_micros(pause_us.into());
        longest += pause * text;
        if !pause.is_zero() {
            // Streams that start together would stay in step, and connecting is not measured.
            sleep(pause.max(A_START * shared.load.connections) * index / shared.load.connections).await;
        }
    }
    // The semaphore is never closed.
    let _lane = shared.lanes.acquire().await;
    let mut stream = None;
    for _ in 0..shared.load.requests {
        let done = match timeout(longest, exchange(&mut stream, shared, &mut own)).await {
            Ok(done) => done,
            Err(_) => Err(format!("no whole reply in {longest:?}")),
        };
        match done {
            Ok(()) => own.replies += 1,
            Err(wrong) => {
                own.failed += 1;
                own.wrong.get_or_insert(wrong);
                stream = None;
            }
        }
    }
    own.stream = stream.filter(|_| shared.load.idle_ms > 0);
    own
}

/// One request and its reply.
async fn exchange(slot: &mut Option<Stream>, shared: &Shared, own: &mut Own) -> Result<(), String> {
    let said = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let stream = match &mut *slot {
        Some(stream) => stream,
        None => {
            let opened = Stream::connect(&shared.target, shared.tls.as_ref()).await;
            slot.insert(opened.map_err(said("connect"))?)
        }
    };
    let began = Instant::now();
    stream.write_all(&shared.request).await.map_err(said("send"))?;
    stream.flush().await.map_err(said("send"))?;
    let mut reply = match shared.rewrites {
        false => Reply::new(shared.load.ask, &shared.frames),
        true => Reply::rewritten(shared.load.ask, &shared.frames),
    };
    let mut first = None;
    let is_held = shared.load.ask == Ask::Held;
    while !(reply.is_whole() || is_held && first.is_some()) {
        let checked = socket::read(stream, |bytes| {
            if bytes.is_empty() {
                return Err(format!("cut off after {} frames", reply.frames()));
            }
            reply.feed(bytes, wire::now_us(), |us| {
                own.frame_us.push(us.into());
                first.get_or_insert_with(|| began.elapsed());
            })
        });
        checked.await.map_err(said("receive"))??;
        if first.is_some() && !own.flows {
            own.flows = true;
            shared.flows().map_err(said("stdout"))?;
        }
    }
    own.frames += reply.frames();
    own.first_us.extend(first.map(micros));
    own.whole_us.push(micros(began.elapsed()));
    if is_held {
        sleep(HOLD).await;
        own.left_at_us.push(wire::now_us());
        *slot = None;
    }
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

impl Shared {
    /// Counts a connection that has its first text.
    fn flows(&self) -> io::Result<()> {
        self.to_flow.set(self.to_flow.get() - 1);
        if self.to_flow.get() == 0 { child::say(FLOWING) } else { Ok(()) }
    }
}
