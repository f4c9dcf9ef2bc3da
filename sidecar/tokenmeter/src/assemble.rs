//! The composition root: makes every part by the plan and connects them. The only file that knows
//! them all; each of them knows as little of the others as it can.
//!
//! ```text
//! clients → relay (workers) → upstreams
//!             │ cells          ▲ probe ─→ readiness ─┐
//!             │                ▲ engine: their own pages
//!             ▼                  │                    ▼
//!           metrics ◀────────────┴──────────────→ page ← scrapes, probes, people
//!             outbox ─→ records ─→ totals ─→ books ─→ access log ─→ gpus ─→ exports ─→ a collector
//!                                              └─→ ledger ─→ a central store
//! ```
//!
//! The way out is the way in, backwards: readiness fails first, then the relay drains, then the
//! outbox runs dry, a last sample of the GPUs settles what it can, the ledger enters what waits, the last
//! telemetry is sent, and the page goes last, so that whoever looks sees the end.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::{Detected, FrontEnd, Hooks};
use metrics::{Currency, Metrics, ReloadedFile};
use relay::{Observer, UpstreamProfile};

use crate::books::{self, Books};
use crate::cli;
use crate::desk::{Desk, Tally};
use crate::exports::Exports;
use crate::gpus::{self, Entrance, Ticket};
use crate::holdings::Holdings;
use crate::loops;
use crate::machine::ThisMachine;
use crate::plan::Plan;
use crate::probe::{Prober, Target};
use crate::readiness::Readiness;
use crate::records;
use crate::recount::Recount;
use crate::reload::{self, Reload, TenantsWatch, Watch, Which};
use crate::source::Source;
use crate::start_error::StartError;
use crate::totals::Totals;

/// A running tokenmeter, every listener open.
pub struct Process {
    relay: relay::Running,
    records: JoinHandle<()>,
    _prober: Prober,
    _engines: engine::Running,
    gpus: Option<gpu::Running<Ticket>>,
    page: page::Running,
    readiness: Readiness,
    metrics: Metrics,
    exports: Exports,
    books: Books,
    reload: Reload,
    addresses: Vec<SocketAddr>,
    urls: Vec<String>,
}

impl Process {
    /// Starts everything the plan says, or nothing.
    pub fn start(plan: &Plan) -> Result<Self, StartError> {
        let metrics = Metrics::new(metrics::Options {
            models: plan.max_models,
            version: cli::version().to_owned(),
            objectives: plan.objectives.clone(),
            semconv: plan.telemetry.semconv,
            upstreams: plan.telemetry.upstreams.clone(),
            currency: currency(plan),
        });
        refuse_second_writer(plan)?;
        let books = Books::open(plan, &metrics).map_err(StartError::Thread)?;
        let state = books.state(&metrics);
        let holdings = Holdings::default();
        let exports = exports(plan, &metrics, state.clone(), holdings.clone());
        let targets: Vec<Target> = plan.relay.upstreams.iter().map(target).collect();
        let readiness =
            Readiness::new(targets.iter().map(|target| format!("{} at {}", target.name, target.url)));
        let tally = Tally::default();
        let shared_addresses = Arc::new(OnceLock::new());
        let source = Source {
            metrics: metrics.clone(),
            exports: exports.clone(),
            books: state,
            holdings: holdings.clone(),
            readiness: readiness.clone(),
            tally: tally.clone(),
            started: Instant::now(),
            upstreams: targets.iter().map(|target| (target.name.clone(), target.url.clone())).collect(),
            addresses: Arc::clone(&shared_addresses),
        };
        let hosts = page::AllowedHosts::new(plan.admin_hosts.iter().cloned());
        let page = page::start(plan.admin, hosts, plan.admin_connections, Box::new(source))
            .map_err(|error| StartError::page(error, &plan.admin_origin))?;

        let (outbox, inbox) = relay::outbox(plan.outbox_records);
        let totals = Totals::new(plan.relay.upstreams.iter().map(|upstream| &upstream.name));
        let watched = Arc::new(OnceLock::new());
        let entrance = Entrance {
            upstreams: plan.relay.upstreams.iter().map(|upstream| Arc::clone(&upstream.name)).collect(),
            notices: Arc::clone(&watched),
            metrics: metrics.clone(),
            spend: books.spend().clone(),
            exports: exports.clone(),
            access: plan.log.access,
        };
        let after = Box::new(move |record| entrance.enter(record));
        let desk = Arc::new(Desk::new(tally, totals.clone(), metrics.worker(), after));
        let recount = Recount::start(&plan.tokenizers, &desk)?;
        let records = records::take(inbox, outbox.missed(), desk, recount, books.spend().clone())
            .map_err(StartError::Thread)?;
        let observers = (0..plan.relay.workers).map(|_| observer(&metrics)).collect();
        let live = Arc::<tenant::Live>::default();
        let reload = reload(plan, &books, &live, &metrics).map_err(StartError::Thread)?;
        reload.wait_first(FIRST_LOOK);
        let data = relay::Plan { tenants: live, gate: books.gate(), ..plan.relay.clone() };
        let relay = relay::start(data, observers, outbox).map_err(|error| StartError::relay(error, plan))?;
        holdings.running(&relay);
        let addresses = relay.addresses().iter().map(|(_, address)| *address).collect::<Vec<_>>();
        let urls = targets.iter().map(|target| target.url.clone()).collect();
        let started = refuse_loops(&targets, &addresses, page.address()).and_then(|()| {
            let engines = engine::start(plan.engine.clone(), hooks(plan, &metrics, &relay, totals))
                .map_err(StartError::Thread)?;
            let prober = Prober::start(targets, readiness.clone(), metrics.clone(), engines.reach())
                .map_err(StartError::Thread)?;
            let gpus = plan
                .gpu
                .clone()
                .map(|plan| gpus::start(plan, relay.loads(), &metrics, books.spend(), &exports));
            let gpus = gpus.transpose().map_err(StartError::Gpu)?;
            Ok((prober, engines, gpus))
        });
        let (prober, engines, gpus) = match started {
            Ok(both) => both,
            Err(error) => {
                relay.stop_now();
                relay.join();
                return Err(error);
            }
        };
        if let Some(gpus) = &gpus {
            watched.get_or_init(|| gpus.notices());
        }
        shared_addresses.get_or_init(|| addresses.clone());
        readiness.serving();
        Ok(Self {
            relay,
            records,
            _prober: prober,
            _engines: engines,
            gpus,
            page,
            readiness,
            metrics,
            exports,
            books,
            reload,
            addresses,
            urls,
        })
    }

    /// Reads the files again that may change while we run.
    pub fn reload(&self) {
        self.reload.now();
    }

    /// Where each upstream is reached through us, in the plan's order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where the page and the metrics are.
    pub fn admin(&self) -> SocketAddr {
        self.page.address()
    }

    /// What was measured so far.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What listens where and where to look, on one line.
    pub fn summary(&self) -> String {
        let listeners = self.addresses.iter().zip(&self.urls);
        let listeners: Vec<String> =
            listeners.map(|(address, url)| format!("http://{address} -> {url}")).collect();
        format!(
            "tokenmeter {}: listening on {}; metrics http://{admin}/metrics; page http://{admin}/",
            cli::version(),
            listeners.join(", "),
            admin = self.page.address(),
        )
    }

    /// Returns true where no request waits for the rest of its answer.
    pub fn is_idle(&self) -> bool {
        self.relay.in_flight() == 0
    }

    /// Fails readiness, then lets the relay finish what is running: its delay, then its grace.
    pub fn drain(&self) {
        self.readiness.draining();
        self.relay.drain();
    }

    /// Cuts everything off now.
    pub fn stop_now(&self) {
        self.readiness.draining();
        self.relay.stop_now();
    }

    /// Waits until the relay has ended and its last record is taken.
    pub fn join(self) {
        self.relay.join();
        // A panic in there was reported when it happened.
        let _ = self.records.join();
        // A last sample settles what it can; then the last is sent.
        drop(self.gpus);
        drop(self.reload);
        drop(self.books);
        self.exports.shutdown();
    }
}

/// How long listeners stay shut for keys that others publish: who serves without them knows fewer tenants.
const FIRST_LOOK: Duration = Duration::from_secs(5);

fn observer(metrics: &Metrics) -> Box<dyn Observer + Send> {
    Box::new(metrics.worker())
}

/// The currency that names of metrics have.
fn currency(plan: &Plan) -> Currency {
    let code = plan.prices.as_ref().and_then(|book| Currency::new(book.currency().code()));
    code.unwrap_or_default()
}

/// What is read again while we run: whose exchanges are, and what they cost.
fn reload(plan: &Plan, books: &Books, live: &Arc<tenant::Live>, metrics: &Metrics) -> io::Result<Reload> {
    let mut watches: Vec<Box<dyn Watch>> =
        vec![Box::new(TenantsWatch::new(plan.tenancy.clone(), Arc::clone(live)))];
    if let Some(path) = &plan.prices_path {
        watches.push(Box::new(books.watch_prices(path)));
    }
    let metrics = metrics.clone();
    let told = move |which: Which, taken: bool| metrics.reloaded(named(which), taken);
    reload::start(watches, Box::new(told))
}

fn named(which: Which) -> ReloadedFile {
    match which {
        Which::Tenants => ReloadedFile::Tenants,
        Which::Prices => ReloadedFile::Prices,
        Which::Keys => ReloadedFile::Keys,
    }
}

/// The way to the collector. What cannot be sent is no reason not to serve (law 3).
fn exports(plan: &Plan, metrics: &Metrics, books: books::State, holdings: Holdings) -> Exports {
    let told = metrics.clone();
    let refresh = move || {
        books.refresh();
        holdings.refresh(&told);
    };
    let started = Exports::start(plan.telemetry.otlp.clone(), metrics, refresh);
    started.unwrap_or_else(|error| {
        tracing::error!(%error, "nothing is sent to the collector; see OTEL_EXPORTER_OTLP_*");
        Exports::none(metrics)
    })
}

/// Where what the upstreams say of themselves goes.
fn hooks(plan: &Plan, metrics: &Metrics, relay: &relay::Running, totals: Totals) -> Hooks {
    let names: Vec<_> = plan.relay.upstreams.iter().map(|upstream| Arc::clone(&upstream.name)).collect();
    let metrics = metrics.clone();
    let learned = relay.profiles().to_vec();
    Hooks {
        detected: Box::new(move |upstream, detected| learn(&learned[upstream], detected)),
        reading: Box::new(move |upstream, reading| metrics.engine(&names[upstream], reading)),
        totals: Box::new(move |upstream| totals.read(upstream)),
    }
}

/// An upstream was recognised: the data plane is told. The metrics learn of it with its readings.
fn learn(learned: &UpstreamProfile, detected: Detected) {
    learned.kind(detected.kind);
    if let Some(front_end) = detected.front_end {
        learned.front_end(front_end == FrontEnd::Rust);
    }
}

fn target(upstream: &relay::Upstream) -> Target {
    let authority = match upstream.host.contains(':') {
        true => format!("[{}]:{}", upstream.host, upstream.port),
        false => format!("{}:{}", upstream.host, upstream.port),
    };
    Target {
        name: upstream.name.to_string(),
        url: format!("http://{authority}{}", upstream.prefix),
        host: upstream.host.to_string(),
        port: upstream.port,
    }
}

/// Refuses a ledger that another process of this host writes: rows would wait in memory for as long as both run.
fn refuse_second_writer(plan: &Plan) -> Result<(), StartError> {
    let Some(ledger) = plan.ledger.ledger.as_ref().filter(|_| !plan.ledger.wait) else { return Ok(()) };
    match ledger::writer_on_this_host(&ledger.path) {
        Some(writer) => Err(StartError::LedgerInUse { path: ledger.path.clone(), writer }),
        None => Ok(()),
    }
}

/// The plan has refused what it could; a port that was 0 is known only now.
fn refuse_loops(targets: &[Target], addresses: &[SocketAddr], admin: SocketAddr) -> Result<(), StartError> {
    for target in targets {
        let own = addresses.iter().chain([&admin]);
        if let Some(reached) = loops::reaches(&ThisMachine, &target.host, target.port, own) {
            return Err(StartError::Loop { url: target.url.clone(), reached });
        }
    }
    Ok(())
}
