//! May this request's tenant spend, and on this model? RequestReader before anything goes upstream, and only
//! where there is a gate. Where the body says whose it is, it is gathered first, within the bound of all
//! gathered bodies; one that is longer, or finds no room, is the default tenant's. It is gathered too where the
//! budget's terms depend on what stands in it. A request to switch protocols is asked about by its head alone: what passes in a tunnel cannot be counted or
//! stopped any more.

use scan::Dialect;

use super::upload::{Gathered, Upload, UploadError};
use super::visit::Visit;
use crate::limits;
use crate::rejection::Known;
use crate::request::answer::Answer;
use crate::request::tenant::TenantResolution;
use crate::worker::Worker;
use crate::{Exchange, Gap, Gate, Terms, UnknownPaths, UsageStep, Wanted};

/// What the gate says.
pub(super) enum Admitted {
    /// It goes on; its body, if it had to be gathered, and the terms of its tenant.
    Yes(Option<Gathered>, Terms),
    /// It is answered here, and makes no record.
    No(Answer),
}

/// Asks the gate, if there is one. `is_batch`: the request begins a batch.
pub(super) async fn admit(
    visit: &Visit,
    upload: &mut Upload,
    is_batch: bool,
) -> Result<Admitted, UploadError> {
    let worker = visit.engine.worker();
    let admitted = match &worker.plan.gate {
        Some(gate) => admit_spending(visit, upload, gate).await?,
        None => Admitted::Yes(None, Terms::default()),
    };
    match admitted {
        Admitted::Yes(gathered, terms) if worker.plan.refuse_detached => {
            admit_attached(visit, upload, (gathered, terms), is_batch).await
        }
        admitted => Ok(admitted),
    }
}

/// Asks the gate whether the tenant may spend, and on this model.
async fn admit_spending(visit: &Visit, upload: &mut Upload, gate: &Gate) -> Result<Admitted, UploadError> {
    let asks = visit.metered.borrow_mut().with(|exchange| exchange.tenant().is_none());
    let mut gathered = None;
    if asks == Some(true) {
        let body = upload.gather(limits::GATHERED_BYTES).await?;
        if matches!(body, Gathered::Crowded) {
            return Ok(Admitted::No(crowded(visit)));
        }
        if matches!(body, Gathered::Not) {
            visit.metered.borrow_mut().with(|exchange| exchange.tenant_unread());
        }
        gathered = Some(body);
    }
    if let Some(answer) = refused(visit, |exchange| over_budget(gate, exchange)) {
        return Ok(Admitted::No(answer));
    }
    let terms = visit.metered.borrow_mut().with(|exchange| {
        let terms = exchange.tenant().map(|tenant| gate.terms(tenant)).unwrap_or_default();
        if terms.unknown_paths == UnknownPaths::Meter {
            exchange.read_by_shape();
        }
        terms
    });
    let terms = terms.unwrap_or_default();
    let gap = |exchange: &Exchange| match terms.unknown_paths {
        UnknownPaths::Refuse if exchange.is_of_unknown_path() => Some(Gap::UnknownPath),
        _ => None,
    };
    if let Some(answer) = refused(visit, |exchange| unmetered(gate, exchange, gap(exchange)?)) {
        return Ok(Admitted::No(answer));
    }
    let needs_body = visit.metered.borrow_mut().with(|exchange| {
        let minds = exchange.tenant().is_some_and(|tenant| gate.models(tenant).is_some());
        let judges = minds || terms.refuse_unreadable;
        terms.refuse_uncountable || exchange.is_told_by_body() || judges && !exchange.is_readable()
    });
    if needs_body == Some(true) && gathered.is_none() {
        let body = upload.gather(limits::GATHERED_BYTES).await?;
        if matches!(body, Gathered::Crowded) {
            return Ok(Admitted::No(crowded(visit)));
        }
        gathered = Some(body);
    }
    let gap = |exchange: &Exchange| {
        let is_read = exchange.is_readable() || exchange.is_of_unknown_path();
        (terms.refuse_unreadable && !is_read).then_some(Gap::Unreadable)
    };
    let answer = refused(visit, |exchange| unmetered(gate, exchange, gap(exchange)?));
    Ok(match answer.or_else(|| refused(visit, |exchange| unpriced(gate, exchange))) {
        Some(answer) => Admitted::No(answer),
        None => Admitted::Yes(gathered, terms),
    })
}

/// Asks the gate, if there is one, about a request once usage has been asked for in it, or has not: the answer if its
/// tenant may not ask for what cannot be counted.
pub(super) fn admit_uncounted(visit: &Visit, terms: Terms) -> Option<Answer> {
    let gate = visit.engine.worker().plan.gate.as_ref().filter(|_| terms.refuse_uncountable)?;
    let step = visit.usage_step.get();
    let is_gap = |exchange: &Exchange| match step {
        _ if exchange.may_hide_counts() => true,
        Some(UsageStep::ClientAsked) => !exchange.asks_for_usage(),
        None | Some(UsageStep::Injected | UsageStep::Continuous | UsageStep::SentUnasked) => false,
        // One that the editor finds not streamed may stream by another reading.
        Some(
            UsageStep::Refused
            | UsageStep::TooLarge
            | UsageStep::Unreadable
            | UsageStep::Observed
            | UsageStep::NotStreamed,
        ) => exchange.asks_for_frames(),
    };
    let gap = |exchange: &Exchange| is_gap(exchange).then_some(Gap::Uncountable);
    refused(visit, |exchange| unmetered(gate, exchange, gap(exchange)?))
}

/// The answer to an exchange whose body has to be read and finds no room: it is no other tenant's.
fn crowded(visit: &Visit) -> Answer {
    let dialect = visit.metered.borrow_mut().with(|exchange| exchange.dialect());
    Answer::no_gather_room(dialect.unwrap_or(Dialect::Unknown))
}

/// Refuses a batch and a response in the background: their tokens are fetched by requests that are not metered.
async fn admit_attached(
    visit: &Visit,
    upload: &mut Upload,
    (gathered, terms): (Option<Gathered>, Terms),
    is_batch: bool,
) -> Result<Admitted, UploadError> {
    let may_detach =
        visit.metered.borrow_mut().with(|exchange| exchange.dialect() == Dialect::OpenaiResponses);
    let gathered = match gathered {
        None if may_detach == Some(true) => match upload.gather(limits::GATHERED_BYTES).await? {
            Gathered::Crowded => return Ok(Admitted::No(crowded(visit))),
            body => Some(body),
        },
        gathered => gathered,
    };
    let detached = |exchange: &Exchange| {
        (is_batch || exchange.asks_background()).then(|| Answer::detached(exchange.dialect()))
    };
    Ok(match refused(visit, detached) {
        Some(answer) => Admitted::No(answer),
        None => Admitted::Yes(gathered, terms),
    })
}

/// What an exchange that is refused is told; it has ended then.
fn refused(visit: &Visit, why: impl FnOnce(&Exchange) -> Option<Answer>) -> Option<Answer> {
    let mut metered = visit.metered.borrow_mut();
    let answer = metered.with(|exchange| {
        let answer = why(exchange)?;
        exchange.refused(answer.refusal, answer.status.as_u16());
        Some(answer)
    });
    let answer = answer.flatten()?;
    metered.finish();
    Some(answer)
}

fn over_budget(gate: &Gate, exchange: &Exchange) -> Option<Answer> {
    Some(Answer::over_budget(exchange.dialect(), gate.refused(exchange.tenant()?)?))
}

fn unpriced(gate: &Gate, exchange: &Exchange) -> Option<Answer> {
    let tenant = exchange.tenant()?;
    let models = gate.models(tenant)?;
    let (provider, upstream) = exchange.place();
    // Of two names either may be the server's.
    let message = exchange.models().find_map(|model| {
        models.refused(tenant, &Wanted { model, provider: &provider, upstream: &upstream })
    })?;
    Some(Answer::unpriced(exchange.dialect(), message))
}

fn unmetered(gate: &Gate, exchange: &Exchange, gap: Gap) -> Option<Answer> {
    Some(Answer::unmetered(exchange.dialect(), gap, gate.told(exchange.tenant()?, gap)))
}

/// Asks the gate, if there is one, about a request that is not metered but would become a tunnel: the
/// answer if its tenant may not spend. `whose` says whose it is, and is not called without a gate.
pub(super) fn admit_tunnel(
    worker: &Worker,
    upstream: usize,
    whose: impl FnOnce() -> TenantResolution,
) -> Option<Answer> {
    let gate = worker.plan.gate.as_ref()?;
    let who = whose().take(worker);
    let answer = Answer::over_budget(Dialect::Unknown, gate.refused(&who.tenant)?);
    worker.refuse(answer.refusal);
    worker.observer.borrow_mut().turn_away(&who.tenant, answer.refusal);
    let known =
        Known { tenant: who.tenant, principal: who.principal, dialect: Dialect::Unknown, model: None };
    worker.turned_away(upstream, (answer.refusal, answer.status.as_u16()), Some(known));
    Some(answer)
}
