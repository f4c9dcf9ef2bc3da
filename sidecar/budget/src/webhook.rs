//! The webhook: a thread that posts notices one after the other, from a bounded queue. A slow or absent receiver
//! delays no request. Undelivered notices are counted and kept up to a limit,
//! and retried. The caller can read them, so that the next process sends them.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use agent::{Endpoint, Failure, Post, jittered};

use crate::notice::Notice;
use crate::signature::{SIGNATURE, Secret};

/// The receiver, and the timing of attempts.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address.
    pub endpoint: Endpoint,
    /// The secret that signs notices.
    pub secret: Option<Secret>,
    /// Trusted certificates (DER) in place of the system's.
    pub roots: Option<Vec<Vec<u8>>>,
    /// The timeout of an attempt.
    pub attempt_timeout: Duration,
    /// The first pause between attempts, ± 50 %; each later one is four
    /// times as long.
    pub pause: Duration,
    /// The interval, ± 50 %, at which undelivered notices are retried if no other notice is
    /// posted before.
    pub retry_interval: Duration,
    /// Uses the proxy of the environment (`HTTPS_PROXY` and the like).
    pub through_proxy: bool,
}

impl Plan {
    /// Returns the default timing: 10 s an attempt, pauses of 1, 4 and 16 s, and retries each minute after that.
    pub fn to(endpoint: Endpoint, secret: Option<Secret>) -> Self {
        let (attempt_timeout, pause) = (Duration::from_secs(10), Duration::from_secs(1));
        let retry_interval = Duration::from_secs(60);
        Self { endpoint, secret, roots: None, attempt_timeout, pause, retry_interval, through_proxy: true }
    }
}

/// Counts of notices by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookCounts {
    /// Accepted by the receiver.
    pub sent: u64,
    /// Not accepted by any attempt. A notice that is accepted later counts as sent too.
    pub failed: u64,
    /// Never attempted: the queue was full, or the process ended.
    pub dropped: u64,
}

/// A webhook with its thread.
#[derive(Debug)]
pub struct Webhook {
    queue: Option<SyncSender<Notice>>,
    /// Dropped to end a pause.
    pause_guard: Option<SyncSender<()>>,
    /// Disconnects when the thread ends.
    done: Receiver<()>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    /// Queued and not finished.
    waiting: AtomicU64,
    /// Neither accepted nor dropped.
    undelivered: Mutex<Vec<Notice>>,
}

impl Counts {
    fn undelivered(&self) -> MutexGuard<'_, Vec<Notice>> {
        self.undelivered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a notice that was accepted or dropped.
    fn settle(&self, notice: &Notice) {
        let mut undelivered = self.undelivered();
        if let Some(at) = undelivered.iter().position(|one| one == notice) {
            undelivered.remove(at);
        }
    }
}

impl Webhook {
    /// Starts the thread.
    pub fn start(plan: Plan) -> io::Result<Self> {
        let (queue, waiting) = mpsc::sync_channel::<Notice>(QUEUE_MAX_ITEMS);
        let (pause_guard, stop) = mpsc::sync_channel(0);
        let (ended, done) = mpsc::sync_channel(0);
        let counts = Arc::new(Counts::default());
        let mut sender = Sender {
            stop,
            counts: Arc::clone(&counts),
            secret: plan.secret,
            pause: plan.pause,
            retry_interval: plan.retry_interval,
            retry_queue: VecDeque::new(),
        };
        thread::Builder::new().name("budget-webhook".to_owned()).spawn(move || {
            let _ended: SyncSender<()> = ended;
            // On the thread, because reading the system's certificates takes a while.
            let roots = plan.roots.as_deref();
            let post = Post::new(plan.endpoint, roots, plan.attempt_timeout, plan.through_proxy);
            sender.run(&post, &waiting);
        })?;
        Ok(Self { queue: Some(queue), pause_guard: Some(pause_guard), done, counts })
    }

    /// Queues a notice. Never waits for the receiver.
    pub fn post(&self, notice: &Notice) {
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        // Before the thread can settle it.
        self.counts.undelivered().push(notice.clone());
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(notice.clone()).is_err()) {
            self.counts.settle(notice);
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the notices that are neither accepted nor dropped: those in the queue and those that are
    /// retried.
    pub fn undelivered(&self) -> Vec<Notice> {
        self.counts.undelivered().clone()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> WebhookCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WebhookCounts {
            sent: read(&self.counts.sent),
            failed: read(&self.counts.failed),
            dropped: read(&self.counts.dropped),
        }
    }

    /// Accepts no more notices, gives each queued one an attempt, and returns after `within` at the latest, with the
    /// counts and the undelivered notices.
    pub fn shutdown(mut self, within: Duration) -> (WebhookCounts, Vec<Notice>) {
        self.queue = None;
        self.pause_guard = None;
        let ended = self.done.recv_timeout(within);
        let mut sent = self.counts();
        if ended == Err(RecvTimeoutError::Timeout) {
            sent.dropped += self.counts.waiting.load(Ordering::Relaxed);
        }
        (sent, self.undelivered())
    }
}

/// The state of the thread.
struct Sender {
    stop: Receiver<()>,
    counts: Arc<Counts>,
    secret: Option<Secret>,
    pause: Duration,
    retry_interval: Duration,
    /// Undelivered notices, the oldest first.
    retry_queue: VecDeque<Notice>,
}

impl Sender {
    fn run(&mut self, post: &Post, waiting: &Receiver<Notice>) {
        loop {
            let next = match self.retry_queue.is_empty() {
                true => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => waiting.recv_timeout(jittered(self.retry_interval)),
            };
            match next {
                Ok(notice) => self.send(post, notice),
                Err(RecvTimeoutError::Timeout) => self.send_retries(post),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn send(&mut self, post: &Post, notice: Notice) {
        match self.deliver(post, &body(&notice)) {
            Ok(()) => {
                self.counts.sent.fetch_add(1, Ordering::Relaxed);
                self.counts.settle(&notice);
                // The receiver is available again: deliver what it missed.
                self.send_retries(post);
            }
            Err(failure) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                match failure.is_temporary() {
                    true => {
                        tracing::warn!(
                            notice = name(&notice),
                            "not delivered to {post}: {failure}; will be retried"
                        );
                        self.queue_retry(notice);
                    }
                    false => self.drop_permanently(&notice, post, &failure),
                }
            }
        }
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Attempts each undelivered notice once, until one fails.
    fn send_retries(&mut self, post: &Post) {
        while let Some(notice) = self.retry_queue.pop_front() {
            match self.attempt(post, &body(&notice)) {
                Ok(()) => {
                    tracing::info!(notice = name(&notice), "delivered to {post} by a retry");
                    self.counts.sent.fetch_add(1, Ordering::Relaxed);
                    self.counts.settle(&notice);
                }
                Err(failure) if failure.is_temporary() => return self.retry_queue.push_front(notice),
                Err(failure) => self.drop_permanently(&notice, post, &failure),
            }
        }
    }

    fn queue_retry(&mut self, notice: Notice) {
        self.retry_queue.push_back(notice);
        if self.retry_queue.len() > RETRY_MAX_ITEMS
            && let Some(oldest) = self.retry_queue.pop_front()
        {
            tracing::warn!(
                notice = name(&oldest),
                "dropped: {RETRY_MAX_ITEMS} later notices are undelivered, too"
            );
            self.counts.settle(&oldest);
        }
    }

    fn drop_permanently(&self, notice: &Notice, post: &Post, failure: &Failure) {
        tracing::warn!(notice = name(notice), "not delivered to {post}: {failure}; counts as sent");
        self.counts.settle(notice);
    }

    fn deliver(&self, post: &Post, body: &[u8]) -> Result<(), Failure> {
        let mut pause = self.pause;
        for _ in 0..MAX_RETRIES {
            match self.attempt(post, body) {
                Err(failure) if failure.is_temporary() && !self.stops_within(jittered(pause)) => {
                    pause = pause.saturating_mul(4);
                }
                outcome => return outcome,
            }
        }
        self.attempt(post, body)
    }

    fn attempt(&self, post: &Post, body: &[u8]) -> Result<(), Failure> {
        let signature = self.secret.as_ref().map(|secret| secret.sign(body));
        let signature = signature.as_deref().map(|value| (SIGNATURE, value));
        let headers: Vec<_> = [("content-type", "application/json")].into_iter().chain(signature).collect();
        post.attempt(&headers, body)
    }

    /// Pauses; returns true on shutdown.
    fn stops_within(&self, pause: Duration) -> bool {
        self.stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
    }
}

/// Returns a notice's id for the log, escaped: it contains a tenant's name.
fn name(notice: &Notice) -> String {
    notice.id().escape_debug().to_string()
}

fn body(notice: &Notice) -> Vec<u8> {
    notice.json().to_string().into_bytes()
}

/// Maximum number of queued notices: more than every threshold of fifty tenants at once, 1 kB each.
pub const QUEUE_MAX_ITEMS: usize = 256;

/// Maximum number of undelivered notices; beyond it the oldest is dropped.
pub const RETRY_MAX_ITEMS: usize = 256;

/// Attempts after the first.
const MAX_RETRIES: u32 = 3;
