//! The usage of a place of the dataset: the sums of a report, and each type of token by provenance.
//!
//! Law: the provenance of one type of token does not depend on another type.

use ledger::source::DeviceTotal;
use ledger::{DailyTotal, GpuSums};
use meter::{Provenance, TokenType};
use price::Rate;

use crate::sums::{PROVENANCES, Sums, TYPES};

/// The sums of a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// The sums as in a report.
    pub(super) sums: Sums,
    /// Tokens by type, in the order of [`TokenType::ALL`], and by provenance, in that of [`Provenance::ALL`].
    known: [[i128; PROVENANCES]; TYPES],
}

impl Usage {
    /// Adds a daily total that is not a correction.
    pub(super) fn add(&mut self, line: &DailyTotal, rate: Option<&Rate>) {
        self.sums.add(line, rate, false);
        for (kind, &count) in TokenType::ALL.into_iter().zip(&line.sums.tokens) {
            let provenance: Provenance =
                if kind.is_input() { line.key.input_provenance } else { line.key.output_provenance };
            self.known[kind as usize][provenance as usize] += i128::from(count);
        }
    }

    /// Adds a correction.
    pub(super) fn correct(&mut self, line: &DailyTotal) {
        self.sums.correct(line, true);
    }

    /// Adds GPU use without an exchange.
    pub(super) fn add_device(&mut self, device: &DeviceTotal) {
        self.sums.add_device(device);
    }

    /// Adds GPU use without an exchange that is allocated to the tenant.
    pub(super) fn allocate(&mut self, part: &GpuSums) {
        self.sums.allocate(part);
    }

    /// Tokens of some kinds by provenance.
    pub(super) fn known(&self, kinds: &[TokenType]) -> [i128; PROVENANCES] {
        std::array::from_fn(|at| kinds.iter().map(|kind| self.known[*kind as usize][at]).sum())
    }
}
