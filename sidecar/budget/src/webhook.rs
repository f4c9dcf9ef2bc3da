//! The webhook: a thread that posts notices one after the other, from a bounded queue. A receiver
//! that is slow or gone costs notices, never traffic, and each that was not taken is counted.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::notice::Notice;
use crate::post::{Post, Refusal};
use crate::signature::Secret;

/// Where notices go, and how patiently.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address.
    pub endpoint: Endpoint,
    /// By what they are signed.
    pub secret: Option<Secret>,
    /// Certificates (DER) that are trusted instead of the system's.
    pub roots: Option<Vec<Vec<u8>>>,
    /// How long an attempt may take, all in all.
    pub attempt: Duration,
    /// How long the first pause between attempts is, give or take half; each later one is four
    /// times as long.
    pub pause: Duration,
    /// Whether the proxy that the environment names is used (`HTTPS_PROXY` and its like).
    pub through_proxy: bool,
}

impl Plan {
    /// Ordinary patience: 10 s an attempt, pauses of 1, 4 and 16 s.
    pub fn to(endpoint: Endpoint, secret: Option<Secret>) -> Self {
        let (attempt, pause) = (Duration::from_secs(10), Duration::from_secs(1));
        Self { endpoint, secret, roots: None, attempt, pause, through_proxy: true }
    }
}

/// What became of notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Taken by the receiver.
    pub sent: u64,
    /// Not taken, after every attempt.
    pub failed: u64,
    /// Never tried: the queue was full, or the process ended.
    pub dropped: u64,
}

/// Posts notices.
#[derive(Debug)]
pub struct Webhook {
    queue: Option<SyncSender<Letter>>,
    /// Dropped so that pauses end.
    patience: Option<SyncSender<()>>,
    /// Ends when the thread does.
    done: Receiver<()>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    /// Taken into the queue, and out of it.
    waiting: AtomicU64,
}

impl Webhook {
    /// Starts its thread.
    pub fn start(plan: Plan) -> io::Result<Self> {
        let (queue, waiting) = mpsc::sync_channel::<Letter>(QUEUE);
        let (patience, stop) = mpsc::sync_channel(0);
        let (ended, done) = mpsc::sync_channel(0);
        let counts = Arc::new(Counts::default());
        let sender = Sender { stop, counts: Arc::clone(&counts), pause: plan.pause };
        thread::Builder::new().name("budget-webhook".to_owned()).spawn(move || {
            let _ended: SyncSender<()> = ended;
            // Here, since reading the system's certificates takes a while.
            let roots = plan.roots.as_deref();
            let post = Post::new(plan.endpoint, plan.secret, roots, plan.attempt, plan.through_proxy);
            for letter in waiting {
                sender.send(&post, &letter);
            }
        })?;
        Ok(Self { queue: Some(queue), patience: Some(patience), done, counts })
    }

    /// Posts a notice some time soon. Never waits.
    pub fn post(&self, notice: &Notice) {
        let letter = Letter { id: notice.id(), body: notice.json().to_string().into_bytes() };
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(letter).is_err()) {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What became of notices so far.
    pub fn counts(&self) -> Sent {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sent {
            sent: read(&self.counts.sent),
            failed: read(&self.counts.failed),
            dropped: read(&self.counts.dropped),
        }
    }

    /// Takes no more, gives each that waits one attempt, and is done after `within` at the latest.
    pub fn shutdown(mut self, within: Duration) -> Sent {
        self.queue = None;
        self.patience = None;
        let ended = self.done.recv_timeout(within);
        let mut sent = self.counts();
        if ended == Err(RecvTimeoutError::Timeout) {
            sent.dropped += self.counts.waiting.load(Ordering::Relaxed);
        }
        sent
    }
}

/// A notice on its way.
struct Letter {
    id: String,
    body: Vec<u8>,
}

/// The thread's own.
struct Sender {
    stop: Receiver<()>,
    counts: Arc<Counts>,
    pause: Duration,
}

impl Sender {
    fn send(&self, post: &Post, Letter { id, body }: &Letter) {
        let count = match self.deliver(post, body) {
            Ok(()) => &self.counts.sent,
            Err(why) => {
                tracing::warn!(notice = id.escape_debug().to_string(), "not delivered to {post}: {why}");
                &self.counts.failed
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    fn deliver(&self, post: &Post, body: &[u8]) -> Result<(), String> {
        let mut pause = self.pause;
        for _ in 0..RETRIES {
            match post.attempt(body) {
                Ok(()) => return Ok(()),
                Err(Refusal::Never(why)) => return Err(why),
                Err(Refusal::Later(why)) if self.stops_within(jittered(pause)) => return Err(why),
                Err(Refusal::Later(_)) => pause = pause.saturating_mul(4),
            }
        }
        post.attempt(body).map_err(|(Refusal::Never(why) | Refusal::Later(why))| why)
    }

    /// Waits, and says whether it is over.
    fn stops_within(&self, pause: Duration) -> bool {
        self.stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
    }
}

/// Half to one and a half of a pause, so that those who were refused together do not come together.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1001;
    pause / 2 + pause.mul_f64(random as f64 / 1000.0)
}

/// Notices that may wait: more than every threshold of fifty tenants at once, 1 kB each.
pub const QUEUE: usize = 256;

/// Attempts after the first.
const RETRIES: u32 = 3;
