//! Admission of a request by the gate: whether its tenant may spend, and on this model. It comes before anything is sent
//! upstream. If the body names the tenant, the body is buffered first, within the bound of all buffered bodies; a request
//! with a longer body belongs to the default tenant, and one without memory for it is rejected. The body is also buffered if
//! the budget's terms depend on it. A request to switch protocols is checked by its head; on a metered WebSocket, each
//! message that asks for an answer is checked again.

use std::sync::Arc;

use exchange::recorded;
use scan::{Dialect, OtherModels};
use tenant::TenantIdentity;

use super::answer::Answer;
use super::gathered::Gathered;
use super::in_flight::InFlight;
use crate::rejection::Known;
use crate::state::WorkerState;
use crate::{Gap, Gate, Metering, RequestedModel, Terms, UnknownPaths, UsageStep, clock};

/// The facts of a request's head by which a gate refuses it.
#[derive(Clone, Copy)]
pub(crate) struct RequestKind {
    /// True if it starts detached work.
    pub(crate) is_batch: bool,
    /// True if no known endpoint takes its method.
    pub(crate) is_unusual: bool,
}

/// Checks the gate, if there is one. Returns the terms of the request's tenant; `None` if they depend on the body and
/// that is not given: it is buffered then. A rejected request makes no record.
pub(crate) fn admit(
    in_flight: &InFlight,
    kind: RequestKind,
    body: Option<&Gathered>,
) -> Result<Option<Terms>, Answer> {
    if matches!(body, Some(Gathered::NoMemory)) {
        // Without its body its tenant is unknown.
        let dialect = in_flight.meter(|metering| metering.exchange.dialect());
        return Err(Answer::no_gather_room(dialect.unwrap_or(Dialect::Unknown)));
    }
    let worker = &in_flight.worker;
    let terms = match &worker.control.gate {
        Some(gate) => admit_spending(in_flight, gate, kind, body)?,
        None => Some(Terms::default()),
    };
    if terms.is_some() && worker.plan.refuse_detached && !admit_attached(in_flight, kind, body)? {
        return Ok(None);
    }
    Ok(terms)
}

/// Checks with the gate if the tenant may spend, and on this model.
fn admit_spending(
    in_flight: &InFlight,
    gate: &Gate,
    kind: RequestKind,
    body: Option<&Gathered>,
) -> Result<Option<Terms>, Answer> {
    if in_flight.meter(|metering| metering.exchange.tenant().is_none()) == Some(true) {
        match body {
            None => return Ok(None),
            Some(Gathered::TooLarge) => _ = in_flight.meter(Metering::resolve_tenant),
            Some(_) => {}
        }
    }
    refuse_if(in_flight, |metering| over_budget(gate, metering))?;
    if in_flight.meter(|metering| metering.fetches_detached()) == Some(true) {
        return Ok(Some(Terms::default()));
    }
    let terms = in_flight.meter(|metering| {
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
    let needs_body = in_flight.meter(|metering| {
        let is_restricted = metering.exchange.tenant().is_some_and(|tenant| gate.models(tenant).is_some());
        let needs_model = is_restricted || terms.refuse_unreadable;
        terms.refuse_uncountable
            || metering.exchange.is_decided_by_body()
            || needs_model && !metering.exchange.is_readable()
    });
    if needs_body == Some(true) && body.is_none() {
        return Ok(None);
    }
    let gap = |metering: &Metering| {
        let is_read = metering.exchange.is_readable() || metering.exchange.is_of_unknown_path();
        (terms.refuse_unreadable && !is_read).then_some(Gap::Unreadable)
    };
    refuse_if(in_flight, |metering| unmetered(gate, metering, gap(metering)?))?;
    refuse_if(in_flight, |metering| unpriced(gate, metering))?;
    Ok(Some(terms))
}

/// Checks the gate, if there is one, after the decision whether usage is requested, which took this step: rejects the
/// request if its tenant may not use what cannot be counted.
pub(crate) fn admit_uncounted(
    in_flight: &InFlight,
    terms: Terms,
    step: Option<UsageStep>,
) -> Result<(), Answer> {
    let Some(gate) = in_flight.worker.control.gate.as_ref().filter(|_| terms.refuse_uncountable) else {
        return Ok(());
    };
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

/// Rejects a batch and a response in the background: their tokens are fetched by requests that are not metered. Returns
/// false if the body is needed first.
fn admit_attached(in_flight: &InFlight, kind: RequestKind, body: Option<&Gathered>) -> Result<bool, Answer> {
    let may_detach = in_flight.meter(|metering| metering.may_detach());
    if may_detach == Some(true) && body.is_none() {
        return Ok(false);
    }
    refuse_if(in_flight, |metering| {
        (kind.is_batch || metering.exchange.asks_background())
            .then(|| Answer::detached(metering.exchange.dialect()))
    })?;
    Ok(true)
}

/// Rejects a request with the answer that `why` makes of its exchange, which then ends without a record.
fn refuse_if(in_flight: &InFlight, why: impl FnOnce(&Metering) -> Option<Answer>) -> Result<(), Answer> {
    let mut metered = in_flight.metered.borrow_mut();
    let answer = metered.with(|metering| {
        let answer = why(metering)?;
        metering.refused(answer.refusal, answer.status.as_u16());
        Some(answer)
    });
    let Some(answer) = answer.flatten() else { return Ok(()) };
    metered.finish();
    Err(answer)
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

/// Checks the gate, if there is one, for a request that would become a tunnel, or is checked by its head alone. `dialect`:
/// that of its messages, if they are metered; `models`: those that its head names.
pub(crate) fn admit_tunnel(
    worker: &WorkerState,
    upstream: usize,
    (dialect, models): (Option<Dialect>, &OtherModels),
    identity: &TenantIdentity,
) -> Result<(), Answer> {
    let Some(gate) = worker.control.gate.as_ref() else { return Ok(()) };
    let tenant = &identity.tenant;
    let shape = dialect.unwrap_or(Dialect::Unknown);
    let over_budget = || Some(Answer::over_budget(shape, gate.refused(tenant)?));
    let unmetered = || {
        let terms = gate.terms(tenant);
        let gap = match dialect {
            None if terms.unknown_paths == UnknownPaths::Refuse => Gap::UnknownPath,
            Some(_) if terms.refuse_unreadable && !models.is_complete() => Gap::Unreadable,
            _ => return None,
        };
        Some(Answer::unmetered(shape, gap, gate.message(tenant, gap)))
    };
    let unpriced = || {
        let priced = gate.models(tenant)?;
        let (provider, upstream) = worker.place(upstream);
        let message = models.names().iter().find_map(|model| {
            priced.refused(tenant, &RequestedModel { model, provider: &provider, upstream: &upstream })
        })?;
        Some(Answer::unpriced(shape, message))
    };
    let Some(answer) = over_budget().or_else(unmetered).or_else(unpriced) else { return Ok(()) };
    worker.refuse(answer.refusal);
    worker.observer.borrow_mut().reject(tenant, answer.refusal);
    let known = Known {
        tenant: Arc::clone(tenant),
        principal: identity.principal.clone(),
        dialect: shape,
        model: models.names().first().map(|model| recorded(model).into()),
    };
    worker.report_rejection(upstream, (answer.refusal, answer.status.as_u16()), Some(known));
    Err(answer)
}
