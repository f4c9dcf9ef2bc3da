//! The frame of every function that C calls: no panic leaves it, and its failure has a status and a message.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{self, Fault, Status};

/// Calls `act`. A panic becomes a status, and a fault becomes the thread's last message.
#[inline]
pub(crate) fn entry(act: impl FnOnce() -> Result<Status, Fault>) -> Status {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(status)) => status,
        Ok(Err(fault)) => failed(fault),
        Err(_panic) => failed(Status::Panic.into()),
    }
}

#[cold]
fn failed(fault: Fault) -> Status {
    let status = fault.status;
    status::keep(fault);
    status
}
