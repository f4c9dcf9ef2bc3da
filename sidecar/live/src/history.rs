//! The answer of `/api/history`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The points of a scope, one list for each member of [`Point`](crate::Point), oldest first. All lists have one length;
/// `null` is a value that is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// `all`, `model:NAME` or `tenant:NAME`.
    pub scope: String,
    /// Seconds between points.
    pub step_seconds: u64,
    /// Time of the last point, seconds since 1970.
    pub last_unix_s: u64,
    /// The values by the member's name.
    pub series: BTreeMap<String, Vec<Option<f32>>>,
}

/// The step of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// 15 minutes by the second.
    Second,
    /// 24 hours by the minute.
    Minute,
}

impl Step {
    /// Seconds between points.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
        }
    }

    /// The most points.
    pub const fn points(self) -> usize {
        match self {
            Self::Second => 15 * 60,
            Self::Minute => 24 * 60,
        }
    }
}
