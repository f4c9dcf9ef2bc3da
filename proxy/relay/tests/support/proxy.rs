//! The proxy under test, with an observer that records its calls.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use connect::{Address, Protocol, Target, Tls, TlsFiles, Verification};
use meter::{RateLimits, Record, Stated};
use relay::{
    Class, Control, Dropped, Inbox, Listen, ListenAddress, ModelSlot, Observer, Passthrough, Plan, Refusal,
    RoleSource, RuleKind, Running, Shares, TokenRejection, Upstream, UsageStep, outbox, start,
};

use usage::Policy;

use super::wires::Wires;
use super::{Peer, http2_front, http2_gateway, tls};

/// A proxy between the wires of its test. Dropping it stops it.
pub(crate) struct Proxy {
    pub(crate) running: Running,
    pub(crate) inbox: Inbox,
    seen: Arc<Mutex<Seen>>,
    /// The client that uses HTTP/2, if the test has such wires.
    gateway: Option<SocketAddr>,
    _tls: tls::Registered,
}

/// The calls of the observers of all workers.
#[derive(Default)]
pub(crate) struct Seen {
    /// Exchanges in the in-flight gauge.
    pub(crate) seated: i64,
    pub(crate) passed: Vec<Passthrough>,
    pub(crate) mislabelled: Vec<Stated>,
    pub(crate) refused: Vec<Refusal>,
    /// The known tenants of rejected requests.
    pub(crate) rejected: Vec<(String, Refusal)>,
    pub(crate) lost: Vec<Dropped>,
    pub(crate) usage: Vec<UsageStep>,
    /// The rate limits by the names of their upstreams.
    pub(crate) rate_limits: Vec<(String, RateLimits)>,
    /// The kinds of rules that resolved tenants.
    pub(crate) rules: Vec<RuleKind>,
    /// Number of header fields from untrusted peers.
    pub(crate) untrusted: usize,
    /// The reasons why tokens were rejected.
    pub(crate) distrusted: Vec<TokenRejection>,
    /// Panic when the next tenant is reported.
    pub(crate) rule_panics: bool,
    /// Panic on the next unmetered request.
    pub(crate) panics: bool,
    /// Panic in the meter at the next token.
    pub(crate) meter_panics: bool,
    /// Called by the worker at the beginning of the next exchange.
    pub(crate) at_begin: Option<Hook>,
    /// Called by the worker, in the meter, at the next token.
    pub(crate) at_token: Option<Hook>,
}

/// A call from a worker's thread, which waits for it.
pub(crate) type Hook = Box<dyn FnOnce() + Send>;

impl Proxy {
    /// A proxy with one worker in front of `upstream`.
    pub(crate) fn new(upstream: SocketAddr) -> Self {
        Self::with(upstream, |_| {})
    }

    /// As [`new`](Self::new), with another plan.
    pub(crate) fn with(upstream: SocketAddr, change: impl FnOnce(&mut TestPlan)) -> Self {
        let wires = Wires::current();
        let mut plan = plan(upstream);
        if wires.has_upstream_tls() {
            plan.upstreams[0].target = secure(http2_front::start(upstream, wires.upstream));
        }
        change(&mut plan);
        if wires.has_client_tls() {
            plan.listen_with_tls();
        }
        let seen = Arc::new(Mutex::new(Seen::default()));
        let observers = (0..plan.workers)
            .map(|_| Box::new(Recorder(Arc::clone(&seen))) as Box<dyn Observer + Send>)
            .collect();
        let (sender, inbox) = outbox(1024);
        let running = start(plan.relay, plan.control, observers, sender).unwrap();
        let with_tls = running.listeners().iter().filter(|listener| listener.is_tls);
        let _tls = tls::Registered::new(with_tls.map(|listener| tcp(&listener.address)).collect());
        let gateway = (wires.client == Protocol::Http2)
            .then(|| http2_gateway::start(tcp(&running.listeners()[0].address)));
        Self { running, inbox, seen, gateway, _tls }
    }

    /// Returns a head as the receiver gets it on these wires: HTTP/2 has lower-case names, and the host in another place.
    pub(crate) fn spelled(head: &str) -> String {
        let wires = Wires::current();
        if !wires.has_http2() {
            return head.to_owned();
        }
        let is_request = !head.starts_with("HTTP/");
        let mut lines: Vec<String> = head.split_inclusive("\r\n").map(str::to_owned).collect();
        for line in &mut lines[1..] {
            let name = line.find(':').unwrap_or(0);
            line[..name].make_ascii_lowercase();
        }
        // An HTTP/2 upstream gets the host first. To the head of an HTTP/2 client it is added behind the others, before the
        // coding.
        let is_first = wires.upstream == Protocol::Http2;
        let end = lines.len() - 1;
        lines[1..end].sort_by_key(|line| match line.split(':').next() {
            Some("host") => u8::from(!is_first),
            Some("transfer-encoding") if is_request && !is_first => 2,
            _ => u8::from(is_first),
        });
        lines.concat()
    }

    /// The connections to a scripted upstream for requests in turn: a stream of HTTP/2 has its own.
    pub(crate) fn connections_for(requests: usize) -> usize {
        if Wires::current().upstream == Protocol::Http1 { 1 } else { requests }
    }

    /// The address to which a test connects that speaks HTTP/1.1.
    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway.unwrap_or_else(|| self.listener())
    }

    /// The address of its own listener.
    pub(crate) fn listener(&self) -> SocketAddr {
        tcp(&self.running.listeners()[0].address)
    }

    pub(crate) fn connect(&self) -> Peer {
        Peer::connect(self.address())
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.running.stop_now();
        if !std::thread::panicking() {
            self.running.join();
        }
    }
}

/// The address of a TCP listener.
pub(crate) fn tcp(address: &ListenAddress) -> SocketAddr {
    match address {
        ListenAddress::Tcp(address) => *address,
        ListenAddress::Unix { .. } => panic!("{address} is not a TCP address"),
    }
}

/// An observer that discards all calls.
pub(crate) fn observer() -> Box<dyn Observer + Send> {
    Box::new(Recorder(Arc::default()))
}

/// An upstream with TLS, whose certificate is not verified.
pub(crate) fn secure(upstream: SocketAddr) -> Target {
    let files = TlsFiles { verification: Verification::Off, ..TlsFiles::default() };
    Target::new(Address::host(&upstream.ip().to_string(), upstream.port()), Some(Tls::read(&files).unwrap()))
}

/// The plan of a proxy under test, and what its control plane decides.
pub(crate) struct TestPlan {
    pub(crate) relay: Plan,
    pub(crate) control: Control,
}

impl TestPlan {
    /// Gives TLS to the listeners that have none.
    pub(crate) fn listen_with_tls(&mut self) {
        for listen in self.relay.upstreams.iter_mut().flat_map(|upstream| &mut upstream.listen) {
            listen.tls.get_or_insert_with(tls::server);
        }
    }
}

impl Deref for TestPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.relay
    }
}

impl DerefMut for TestPlan {
    fn deref_mut(&mut self) -> &mut Plan {
        &mut self.relay
    }
}

/// A listener without TLS.
pub(crate) fn listen(address: SocketAddr) -> Listen {
    Listen { address: ListenAddress::Tcp(address), tls: None, proxy_protocol: false }
}

/// The plan of most tests.
pub(crate) fn plan(upstream: SocketAddr) -> TestPlan {
    let relay = Plan {
        upstreams: vec![Upstream {
            name: "under-test".into(),
            listen: vec![listen(([127, 0, 0, 1], 0).into())],
            target: Target::new(Address::host(&upstream.ip().to_string(), upstream.port()), None),
            prefix: "".into(),
            kind: None,
            provider: "openai".into(),
            usage: Policy::Observe,
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
        // Long enough for the tests of other subjects on a busy machine.
        head_timeout: Duration::from_secs(30),
        pool_idle: Duration::from_secs(4),
        pool_size: 8,
        drain_delay: Duration::ZERO,
        drain_grace: Duration::from_secs(5),
        half_close: false,
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
    };
    TestPlan { relay, control: Control { tenants: Arc::default(), gate: None } }
}

struct Recorder(Arc<Mutex<Seen>>);

impl Observer for Recorder {
    fn model(&mut self, _: &str) -> ModelSlot {
        ModelSlot(1)
    }
    fn known_model(&mut self, _: &str) -> Option<ModelSlot> {
        None
    }
    fn unknown_model(&mut self) -> ModelSlot {
        ModelSlot(0)
    }
    fn begin(&mut self, _: ModelSlot) {
        let hook = {
            let mut seen = self.0.lock().unwrap();
            seen.seated += 1;
            seen.at_begin.take()
        };
        hook.into_iter().for_each(|hook| hook());
    }
    fn admit(&mut self, _: ModelSlot, _: ModelSlot) {}
    fn live(&mut self, _: ModelSlot, _: u64, _: u64) {
        let (panics, hook) = {
            let mut seen = self.0.lock().unwrap();
            (std::mem::take(&mut seen.meter_panics), seen.at_token.take())
        };
        assert!(!panics, "asked for by the test");
        hook.into_iter().for_each(|hook| hook());
    }
    fn end(&mut self, _: ModelSlot, _: &Record) {
        self.0.lock().unwrap().seated -= 1;
    }
    fn rate_limits(&mut self, _: ModelSlot, upstream: &Arc<str>, limits: &RateLimits) {
        self.0.lock().unwrap().rate_limits.push((upstream.to_string(), *limits));
    }
    fn abandon(&mut self, _: ModelSlot) {
        self.0.lock().unwrap().seated -= 1;
    }
    fn passthrough(&mut self, reason: Passthrough) {
        let panics = {
            let mut seen = self.0.lock().unwrap();
            seen.passed.push(reason);
            std::mem::take(&mut seen.panics)
        };
        assert!(!panics, "asked for by the test");
    }
    fn mislabelled(&mut self, stated: Stated) {
        self.0.lock().unwrap().mislabelled.push(stated);
    }
    fn refuse(&mut self, reason: Refusal) {
        self.0.lock().unwrap().refused.push(reason);
    }
    fn reject(&mut self, tenant: &str, reason: Refusal) {
        self.0.lock().unwrap().rejected.push((tenant.to_owned(), reason));
    }
    fn tenant(&mut self, rule: RuleKind) {
        let panics = std::mem::take(&mut self.0.lock().unwrap().rule_panics);
        assert!(!panics, "asked for by the test");
        self.0.lock().unwrap().rules.push(rule);
    }
    fn untrusted_header(&mut self) {
        self.0.lock().unwrap().untrusted += 1;
    }
    fn untrusted_token(&mut self, why: TokenRejection) {
        self.0.lock().unwrap().distrusted.push(why);
    }
    fn usage(&mut self, step: UsageStep) {
        self.0.lock().unwrap().usage.push(step);
    }
    fn dropped(&mut self, what: Dropped, _: u64) {
        self.0.lock().unwrap().lost.push(what);
    }
    fn overhead(&mut self, _: Class, _: u64) {}
}
