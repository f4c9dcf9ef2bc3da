//! Connects the GPU readings: inputs are the relay's load cells and the ended exchanges, outputs are readings and
//! attributed energy for the metrics, and attributed exchanges for the export.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gpu::{Ended, ExchangeUse, Hooks, Notices, Running, Settled};
use meter::{Load, Record};
use metrics::{Metrics, Part, Share};
use otlp::Energy;
use price::Charge;
use relay::clock;

use crate::charger::Charger;
use crate::export_link::Exports;
use crate::gpu_samples::{GpuSamples, cost_usd, joules, seconds};
use crate::idle_gpu::IdleGpu;

/// Starts the GPU readings. `loads` are the upstreams' load cells, in the plan's order.
pub fn start(
    plan: gpu::Plan,
    loads: Vec<Arc<Mutex<Load>>>,
    metrics: &Metrics,
    charger: &Charger,
    exports: &Exports,
) -> io::Result<Running<PendingAttribution>> {
    let upstreams = plan.upstreams.iter().map(|upstream| Arc::clone(&upstream.name)).collect();
    let prices = plan.prices;
    let attribution = Arc::default();
    let samples = Arc::new(Mutex::new(GpuSamples { upstreams, prices, gpus: None, attribution }));
    let of_gpus = Arc::clone(&samples);
    let (shown, shares, per_token) = (metrics.clone(), metrics.clone(), metrics.clone());
    let (charger, exports) = (charger.clone(), exports.clone());
    let idle = RefCell::new(charger.ledger().cloned().map(IdleGpu::new));
    gpu::start(
        plan,
        Hooks {
            now: Box::new(clock::now),
            load: Box::new(move |upstream, at| {
                loads[upstream].lock().unwrap_or_else(PoisonError::into_inner).read(at)
            }),
            reading: Box::new(move |reading| {
                let mut latest = of_gpus.lock().unwrap_or_else(PoisonError::into_inner);
                latest.gpus = Some(Arc::new(reading));
                shown.set(Part::Gpus, Arc::new(latest.clone()));
            }),
            attribution: Box::new(move |reading| {
                let reading = Arc::new(reading);
                let mut latest = samples.lock().unwrap_or_else(PoisonError::into_inner);
                latest.attribution = Arc::clone(&reading);
                let tenants = reading.tenants.iter().map(|(tenant, used)| {
                    let cost_usd = cost_usd(&used.cost, &prices);
                    let (energy_joules, gpu_seconds) = (joules(used.energy_nj), seconds(used.gpu_ns));
                    (tenant, Share { energy_joules, gpu_seconds, cost_usd })
                });
                let models = reading.models.iter().map(|(model, used)| (model, joules(used.energy_nj)));
                shares.attribution(tenants, models, Arc::new(latest.clone()));
                if let Some(idle) = &mut *idle.borrow_mut() {
                    idle.read(&reading);
                }
            }),
            settled: Box::new(move |Settled { context: ticket, used }| {
                if let Some(nanojoules) = used.and_then(|used| used.per_token_nj) {
                    per_token.energy_per_output_token(&ticket.model, nanojoules as f64 / 1e9);
                }
                exports.submit(Arc::clone(&ticket.record), &ticket.charge, used.and_then(energy));
                if let Some(used) = &used {
                    charger.used(&ticket.record, ticket.charge, used);
                }
            }),
        },
    )
}

/// An exchange whose share of the GPU work is not attributed yet.
pub struct PendingAttribution {
    record: Arc<Record>,
    /// The label of its model.
    model: Arc<str>,
    /// The charge by the price book.
    charge: Charge,
}

/// The queue of exchanges whose GPU use is attributed next. A clone shares it.
#[derive(Clone)]
pub struct AttributionQueue {
    /// The upstreams' names, in the plan's order.
    upstreams: Vec<Arc<str>>,
    metrics: Metrics,
    /// Empty without GPU readings, and until they have started.
    notices: Arc<OnceLock<Notices<PendingAttribution>>>,
}

impl AttributionQueue {
    /// Creates the queue; it rejects exchanges until [`Self::open`].
    pub fn new(upstreams: Vec<Arc<str>>, metrics: &Metrics) -> Self {
        Self { upstreams, metrics: metrics.clone(), notices: Arc::default() }
    }

    /// Opens the queue to the running GPU readings.
    pub fn open(&self, gpus: &Running<PendingAttribution>) {
        self.notices.get_or_init(|| gpus.notices());
    }

    /// Submits a charged exchange; `Err` returns it without GPU readings, or if the queue is full. Never waits.
    pub(crate) fn submit(&self, record: Arc<Record>, charge: Charge) -> Result<(), (Arc<Record>, Charge)> {
        let identity = &record.identity;
        let upstream = self.upstreams.iter().position(|name| *name == identity.upstream);
        let (Some(notices), Some(upstream)) = (self.notices.get(), upstream) else {
            return Err((record, charge));
        };
        let model = self.metrics.model_label(&identity.model);
        let ended = Ended {
            upstream,
            model: Arc::clone(&model),
            tenant: self.metrics.tenant_label(&identity.tenant),
            entered: record.load.entered,
            left: record.load.left,
            // A prefill leg's single token is no output: its energy belongs to the prompt.
            output_tokens: if identity.role.is_counted() { record.tokens.output() } else { 0 },
            context: PendingAttribution { record, model, charge },
        };
        notices.ended(ended).map_err(|exchange| (exchange.record, exchange.charge))
    }
}

/// Returns the energy of a use; `None` if its GPU time is unknown.
fn energy(used: ExchangeUse) -> Option<Energy> {
    let ExchangeUse { energy_nj, gpu_ns, utilization, .. } = used;
    Some(Energy { joules_nano: energy_nj, gpu_ns: gpu_ns?, utilization })
}
