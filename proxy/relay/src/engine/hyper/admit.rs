//! May this request's tenant spend? Asked before anything goes upstream, and only where there is a
//! gate. Where the body says whose it is, it is gathered first, within the bound of all gathered
//! bodies; one that is longer, or finds no room, is the default tenant's.

use super::upload::{Gathered, Upload, UploadError};
use super::visit::Visit;
use crate::answer::Answer;
use crate::limits;

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
    let mut metered = visit.metered.borrow_mut();
    let answer = metered.with(|exchange| {
        let refused = gate.refused(exchange.tenant()?)?;
        let answer = Answer::over_budget(exchange.dialect(), refused);
        exchange.refused(answer.refusal, answer.status.as_u16());
        Some(answer)
    });
    Ok(match answer.flatten() {
        Some(answer) => {
            metered.finish();
            Admitted::No(answer)
        }
        None => Admitted::Yes(gathered),
    })
}
