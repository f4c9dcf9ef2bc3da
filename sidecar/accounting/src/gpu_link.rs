//! Connects the GPU readings: inputs are the relay's load cells and the ended exchanges, outputs are readings and
//! attributed energy for the metrics, and attributed exchanges for the export.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gpu::{
    AttributionReading, Cost, Ended, ExchangeUse, GpusReading, Hooks, Notices, Prices, Running, Settled,
    Throttle,
};
use meter::{Load, Record};
use metrics::{DeviceShare, GpuReading, Metrics, ModelShare, Share, TenantShare};
use otlp::Energy;
use price::Charge;
use relay::clock;

use crate::charger::Charger;
use crate::export_link::Exports;
use crate::idle_gpu::IdleGpu;

/// Starts the GPU readings. `loads` are the upstreams' load cells, in the plan's order.
pub fn start(
    plan: gpu::Plan,
    loads: Vec<Arc<Mutex<Load>>>,
    metrics: &Metrics,
    charger: &Charger,
    exports: &Exports,
) -> io::Result<Running<PendingAttribution>> {
    let names: Vec<Arc<str>> = plan.upstreams.iter().map(|upstream| Arc::clone(&upstream.name)).collect();
    let prices = plan.prices;
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
                // A rejected sample counts as failed, too; where no device was ever seen, only the readings
                // themselves can be lost.
                let lost = match reading.gpus.is_empty() {
                    true => reading.refused + u64::from(reading.broken),
                    false => reading.failed,
                };
                shown.gpu(readings(&reading, &names), lost);
            }),
            attribution: Box::new(move |reading| {
                shares.attribution(&attribution(&reading, &prices));
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

fn readings(reading: &GpusReading, names: &[Arc<str>]) -> Vec<GpuReading> {
    reading.gpus.iter().map(|gpu| one(gpu, names)).collect()
}

fn one(gpu: &gpu::GpuReading, names: &[Arc<str>]) -> GpuReading {
    let device = &gpu.device;
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    // Stale values are left out.
    let fresh = |value: Option<f64>| value.filter(|_| gpu.up);
    let watts = |milliwatts: Option<u64>| milliwatts.map(|mw| mw as f64 / 1e3);
    let units = device.activity.units();
    let clocks = device.clocks.units();
    GpuReading {
        id: Arc::clone(&device.uuid),
        name: text(&device.name),
        vendor: device.vendor.unwrap_or_default().into(),
        driver_version: text(&device.driver),
        parent: device.parent.clone().unwrap_or_default(),
        source: gpu.source_name(),
        upstreams: gpu.upstreams.iter().filter_map(|at| names.get(*at).cloned()).collect(),
        shared: gpu.shared(),
        up: gpu.up,
        utilization_ratio: fresh(device.utilization_ppm.map(|ppm| f64::from(ppm) / 1e6)),
        memory_usage_bytes: device.memory_used.filter(|_| gpu.up),
        memory_limit_bytes: device.memory_total.filter(|_| gpu.up),
        power_watts: fresh(watts(device.power_mw)),
        power_limit_watts: fresh(watts(device.power_limit_mw)),
        energy_joules: gpu.energy_nj.map(joules),
        temperature_celsius: fresh(device.temperature_c),
        errors: [device.errors_corrected, device.errors_uncorrected],
        activity_ratio: metrics::GPU_UNITS.map(|unit| fresh(named(&units, unit))),
        clock_hertz: metrics::GPU_CLOCKS.map(|clock| fresh(named(&clocks, clock).map(|hertz| hertz as f64))),
        throttled_seconds: metrics::GPU_THROTTLES.map(|reason| {
            let at = Throttle::ALL.iter().position(|known| known.name() == reason)?;
            Some(gpu.throttled_ns[at] as f64 / 1e9)
        }),
        processes: device.processes.map(u64::from).filter(|_| gpu.up),
        resets: gpu.resets,
        gap_seconds: gpu.gap_ns as f64 / 1e9,
    }
}

fn named<T: Copy>(list: &[(&str, Option<T>)], name: &str) -> Option<T> {
    list.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value)
}

fn attribution(reading: &AttributionReading, prices: &Prices) -> metrics::AttributionReading {
    let tenants = reading.tenants.iter().map(|(tenant, used)| TenantShare {
        tenant: Arc::clone(tenant),
        share: share(used.energy_nj, used.gpu_ns, &used.cost, prices),
    });
    let models = reading
        .models
        .iter()
        .map(|(model, used)| ModelShare { model: Arc::clone(model), energy_joules: joules(used.energy_nj) });
    let devices = reading.devices.iter().map(|device| DeviceShare {
        id: Arc::clone(&device.uuid),
        idle: share(device.idle_nj, device.idle_ns, &device.idle_cost, prices),
        unattributed: share(
            device.unattributed_nj,
            device.unattributed_ns,
            &device.unattributed_cost,
            prices,
        ),
        pending_joules: joules(device.pending_nj),
        pending_seconds: device.pending_ns as f64 / 1e9,
    });
    metrics::AttributionReading {
        tenants: tenants.collect(),
        models: models.collect(),
        devices: devices.collect(),
        lost: reading.late + reading.refused,
    }
}

fn share(nj: u128, ns: u128, cost: &Cost, prices: &Prices) -> Share {
    let usd = |pico: i128, price: u64| (price > 0).then(|| metrics::units(pico));
    Share {
        energy_joules: joules(nj),
        gpu_seconds: ns as f64 / 1e9,
        cost_usd: [usd(cost.hours_pico, prices.hour_pico), usd(cost.energy_pico, prices.kwh_pico)],
    }
}

fn joules(nanojoules: u128) -> f64 {
    nanojoules as f64 / 1e9
}
