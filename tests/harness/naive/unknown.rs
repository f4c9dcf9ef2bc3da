//! A frame of unknown shape: one delta, of which only an error and a usage object are read.

use scan::{Counts, Delta, Event, Scope, Usage};
use serde_json::Value;

use super::Frame;
use super::counts::{self, Place};
use super::facts::{FrameFacts, Lead};
use super::frame::is_error;
use super::memory::Memory;

/// The events of a frame, or `None` if they are undefined.
pub(crate) fn events(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<Vec<Event>> {
    let usage = usage(outside, frame, memory)?;
    if is_error(frame) {
        return FrameFacts { lead: Some(Lead::Error), usage, ..FrameFacts::default() }.events(outside);
    }
    if outside.error {
        return None;
    }
    let delta = match outside {
        Frame { unstreamed: true, .. } if usage.is_none() => Some(Event::Other),
        Frame { unstreamed: false, whole: true, .. } => Some(Event::Text(Delta::default())),
        _ => None,
    };
    Some(delta.into_iter().chain(usage.map(Event::Usage)).collect())
}

/// The usage, merged with the counts of earlier frames.
fn usage(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<Option<Usage>> {
    let mut holders = HOLDERS.iter().filter_map(|holder| Some((frame.pointer(holder.at)?, holder)));
    let holder = holders.next();
    let top =
        counts::at(frame, &[("/prompt_eval_count", |c| &mut c.input), ("/eval_count", |c| &mut c.output)])?;
    if holders.next().is_some() || holder.is_some() && top != Counts::default() {
        return None;
    }
    let counts = match holder {
        Some((usage, holder)) if usage.is_object() => holder.counts(usage)?,
        _ => top,
    };
    if counts == Counts::default() {
        return Some(None);
    }
    let earlier = memory.unknown;
    let counts = Counts {
        input: counts.input.or(earlier.input),
        input_cached: counts.input_cached.or(earlier.input_cached),
        input_cache_write: counts.input_cache_write.or(earlier.input_cache_write),
        input_cache_write_1h: counts.input_cache_write_1h.or(earlier.input_cache_write_1h),
        output: counts.output.or(earlier.output),
        ..counts
    };
    let scope = if outside.unstreamed { Scope::Whole } else { Scope::Running(0) };
    if !is_error(frame) {
        memory.unknown = counts;
    }
    Some(Some(Usage { scope, counts }))
}

/// A place of a usage object.
struct Holder {
    at: &'static str,
    counts: &'static [Place],
    /// Numbers that count only together with others.
    parts: &'static [&'static str],
}

const TOTAL: &str = "/total_tokens";
const READ: &str = "/cache_read_input_tokens";
const WRITTEN: &str = "/cache_creation_input_tokens";
const WRITTEN_5M: &str = "/cache_creation/ephemeral_5m_input_tokens";

const HOLDERS: [Holder; 3] = [
    Holder {
        at: "/usage",
        counts: &[
            ("/prompt_tokens", |c| &mut c.input),
            ("/input_tokens", |c| &mut c.input),
            ("/completion_tokens", |c| &mut c.output),
            ("/output_tokens", |c| &mut c.output),
            ("/prompt_tokens_details/cached_tokens", |c| &mut c.input_cached),
            ("/input_tokens_details/cached_tokens", |c| &mut c.input_cached),
            ("/cache_creation/ephemeral_1h_input_tokens", |c| &mut c.input_cache_write_1h),
        ],
        parts: &[TOTAL, READ, WRITTEN, WRITTEN_5M],
    },
    Holder {
        at: "/response/usage",
        counts: &[
            ("/input_tokens", |c| &mut c.input),
            ("/output_tokens", |c| &mut c.output),
            ("/input_tokens_details/cached_tokens", |c| &mut c.input_cached),
        ],
        parts: &[],
    },
    // The beginning of a message has all counts but that of the output, for which it has an estimate.
    Holder {
        at: "/message/usage",
        counts: &[
            ("/input_tokens", |c| &mut c.input),
            ("/cache_creation/ephemeral_1h_input_tokens", |c| &mut c.input_cache_write_1h),
        ],
        parts: &[READ, WRITTEN, WRITTEN_5M],
    },
];

impl Holder {
    fn counts(&self, usage: &Value) -> Option<Counts> {
        let mut counts = counts::at(usage, self.counts)?;
        let part = |path: &'static str| match self.parts.contains(&path) {
            true => counts::at(usage, &[(path, |c| &mut c.input)]),
            false => Some(Counts::default()),
        };
        let (total, read) = (part(TOTAL)?, part(READ)?);
        let (written, five_minutes) = (part(WRITTEN)?, part(WRITTEN_5M)?);
        counts.rejected += total.rejected + read.rejected + written.rejected + five_minutes.rejected;
        let hour = counts.input_cache_write_1h;
        let both = five_minutes.input.map(|n| n + hour.unwrap_or(0));
        let written = written.input.or(both).or(hour);
        counts.input = match (counts.input, counts.output) {
            (None, None) => total.input,
            (input, _) => input.map(|n| n + read.input.unwrap_or(0) + written.unwrap_or(0)),
        };
        counts.input_cached = counts.input_cached.or(read.input);
        counts.input_cache_write = written;
        // A rejected number may hide one of another name.
        (counts.rejected == 0 || counts.input.is_none() && counts.output.is_none()).then_some(counts)
    }
}
