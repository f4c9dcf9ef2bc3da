//! Reports: what each tenant spent, on which model, at which price, and how sure that is.
//!
//! Laws: money of two currencies is never added; a report says what it leaves out; what can be summed
//! from lines is, and comes to the same as from rows.

pub mod source;
