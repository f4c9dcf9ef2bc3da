//! One thread that counts, behind a bounded queue. Who submits never waits: a job the queue has no
//! room for comes back at once, and its owner falls back to another count.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use crate::limits::{QUEUE_BYTES, QUEUE_JOBS};
use crate::quiet;
use crate::text::Text;
use crate::tokenizers::Tokenizers;

/// The counting thread. Dropped, it finishes what is queued and joins.
pub struct Counting<J> {
    /// Taken on drop, which is what ends the thread.
    queue: Option<SyncSender<Job<J>>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<State>,
    knows: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

struct Job<J> {
    job: J,
    model: Arc<str>,
    text: Text,
}

#[derive(Default)]
struct State {
    /// Bytes of text that wait or are being counted.
    bytes: AtomicUsize,
    panics: AtomicU64,
}

impl<J: Send + 'static> Counting<J> {
    /// Starts the thread. For each job it takes, `done` is called there with the job and its count, or
    /// with `None` if there is none; it should hand both on and return.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn start(
        tokenizers: Arc<Tokenizers>,
        done: impl Fn(J, Option<u64>) + Send + 'static,
    ) -> io::Result<Self> {
        let counted = Arc::clone(&tokenizers);
        Self::start_with(
            move |model| tokenizers.knows(model),
            move |model, text| counted.count(model, text),
            done,
        )
    }

    fn start_with(
        knows: impl Fn(&str) -> bool + Send + Sync + 'static,
        count: impl Fn(&str, &str) -> Option<u64> + Send + 'static,
        done: impl Fn(J, Option<u64>) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, jobs) = mpsc::sync_channel(QUEUE_JOBS);
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("tokenizer".to_owned())
            .spawn(move || work(&jobs, &shared, &count, &done))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), state, knows: Box::new(knows) })
    }

    /// Queues a job.
    ///
    /// # Errors
    ///
    /// The job comes back at once: there is no tokenizer for the model, or [`QUEUE_JOBS`] or
    /// [`QUEUE_BYTES`] are reached.
    pub fn submit(&self, job: J, model: Arc<str>, text: Text) -> Result<(), J> {
        let Some(queue) = self.queue.as_ref().filter(|_| (self.knows)(&model)) else { return Err(job) };
        let bytes = text.bytes();
        if self.state.bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES {
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

    /// Panics so far, each of which cost one job its count.
    pub fn panics(&self) -> u64 {
        self.state.panics.load(Relaxed)
    }
}

/// Counts until the queue is empty and nobody can fill it again.
fn work<J>(
    jobs: &Receiver<Job<J>>,
    state: &State,
    count: &impl Fn(&str, &str) -> Option<u64>,
    done: &impl Fn(J, Option<u64>),
) {
    quiet::this_thread();
    for Job { job, model, text } in jobs {
        // What a panic may leave half done is the library's, and it keeps nothing between two texts.
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
            // It catches every panic, so there is nothing to hear.
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
