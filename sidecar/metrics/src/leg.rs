//! One worker's cells for the legs of one model: the parts of requests whose prefill and decode run on two
//! servers. A prefill leg is counted here and nowhere else; a decode leg is an exchange as well.

use meter::edges::DURATION_S;
use meter::{Ending, Record, Role};

use crate::cell::{Count, Merge};
use crate::histogram::Histogram;
use crate::table::Metric;

/// The roles of legs, in the order of the cells.
pub(crate) const LEGS: [Role; 2] = [Role::Prefill, Role::Decode];

/// The cells of the legs of one role.
#[derive(Debug, Default)]
pub(crate) struct LegCells {
    /// In the order of [`Ending::ALL`].
    pub(crate) endings: [Count; Ending::ALL.len()],
    pub(crate) duration: Histogram<{ DURATION_S.len() + 1 }>,
    /// Prompt tokens of prefill legs.
    pub(crate) prompt_tokens: Count,
}

impl LegCells {
    /// Adds a finished leg.
    pub(crate) fn end(&self, record: &Record) {
        self.endings[record.ending as usize].add(1);
        self.duration.seconds(Metric::LegDuration, record.timing.duration_ns);
        if record.identity.role == Role::Prefill {
            self.prompt_tokens.add(record.tokens.input());
        }
    }
}

impl Merge for LegCells {
    fn merge(&self, other: &Self) {
        let Self { endings, duration, prompt_tokens } = self;
        endings.merge(&other.endings);
        duration.merge(&other.duration);
        prompt_tokens.merge(&other.prompt_tokens);
    }
}
