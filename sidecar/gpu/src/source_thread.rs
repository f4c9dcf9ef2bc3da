//! The thread that calls the source. A call may block on an exporter's answer or on opening a driver; the
//! sampling thread must stay able to shut down meanwhile. Law: every request is answered, also after a panic.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::source::{Answer, Source};

/// Starts the thread. `make` creates the source on it, and `put` takes each answer. The thread ends when the
/// sender is dropped and the current call has returned, or after an error.
pub(crate) fn start(
    make: impl FnOnce() -> io::Result<Box<dyn Source>> + Send + 'static,
    put: impl Fn(io::Result<Answer>) + Send + 'static,
) -> io::Result<SyncSender<()>> {
    let (requests, received) = sync_channel(1);
    std::thread::Builder::new().name("gpu-ask".to_owned()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| answer(make, &received, &put)));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => put(Err(error)),
            Err(_) => put(Err(io::Error::other("the GPU source panicked (a defect)"))),
        }
    })?;
    Ok(requests)
}

fn answer(
    make: impl FnOnce() -> io::Result<Box<dyn Source>>,
    received: &Receiver<()>,
    put: &impl Fn(io::Result<Answer>),
) -> io::Result<()> {
    let mut source = make()?;
    while received.recv().is_ok() {
        put(Ok(source.answer()));
    }
    Ok(())
}
