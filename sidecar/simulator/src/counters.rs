//! Live counters of the simulated server.
//!
//! The law: a gauge falls in the same turn in which its cause ends, so a test that reads `running`
//! as zero knows that no generation is running.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests whose head arrived, with any outcome.
    pub requests: u64,
    /// Sequences being generated (n for a request with n choices). A gauge.
    pub running: u64,
    /// Sequences waiting for a slot in the batch. A gauge.
    pub waiting: u64,
    /// Prompt tokens processed, without cached ones.
    pub prompt_tokens: u64,
    /// Prompt tokens taken from the cache.
    pub cached_tokens: u64,
    /// Output tokens generated, delivered or not.
    pub generated_tokens: u64,
    /// Generations that finished.
    pub completed: u64,
    /// Generations stopped because the client left.
    pub aborted: u64,
    /// Generations that a fault ended.
    pub faulted: u64,
    /// Requests answered with a status of 400 or more.
    pub refused: u64,
    /// `prompt_tokens` of finished requests, the only ones that llama.cpp's page shows.
    pub settled_prompt_tokens: u64,
    /// `generated_tokens` of finished requests.
    pub settled_generated_tokens: u64,
}

/// The cells behind [`Counts`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: Cell,
    pub(crate) requests: Cell,
    pub(crate) running: Cell,
    pub(crate) waiting: Cell,
    pub(crate) prompt_tokens: Cell,
    pub(crate) cached_tokens: Cell,
    pub(crate) generated_tokens: Cell,
    pub(crate) completed: Cell,
    pub(crate) aborted: Cell,
    pub(crate) faulted: Cell,
    pub(crate) refused: Cell,
    pub(crate) settled_prompt_tokens: Cell,
    pub(crate) settled_generated_tokens: Cell,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        Counts {
            connections: self.connections.read(),
            requests: self.requests.read(),
            running: self.running.read(),
            waiting: self.waiting.read(),
            prompt_tokens: self.prompt_tokens.read(),
            cached_tokens: self.cached_tokens.read(),
            generated_tokens: self.generated_tokens.read(),
            completed: self.completed.read(),
            aborted: self.aborted.read(),
            faulted: self.faulted.read(),
            refused: self.refused.read(),
            settled_prompt_tokens: self.settled_prompt_tokens.read(),
            settled_generated_tokens: self.settled_generated_tokens.read(),
        }
    }
}

/// A number shared by all connections. Sequentially consistent, because tests compare several.
#[derive(Debug, Default)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, SeqCst);
    }

    pub(crate) fn sub(&self, amount: u64) {
        self.0.fetch_sub(amount, SeqCst);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(SeqCst)
    }
}
