//! Meters.

use std::sync::Arc;

use exchange::Setup;
use meter::ServerKind;
use usage::Policy;

use crate::entry::entry;
use crate::handles::{METERS, MeterHandle, PRICES, PricesHandle, TENANTS, TenantsHandle};
use crate::host::{Host, Settings};
use crate::slice::{self, Slice, Text, Versioned};
use crate::status::{Fault, Status};

/// The usage that `tm_exchange_request_edit` may request for a client.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsagePolicy {
    /// None. Requests stay as they are.
    Observe = 0,
    /// The usage at the end of a stream.
    Inject = 1,
    /// The same, and running counts if the server's kind supports them.
    Continuous = 2,
}

impl UsagePolicy {
    /// The policy with this number.
    fn policy(number: u32) -> Option<Policy> {
        let all = [
            (Self::Observe, Policy::Observe),
            (Self::Inject, Policy::Inject),
            (Self::Continuous, Policy::Continuous),
        ];
        all.into_iter().find(|(known, _)| *known as u32 == number).map(|(_, policy)| policy)
    }
}

/// The settings of a meter. A field that is 0 or empty has its default. The call copies the texts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MeterOptions {
    /// `sizeof(tm_meter_options)`.
    pub size: usize,
    /// The name of the server in records and metrics. Default: `embedded`.
    pub upstream: Slice,
    /// The provider in records and metrics (`gen_ai.provider.name`). Default: the kind, else the upstream.
    pub provider: Slice,
    /// The kind of the server: `vllm`, `sglang`, `llama_cpp`, `ollama`, `tgi`, `tensorrt_llm`, `triton`, `lmdeploy`,
    /// `mistral_rs`, `dynamo`, `openai`, `anthropic`, `gemini`, `azure_openai` or `openrouter`. Default: not known.
    pub kind: Slice,
    /// A gap between two tokens of more nanoseconds is a stall. Default: one second.
    pub stall_ns: u64,
    /// The maximum of each token count. A higher count is rejected, and `TM_NUMBER_USAGE_REJECTED` counts it. Default:
    /// ten million.
    pub max_tokens: u64,
    /// The maximum number of models with metrics of their own. The others share the label `_other`. Default: 50.
    pub max_models: u32,
    /// A `tm_usage_policy`. Default: `TM_USAGE_POLICY_OBSERVE`.
    pub usage_policy: u32,
    /// The price book. Its currency is part of the names of metrics. Default: none, and no exchange has a cost.
    pub prices: PricesHandle,
    /// The tenant rules. Default: none, and every exchange belongs to the tenant `default`.
    pub tenants: TenantsHandle,
}

// SAFETY: `repr(C)`, the size first, then pointers and integers.
unsafe impl Versioned for MeterOptions {}

/// Makes a meter: one for each server, at the start of the process. `TM_STATUS_VALUE` if the kind or the policy is none
/// of the listed ones.
///
/// # Safety
/// `options` points to a structure of the size in it; `meter` is NULL or points to a handle, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_meter_new(options: *const MeterOptions, meter: *mut MeterHandle) -> Status {
    entry(|| {
        slice::check(meter)?;
        // SAFETY: the caller's contract.
        let options = unsafe { slice::sized(options) }?;
        // SAFETY: the caller's contract.
        let settings = unsafe { settings(&options) }?;
        let prices = match options.prices.id {
            0 => None,
            id => Some(PRICES.with(id, |book| Ok(Arc::clone(book)))?),
        };
        let host = Host::new(settings, prices);
        if options.tenants.id != 0 {
            host.set_tenants(TENANTS.with(options.tenants.id, |rules| Ok(Arc::clone(rules)))?);
        }
        let id = METERS.insert(Arc::new(host))?;
        // SAFETY: the caller's contract.
        unsafe { slice::write(meter, MeterHandle { id }) }?;
        Ok(Status::Ok)
    })
}

/// Reads the options.
///
/// # Safety
/// The texts of the options point to their bytes.
unsafe fn settings(options: &MeterOptions) -> Result<Settings, Fault> {
    // SAFETY: the caller's contract.
    let (upstream, provider, kind) =
        unsafe { (options.upstream.text()?, options.provider.text()?, options.kind.text()?) };
    if [upstream, provider].iter().any(|name| name.contains(char::is_control)) {
        return Err(Fault::new(Status::Text, "a name of the meter contains a control character"));
    }
    let kind = match kind {
        "" => None,
        name => Some(kind_of(name)?),
    };
    let upstream = if upstream.is_empty() { "embedded" } else { upstream };
    let provider = match (provider, kind) {
        ("", Some(kind)) => kind.provider(),
        ("", None) => upstream,
        (provider, _) => provider,
    };
    let usage = UsagePolicy::policy(options.usage_policy).ok_or_else(|| {
        Fault::new(Status::Value, format!("there is no usage policy {}", options.usage_policy))
    })?;
    let default = Setup::default();
    let or = |value: u64, default: u64| if value == 0 { default } else { value };
    Ok(Settings {
        upstream: upstream.into(),
        provider: provider.into(),
        kind,
        usage,
        setup: Setup {
            kind,
            stall_ns: or(options.stall_ns, default.stall_ns),
            tokens_max: or(options.max_tokens, default.tokens_max),
            ..default
        },
        max_models: (options.max_models > 0).then_some(options.max_models as usize),
    })
}

fn kind_of(name: &str) -> Result<ServerKind, Fault> {
    ServerKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = ServerKind::ALL.into_iter().map(ServerKind::name).collect();
        Fault::new(
            Status::Value,
            format!("there is no kind of server `{name}`; there are {}", names.join(", ")),
        )
    })
}

/// Replaces the price book of a meter for exchanges that end from now on. `TM_STATUS_PRICES` if its currency is not
/// that of the book before; a meter without a book has USD.
#[unsafe(no_mangle)]
pub extern "C" fn tm_meter_set_prices(meter: MeterHandle, prices: PricesHandle) -> Status {
    entry(|| {
        let book = PRICES.with(prices.id, |book| Ok(Arc::clone(book)))?;
        host(meter)?.set_prices(book).map(|()| Status::Ok)
    })
}

/// Replaces the tenant rules of a meter for exchanges that begin from now on.
#[unsafe(no_mangle)]
pub extern "C" fn tm_meter_set_tenants(meter: MeterHandle, tenants: TenantsHandle) -> Status {
    entry(|| {
        let rules = TENANTS.with(tenants.id, |rules| Ok(Arc::clone(rules)))?;
        host(meter)?.set_tenants(rules);
        Ok(Status::Ok)
    })
}

/// Writes the page of the meter's metrics in the Prometheus text format 0.0.4, for a `/metrics` endpoint of the host, alone
/// or behind the host's own metrics: their names begin with `tokenmeter_` or `gen_ai_`. The page grows with models and
/// tenants: if the buffer is too small, call again with the needed length and some more.
///
/// Thread safety: any thread, at any time.
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_meter_metrics(meter: MeterHandle, text: *mut Text) -> Status {
    // SAFETY: the caller's contract.
    entry(|| unsafe { slice::write_text(text, &host(meter)?.metrics_text()) })
}

/// Frees a meter. Its running exchanges go on and end as before.
#[unsafe(no_mangle)]
pub extern "C" fn tm_meter_free(meter: MeterHandle) -> Status {
    entry(|| METERS.take(meter.id).map(|_| Status::Ok))
}

/// Returns the meter of a handle; its table is not locked meanwhile.
pub(crate) fn host(meter: MeterHandle) -> Result<Arc<Host>, Fault> {
    METERS.with(meter.id, |host| Ok(Arc::clone(host)))
}
