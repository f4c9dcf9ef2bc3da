//! Detached work that clients have started: which of it was not counted yet, so that the request that fetches its result is
//! metered, and where it was started, so that a gate can refuse more of it. Threads share it without waiting; a full table
//! forgets the oldest entries.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use meter::Tick;

use crate::fingerprint;
use crate::query::parameters;

/// The number of jobs, and of starts, that are kept.
const SLOTS: usize = 1024;

/// The most segments before an id with slashes: what follows each is read to its end.
const PREFIX_MAX_SEGMENTS: usize = 16;

/// The time for which more work is refused where some was started.
const REFUSED_NS: u64 = 600_000_000_000;

/// Detached work that clients have started.
#[derive(Debug)]
pub struct DetachedWork {
    /// False until some was started: most processes never see any.
    is_any: AtomicBool,
    /// The fingerprint of a job's id, at its place by that.
    jobs: Box<[AtomicU64]>,
    /// The fingerprint of a tenant and a path, and the tick until which more is refused.
    starts: Box<[(AtomicU64, AtomicU64)]>,
}

impl DetachedWork {
    /// No work.
    pub fn new() -> Self {
        Self {
            is_any: AtomicBool::new(false),
            jobs: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            starts: (0..SLOTS).map(|_| <(AtomicU64, AtomicU64)>::default()).collect(),
        }
    }

    /// Records that a tenant started work at a path, by the answer at `now`, which may name it.
    pub fn begin(&self, (tenant, path): (&str, u64), job: Option<&str>, now: Tick) {
        if let Some(job) = job {
            let job = fingerprint(job) | 1;
            self.jobs[place(job)].store(job, Ordering::Relaxed);
        }
        let key = fingerprint(&(tenant, path)) | 1;
        let (start, until) = &self.starts[place(key)];
        start.store(key, Ordering::Relaxed);
        until.store(now.0.saturating_add(REFUSED_NS), Ordering::Relaxed);
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Returns true if the tenant started work at the path in the last ten minutes.
    pub fn is_started(&self, tenant: &str, path: u64, now: Tick) -> bool {
        if !self.is_any.load(Ordering::Relaxed) {
            return false;
        }
        let key = fingerprint(&(tenant, path)) | 1;
        let (start, until) = &self.starts[place(key)];
        start.load(Ordering::Relaxed) == key && until.load(Ordering::Relaxed) > now.0
    }

    /// Returns the job that a path or a query names, if it is not counted yet.
    pub fn job(&self, path: &str, query: Option<&str>) -> Option<u64> {
        if !self.is_any.load(Ordering::Relaxed) {
            return None;
        }
        let is_known = |job: &u64| self.jobs[place(*job)].load(Ordering::Relaxed) == *job;
        // An id may have slashes: Vertex AI's is the path itself, without its beginning, which is short.
        let rests = path.match_indices('/').take(PREFIX_MAX_SEGMENTS).map(|(at, _)| &path[at + 1..]);
        let in_path = path.split(['/', ':']).chain(rests).map(|item| fingerprint(item) | 1);
        let values = query.into_iter().flat_map(parameters).map(|(_, value)| value);
        let in_query = values.filter_map(|value| Some(fingerprint(str::from_utf8(&value).ok()?) | 1));
        in_path.chain(in_query).find(is_known)
    }

    /// Records that a job is counted. Returns false if it was counted before, or is unknown.
    pub fn counted(&self, job: u64) -> bool {
        self.jobs[place(job)].compare_exchange(job, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Records that the job with this id is counted. Returns false if it was counted before, or is unknown.
    pub fn take(&self, id: &str) -> bool {
        self.counted(fingerprint(id) | 1)
    }
}

fn place(fingerprint: u64) -> usize {
    (fingerprint >> 32) as usize % SLOTS
}

impl Default for DetachedWork {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_is_known_until_it_is_counted() {
        let work = DetachedWork::new();
        assert_eq!(work.job("/v1/jobs/j-1", None), None);
        work.begin(("a", 7), Some("j-1"), Tick(0));
        work.begin(("a", 7), Some("projects/p/operations/9"), Tick(0));
        for (path, query) in [
            ("/v1/jobs/j-1", None),
            ("/v1/chat/deferred-completion/j-1/", None),
            ("/v1/jobs/j-1/result", None),
            ("/v1/result", Some("x=y&id=j%2D1")),
            ("/v1/projects/p/operations/9", None),
        ] {
            assert!(work.job(path, query).is_some(), "{path}");
        }
        assert_eq!(work.job("/v1/jobs/j-2", Some("id=j-3")), None);
        assert!(work.counted(work.job("/v1/jobs/j-1", None).unwrap()));
        assert_eq!(work.job("/v1/jobs/j-1", None), None);
        assert_eq!(["j-1", "j-2", "projects/p/operations/9"].map(|id| work.take(id)), [false, false, true]);
    }

    #[test]
    fn start_is_remembered_for_ten_minutes() {
        let work = DetachedWork::new();
        assert!(!work.is_started("a", 7, Tick(0)));
        work.begin(("a", 7), None, Tick(5));
        assert!(work.is_started("a", 7, Tick(REFUSED_NS)) && !work.is_started("a", 7, Tick(REFUSED_NS + 5)));
        assert!(!work.is_started("b", 7, Tick(6)) && !work.is_started("a", 8, Tick(6)));
    }
}
