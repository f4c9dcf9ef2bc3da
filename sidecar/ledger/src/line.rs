//! A line of the rollup: the totals of a day's exchanges that have every key in common. Reports are
//! made of lines, whichever store they come from.

use std::sync::Arc;

use meter::{Provenance, TokenType};

/// Totals of what has the same keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Days since 1970-01-01, UTC.
    pub day: i32,
    /// Whose.
    pub tenant: Arc<str>,
    /// Made with which key or account.
    pub principal: Option<Arc<str>>,
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The model asked for.
    pub model: Arc<str>,
    /// How they ended.
    pub ending: Arc<str>,
    /// How the input counts are known.
    pub input_provenance: Provenance,
    /// How the output counts are known.
    pub output_provenance: Provenance,
    /// By which rate they were charged; `None`: unpriced.
    pub rate: Option<[u8; 16]>,
    /// What kind of line it is.
    pub class: Class,

    /// Exchanges; of a correction, those that had no price before it.
    pub exchanges: u64,
    /// Tokens by type, in the order of [`TokenType::ALL`].
    pub tokens: [u64; TokenType::ALL.len()],
    /// What they cost by price, pico-units of the rate's currency; a correction's may be negative.
    pub cost_pico: i128,
    /// Exchanges whose energy and GPU time are known.
    pub energy_exchanges: u64,
    /// Energy of those, nanojoules.
    pub energy_nj: i128,
    /// GPU time of those, nanoseconds.
    pub gpu_ns: i128,
    /// What that time cost, pico-dollars.
    pub gpu_hours_pico: i128,
    /// What that energy cost, pico-dollars.
    pub gpu_energy_pico: i128,
}

/// What kind of line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The sum of rows that are or were kept one by one.
    Usage,
    /// Totals whose rows were never written, because the disk could not take them.
    Shed,
    /// What was added or taken back after the fact.
    Correction,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Usage, Self::Shed, Self::Correction];

    /// The word in the store and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Shed => "shed",
            Self::Correction => "correction",
        }
    }
}
