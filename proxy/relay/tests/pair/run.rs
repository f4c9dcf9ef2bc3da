//! Runs a script between a client, a worker of the proxy, and a server, on Unix sockets and in one thread.

use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::time::Duration;

use connect::{Address, Target};
use meter::{RateLimits, Record, Stated};
use relay::testing::LoneWorker;
use relay::{
    Class, Control, Dropped, ModelSlot, Notice, Observer, Passthrough, Plan, Refusal, RoleSource, RuleKind,
    Shares, TokenRejection, Upstream, UsageStep, outbox,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::task::{JoinHandle, spawn_local, yield_now};
use usage::Policy;

use super::canonical;
use super::script::{Script, Step};

/// Turns in which no byte moves, after which the proxy must be waiting for its peers.
const QUIET_TURNS: usize = 4;

/// Turns after the end of all sockets within which the connection must end.
const END_TURNS: usize = 200;

/// Bytes of one read.
const READ_BYTES: usize = 4096;

/// A runtime and a listening socket on which scripts run, one after the other.
pub(crate) struct Stage {
    runtime: LocalRuntime,
    listener: UnixListener,
    path: PathBuf,
}

/// The outcome of a script.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The bytes that the client received.
    pub(crate) client: Vec<u8>,
    /// The bytes that the client sent.
    pub(crate) sent: usize,
    /// The connections of the server, in the order in which they were accepted.
    pub(crate) servers: Vec<SeenServer>,
    /// The records of the meter.
    pub(crate) records: Vec<Arc<Record>>,
    /// The amounts of the worker's capacities that are in use at the end.
    pub(crate) in_use: [usize; 4],
    /// The bytes of the worker's memory for messages that no connection had after the last step.
    pub(crate) free_output_bytes: usize,
    /// True if the connection did not end although the client had closed its socket.
    pub(crate) outlives: bool,
    /// Panics and other losses.
    pub(crate) lost: Vec<Dropped>,
}

/// The traffic of one connection of the server.
#[derive(Debug, Default)]
pub(crate) struct SeenServer {
    pub(crate) received: Vec<u8>,
    pub(crate) sent: Vec<u8>,
    /// The numbers, in the script, of the answers to its requests.
    pub(crate) numbers: Vec<usize>,
    /// True once the server has closed its half.
    pub(crate) is_ended: bool,
}

/// A connection of the server.
struct Server {
    socket: Option<UnixStream>,
    /// The bytes of answers that it may send.
    pending: Vec<u8>,
    /// True once the proxy has ended it.
    is_over: bool,
    seen: SeenServer,
}

/// The sockets during a run.
struct Run<'a> {
    script: &'a Script,
    listener: &'a UnixListener,
    client: Option<UnixStream>,
    unsent: &'a [u8],
    is_stalled: bool,
    is_server_stalled: bool,
    outlives: bool,
    servers: Vec<Server>,
    /// The number of answers that were begun.
    answers: usize,
    serving: JoinHandle<()>,
    received: Vec<u8>,
    /// True once the proxy has ended the client's connection.
    is_client_over: bool,
}

impl Stage {
    /// A stage with a socket of its own in the folder for temporary files.
    pub(crate) fn new() -> Self {
        let thread = std::thread::current().id();
        let path = std::env::temp_dir().join(format!("pair-{}-{thread:?}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(LocalOptions::default()).expect("a runtime");
        let listener = {
            let _entered = runtime.enter();
            UnixListener::bind(&path).expect("a path for a socket")
        };
        Self { runtime, listener, path }
    }

    /// Runs a script to its end.
    pub(crate) fn run(&self, script: &Script) -> Seen {
        self.runtime.block_on(async {
            let (client, proxys) = UnixStream::pair().expect("two sockets");
            // The minimum that the kernel allows, so that a client that does not read soon blocks the proxy.
            socket2::SockRef::from(&proxys).set_send_buffer_size(1).expect("a small buffer");
            let (outbox, inbox) = outbox(16);
            let (lost, losses) = channel();
            let plan = plan(&self.path, script);
            let control = Control { tenants: Arc::default(), gate: None };
            let worker = Rc::new(LoneWorker::new(plan, control, Box::new(Losses(lost)), outbox));
            let mut run = Run {
                script,
                listener: &self.listener,
                client: Some(client),
                unsent: &script.client,
                is_stalled: false,
                is_server_stalled: false,
                outlives: false,
                servers: Vec::new(),
                answers: 0,
                serving: spawn_local({
                    let worker = Rc::clone(&worker);
                    async move { worker.serve(proxys, None).await }
                }),
                received: Vec::new(),
                is_client_over: false,
            };
            for step in &script.steps {
                run.step(*step).await;
                run.settle().await;
            }
            let free_output_bytes = worker.free_output_bytes();
            run.finish().await;
            run.settle().await;
            Seen {
                in_use: worker.in_use(),
                free_output_bytes,
                outlives: run.outlives,
                records: inbox
                    .try_iter()
                    .filter_map(Notice::finished)
                    .map(|finished| finished.record)
                    .collect(),
                client: run.received,
                sent: script.client.len() - run.unsent.len(),
                servers: run.servers.into_iter().map(|server| server.seen).collect(),
                lost: losses.try_iter().collect(),
            }
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Run<'_> {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Send(len) => self.send(len),
            Step::Answer(len) => {
                if let Some(server) = self.servers.last_mut() {
                    server.send(len);
                }
            }
            Step::AnswerEarly => self.begin_answer(),
            Step::Stall => self.is_stalled = !self.is_stalled,
            Step::StallServer => self.is_server_stalled = !self.is_server_stalled,
            Step::EndClient => {
                self.unsent = &self.unsent[self.unsent.len()..];
                end(self.client.as_mut()).await;
            }
            Step::CloseClient => {
                self.client = None;
                // A client that has closed its socket looks like one that has closed its half.
                self.outlives |= !self.script.half_close && !self.ends().await;
            }
            Step::EndServer => {
                if let Some(server) = self.servers.last_mut() {
                    server.end().await;
                }
            }
            Step::CloseServer => {
                if let Some(server) = self.servers.last_mut() {
                    server.end().await;
                    server.socket = None;
                }
            }
        }
    }

    fn send(&mut self, len: usize) {
        let Some(client) = &self.client else { return };
        let len = len.min(self.unsent.len());
        if let Ok(sent) = client.try_write(&self.unsent[..len]) {
            self.unsent = &self.unsent[sent..];
        }
    }

    /// Begins the next answer on the last connection, if a request there has none.
    fn begin_answer(&mut self) {
        let number = self.answers;
        let Some(server) = self.servers.last_mut() else { return };
        let requests = canonical::requests(&server.seen.received).unwrap_or_default();
        if requests.len() > server.seen.numbers.len() {
            server.pending.extend_from_slice(self.script.answer(number));
            server.seen.numbers.push(number);
            self.answers += 1;
        }
    }

    /// Runs turns until no byte moves.
    async fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < QUIET_TURNS {
            yield_now().await;
            quiet = if self.receive().await { 0 } else { quiet + 1 };
        }
    }

    /// Receives the bytes and connections that have arrived. Returns true if there were any.
    async fn receive(&mut self) -> bool {
        let mut has_moved = false;
        while let Some(Ok((socket, _))) = ready(self.listener.accept()).await {
            self.servers.push(Server {
                socket: Some(socket),
                pending: Vec::new(),
                is_over: false,
                seen: SeenServer::default(),
            });
            has_moved = true;
        }
        if let Some(client) = self.client.as_ref().filter(|_| !self.is_stalled) {
            has_moved |= read(client, &mut self.received, &mut self.is_client_over);
        }
        for server in self.servers.iter_mut().filter(|_| !self.is_server_stalled) {
            let Some(socket) = &server.socket else { continue };
            if read(socket, &mut server.seen.received, &mut server.is_over) {
                has_moved = true;
                let requests = canonical::requests(&server.seen.received).unwrap_or_default();
                let whole = requests.iter().filter(|request| request.is_whole).count();
                for _ in server.seen.numbers.len()..whole {
                    server.pending.extend_from_slice(self.script.answer(self.answers));
                    server.seen.numbers.push(self.answers);
                    self.answers += 1;
                }
            }
        }
        has_moved
    }

    /// Sends all that is left, then ends the sockets: first the server's, because an answer may need its end.
    async fn finish(&mut self) {
        (self.is_stalled, self.is_server_stalled) = (false, false);
        loop {
            let before = self.progress();
            self.send(usize::MAX);
            for server in &mut self.servers {
                server.send(usize::MAX);
            }
            self.settle().await;
            if before == self.progress() {
                let open = self.servers.iter_mut().find(|server| !server.seen.is_ended);
                let Some(server) = open else { break };
                server.end().await;
                self.settle().await;
            }
        }
        end(self.client.as_mut()).await;
        self.settle().await;
        self.client = None;
        assert!(self.ends().await, "the connection does not end");
    }

    /// Returns true if the connection of the client ends.
    async fn ends(&mut self) -> bool {
        for _ in 0..END_TURNS {
            self.receive().await;
            if self.serving.is_finished() {
                return true;
            }
            yield_now().await;
        }
        false
    }

    fn progress(&self) -> (usize, usize, usize) {
        let pending = self.servers.iter().map(|server| server.pending.len()).sum();
        (self.unsent.len(), self.received.len(), pending)
    }
}

impl Server {
    fn send(&mut self, len: usize) {
        let Some(socket) = self.socket.as_ref().filter(|_| !self.seen.is_ended) else { return };
        let len = len.min(self.pending.len());
        if let Ok(sent) = socket.try_write(&self.pending[..len]) {
            self.seen.sent.extend(self.pending.drain(..sent));
        }
    }

    async fn end(&mut self) {
        self.seen.is_ended = true;
        end(self.socket.as_mut()).await;
    }
}

/// Reads all bytes that have arrived. Returns true if there were any.
fn read(socket: &UnixStream, into: &mut Vec<u8>, is_over: &mut bool) -> bool {
    let before = into.len();
    while !*is_over {
        into.reserve(READ_BYTES);
        let space = into.capacity() - into.len();
        match socket.try_read_buf(into) {
            Ok(0) => *is_over = true,
            Err(error) => {
                *is_over = error.kind() != io::ErrorKind::WouldBlock;
                break;
            }
            // There are no more.
            Ok(read) if read < space => break,
            Ok(_) => {}
        }
    }
    into.len() > before
}

async fn end(socket: Option<&mut UnixStream>) {
    if let Some(socket) = socket {
        let _: io::Result<()> = tokio::io::AsyncWriteExt::shutdown(socket).await;
    }
}

/// The output of a future that is ready now.
async fn ready<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn plan(path: &Path, script: &Script) -> Plan {
    Plan {
        upstreams: vec![Upstream {
            name: "under-test".into(),
            listen: Vec::new(),
            target: Target::new(Address::Unix(path.into()), None),
            prefix: "".into(),
            kind: None,
            provider: "openai".into(),
            usage: if script.is_edited { Policy::Inject } else { Policy::Observe },
            role: RoleSource::default(),
            authority: None,
        }],
        report_rejections: false,
        tokenized: Arc::default(),
        trace: None,
        workers: 1,
        stall: Duration::from_secs(1),
        tokens_max: 10_000_000,
        connect_timeout: Duration::from_secs(2),
        head_timeout: Duration::from_secs(30),
        pool_idle: Duration::from_secs(4),
        pool_size: 8,
        drain_delay: Duration::ZERO,
        drain_grace: Duration::from_secs(5),
        half_close: script.half_close,
        forwards: false,
        refuse_detached: false,
        transparent: false,
        connections: 1000,
        shares: Shares {
            body_idle: Duration::from_secs(30),
            body_min_rate_bytes: 128,
            body_time: Duration::from_secs(300),
            client_stall: Duration::from_secs(120),
            gather_room_bytes: 64 * 1024 * 1024,
            upstream_connections: 4096,
            h2_streams: 256,
            sockets: usize::MAX,
        },
    }
}

/// Reports losses, among them panics.
struct Losses(Sender<Dropped>);

impl Observer for Losses {
    fn model(&mut self, _: &str) -> ModelSlot {
        ModelSlot(1)
    }
    fn known_model(&mut self, _: &str) -> Option<ModelSlot> {
        Some(ModelSlot(1))
    }
    fn unknown_model(&mut self) -> ModelSlot {
        ModelSlot(0)
    }
    fn begin(&mut self, _: ModelSlot) {}
    fn admit(&mut self, _: ModelSlot, _: ModelSlot) {}
    fn live(&mut self, _: ModelSlot, _: u64, _: u64) {}
    fn rate_limits(&mut self, _: ModelSlot, _: &Arc<str>, _: &RateLimits) {}
    fn end(&mut self, _: ModelSlot, _: &Record) {}
    fn abandon(&mut self, _: ModelSlot) {}
    fn passthrough(&mut self, _: Passthrough) {}
    fn mislabelled(&mut self, _: Stated) {}
    fn refuse(&mut self, _: Refusal) {}
    fn reject(&mut self, _: &str, _: Refusal) {}
    fn tenant(&mut self, _: RuleKind) {}
    fn untrusted_header(&mut self) {}
    fn untrusted_token(&mut self, _: TokenRejection) {}
    fn usage(&mut self, _: UsageStep) {}
    fn dropped(&mut self, kind: Dropped, _: u64) {
        let _ = self.0.send(kind);
    }
    fn overhead(&mut self, _: Class, _: u64) {}
}
