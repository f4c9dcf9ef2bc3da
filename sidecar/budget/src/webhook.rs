//! The webhook: a thread that posts notices one after the other, from a bounded queue. A receiver
//! that is slow or gone costs no traffic; what it did not take is counted and kept, so many of them,
//! and posted when it is back. What is still owed can be asked, so that a new process tells it.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// How long after a failure what was not taken is tried again, give or take half, if nothing else
    /// is to be posted before.
    pub again: Duration,
    /// Whether the proxy that the environment names is used (`HTTPS_PROXY` and its like).
    pub through_proxy: bool,
}

impl Plan {
    /// Ordinary patience: 10 s an attempt, pauses of 1, 4 and 16 s, and each minute after that.
    pub fn to(endpoint: Endpoint, secret: Option<Secret>) -> Self {
        let (attempt, pause) = (Duration::from_secs(10), Duration::from_secs(1));
        let again = Duration::from_secs(60);
        Self { endpoint, secret, roots: None, attempt, pause, again, through_proxy: true }
    }
}

/// What became of notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Taken by the receiver.
    pub sent: u64,
    /// Not taken, after every attempt. One that is taken later counts as sent too.
    pub failed: u64,
    /// Never tried: the queue was full, or the process ended.
    pub dropped: u64,
}

/// Posts notices.
#[derive(Debug)]
pub struct Webhook {
    queue: Option<SyncSender<Notice>>,
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
    /// Neither taken nor given up.
    owed: Mutex<Vec<Notice>>,
}

impl Counts {
    fn owed(&self) -> MutexGuard<'_, Vec<Notice>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One is taken, or given up.
    fn settle(&self, notice: &Notice) {
        let mut owed = self.owed();
        if let Some(at) = owed.iter().position(|one| one == notice) {
            owed.remove(at);
        }
    }
}

impl Webhook {
    /// Starts its thread.
    pub fn start(plan: Plan) -> io::Result<Self> {
        let (queue, waiting) = mpsc::sync_channel::<Notice>(QUEUE);
        let (patience, stop) = mpsc::sync_channel(0);
        let (ended, done) = mpsc::sync_channel(0);
        let counts = Arc::new(Counts::default());
        let mut sender = Sender {
            stop,
            counts: Arc::clone(&counts),
            pause: plan.pause,
            again: plan.again,
            kept: VecDeque::new(),
        };
        thread::Builder::new().name("budget-webhook".to_owned()).spawn(move || {
            let _ended: SyncSender<()> = ended;
            // Here, since reading the system's certificates takes a while.
            let roots = plan.roots.as_deref();
            let post = Post::new(plan.endpoint, plan.secret, roots, plan.attempt, plan.through_proxy);
            sender.run(&post, &waiting);
        })?;
        Ok(Self { queue: Some(queue), patience: Some(patience), done, counts })
    }

    /// Posts a notice some time soon. Never waits for the receiver.
    pub fn post(&self, notice: &Notice) {
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        // Before it may be taken.
        self.counts.owed().push(notice.clone());
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(notice.clone()).is_err()) {
            self.counts.settle(notice);
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notices that nobody took yet and that were not given up: those that wait, and those that are
    /// tried again.
    pub fn owed(&self) -> Vec<Notice> {
        self.counts.owed().clone()
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

    /// Takes no more, gives each that waits one attempt, and is done after `within` at the latest. Says
    /// what is owed still, too.
    pub fn shutdown(mut self, within: Duration) -> (Sent, Vec<Notice>) {
        self.queue = None;
        self.patience = None;
        let ended = self.done.recv_timeout(within);
        let mut sent = self.counts();
        if ended == Err(RecvTimeoutError::Timeout) {
            sent.dropped += self.counts.waiting.load(Ordering::Relaxed);
        }
        (sent, self.owed())
    }
}

/// The thread's own.
struct Sender {
    stop: Receiver<()>,
    counts: Arc<Counts>,
    pause: Duration,
    again: Duration,
    /// What was not taken, the oldest first.
    kept: VecDeque<Notice>,
}

impl Sender {
    fn run(&mut self, post: &Post, waiting: &Receiver<Notice>) {
        loop {
            let next = match self.kept.is_empty() {
                true => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => waiting.recv_timeout(jittered(self.again)),
            };
            match next {
                Ok(notice) => self.send(post, notice),
                Err(RecvTimeoutError::Timeout) => self.send_kept(post),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn send(&mut self, post: &Post, notice: Notice) {
        match self.deliver(post, &body(&notice)) {
            Ok(()) => {
                self.counts.sent.fetch_add(1, Ordering::Relaxed);
                self.counts.settle(&notice);
                // The receiver is there: it gets what it missed.
                self.send_kept(post);
            }
            Err(refusal) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                match refusal {
                    Refusal::Later(why) => {
                        tracing::warn!(
                            notice = name(&notice),
                            "not delivered to {post}: {why}; it is kept and tried again"
                        );
                        self.keep(notice);
                    }
                    Refusal::Never(why) => self.give_up(&notice, post, &why),
                }
            }
        }
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// One attempt for each that was not taken, until one fails.
    fn send_kept(&mut self, post: &Post) {
        while let Some(notice) = self.kept.pop_front() {
            match post.attempt(&body(&notice)) {
                Ok(()) => {
                    tracing::info!(notice = name(&notice), "delivered to {post} after all");
                    self.counts.sent.fetch_add(1, Ordering::Relaxed);
                    self.counts.settle(&notice);
                }
                Err(Refusal::Never(why)) => self.give_up(&notice, post, &why),
                Err(Refusal::Later(_)) => return self.kept.push_front(notice),
            }
        }
    }

    fn keep(&mut self, notice: Notice) {
        self.kept.push_back(notice);
        if self.kept.len() > KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            tracing::warn!(
                notice = name(&oldest),
                "given up: {KEPT} later ones could not be delivered either"
            );
            self.counts.settle(&oldest);
        }
    }

    fn give_up(&self, notice: &Notice, post: &Post, why: &str) {
        tracing::warn!(notice = name(notice), "not delivered to {post}: {why}; it counts as told");
        self.counts.settle(notice);
    }

    fn deliver(&self, post: &Post, body: &[u8]) -> Result<(), Refusal> {
        let mut pause = self.pause;
        for _ in 0..RETRIES {
            match post.attempt(body) {
                Ok(()) => return Ok(()),
                Err(Refusal::Never(why)) => return Err(Refusal::Never(why)),
                Err(Refusal::Later(why)) if self.stops_within(jittered(pause)) => {
                    return Err(Refusal::Later(why));
                }
                Err(Refusal::Later(_)) => pause = pause.saturating_mul(4),
            }
        }
        post.attempt(body)
    }

    /// Waits, and says whether it is over.
    fn stops_within(&self, pause: Duration) -> bool {
        self.stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
    }
}

/// A notice's id for the log: tenants' names are others' words.
fn name(notice: &Notice) -> String {
    notice.id().escape_debug().to_string()
}

fn body(notice: &Notice) -> Vec<u8> {
    notice.json().to_string().into_bytes()
}

/// Half to one and a half of a pause, so that those who were refused together do not come together.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1001;
    pause / 2 + pause.mul_f64(random as f64 / 1000.0)
}

/// Notices that may wait: more than every threshold of fifty tenants at once, 1 kB each.
pub const QUEUE: usize = 256;

/// Notices that are kept for a receiver that is not there; of more the oldest are given up.
pub const KEPT: usize = 256;

/// Attempts after the first.
const RETRIES: u32 = 3;
