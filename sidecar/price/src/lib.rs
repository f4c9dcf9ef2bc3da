//! The price book, and what an exchange costs by it.
//!
//! Law 9: money is exact. Prices are whole pico-units (10⁻¹²) of a currency, sums are `i128`, and a
//! price that no whole number says is rounded once, when the book is read, with a warning. A model
//! without a price is unpriced, never free.

mod book;
mod charge;
mod mistake;
mod usage;

pub use book::Book;
pub use charge::{Charge, Currency, Pico, Rate, Unpriced};
pub use mistake::{Doubt, Problem, Warning};
pub use usage::Usage;
