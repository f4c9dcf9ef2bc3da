//! The gate: whether the tenant may spend, and on this model. It is checked before anything goes upstream, and only if
//! there is a gate. If the body names the tenant, the body is buffered first, within the bound of all buffered bodies;
//! a request with a longer body, or without memory for it, belongs to the default tenant. The body is also buffered if
//! the budget's terms depend on it. A request to switch protocols is checked by its head; on a metered WebSocket,
//! each message that asks for an answer is checked again.

use std::sync::Arc;

use exchange::recorded;
use scan::{Dialect, Name};
use tenant::TenantIdentity;

use super::answer::Answer;
use super::body::{Gathered, Upload};
use super::in_flight::InFlight;
use super::kind::RequestKind;
use super::reject::Stop;
use crate::engine::ClientBody;
use crate::limits;
use crate::rejection::Known;
use crate::state::WorkerState;
use crate::{Gap, Gate, Metering, RequestedModel, Terms, UnknownPaths, UsageStep, clock};

/// An admitted request: its body, if it had to be buffered, and the terms of its tenant.
type Admitted = (Option<Gathered>, Terms);

/// Checks the gate, if there is one. A rejected request makes no record.
pub(crate) async fn admit<B: ClientBody>(
    in_flight: &InFlight,
    upload: &mut Upload<B>,
    kind: RequestKind,
) -> Result<Admitted, Stop> {
    let worker = &in_flight.worker;
    let admitted = match &worker.control.gate {
        Some(gate) => admit_spending(in_flight, upload, gate, kind).await?,
        None => (None, Terms::default()),
    };
    if worker.plan.refuse_detached {
        return admit_attached(in_flight, upload, admitted, kind.is_batch).await;
    }
    Ok(admitted)
}

/// Checks with the gate if the tenant may spend, and on this model.
async fn admit_spending<B: ClientBody>(
    in_flight: &InFlight,
    upload: &mut Upload<B>,
    gate: &Gate,
    kind: RequestKind,
) -> Result<Admitted, Stop> {
    let asks = in_flight.metered.borrow_mut().with(|metering| metering.exchange.tenant().is_none());
    let mut gathered = None;
    if asks == Some(true) {
        let body = gather(in_flight, upload).await?;
        if matches!(body, Gathered::Not) {
            in_flight.metered.borrow_mut().with(|metering| metering.resolve_tenant());
        }
        gathered = Some(body);
    }
    refuse_if(in_flight, |metering| over_budget(gate, metering))?;
    if in_flight.metered.borrow_mut().with(|metering| metering.fetches_detached()) == Some(true) {
        return Ok((gathered, Terms::default()));
    }
    let terms = in_flight.metered.borrow_mut().with(|metering| {
        let terms = metering.exchange.tenant().map(|tenant| gate.terms(tenant)).unwrap_or_default();
        if terms.unknown_paths == UnknownPaths::Meter {
            metering.exchange.read_by_shape();
        }
        terms
    });
    let terms = terms.unwrap_or_default();
    let gap = |metering: &Metering| match terms.unknown_paths {
        UnknownPaths::Refuse if metering.exchange.is_of_unknown_path() => Some(Gap::UnknownPath),
        _ => (terms.refuse_unknown_methods && kind.is_unusual).then_some(Gap::UnknownMethod),
    };
    refuse_if(in_flight, |metering| unmetered(gate, metering, gap(metering)?))?;
    let needs_body = in_flight.metered.borrow_mut().with(|metering| {
        let minds = metering.exchange.tenant().is_some_and(|tenant| gate.models(tenant).is_some());
        let judges = minds || terms.refuse_unreadable;
        terms.refuse_uncountable
            || metering.exchange.is_decided_by_body()
            || judges && !metering.exchange.is_readable()
    });
    if needs_body == Some(true) && gathered.is_none() {
        let body = gather(in_flight, upload).await?;
        gathered = Some(body);
    }
    let gap = |metering: &Metering| {
        let is_read = metering.exchange.is_readable() || metering.exchange.is_of_unknown_path();
        (terms.refuse_unreadable && !is_read).then_some(Gap::Unreadable)
    };
    refuse_if(in_flight, |metering| unmetered(gate, metering, gap(metering)?))?;
    refuse_if(in_flight, |metering| unpriced(gate, metering))?;
    Ok((gathered, terms))
}

/// Checks the gate, if there is one, after the decision whether usage is requested: rejects the request if its tenant
/// may not use what cannot be counted.
pub(crate) fn admit_uncounted(in_flight: &InFlight, terms: Terms) -> Result<(), Stop> {
    let Some(gate) = in_flight.worker.control.gate.as_ref().filter(|_| terms.refuse_uncountable) else {
        return Ok(());
    };
    let step = in_flight.usage_step.get();
    let is_gap = |metering: &Metering| match step {
        _ if metering.may_hide_counts() => true,
        _ if metering.has_started_detached(clock::now()) => true,
        Some(UsageStep::ClientAsked) => !metering.exchange.asks_for_usage(),
        None | Some(UsageStep::Injected | UsageStep::Continuous | UsageStep::SentUnasked) => false,
        // A request that the editor reads as unstreamed may stream by another reading.
        Some(
            UsageStep::Refused
            | UsageStep::TooLarge
            | UsageStep::Unreadable
            | UsageStep::Observed
            | UsageStep::NotStreamed,
        ) => metering.exchange.asks_for_frames(),
    };
    let gap = |metering: &Metering| is_gap(metering).then_some(Gap::Uncountable);
    refuse_if(in_flight, |metering| unmetered(gate, metering, gap(metering)?))
}

/// Buffers a body that must be read before it may pass. A request without memory for its body is rejected: without its
/// body its tenant is unknown.
async fn gather<B: ClientBody>(in_flight: &InFlight, upload: &mut Upload<B>) -> Result<Gathered, Stop> {
    let body = upload.gather(limits::GATHERED_BYTES).await?;
    if matches!(body, Gathered::Crowded) {
        let dialect = in_flight.metered.borrow_mut().with(|metering| metering.exchange.dialect());
        return Err(Answer::no_gather_room(dialect.unwrap_or(Dialect::Unknown)).into());
    }
    Ok(body)
}

/// Rejects a batch and a response in the background: their tokens are fetched by requests that are not metered.
async fn admit_attached<B: ClientBody>(
    in_flight: &InFlight,
    upload: &mut Upload<B>,
    (mut gathered, terms): Admitted,
    is_batch: bool,
) -> Result<Admitted, Stop> {
    let may_detach = in_flight.metered.borrow_mut().with(|metering| metering.may_detach());
    if gathered.is_none() && may_detach == Some(true) {
        gathered = Some(gather(in_flight, upload).await?);
    }
    refuse_if(in_flight, |metering| {
        (is_batch || metering.exchange.asks_background())
            .then(|| Answer::detached(metering.exchange.dialect()))
    })?;
    Ok((gathered, terms))
}

/// Rejects a request with the answer that `why` makes of its exchange, which then ends without a record.
fn refuse_if(in_flight: &InFlight, why: impl FnOnce(&Metering) -> Option<Answer>) -> Result<(), Stop> {
    let mut metered = in_flight.metered.borrow_mut();
    let answer = metered.with(|metering| {
        let answer = why(metering)?;
        metering.refused(answer.refusal, answer.status.as_u16());
        Some(answer)
    });
    let Some(answer) = answer.flatten() else { return Ok(()) };
    metered.finish();
    Err(answer.into())
}

fn over_budget(gate: &Gate, metering: &Metering) -> Option<Answer> {
    Some(Answer::over_budget(metering.exchange.dialect(), gate.refused(metering.exchange.tenant()?)?))
}

fn unpriced(gate: &Gate, metering: &Metering) -> Option<Answer> {
    let tenant = metering.exchange.tenant()?;
    let models = gate.models(tenant)?;
    let (provider, upstream) = metering.place();
    // If two names are possible, the server may use either.
    let message = metering.exchange.models().find_map(|model| {
        models.refused(tenant, &RequestedModel { model, provider: &provider, upstream: &upstream })
    })?;
    Some(Answer::unpriced(metering.exchange.dialect(), message))
}

fn unmetered(gate: &Gate, metering: &Metering, gap: Gap) -> Option<Answer> {
    Some(Answer::unmetered(metering.exchange.dialect(), gap, gate.message(metering.exchange.tenant()?, gap)))
}

/// Checks the gate, if there is one, for a request that would become a tunnel. `session`: the dialect of its messages,
/// if they are metered, and the model that its target names; empty if none.
pub(crate) fn admit_tunnel(
    worker: &WorkerState,
    upstream: usize,
    (dialect, model): (Option<Dialect>, Name),
    identity: &TenantIdentity,
) -> Result<(), Answer> {
    let Some(gate) = worker.control.gate.as_ref() else { return Ok(()) };
    let tenant = &identity.tenant;
    let shape = dialect.unwrap_or(Dialect::Unknown);
    let over_budget = || Some(Answer::over_budget(shape, gate.refused(tenant)?));
    let unknown = || {
        let is_refused = dialect.is_none() && gate.terms(tenant).unknown_paths == UnknownPaths::Refuse;
        is_refused.then(|| Answer::unmetered(shape, Gap::UnknownPath, gate.message(tenant, Gap::UnknownPath)))
    };
    let unpriced = || {
        let models = gate.models(tenant).filter(|_| !model.is_empty())?;
        let (provider, upstream) = worker.place(upstream);
        let requested = RequestedModel { model: model.as_str(), provider: &provider, upstream: &upstream };
        Some(Answer::unpriced(shape, models.refused(tenant, &requested)?))
    };
    let Some(answer) = over_budget().or_else(unknown).or_else(unpriced) else { return Ok(()) };
    worker.refuse(answer.refusal);
    worker.observer.borrow_mut().reject(tenant, answer.refusal);
    let known = Known {
        tenant: Arc::clone(tenant),
        principal: identity.principal.clone(),
        dialect: shape,
        model: (!model.is_empty()).then(|| recorded(model.as_str()).into()),
    };
    worker.report_rejection(upstream, (answer.refusal, answer.status.as_u16()), Some(known));
    Err(answer)
}
