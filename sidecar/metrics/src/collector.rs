//! The samples of a reading, from the workers' sums. Invariant: every metric of the table has a family, in the
//! table's order; samples are sorted by model, and closed lists keep their order. A series appears with its first
//! event, or with 0 if a zero is informative: no loss, an idle model.

use std::fmt::Result;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use meter::edges::{CONCURRENCY_NAMES, POSITION_NAMES};
use meter::{Class, Passthrough, Refusal, Stated, UsageStep};
use meter::{Disagreement, Ending, Provenance, TokenType};
use meter::{RuleKind, TokenRejection};

use crate::cell::{Count, Sum};
use crate::currency::Currency;
use crate::engine::{EngineReading, PROMPT_SOURCES};
use crate::family::Family;
use crate::format::Format;
use crate::histogram::Distribution;
use crate::model::{
    ByConcurrency, Chunks, GenAi, GenAiAttributes, ModelCells, Operations, Position, ServerReports, Timings,
    UpstreamCells, WEIGHTS, no_first_token_names,
};
use crate::names::UNKNOWN;
use crate::process::Process;
use crate::proxy::DIRECTIONS;
use crate::reading::Reading;
use crate::registry::Registry;
use crate::spend::Basis;
use crate::table::Metric;
use crate::totals::Totals;

mod legs;
mod objectives;
mod rate_limits;
mod reload;
mod shares;
mod spend;
mod tenants;
mod usage;

impl Registry {
    /// Returns all samples at one moment, from one sum over the workers.
    pub(crate) fn reading(&self) -> Reading {
        let totals = self.totals();
        let process = Process::read();
        let at = SystemTime::now();
        let mut of_parts = totals.parts.write();
        let mut families = Vec::with_capacity(Metric::ALL.len());
        for metric in Metric::ALL.iter().copied().filter(|metric| self.semconv.has(*metric)) {
            for (currency, bases) in self.families_of(metric) {
                let mut family = Family::open(metric, currency);
                let source = Source { totals: &totals, process: &process, version: &self.version, bases };
                // It only appends to a list, which cannot fail.
                let _ = write(metric, &source, &mut family);
                family.extend(of_parts.take(metric));
                families.push(Arc::new(family.close()));
            }
        }
        Reading { at_unix_ns: unix_ns(at), since_unix_ns: unix_ns(self.since), families }
    }

    /// Returns the families of a metric: the currency in the name, and the bases in it. GPU costs are in US dollars, so
    /// that with a price book in another currency they have a family of their own.
    fn families_of(&self, metric: Metric) -> Vec<(Currency, &'static [Basis])> {
        let on_two_bases = matches!(metric, Metric::TenantSpend | Metric::ModelSpend);
        if on_two_bases && self.currency != Currency::USD {
            return vec![(self.currency, &[Basis::Price]), (Currency::USD, &[Basis::Gpu])];
        }
        vec![(self.currency, &Basis::ALL)]
    }
}

/// The source of the samples of one family.
struct Source<'a> {
    totals: &'a Totals,
    process: &'a Process,
    version: &'a str,
    bases: &'a [Basis],
}

/// Returns nanoseconds since 1970; 0 for an earlier time.
fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn write(metric: Metric, source: &Source<'_>, family: &mut Family) -> Result {
    let Source { totals, process, version, bases } = *source;
    let proxy = &totals.proxy;
    match metric {
        Metric::Exchanges => by_upstream(totals, |labels, cells| exchanges(family, labels, cells)),
        Metric::InFlight => models(totals, |name, model| family.count(&[name], model.in_flight.get())),
        Metric::Passthrough => closed(family, Passthrough::ALL.map(Passthrough::name), &proxy.passthrough),
        Metric::Mislabelled => closed(family, Stated::ALL.map(Stated::name), &proxy.mislabelled),
        Metric::Refused => closed(family, Refusal::ALL.map(Refusal::name), &proxy.refused),
        Metric::Tokens => models(totals, |name, model| tokens(family, name, model)),
        Metric::LiveTokens => by_model(totals, family, |model| &model.live_tokens),
        Metric::UsageProvenance => usage_provenance(family, totals),
        Metric::UsageDisagreements => {
            by_upstream(totals, |labels, cells| disagreements(family, labels, cells))
        }
        Metric::UsageSteps => closed(family, UsageStep::ALL.map(UsageStep::name), &proxy.usage),
        Metric::TenantTokens => tenants::tokens(totals, family),
        Metric::TenantExchanges => tenants::exchanges(totals, family),
        Metric::TenantUncounted => tenants::uncounted(totals, family),
        Metric::TenantRefused => tenants::refused(totals, family),
        Metric::TenantRule => closed(family, RuleKind::ALL.map(RuleKind::name), &proxy.tenant_rules),
        Metric::UntrustedHeaders => family.count(&[], proxy.untrusted_headers.get()),
        Metric::UntrustedTokens => {
            closed(family, TokenRejection::ALL.map(TokenRejection::name), &proxy.untrusted_tokens)
        }
        Metric::GenAiFirstToken => gen_ai(totals, family, |cells| cells.first_token.read()),
        Metric::GenAiPerToken => gen_ai(totals, family, |cells| cells.per_token.read()),
        Metric::GenAiDuration => operations(totals, family, |_| true, |cells| cells.duration.read()),
        Metric::UsageInput => usage::modalities(totals, family, |usage| &usage.input),
        Metric::UsageOutput => usage::modalities(totals, family, |usage| &usage.output),
        Metric::UsageCacheRead => usage::unknown(totals, family, |usage| &usage.cache_read),
        Metric::UsageCacheWrite => usage::unknown(totals, family, |usage| &usage.cache_write),
        Metric::UsageReasoning => usage::unknown(totals, family, |usage| &usage.reasoning),
        Metric::OperationInput => operations(totals, family, is_inference, |cells| cells.input.read()),
        Metric::OperationOutput => operations(totals, family, is_inference, |cells| cells.output.read()),
        Metric::ClientDuration => operations(totals, family, is_inference, |cells| cells.duration.read()),
        Metric::ClientFirstChunk => chunks(totals, family, |cells| cells.first.read()),
        Metric::ClientPerChunk => chunks(totals, family, |cells| cells.gaps.read()),
        Metric::EmbeddingsDuration => {
            operations(totals, family, GenAiAttributes::is_embedding, |cells| cells.duration.read())
        }
        Metric::EmbeddingsInput => {
            operations(totals, family, GenAiAttributes::is_embedding, |cells| cells.input.read())
        }
        Metric::ClientTokenUsage => usage::legacy(totals, family),
        Metric::FirstToken => by_concurrency(totals, family, |cells| cells.first_token.read()),
        Metric::NoFirstToken => by_upstream(totals, |labels, cells| no_first_token(family, labels, cells)),
        Metric::FirstByte => timed(totals, family, |cells| cells.first_byte.read()),
        Metric::FirstVisible => timed(totals, family, |cells| cells.first_visible.read()),
        Metric::FirstTool => timed(totals, family, |cells| cells.first_tool.read()),
        Metric::InterToken => {
            by_weight(totals, family, |cells, at| Some(cells.inter_token[at].get()?.read()))
        }
        Metric::ChunkGap => by_weight(totals, family, |cells, at| Some(cells.chunk_gap[at].get()?.read())),
        Metric::OutputRate => by_concurrency(totals, family, |cells| cells.output_rate.read()),
        Metric::InputRate => by_concurrency(totals, family, |cells| cells.input_rate.read()),
        Metric::CharacterRate => timed(totals, family, |cells| cells.character_rate.read()),
        Metric::Characters => by_model(totals, family, |model| &model.characters),
        Metric::PositionTokens => {
            by_position(totals, |labels, position| family.count(labels, position.tokens.get()))
        }
        Metric::PositionSeconds => {
            by_position(totals, |labels, position| family.number(labels, position.ns.seconds()))
        }
        Metric::ServerQueue => server_reported(totals, family, |server| server.queue.read()),
        Metric::ServerPrefill => server_reported(totals, family, |server| server.prefill.read()),
        Metric::ServerDecode => server_reported(totals, family, |server| server.decode.read()),
        Metric::DraftTokens => drafts(totals, family, |server| &server.draft_tokens),
        Metric::AcceptedDraftTokens => drafts(totals, family, |server| &server.accepted_draft_tokens),
        Metric::Stalls => by_model(totals, family, |model| &model.stalls),
        Metric::Stalled => seconds_by_model(totals, family, |model| &model.stalled_ns),
        Metric::ClientWait => seconds_by_model(totals, family, |model| &model.client_wait_ns),
        Metric::ObjectiveExchanges => objectives::exchanges(totals, family),
        Metric::GoodputExchanges => objectives::goodput(totals, family),
        Metric::GoodputTokens => objectives::tokens(totals, family, |cells| &cells.good_tokens),
        Metric::ObjectiveTokens => objectives::tokens(totals, family, |cells| &cells.tokens),
        Metric::TenantObjectiveExchanges => objectives::tenants(totals, family),
        Metric::ObjectiveFirstToken => {
            objectives::bound(totals, family, |one| one.first_token_ns as f64 / 1e9)
        }
        Metric::ObjectiveOutputRate => objectives::bound(totals, family, |one| one.output_rate),
        Metric::ObjectiveTarget => objectives::bound(totals, family, |one| one.target_ratio),
        Metric::LegExchanges => legs::exchanges(totals, family),
        Metric::LegDuration => legs::duration(totals, family),
        Metric::LegPromptTokens => legs::prompt_tokens(totals, family),
        Metric::UpstreamUp => truths(family, &totals.upstreams),
        Metric::UpstreamTlsVerified => truths(family, &totals.verified),
        Metric::RateLimit => rate_limits::counts(totals, family, |quota| &quota.limit),
        Metric::RateLimitRemaining => rate_limits::counts(totals, family, |quota| &quota.remaining),
        Metric::RateLimitReset => rate_limits::resets(totals, family),
        Metric::RetryAfter => rate_limits::retry_after(totals, family),
        Metric::EngineUp => engines(totals, family, |engine| engine.up.map(|up| f64::from(u8::from(up)))),
        Metric::EngineInfo => engine_info(family, totals),
        Metric::EngineRunning => engines(totals, family, |engine| engine.running_requests),
        Metric::EngineWaiting => engines(totals, family, |engine| engine.waiting_requests),
        Metric::EngineKvCache => engines(totals, family, |engine| engine.kv_cache_usage_ratio),
        Metric::EnginePrefixCache => engines(totals, family, |engine| engine.prefix_cache_hit_ratio),
        Metric::EnginePromptTokens => engines(totals, family, |engine| engine.prompt_tokens),
        Metric::EngineGenerationTokens => engines(totals, family, |engine| engine.generation_tokens),
        Metric::EnginePromptSource => engine_prompt_sources(family, totals),
        Metric::EngineHiddenCached => engines(totals, family, |engine| engine.hidden_cached_tokens),
        Metric::EnginePreemptions => engines(totals, family, |engine| engine.preemptions),
        Metric::EngineRejections => engines(totals, family, |engine| engine.admission_rejections),
        Metric::EngineDrift => engine_drift(family, totals),
        Metric::EnergyAttributed => shares::tenants(totals, family, |share| share.energy_joules),
        Metric::EnergyModel => shares::models(totals, family),
        Metric::EnergyPerToken => shares::per_token(totals, family),
        Metric::GpuSecondsAttributed => shares::tenants(totals, family, |share| share.gpu_seconds),
        Metric::GpuCost => shares::tenant_costs(totals, family),
        Metric::TenantSpend => spend::sums(&totals.spend.tenants, bases, family),
        Metric::ModelSpend => spend::sums(&totals.spend.models, bases, family),
        Metric::Unpriced => spend::unpriced(totals, family),
        Metric::UnpricedTier => spend::unpriced_tiers(totals, family),
        Metric::BudgetLimit => spend::limits(totals, family),
        Metric::BudgetUsed => spend::budgets(totals, family, |budget| Some(budget.used_pico)),
        Metric::BudgetForecast => spend::budgets(totals, family, |budget| budget.forecast_pico),
        Metric::BudgetAlerts => spend::alerts(totals, family),
        Metric::BudgetWebhooks => spend::webhooks(totals, family),
        Metric::ReloadSuccess => reload::success(totals, family),
        Metric::Reloads => reload::outcomes(totals, family),
        Metric::Scrapes => closed(family, Format::ALL.map(Format::name), &totals.scrapes),
        Metric::Overhead => overhead(family, totals),
        Metric::Dropped => proxy.dropped_by_name().try_for_each(|(name, n)| family.count(&[name], n.get())),
        Metric::BuildInfo => family.count(&[version], 1),
        Metric::ProcessMemory => process.memory_bytes.map_or(Ok(()), |bytes| family.count(&[], bytes)),
        Metric::ProcessCpu => process.cpu_seconds.map_or(Ok(()), |seconds| family.number(&[], seconds)),
        Metric::ProcessFiles => process.open_files.map_or(Ok(()), |files| family.count(&[], files)),
        Metric::ProcessStart => process.start_seconds.map_or(Ok(()), |seconds| family.number(&[], seconds)),
        // The parts of the process write these.
        Metric::PriceBookInfo
        | Metric::UnknownUsage
        | Metric::HwUtilization
        | Metric::HwMemoryUsage
        | Metric::HwMemoryLimit
        | Metric::HwMemoryUtilization
        | Metric::HwPower
        | Metric::HwEnergy
        | Metric::HwTemperature
        | Metric::HwErrors
        | Metric::GpuInfo
        | Metric::GpuUp
        | Metric::GpuActivity
        | Metric::GpuClock
        | Metric::GpuPowerLimit
        | Metric::GpuThrottled
        | Metric::GpuProcesses
        | Metric::GpuResets
        | Metric::GpuGap
        | Metric::EnergyIdle
        | Metric::EnergyUnattributed
        | Metric::EnergyPending
        | Metric::GpuSecondsIdle
        | Metric::GpuSecondsUnattributed
        | Metric::GpuSecondsPending
        | Metric::GpuIdleCost
        | Metric::GpuUnattributedCost
        | Metric::LedgerUp
        | Metric::LedgerRows
        | Metric::LedgerLag
        | Metric::LedgerQueued
        | Metric::LedgerShed
        | Metric::LedgerLost
        | Metric::LedgerBytes
        | Metric::LedgerGaps
        | Metric::LedgerQuarantined
        | Metric::LedgerFaults
        | Metric::ShipUp
        | Metric::ShipRows
        | Metric::ShipPending
        | Metric::ShipLag
        | Metric::ShipFailures
        | Metric::EventsUp
        | Metric::EventsSent
        | Metric::EventsPending
        | Metric::EventsFailures
        | Metric::CertificateExpiry
        | Metric::OtlpItems
        | Metric::OtlpQueued
        | Metric::OtlpUp
        | Metric::OtlpExport
        | Metric::Connections
        | Metric::ConnectionsLimit
        | Metric::UpstreamConnections
        | Metric::UpstreamConnectionsLimit
        | Metric::GatheredBytes
        | Metric::GatheredLimit => Ok(()),
    }
}

/// Writes every ending of a dialect once one occurred, so that the series of errors begin at zero.
fn exchanges(family: &mut Family, [model, upstream]: [&str; 2], cells: &UpstreamCells) -> Result {
    let mut dialects: Vec<_> = cells.exchanges.iter().collect();
    dialects.sort_unstable_by_key(|(dialect, _)| dialect.name());
    for (dialect, endings) in dialects {
        for (ending, n) in Ending::ALL.iter().zip(endings) {
            family.count(&[model, upstream, dialect.name(), ending.name()], n.get())?;
        }
    }
    Ok(())
}

/// Writes every disagreement of a dialect once an exchange ended, so that the series begin at zero.
fn disagreements(family: &mut Family, [model, upstream]: [&str; 2], cells: &UpstreamCells) -> Result {
    let mut dialects: Vec<_> = cells.disagreements.iter().collect();
    dialects.sort_unstable_by_key(|(dialect, _)| dialect.name());
    for (dialect, counts) in dialects {
        for (disagreement, n) in Disagreement::ALL.iter().zip(counts) {
            family.count(&[model, upstream, dialect.name(), disagreement.name()], n.get())?;
        }
    }
    Ok(())
}

fn tokens(family: &mut Family, name: &str, model: &ModelCells) -> Result {
    for kind in TokenType::ALL {
        for (provenance, types) in Provenance::ALL.iter().zip(&model.tokens) {
            let n = types.get().map_or(0, |types| types[kind as usize].get());
            if n > 0 {
                family.count(&[name, kind.name(), provenance.name()], n)?;
            }
        }
    }
    Ok(())
}

fn no_first_token(family: &mut Family, [model, upstream]: [&str; 2], cells: &UpstreamCells) -> Result {
    for (reason, n) in no_first_token_names().zip(&cells.no_first_token) {
        if n.get() > 0 {
            family.count(&[model, upstream, reason], n.get())?;
        }
    }
    Ok(())
}

fn usage_provenance(family: &mut Family, totals: &Totals) -> Result {
    for (direction, provenances) in DIRECTIONS.iter().zip(&totals.proxy.provenance) {
        for (provenance, n) in Provenance::ALL.iter().zip(provenances) {
            family.count(&[direction, provenance.name()], n.get())?;
        }
    }
    Ok(())
}

fn overhead(family: &mut Family, totals: &Totals) -> Result {
    Class::ALL
        .iter()
        .zip(&totals.proxy.overhead)
        .try_for_each(|(class, histogram)| family.histogram(&[class.name()], &histogram.read()))
}

/// Writes a truth of each upstream.
fn truths(family: &mut Family, truths: &[(Arc<str>, bool)]) -> Result {
    truths.iter().try_for_each(|(name, truth)| family.count(&[name], u64::from(*truth)))
}

/// Writes one gauge for each upstream that reports the value.
fn engines(totals: &Totals, family: &mut Family, pick: impl Fn(&EngineReading) -> Option<f64>) -> Result {
    for (name, engine) in &totals.engines {
        if let Some(value) = pick(engine) {
            family.number(&[name], value)?;
        }
    }
    Ok(())
}

fn engine_info(family: &mut Family, totals: &Totals) -> Result {
    for (name, engine) in &totals.engines {
        if let Some(kind) = engine.kind {
            family.count(&[name, kind.name()], 1)?;
        }
    }
    Ok(())
}

fn engine_prompt_sources(family: &mut Family, totals: &Totals) -> Result {
    for (name, engine) in &totals.engines {
        for (source, tokens) in PROMPT_SOURCES.iter().zip(engine.prompt_source_tokens) {
            if let Some(tokens) = tokens {
                family.number(&[name, source], tokens)?;
            }
        }
    }
    Ok(())
}

fn engine_drift(family: &mut Family, totals: &Totals) -> Result {
    for (name, engine) in &totals.engines {
        let drifts = [engine.drift_input_tokens, engine.drift_output_tokens];
        for (direction, drift) in DIRECTIONS.iter().zip(drifts) {
            if let Some(tokens) = drift {
                family.number(&[name, direction], tokens)?;
            }
        }
    }
    Ok(())
}

/// Writes one sample for each value of a closed list, zeros included.
fn closed(family: &mut Family, names: impl IntoIterator<Item = &'static str>, counts: &[Count]) -> Result {
    names.into_iter().zip(counts).try_for_each(|(name, n)| family.count(&[name], n.get()))
}

fn models(totals: &Totals, mut write: impl FnMut(&str, &ModelCells) -> Result) -> Result {
    totals.models.iter().try_for_each(|(name, model)| write(name, model))
}

/// Writes one counter for each model, zeros included. `_unknown` always exists, so that its zeros are omitted.
fn by_model(totals: &Totals, family: &mut Family, pick: impl Fn(&ModelCells) -> &Count) -> Result {
    models(totals, |name, model| match pick(model).get() {
        0 if name == UNKNOWN => Ok(()),
        n => family.count(&[name], n),
    })
}

/// Writes one time for each model, as [`by_model`].
fn seconds_by_model(totals: &Totals, family: &mut Family, pick: impl Fn(&ModelCells) -> &Sum) -> Result {
    models(totals, |name, model| match pick(model).seconds() {
        0.0 if name == UNKNOWN => Ok(()),
        seconds => family.number(&[name], seconds),
    })
}

/// Writes every upstream of every model, with its two labels.
fn by_upstream(totals: &Totals, mut write: impl FnMut([&str; 2], &UpstreamCells) -> Result) -> Result {
    models(totals, |model, cells| {
        let mut upstreams: Vec<_> = cells.upstreams.iter().collect();
        upstreams.sort_unstable_by_key(|(upstream, _)| *upstream);
        upstreams.into_iter().try_for_each(|(upstream, cells)| write([model, upstream], cells))
    })
}

fn timed(totals: &Totals, family: &mut Family, pick: impl Fn(&Timings) -> Distribution) -> Result {
    by_upstream(totals, |labels, cells| match cells.timings.get() {
        Some(timed) => family.histogram(&labels, &pick(timed)),
        None => Ok(()),
    })
}

fn server_reported(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&ServerReports) -> Distribution,
) -> Result {
    by_upstream(totals, |labels, cells| match cells.server_reports.get().map(&pick) {
        Some(distribution) if distribution.count() > 0 => family.histogram(&labels, &distribution),
        _ => Ok(()),
    })
}

/// Writes a count of draft tokens, if the server reports any.
fn drafts(totals: &Totals, family: &mut Family, pick: impl Fn(&ServerReports) -> &Count) -> Result {
    by_upstream(totals, |labels, cells| match cells.server_reports.get() {
        Some(server) if server.draft_tokens.get() > 0 => family.count(&labels, pick(server).get()),
        _ => Ok(()),
    })
}

fn by_weight(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&Timings, usize) -> Option<Distribution>,
) -> Result {
    by_upstream(totals, |[model, upstream], cells| {
        for (at, weight) in WEIGHTS.iter().enumerate() {
            if let Some(distribution) = cells.timings.get().and_then(|timed| pick(timed, at)) {
                family.histogram(&[model, upstream, weight.name()], &distribution)?;
            }
        }
        Ok(())
    })
}

fn by_position(totals: &Totals, mut write: impl FnMut(&[&str], &Position) -> Result) -> Result {
    by_upstream(totals, |[model, upstream], cells| {
        let positions = cells.timings.get().map(|timed| &timed.position).into_iter().flatten();
        for (range, position) in POSITION_NAMES.iter().zip(positions) {
            if position.tokens.get() > 0 || position.ns.seconds() > 0.0 {
                write(&[model, upstream, range], position)?;
            }
        }
        Ok(())
    })
}

fn by_concurrency(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&ByConcurrency) -> Distribution,
) -> Result {
    by_upstream(totals, |[model, upstream], cells| {
        for (range, loaded) in CONCURRENCY_NAMES.iter().zip(&cells.by_concurrency) {
            if let Some(loaded) = loaded.get() {
                family.histogram(&[model, upstream, range], &pick(loaded))?;
            }
        }
        Ok(())
    })
}

fn gen_ai(totals: &Totals, family: &mut Family, pick: impl Fn(&GenAi) -> Distribution) -> Result {
    by_attributes(totals, |_, labels, cells| family.histogram(&labels, &pick(cells)))
}

/// Returns true for every operation that the convention calls an inference: all but embeddings.
fn is_inference(attributes: &GenAiAttributes) -> bool {
    !attributes.is_embedding()
}

/// Writes the finished operations with some attributes, by `error.type`; successes, which have none, come first.
fn operations(
    totals: &Totals,
    family: &mut Family,
    wanted: impl Fn(&GenAiAttributes) -> bool,
    pick: impl Fn(&Operations) -> Distribution,
) -> Result {
    by_attributes(totals, |attributes, [operation, provider, model, address, port], cells| {
        if !wanted(attributes) {
            return Ok(());
        }
        let mut operations: Vec<_> = cells.operations.iter().collect();
        operations.sort_unstable_by_key(|(error, _)| *error);
        operations.into_iter().try_for_each(|(error, cells)| {
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            family.histogram(&[operation, provider, model, address, port, &error], &pick(cells))
        })
    })
}

fn chunks(totals: &Totals, family: &mut Family, pick: impl Fn(&Chunks) -> Distribution) -> Result {
    by_attributes(totals, |_, labels, cells| match cells.chunks.get() {
        Some(chunks) => family.histogram(&labels, &pick(chunks)),
        None => Ok(()),
    })
}

/// Writes every attribute set of every model, with its five labels.
fn by_attributes(
    totals: &Totals,
    mut write: impl FnMut(&GenAiAttributes, [&str; 5], &GenAi) -> Result,
) -> Result {
    models(totals, |model, cells| {
        let mut attribute_sets: Vec<_> = cells.gen_ai.iter().collect();
        attribute_sets.sort_unstable_by_key(|(attributes, _)| *attributes);
        attribute_sets.into_iter().try_for_each(|(attributes, cells)| {
            let server = attributes.server.as_ref();
            let (address, port) = server.map_or(("", None), |at| (&at.host, at.port));
            let port = port.map(|port| port.to_string()).unwrap_or_default();
            write(attributes, [attributes.operation, &attributes.provider, model, address, &port], cells)
        })
    })
}
