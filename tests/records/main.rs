//! Recorded exchanges to records: the committed text of each, the same in any pieces, and what
//! must hold of it whatever the text says.

mod bills;
mod golden;
mod truth;
