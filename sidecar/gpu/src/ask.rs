//! The thread that asks the source: it may have to wait for an exporter's answer, or for a driver to
//! open, and the watching thread must not where all is to end. Law: each question is answered, a panic
//! included.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::source::{Answer, Source};

/// Begins; `make` makes the source, and `put` takes each answer. Ends when the sender is dropped and a
/// call that is on its way has come back, and after an error.
pub(crate) fn start(
    make: impl FnOnce() -> io::Result<Box<dyn Source>> + Send + 'static,
    put: impl Fn(io::Result<Answer>) + Send + 'static,
) -> io::Result<SyncSender<()>> {
    let (ask, asked) = sync_channel(1);
    std::thread::Builder::new().name("gpu-ask".to_owned()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| answer(make, &asked, &put)));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => put(Err(error)),
            Err(_) => put(Err(io::Error::other("asking them failed: a defect"))),
        }
    })?;
    Ok(ask)
}

fn answer(
    make: impl FnOnce() -> io::Result<Box<dyn Source>>,
    asked: &Receiver<()>,
    put: &impl Fn(io::Result<Answer>),
) -> io::Result<()> {
    let mut source = make()?;
    while asked.recv().is_ok() {
        put(Ok(source.answer()));
    }
    Ok(())
}
