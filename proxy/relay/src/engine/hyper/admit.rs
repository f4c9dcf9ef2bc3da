//! May this request's tenant spend, and on this model? Asked before anything goes upstream, and only
//! where there is a gate. Where the body says whose it is, it is gathered first, within the bound of all
//! gathered bodies; one that is longer, or finds no room, is the default tenant's. It is gathered too where the
//! model is minded and stands in the body; a model that cannot be read so is not minded (law 3). A request
//! to switch protocols is asked about by its head alone: what passes in a tunnel cannot be counted or
//! stopped any more.

use scan::Dialect;

use super::upload::{Gathered, Upload, UploadError};
use super::visit::Visit;
use crate::answer::Answer;
use crate::limits;
use crate::tenancy::Whose;
use crate::turned::Known;
use crate::worker::Worker;
use crate::{Exchange, Gate, Wanted};

/// What the gate says.
pub(super) enum Admitted {
    /// It goes on; its body, if it had to be gathered.
    Yes(Option<Gathered>),
    /// It is answered here, and makes no record.
    No(Answer),
}

/// Asks the gate, if there is one.
pub(super) async fn admit(visit: &Visit, upload: &mut Upload) -> Result<Admitted, UploadError> {
    let worker = visit.engine.worker();
    let Some(gate) = &worker.plan.gate else { return Ok(Admitted::Yes(None)) };
    let asks = visit.metered.borrow_mut().with(|exchange| exchange.tenant().is_none());
    let mut gathered = None;
    if asks == Some(true) {
        let body = upload.gather(limits::GATHERED_BYTES, &worker.room).await?;
        if matches!(body, Gathered::Not) {
            visit.metered.borrow_mut().with(|exchange| exchange.tenant_unread());
        }
        gathered = Some(body);
    }
    if let Some(answer) = refused(visit, |exchange| over_budget(gate, exchange)) {
        return Ok(Admitted::No(answer));
    }
    let unread = visit.metered.borrow_mut().with(|exchange| {
        exchange.model().is_none() && exchange.tenant().is_some_and(|tenant| gate.models(tenant).is_some())
    });
    if unread == Some(true) && gathered.is_none() {
        gathered = Some(upload.gather(limits::GATHERED_BYTES, &worker.room).await?);
    }
    Ok(match refused(visit, |exchange| unpriced(gate, exchange)) {
        Some(answer) => Admitted::No(answer),
        None => Admitted::Yes(gathered),
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
    let (tenant, model) = (exchange.tenant()?, exchange.model()?);
    let (provider, upstream) = exchange.place();
    let wanted = Wanted { model, provider: &provider, upstream: &upstream };
    let message = gate.models(tenant)?.refused(tenant, &wanted)?;
    Some(Answer::unpriced(exchange.dialect(), message))
}

/// Asks the gate, if there is one, about a request that is not metered but would become a tunnel: the
/// answer if its tenant may not spend. `whose` says whose it is, and is not called without a gate.
pub(super) fn admit_tunnel(
    worker: &Worker,
    upstream: usize,
    whose: impl FnOnce() -> Whose,
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
