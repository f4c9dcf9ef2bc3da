//! The exemplar of each bucket: the latest observation with a trace. The histogram's lock guards the cells, so that
//! no reader sees a trace with another's value.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use meter::Record;

use crate::reading::Exemplar;

/// The trace of an observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceRef {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    at_unix_ns: u64,
}

impl TraceRef {
    /// Returns the trace of an exchange if it is sampled: with tokenmeter's own span if it exports one, else with the
    /// caller's.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let trace = record.identity.trace.as_deref().filter(|trace| trace.sampled)?;
        let span_id = trace.spans.map(|spans| spans.server).or(trace.parent)?;
        Some(Self { trace_id: trace.trace_id, span_id, at_unix_ns: record.ended_unix_ns() })
    }

    pub(crate) fn exemplar(&self, bucket: usize, value: f64) -> Exemplar {
        let Self { trace_id, span_id, at_unix_ns } = *self;
        Exemplar { bucket, value, trace_id, span_id, at_unix_ns }
    }
}

/// One slot for each bucket.
#[derive(Debug)]
pub(crate) struct Exemplars<const BUCKETS: usize>([Slot; BUCKETS]);

impl<const BUCKETS: usize> Default for Exemplars<BUCKETS> {
    fn default() -> Self {
        Self([const { Slot::empty() }; BUCKETS])
    }
}

impl<const BUCKETS: usize> Exemplars<BUCKETS> {
    /// Replaces an older exemplar of the bucket. Only the writer may call it.
    pub(crate) fn keep(&self, exemplar: &Exemplar) {
        if let Some(slot) = self.0.get(exemplar.bucket)
            && slot.at_unix_ns.load(Relaxed) <= exemplar.at_unix_ns
        {
            slot.set(exemplar);
        }
    }

    pub(crate) fn read(&self) -> Vec<Exemplar> {
        self.0.iter().enumerate().filter_map(|(bucket, slot)| slot.get(bucket)).collect()
    }
}

#[derive(Debug)]
struct Slot {
    trace_id: [AtomicU64; 2],
    span_id: AtomicU64,
    value: AtomicU64,
    /// 0 for an empty slot.
    at_unix_ns: AtomicU64,
}

impl Slot {
    const fn empty() -> Self {
        Self {
            trace_id: [AtomicU64::new(0), AtomicU64::new(0)],
            span_id: AtomicU64::new(0),
            value: AtomicU64::new(0),
            at_unix_ns: AtomicU64::new(0),
        }
    }

    fn set(&self, exemplar: &Exemplar) {
        let trace_id = u128::from_be_bytes(exemplar.trace_id);
        self.trace_id[0].store((trace_id >> 64) as u64, Relaxed);
        self.trace_id[1].store(trace_id as u64, Relaxed);
        self.span_id.store(u64::from_be_bytes(exemplar.span_id), Relaxed);
        self.value.store(exemplar.value.to_bits(), Relaxed);
        self.at_unix_ns.store(exemplar.at_unix_ns, Relaxed);
    }

    fn get(&self, bucket: usize) -> Option<Exemplar> {
        let at_unix_ns = Some(self.at_unix_ns.load(Relaxed)).filter(|at| *at > 0)?;
        let [high, low] = self.trace_id.each_ref().map(|half| u128::from(half.load(Relaxed)));
        Some(Exemplar {
            bucket,
            value: f64::from_bits(self.value.load(Relaxed)),
            trace_id: (high << 64 | low).to_be_bytes(),
            span_id: self.span_id.load(Relaxed).to_be_bytes(),
            at_unix_ns,
        })
    }
}
