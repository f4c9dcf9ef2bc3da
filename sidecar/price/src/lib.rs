//! The price book, and the cost of an exchange.
//!
//! Law 9: money is exact. Prices are whole pico-units (10⁻¹²) of a currency, sums are `i128`, and a
//! price with further decimals is rounded once, when the book is read, with a warning. A model without
//! a price is unpriced, never free.

mod amount;
mod book;
mod charge;
mod currency;
pub mod diff;
mod entry;
mod facts;
pub mod instant;
pub mod litellm;
mod pattern;
mod prices;
mod read;
mod tenant_terms;
mod tier;
mod usage;
mod warning;

pub use amount::exact_pico;
pub use book::Book;
pub use charge::{Charge, Pico, Rate, Unpriced};
pub use currency::Currency;
pub use entry::{About, Entry, Models, Offer, STANDARD};
pub use facts::{Facts, may_be_dearer, name_dearest};
pub use prices::key_of;
pub use tenant_terms::TenantTerm;
pub use tier::is_hosted;
pub use usage::Usage;
pub use warning::{Warning, WarningKind};
