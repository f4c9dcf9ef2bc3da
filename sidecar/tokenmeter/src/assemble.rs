//! The composition root: creates every part from the plan and connects them. The only file that knows all parts.
//!
//! ```text
//! clients → relay (workers) → upstreams
//!             │ cells          ▲ probe ─→ readiness ─┐
//!             │                ▲ servers: their own pages
//!             ▼                  │                    ▼
//!           metrics ◀────────────┴──────────────→ page ← scrapes, probes, people
//!             outbox ─→ records ─→ pipeline ─→ access log ─→ gpus ─→ exports ─→ a collector
//!                                     └─→ budgets, ledger ─→ a central store
//! ```
//!
//! A stop reverses the start: readiness fails, the relay drains, the outbox empties, a last sample of the GPUs
//! attributes pending exchanges, and the ledger commits its queue: the process has drained. At its end the last
//! telemetry is sent, and the admin listener closes last, so that operators can follow the stop.

mod curve;
mod drain;
mod probe;
mod readiness;
mod redirected_loop;
mod resource_usage;
mod source;
pub(crate) mod start_error;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use accounting::Billing;
use accounting::admin_page::AdminPage;
use accounting::billing;
use accounting::export_link::Exports;
use accounting::gpu_link::{self, AttributionQueue, PendingAttribution};
use accounting::pipeline::Pipeline;
use accounting::records;
use accounting::tokenizer_stage::{self, TokenizerStage};
use accounting::totals::{Totals, UpstreamTotals};
use metrics::{Currency, Metrics, Part};
use origin::Origin;
use relay::{BoundListener, ListenAddress, Observer, UpstreamProfile};
use servers::{Detected, FrontEnd, Hooks, ProxyTotals};

use crate::assemble::drain::Drain;
use crate::assemble::probe::{Prober, Target};
use crate::assemble::readiness::Readiness;
use crate::assemble::resource_usage::ResourceUsage;
use crate::assemble::source::Source;
use crate::assemble::start_error::StartError;
use crate::plan::Plan;
use crate::plan::loops;
use crate::plan::machine::ThisMachine;
use crate::reload::{self, CertificatesWatch, Reload, TenantsWatch, UpstreamTlsWatch, Watch};
use crate::version::version;

/// A running tokenmeter with open listeners.
pub struct Process {
    relay: relay::Running,
    records: JoinHandle<()>,
    prober: Prober,
    servers: servers::Running,
    gpus: Option<gpu::Running<PendingAttribution>>,
    page: page::Running,
    readiness: Readiness,
    drain: Drain,
    metrics: Metrics,
    exports: Exports,
    billing: Billing,
    reload: Reload,
    urls: Vec<String>,
}

impl Process {
    /// Starts all parts of the plan, or none.
    pub fn start(plan: &Plan) -> Result<Self, StartError> {
        let metrics = Metrics::new(metrics::Options {
            models: plan.max_models,
            version: version().to_owned(),
            objectives: plan.objectives.clone(),
            semconv: plan.telemetry.semconv,
            upstreams: plan.telemetry.upstreams.clone(),
            currency: currency(plan),
        });
        refuse_second_writer(plan)?;
        let billing = Billing::open(
            billing::Plan { prices: plan.prices.as_ref(), budgets: &plan.budgets, ledger: &plan.ledger },
            &metrics,
        )
        .map_err(StartError::Thread)?;
        let resource_usage = Arc::new(ResourceUsage::default());
        metrics.set(Part::Resources, Arc::clone(&resource_usage) as _);
        let exports = exports(plan, &metrics);
        let targets: Vec<Target> = plan.relay.upstreams.iter().map(target).collect();
        for target in targets.iter().filter(|target| target.server.is_secure()) {
            metrics.set_upstream_verified(&target.name, !target.server.is_unverified());
        }
        let readiness =
            Readiness::new(targets.iter().map(|target| format!("{} at {}", target.name, target.url)));
        let shared_addresses = Arc::new(OnceLock::new());
        let drain = Drain::new(plan.drain_token.clone());
        if let Some(token) = &plan.admin_token {
            token.create_or_warn("/metrics and the live page fail");
        }
        let source = Source {
            page: AdminPage::new(&metrics, &billing.state()),
            curve: curve::cached(&metrics),
            token: plan.admin_token.clone(),
            resource_usage: Arc::clone(&resource_usage),
            readiness: readiness.clone(),
            drain: drain.clone(),
            upstreams: targets.iter().map(|target| (target.name.clone(), target.url.clone())).collect(),
            addresses: Arc::clone(&shared_addresses),
        };
        let hosts = page::AllowedHosts::new(plan.admin_hosts.iter().cloned());
        let with_tls = plan.admin_tls.as_ref().map(|(listener, _)| listener.clone());
        let listeners = page::Listeners { clear: plan.admin, with_tls };
        let page = page::start(listeners, hosts, plan.admin_connections, Box::new(source))
            .map_err(|error| StartError::page(error, plan))?;

        let (outbox, inbox) = relay::outbox(plan.outbox_records);
        let totals = Totals::new(plan.relay.upstreams.iter().map(|upstream| &upstream.name));
        let upstreams = plan.relay.upstreams.iter().map(|upstream| Arc::clone(&upstream.name));
        let attribution = AttributionQueue::new(upstreams.collect(), &metrics);
        let (to_gpus, to_export) = (attribution.clone(), exports.clone());
        let pipeline =
            Arc::new(Pipeline::new(totals.clone(), &metrics, &billing, to_gpus, to_export, plan.log.access));
        let tokenizer_stage = tokenizers(plan, &pipeline)?;
        let overflow = Arc::clone(&pipeline);
        outbox.on_full(Box::new(move |record| overflow.bill_overflow(record)));
        let records = records::take(inbox, pipeline, tokenizer_stage, billing.charger().clone())
            .map_err(StartError::Thread)?;
        let observers = (0..plan.relay.workers).map(|_| observer(&metrics)).collect();
        let live = Arc::<tenant::Live>::default();
        let reload = reload(plan, &billing, &live, &metrics).map_err(StartError::Thread)?;
        reload.wait_first(FIRST_LOOK);
        if plan.relay.transparent {
            let listeners = plan.relay.upstreams.iter().flat_map(|upstream| &upstream.listen);
            let redirected = listeners.filter(|listen| listen.tls.is_none());
            redirected_loop::refuse(&targets, redirected.filter_map(|listen| listen.address.tcp()))?;
        }
        let control = relay::Control { tenants: live, gate: billing.gate() };
        let relay = relay::start(plan.relay.clone(), control, observers, outbox)
            .map_err(|error| StartError::relay(error, plan))?;
        let names = plan.relay.upstreams.iter().map(|upstream| Arc::clone(&upstream.name));
        resource_usage.running(&relay, names.collect());
        let listeners = relay.listeners();
        let addresses = listeners.iter().filter_map(|listener| listener.address.tcp()).collect::<Vec<_>>();
        let urls = targets.iter().map(|target| target.url.clone()).collect();
        let shown = (0..targets.len()).map(|upstream| shown_listeners(listeners, upstream).join(", "));
        let shown = shown.collect();
        let own: Vec<SocketAddr> = addresses.iter().copied().chain(page.addresses()).collect();
        let started = refuse_loops(&targets, &own).and_then(|()| {
            let servers = servers::start(plan.servers.clone(), hooks(plan, &metrics, &relay, totals))
                .map_err(StartError::Thread)?;
            let prober = Prober::start(targets, readiness.clone(), metrics.clone(), servers.reach())
                .map_err(StartError::Thread)?;
            let gpus = plan
                .gpu
                .clone()
                .map(|plan| gpu_link::start(plan, relay.loads(), &metrics, billing.charger(), &exports));
            let gpus = gpus.transpose().map_err(StartError::Gpu)?;
            Ok((prober, servers, gpus))
        });
        let (prober, servers, gpus) = match started {
            Ok(both) => both,
            Err(error) => {
                relay.stop_now();
                relay.join();
                return Err(error);
            }
        };
        if let Some(gpus) = &gpus {
            attribution.open(gpus);
        }
        shared_addresses.get_or_init(|| shown);
        readiness.serving();
        Ok(Self {
            relay,
            records,
            prober,
            servers,
            gpus,
            page,
            readiness,
            drain,
            metrics,
            exports,
            billing,
            reload,
            urls,
        })
    }

    /// Reloads the tenants file, the price file and the keys.
    pub fn reload(&self) {
        self.reload.now();
    }

    /// Returns the address of the first TCP listener.
    #[cfg(feature = "demo")]
    pub(crate) fn address(&self) -> SocketAddr {
        let mut addresses = self.relay.listeners().iter().filter_map(|listener| listener.address.tcp());
        addresses.next().unwrap_or_else(|| self.page.address())
    }

    /// Returns the admin address.
    pub fn admin(&self) -> SocketAddr {
        self.page.address()
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the start line: listeners, metrics and live page.
    pub fn summary(&self) -> String {
        let urls = self.urls.iter().enumerate();
        let listeners = urls.flat_map(|(upstream, url)| {
            let shown = shown_listeners(self.relay.listeners(), upstream);
            shown.into_iter().map(move |listener| format!("{listener} -> {url}"))
        });
        let with_tls = self.page.tls_address().map(|address| format!("; admin https://{address}/"));
        format!(
            "tokenmeter {}: listening on {}; metrics http://{admin}/metrics; page http://{admin}/{}",
            version(),
            listeners.collect::<Vec<_>>().join(", "),
            with_tls.unwrap_or_default(),
            admin = self.page.address(),
        )
    }

    /// Returns true if no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.relay.in_flight() == 0
    }

    /// Fails readiness, then drains the relay: its delay, then its grace.
    pub fn drain(&self) {
        self.readiness.draining();
        self.relay.drain();
    }

    /// Cuts all connections.
    pub fn stop_now(&self) {
        self.readiness.draining();
        self.relay.stop_now();
    }

    /// Waits for a request that orders the drain.
    pub fn drain_ordered(&self) -> impl Future<Output = ()> + use<> {
        let drain = self.drain.clone();
        async move { drain.ordered().await }
    }

    /// Waits until the relay has ended and its last record is committed.
    pub fn join(self) -> Drained {
        self.relay.join();
        // The panic hook has reported a panic.
        let _ = self.records.join();
        // The server may stop now, which is no fault.
        drop((self.prober, self.servers));
        // The drop takes a last sample, which attributes pending exchanges.
        drop(self.gpus);
        drop(self.reload);
        let billing = self.billing.state();
        drop(self.billing);
        self.drain.end();
        Drained { exports: self.exports, is_loss_unnoted: billing.is_loss_unnoted(), _page: self.page }
    }
}

/// A tokenmeter that has drained: only its admin address is served.
#[must_use = "`end` sends the last telemetry"]
pub struct Drained {
    exports: Exports,
    is_loss_unnoted: bool,
    _page: page::Running,
}

impl Drained {
    /// Sends the last telemetry, and closes the admin address. Returns the exit code: a failure if the ledger lost rows
    /// and could note that nowhere.
    pub fn end(self) -> ExitCode {
        self.exports.shutdown();
        if self.is_loss_unnoted { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// The longest wait for published keys before the listeners open: without keys, tokens name no tenant.
const FIRST_LOOK: Duration = Duration::from_secs(5);

fn observer(metrics: &Metrics) -> Box<dyn Observer + Send> {
    Box::new(metrics.worker())
}

/// Returns the currency in the names of metrics.
fn currency(plan: &Plan) -> Currency {
    let code = plan.prices.as_ref().and_then(|book| Currency::new(book.currency().code()));
    code.unwrap_or_default()
}

/// Starts the reload of tenant rules, certificates and prices.
fn reload(plan: &Plan, billing: &Billing, live: &Arc<tenant::Live>, metrics: &Metrics) -> io::Result<Reload> {
    let mut watches: Vec<Box<dyn Watch>> =
        vec![Box::new(TenantsWatch::new(plan.tenancy.clone(), Arc::clone(live)))];
    if !plan.certificates.is_empty() {
        let watch = CertificatesWatch::new(plan.certificates.clone());
        metrics.set(Part::Certificates, watch.samples());
        watches.push(Box::new(watch));
    }
    let upstreams = plan.relay.upstreams.iter();
    let secure = upstreams.filter_map(|upstream| Some((&*upstream.name, upstream.target.tls()?)));
    if let Some(watch) = UpstreamTlsWatch::of(secure) {
        watches.push(Box::new(watch));
    }
    if let Some(path) = &plan.prices_path {
        watches.push(Box::new(reload::prices::watch(path, billing.charger().clone())));
    }
    let metrics = metrics.clone();
    reload::start(watches, Box::new(move |file, accepted| metrics.reloaded(file, accepted)))
}

/// Starts the export. A failure does not prevent the start (law 3).
fn exports(plan: &Plan, metrics: &Metrics) -> Exports {
    let started = Exports::start(plan.telemetry.otlp.clone(), metrics);
    started.unwrap_or_else(|error| {
        tracing::error!(%error, "nothing is exported to the collector; see OTEL_EXPORTER_OTLP_*");
        Exports::default()
    })
}

/// Starts the stage that counts by tokenizers.
fn tokenizers(plan: &Plan, pipeline: &Arc<Pipeline>) -> Result<TokenizerStage, StartError> {
    let files = plan.tokenizers.iter().map(|file| (file.model.clone(), file.path.clone()));
    TokenizerStage::start(files.collect(), pipeline).map_err(|error| match error {
        tokenizer_stage::Error::Tokenizers(errors) => {
            let origin = plan.tokenizers.first().map_or(Origin::Default, |file| file.origin.clone());
            StartError::Tokenizers { errors, origin }
        }
        tokenizer_stage::Error::Thread(cause) => StartError::Thread(cause),
    })
}

/// Returns the receivers of the upstreams' own metrics.
fn hooks(plan: &Plan, metrics: &Metrics, relay: &relay::Running, totals: Totals) -> Hooks {
    let names: Vec<_> = plan.relay.upstreams.iter().map(|upstream| Arc::clone(&upstream.name)).collect();
    let metrics = metrics.clone();
    let learned = relay.profiles().to_vec();
    Hooks {
        detected: Box::new(move |upstream, detected| learn(&learned[upstream], detected)),
        reading: Box::new(move |upstream, reading| metrics.engine(&names[upstream], reading)),
        totals: Box::new(move |upstream| {
            let UpstreamTotals { input, cached, output } = totals.read(upstream);
            ProxyTotals { input, cached, output }
        }),
    }
}

/// Passes a detected server type to the data plane. The metrics get it with the readings.
fn learn(learned: &UpstreamProfile, detected: Detected) {
    learned.kind(detected.kind);
    if let Some(front_end) = detected.front_end {
        learned.front_end(front_end == FrontEnd::Rust);
    }
}

fn target(upstream: &relay::Upstream) -> Target {
    Target {
        name: upstream.name.to_string(),
        url: format!("{}{}", upstream.target, upstream.prefix),
        server: upstream.target.clone(),
    }
}

/// Rejects a ledger that another process of this host writes: rows would stay in memory while both run.
fn refuse_second_writer(plan: &Plan) -> Result<(), StartError> {
    let Some(ledger) = plan.ledger.ledger.as_ref().filter(|_| !plan.ledger.wait) else { return Ok(()) };
    match ledger::writer_on_this_host(&ledger.path) {
        Some(writer) => Err(StartError::LedgerInUse { path: ledger.path.clone(), writer }),
        None => Ok(()),
    }
}

/// Returns the URLs of an upstream's listeners.
fn shown_listeners(all: &[BoundListener], upstream: usize) -> Vec<String> {
    let listeners = all.iter().filter(|listener| listener.upstream == upstream);
    let shown = listeners.map(|BoundListener { address, is_tls, .. }| match (address, is_tls) {
        (ListenAddress::Unix { .. }, _) => address.to_string(),
        (ListenAddress::Tcp(_), true) => format!("https://{address}"),
        (ListenAddress::Tcp(_), false) => format!("http://{address}"),
    });
    shown.collect()
}

/// Rejects upstreams that are own listeners, for listeners whose port the system chose.
fn refuse_loops(targets: &[Target], own: &[SocketAddr]) -> Result<(), StartError> {
    for target in targets {
        if let Some(reached) = loops::reaches(&ThisMachine, target.server.address(), own.iter()) {
            return Err(StartError::Loop { url: target.url.clone(), reached });
        }
    }
    Ok(())
}
