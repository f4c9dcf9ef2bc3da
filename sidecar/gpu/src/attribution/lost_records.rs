//! Exchanges that ended on an upstream, by its load cell, against those whose notice came. An ended exchange without
//! a timely notice is a lost record, and its share is known exactly.

use std::collections::VecDeque;
use std::time::Duration;

use meter::{LoadReading, Tick};

/// The ended exchanges of one upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostRecords {
    /// Samples that saw exchanges end, the oldest first.
    exits: VecDeque<ExitSample>,
    /// The share of notices that came since the last sample in `exits`.
    reported_later: u128,
    /// The share of all that had ended by the last sample written off: a notice from before is late.
    written_off_share: u128,
    /// The share of all that had ended before the first sample.
    first_share: u128,
}

/// The timeliness of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeArrival {
    /// In time.
    OnTime,
    /// After its share was written off.
    Late,
    /// The exchange ended before the first sample.
    BeforeFirstSample,
}

/// A sample that saw exchanges end.
#[derive(Clone, Copy, Debug)]
struct ExitSample {
    at: Tick,
    /// The share of all exchanges that had ended by then.
    gone: u128,
    /// The share granted by then to an exchange that was in flight from the start.
    share: u128,
    /// Of the exchanges that ended since the sample before, the share of those with a notice.
    reported: u128,
}

impl LostRecords {
    /// Starts at the upstream's current state.
    pub(crate) fn new(load: &LoadReading) -> Self {
        let gone = load.released();
        Self { written_off_share: gone, first_share: gone, ..Self::default() }
    }

    /// Starts again: every exchange that has ended until now ended before the first sample.
    pub(crate) fn begin(&mut self, load: &LoadReading) {
        *self = Self::new(load);
    }

    /// Records a sample; returns true if exchanges have ended since the one before.
    pub(crate) fn record_exits(&mut self, at: Tick, load: &LoadReading) -> bool {
        let gone = load.released();
        let more = gone > self.exits.back().map_or(self.written_off_share, |exit| exit.gone);
        if more {
            let reported = std::mem::take(&mut self.reported_later);
            self.exits.push_back(ExitSample { at, gone, share: load.share, reported });
        }
        more
    }

    /// Takes the notice of an ended exchange.
    pub(crate) fn notice(&mut self, entered: &LoadReading, left: &LoadReading) -> NoticeArrival {
        let (share, gone) = (left.share.saturating_sub(entered.share), left.released());
        if share == 0 {
            return NoticeArrival::OnTime;
        }
        if gone <= self.written_off_share {
            return if gone <= self.first_share {
                NoticeArrival::BeforeFirstSample
            } else {
                NoticeArrival::Late
            };
        }
        let number = self.exits.partition_point(|exit| exit.gone < gone);
        match self.exits.get_mut(number) {
            Some(exit) => exit.reported += share,
            None => self.reported_later += share,
        }
        NoticeArrival::OnTime
    }

    /// Returns the next sample that is at least `timeout` old, and the share of the exchanges it saw end without a
    /// notice. A sample waits until the unclaimed use of every device covers it: `covered` is the share it reaches.
    pub(crate) fn lost(&mut self, now: Tick, timeout: Duration, covered: u128) -> Option<(Tick, u128)> {
        let exit = self.exits.front().copied()?;
        if u128::from(now.since(exit.at)) < timeout.as_nanos() || exit.share > covered {
            return None;
        }
        self.exits.pop_front();
        let lost = (exit.gone - self.written_off_share).saturating_sub(exit.reported);
        self.written_off_share = exit.gone;
        Some((exit.at, lost))
    }
}
