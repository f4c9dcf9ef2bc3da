//! Reports: what each tenant spent, on which model, at which price, and how sure that is.
//!
//! Laws: money of two currencies is never added; a report says what it leaves out; what can be summed
//! from lines is, and comes to the same as from rows.

pub mod ask;
pub mod column;
pub(crate) mod corrections;
pub(crate) mod first_prices;
pub mod focus;
pub mod group;
pub mod json;
pub mod key;
pub mod months;
pub mod notes;
pub mod period;
pub(crate) mod pieces;
pub mod sheet;
pub mod source;
pub mod sums;
pub mod table;

pub use ask::{Ask, Basis, Filter, Order};
pub use column::Column;
pub use group::{Group, Report, make};
pub use key::{Key, Value};
pub use pieces::line_of;
pub use source::{Range, Source, Trouble};

#[cfg(test)]
pub(crate) mod disk_tests;
#[cfg(test)]
pub(crate) mod memory;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
pub(crate) mod twin;
