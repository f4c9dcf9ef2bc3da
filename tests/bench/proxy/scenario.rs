//! The scenarios. Each is bounded in count, and so in time.

use crate::load::Load;
use crate::wire::{Ask, FRAME_BYTES, UNMETERED_PATH};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// Its name on the command line and in the report.
    pub(crate) name: &'static str,
    /// Its description.
    pub(crate) what: &'static str,
    /// The values read from it.
    pub(crate) kind: Kind,
    /// Its loads, in order; for memory, of growing size.
    pub(crate) loads: &'static [Load],
}

/// The purpose of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// CPU per frame and added times; the machine has time to spare.
    Paced,
    /// CPU per frame and throughput, at full speed.
    Full,
    /// CPU per request and added times.
    Requests,
    /// Memory per stream.
    Memory,
    /// Memory per idle connection.
    Idle,
    /// The time from the client's end to the upstream's.
    Cancel,
}

impl Kind {
    /// Returns true if the scenario measures memory. Then it has no direct run and no warm-up.
    pub(crate) fn is_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Idle)
    }
}

const fn stream(connections: u32, requests: u32, text: u32, pause_us: u32) -> Load {
    Load::new(connections, requests, Ask::Stream { text, pause_us, pad: 0 })
}

const fn idle(connections: u32) -> Load {
    Load { idle_ms: 2000, ..Load::new(connections, 1, Ask::Json) }
}

const FOUR_KIB: Ask = Ask::Stream { text: 1000, pause_us: 0, pad: 4096 - FRAME_BYTES as u32 };

/// All of them.
pub(crate) const ALL: [Scenario; 11] = [
    Scenario {
        name: "slow1000",
        what: "1,000 streams, 200 frames each, 50 ms between two",
        kind: Kind::Paced,
        loads: &[stream(1000, 1, 200, 50_000)],
    },
    Scenario {
        name: "unmetered",
        what: "as slow1000, to a path that tokenmeter does not meter",
        kind: Kind::Paced,
        loads: &[Load { path: UNMETERED_PATH, ..stream(1000, 1, 200, 50_000) }],
    },
    Scenario {
        name: "sat",
        what: "32 streams at a time, 128 in all, 2,000 frames each, no pause",
        kind: Kind::Full,
        loads: &[stream(32, 4, 2000, 0)],
    },
    Scenario {
        name: "sat4k",
        what: "32 streams at a time, 64 in all, 1,000 frames of 4 KiB each, no pause",
        kind: Kind::Full,
        loads: &[Load::new(32, 2, FOUR_KIB)],
    },
    Scenario {
        name: "short",
        what: "16 clients, 1,500 requests each, a JSON reply of 16 tokens",
        kind: Kind::Requests,
        loads: &[Load::new(16, 1500, Ask::Json)],
    },
    Scenario {
        name: "brief",
        what: "16 streams at a time, 16,000 in all, 4 frames each, 1 ms between two: many ends, and time to spare",
        kind: Kind::Paced,
        loads: &[stream(16, 1000, 4, 1000)],
    },
    Scenario {
        name: "lat16",
        what: "16 streams at a time, 128 in all, 50 frames each, 10 ms between two",
        kind: Kind::Paced,
        loads: &[stream(16, 8, 50, 10_000)],
    },
    Scenario {
        name: "lat64",
        what: "64 streams at a time, 256 in all, 100 frames each, 10 ms between two",
        kind: Kind::Paced,
        loads: &[stream(64, 4, 100, 10_000)],
    },
    Scenario {
        name: "memory",
        what: "no stream, then 100, then 1,000, each a frame a second",
        kind: Kind::Memory,
        loads: &[stream(100, 1, 4, 1_000_000), stream(1000, 1, 4, 1_000_000)],
    },
    Scenario {
        name: "idle",
        what: "no connection, then 1,000, then 8,000, each idle after one JSON reply",
        kind: Kind::Idle,
        loads: &[idle(1000), idle(8000)],
    },
    Scenario {
        name: "cancel",
        what: "300 streams, one after another, whose client leaves after the first text frame",
        kind: Kind::Cancel,
        loads: &[Load::new(1, 300, Ask::Held)],
    },
];
