//! The counting thread, behind a bounded queue. The caller never waits: if the queue is full the
//! job comes back at once, and the caller uses another count.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use crate::limits::{QUEUE_MAX_BYTES, QUEUE_MAX_JOBS};
use crate::panic_hook;
use crate::text::Text;
use crate::tokenizers::Tokenizers;

/// The counting thread. Dropping it finishes the queued jobs and joins the thread.
pub struct Counting<J> {
    /// Taken on drop, which ends the thread.
    queue: Option<SyncSender<Job<J>>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<State>,
    has: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

struct Job<J> {
    job: J,
    model: Arc<str>,
    text: Text,
}

#[derive(Default)]
struct State {
    /// Bytes of text that are queued or being counted.
    bytes: AtomicUsize,
    panics: AtomicU64,
}

impl<J: Send + 'static> Counting<J> {
    /// Starts the thread. It calls `done` with each job and its count, or
    /// `None` without a count; `done` should return quickly.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn start(
        tokenizers: Arc<Tokenizers>,
        done: impl Fn(J, Option<u64>) + Send + 'static,
    ) -> io::Result<Self> {
        let counted = Arc::clone(&tokenizers);
        Self::start_with(
            move |model| tokenizers.has(model),
            move |model, text| counted.count(model, text),
            done,
        )
    }

    fn start_with(
        has: impl Fn(&str) -> bool + Send + Sync + 'static,
        count: impl Fn(&str, &str) -> Option<u64> + Send + 'static,
        done: impl Fn(J, Option<u64>) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, jobs) = mpsc::sync_channel(QUEUE_MAX_JOBS);
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("tokenizer".to_owned())
            .spawn(move || work(&jobs, &shared, &count, &done))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), state, has: Box::new(has) })
    }

    /// Queues a job.
    ///
    /// # Errors
    ///
    /// Returns the job at once if there is no tokenizer for the model, or [`QUEUE_MAX_JOBS`] or
    /// [`QUEUE_MAX_BYTES`] are reached.
    pub fn submit(&self, job: J, model: Arc<str>, text: Text) -> Result<(), J> {
        let Some(queue) = self.queue.as_ref().filter(|_| (self.has)(&model)) else { return Err(job) };
        let bytes = text.bytes();
        if self.state.bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_MAX_BYTES {
            self.state.bytes.fetch_sub(bytes, Relaxed);
            return Err(job);
        }
        queue.try_send(Job { job, model, text }).map_err(|refused| {
            self.state.bytes.fetch_sub(bytes, Relaxed);
            match refused {
                TrySendError::Full(back) | TrySendError::Disconnected(back) => back.job,
            }
        })
    }

    /// Returns the number of panics so far, each of which cost one job its count.
    pub fn panics(&self) -> u64 {
        self.state.panics.load(Relaxed)
    }
}

/// Counts until the queue is empty and disconnected.
fn work<J>(
    jobs: &Receiver<Job<J>>,
    state: &State,
    count: &impl Fn(&str, &str) -> Option<u64>,
    done: &impl Fn(J, Option<u64>),
) {
    panic_hook::redact_this_thread();
    for Job { job, model, text } in jobs {
        // Unwind safe: the library keeps no state between two texts.
        let tokens = catch_unwind(AssertUnwindSafe(|| count(&model, text.as_str())));
        let bytes = text.bytes();
        drop(text);
        state.bytes.fetch_sub(bytes, Relaxed);
        if tokens.is_err() {
            state.panics.fetch_add(1, Relaxed);
        }
        if catch_unwind(AssertUnwindSafe(|| done(job, tokens.unwrap_or(None)))).is_err() {
            state.panics.fetch_add(1, Relaxed);
        }
    }
}

impl<J> Drop for Counting<J> {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches every panic, so the result carries no information.
            let _ = thread.join();
        }
    }
}

impl<J> fmt::Debug for Counting<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counting").field("bytes", &self.state.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "counting_tests.rs"]
mod tests;
