//! The days and months of a ledger, by a time zone that may change with a month.
//!
//! Law: every instant belongs to one day and one month, and later instants to no earlier day. A month begins where the
//! month before it ends, also when the zone changes between them.

mod calendar;
pub mod month;
mod zone;

pub use calendar::{Calendar, CalendarError};
pub use month::Month;
pub use zone::{UnknownZone, Zone};

/// The length of a day of UTC, microseconds.
pub const DAY_US: i64 = 86_400_000_000;
