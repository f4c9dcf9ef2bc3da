//! Recorded exchanges to records: the committed text of each, the same for any slices, and laws of every record.

mod bills;
mod golden;
mod truth;
