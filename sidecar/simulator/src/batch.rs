//! The batch: the running generations, the queue, and the due time of each next token.
//!
//! A generation has a slot in the batch and a due time that only the speed model moves. Due times
//! do not drift: after a late timer or a slow reader, overdue tokens follow at once, because the engine would
//! have continued. On a machine without a spare core this works both ways: a first token
//! that is sent late shortens the rest, and a client measures more tokens per second than modelled.
//!
//! The law: a generation ends when its [`Generation`] is dropped, for any reason (finished,
//! ended by a fault, or dropped with the connection), and the gauges fall at that moment.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::counters::Counters;
use crate::params::GenerationParams;
use crate::random::SplitMix64;
use crate::speed::Model;

/// The batch of one server.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    model: Model,
    slots: Arc<Semaphore>,
    counters: Arc<Counters>,
}

impl Batch {
    pub(crate) fn new(model: Model, counters: Arc<Counters>) -> Self {
        let slots = Arc::new(Semaphore::new(model.max_num_seqs.max(1) as usize));
        Self { model, slots, counters }
    }

    /// Returns a generation for a request; it joins the end of the queue when it requests a slot.
    pub(crate) fn generation(&self, params: &GenerationParams) -> Generation {
        Generation {
            batch: self.clone(),
            sequences: params.choices(),
            prompt_tokens: params.prompt_tokens(),
            cached_tokens: params.cached,
            // A fork of its own: timing must not change the content.
            noise: SplitMix64::new(params.seed).fork(u64::MAX),
            due: Instant::now(),
            stage: Stage::Idle,
            outcome: Outcome::Aborted,
            prompt_read: false,
            generated: 0,
        }
    }
}

/// One request's place in the batch.
#[derive(Debug)]
pub struct Generation {
    batch: Batch,
    sequences: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    noise: SplitMix64,
    due: Instant,
    stage: Stage,
    outcome: Outcome,
    prompt_read: bool,
    generated: u64,
}

/// The stage of a generation, with the slots it holds.
#[derive(Debug)]
enum Stage {
    Idle,
    Waiting,
    Running(#[expect(dead_code, reason = "held for its drop, which frees the slots")] OwnedSemaphorePermit),
}

/// The end of a generation.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// All tokens were generated.
    Completed,
    /// Dropped without another outcome.
    Aborted,
    /// Ended by a fault.
    Faulted,
}

impl Generation {
    /// Waits for slots, first come first served. The first token is due after the prefill.
    pub(crate) async fn admit(&mut self) -> Result<(), AcquireError> {
        self.stage = Stage::Waiting;
        self.batch.counters.waiting.add(self.sequences);
        // A request with more choices than slots would wait forever: it takes all slots.
        let slots = self.sequences.min(u64::from(self.batch.model.max_num_seqs.max(1)));
        let permit = Arc::clone(&self.batch.slots).acquire_many_owned(slots as u32).await?;
        self.batch.counters.waiting.sub(self.sequences);
        self.batch.counters.running.add(self.sequences);
        self.stage = Stage::Running(permit);
        let model = &self.batch.model;
        let prefill = model.prefill(self.prompt_tokens - self.cached_tokens);
        self.due = Instant::now() + model.real(prefill);
        Ok(())
    }

    /// Returns when the next step's tokens are due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Counts the step that was due, and sets the due time of the next one.
    pub(crate) fn stepped(&mut self, tokens: u64) {
        let counters = &self.batch.counters;
        if !self.prompt_read {
            self.prompt_read = true;
            counters.prompt_tokens.add(self.prompt_tokens - self.cached_tokens);
            counters.cached_tokens.add(self.cached_tokens);
        }
        counters.generated_tokens.add(tokens);
        self.generated += tokens;
        let model = &self.batch.model;
        let step = model.jittered_step(counters.running.read(), &mut self.noise);
        self.due += model.real(step);
    }

    /// Delays the due time by a `pause` of the engine, in real time.
    pub fn stalled(&mut self, pause: Duration) {
        self.due += pause;
    }

    /// Ends the generation.
    pub fn end(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        let counters = &self.batch.counters;
        match self.stage {
            Stage::Idle => {}
            Stage::Waiting => counters.waiting.sub(self.sequences),
            Stage::Running(_) => counters.running.sub(self.sequences),
        }
        if self.prompt_read {
            counters.settled_prompt_tokens.add(self.prompt_tokens - self.cached_tokens);
        }
        counters.settled_generated_tokens.add(self.generated);
        match self.outcome {
            Outcome::Completed => counters.completed.add(1),
            Outcome::Aborted => counters.aborted.add(1),
            Outcome::Faulted => counters.faulted.add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep_until;

    use super::*;
    use crate::params::{Defaults, Endpoint};

    fn params(prompt_tokens: usize, n: u64) -> GenerationParams {
        let prompt = vec!["x"; prompt_tokens].join(" ");
        let body = format!(r#"{{"prompt":"{prompt}","n":{n}}}"#);
        let defaults = Defaults { seed: 1, output_tokens: 8, models: &[] };
        GenerationParams::parse(Endpoint::Completion, body.as_bytes(), &defaults).unwrap()
    }

    fn batch(max_num_seqs: u32) -> (Batch, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        let model = Model { max_num_seqs, jitter: 0.0, ..Model::default() };
        (Batch::new(model, Arc::clone(&counters)), counters)
    }

    #[tokio::test(start_paused = true)]
    async fn first_token_is_due_after_queue_and_prefill() {
        let (batch, counters) = batch(1);
        let start = Instant::now();
        let mut first = batch.generation(&params(800, 1));
        first.admit().await.unwrap();
        assert_eq!(first.due() - start, Duration::from_millis(130));

        let mut second = batch.generation(&params(8, 1));
        let queued = tokio::spawn(async move {
            second.admit().await.unwrap();
            second.due()
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((counters.read().running, counters.read().waiting), (1, 1));
        first.end(Outcome::Completed);
        assert_eq!(queued.await.unwrap() - start, Duration::from_millis(531));
    }

    #[tokio::test(start_paused = true)]
    async fn step_takes_longer_at_higher_concurrency() {
        let (batch, _) = batch(64);
        let mut one = batch.generation(&params(8, 1));
        one.admit().await.unwrap();
        let step = |one: &mut Generation| {
            let before = one.due();
            one.stepped(1);
            one.due() - before
        };
        let alone = step(&mut one);
        let mut many = batch.generation(&params(8, 50));
        many.admit().await.unwrap();
        assert!(step(&mut one) > 2 * alone);
        drop(many);
        assert_eq!(step(&mut one), alone);
    }

    /// Returns the tokens per second of each of `concurrency` clients that start together.
    async fn speeds(concurrency: u32) -> Vec<f64> {
        const TOKENS: u32 = 40;
        let (batch, _) = batch(64);
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..concurrency {
            let mut generation = batch.generation(&params(8, 1));
            clients.spawn(async move {
                generation.admit().await.unwrap();
                sleep_until(generation.due()).await;
                let first = Instant::now();
                for _ in 1..TOKENS {
                    generation.stepped(1);
                    sleep_until(generation.due()).await;
                }
                f64::from(TOKENS - 1) / first.elapsed().as_secs_f64()
            });
        }
        clients.join_all().await
    }

    #[tokio::test(start_paused = true)]
    async fn measured_speeds_match_the_model() {
        for concurrency in [1, 10, 25, 50] {
            let modelled = Model::default().tokens_per_second(u64::from(concurrency));
            for speed in speeds(concurrency).await {
                // The timer rounds up to 1 ms, over at least half a second.
                assert!((speed / modelled - 1.0).abs() < 0.01, "{concurrency}: {speed} {modelled}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_generation_leaves_every_gauge() {
        let (batch, counters) = batch(2);
        let mut running = batch.generation(&params(8, 2));
        running.admit().await.unwrap();
        running.stepped(2);
        let mut queued = batch.generation(&params(8, 1));
        let waiting = tokio::time::timeout(Duration::from_millis(1), queued.admit()).await;
        assert!(waiting.is_err());
        drop((running, queued));
        let counts = counters.read();
        assert_eq!((counts.running, counts.waiting), (0, 0));
        assert_eq!(counts.aborted, 2);
        assert_eq!(counts.settled_generated_tokens, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn request_with_too_many_choices_takes_all_slots() {
        let (batch, counters) = batch(2);
        let mut generation = batch.generation(&params(8, 5));
        generation.admit().await.unwrap();
        assert_eq!(counters.read().running, 5);
    }
}
