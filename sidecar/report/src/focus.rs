//! A report for FinOps tools: the Cost and Usage dataset of FOCUS (focus.finops.org), versions 1.2 to 1.4, as CSV. One
//! row for each tenant, model, type of token, period and price.
//!
//! Laws: the effective costs sum to the ledger's cost, exactly; a cost is its quantity times its unit price, exactly
//! for prices of tokens or requests; usage without a price is not listed as free.

mod charge;
mod columns;
mod gather;
mod idle;
mod merge;
pub mod metadata;
mod usage;

use std::io::{self, Write};

use ledger::source::{Source, SourceError};
use price::Book;

use super::cell;
use super::notes::Notes;
use super::query::Query;

pub use columns::Column;

meter::listed_enum! {
    /// A version of FOCUS.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Version {
        /// Of May 2025, which most tools read.
        V1_2 = "1.2",
        /// Of December 2025, with columns for allocated cost.
        V1_3 = "1.3",
        /// Of June 2026.
        V1_4 = "1.4",
    }
    /// Returns its number as in the specification.
    pub fn name(self);
}

meter::listed_enum! {
    /// The purpose of the dataset: chargeback or showback.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Billing {
        /// Showback: `BilledCost` is 0, so that no cost is counted twice beside the provider's own bill.
        Showback = "showback",
        /// Chargeback: the tenant pays, and `BilledCost` is the cost.
        Chargeback = "chargeback",
    }
    /// The word on the command line.
    pub fn name(self);
}

/// The options of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The version.
    pub version: Version,
    /// The purpose.
    pub billing: Billing,
    /// The issuer of the bill: the operator.
    pub issuer: String,
    /// The name of the service.
    pub service: String,
}

/// The columns of a version, in order.
pub fn columns(version: Version) -> impl Iterator<Item = &'static Column> {
    columns::COLUMNS.iter().filter(move |column| column.is_in(version))
}

/// Writes the dataset, and returns its notes. Rows are by day if the day is among the keys, else by month; by
/// principal, consumer or upstream if that is a key. A price book gives the metadata of models; it need not be the one
/// that charged them.
///
/// # Errors
/// If the store cannot be read or the writer fails.
pub fn write(
    source: &dyn Source,
    query: &Query,
    options: &Options,
    book: Option<&Book>,
    to: &mut dyn Write,
) -> Result<Notes, SourceError> {
    let (charges, notes) = gather::charges(source, query, book)?;
    put(&charges, options, to)?;
    Ok(notes)
}

fn put(charges: &[charge::Charge], options: &Options, to: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<_> = columns(options.version).collect();
    let mut sheet = csv::Writer::from_writer(to);
    sheet.write_record(columns.iter().map(|column| column.name))?;
    for charge in charges {
        let value = |column: &&Column| cell::plain(&(column.value)(charge, options)).into_owned();
        sheet.write_record(columns.iter().map(value))?;
    }
    sheet.flush()
}

#[cfg(test)]
mod idle_tests;
#[cfg(test)]
mod period_tests;
#[cfg(test)]
mod tests;
