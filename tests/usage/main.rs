//! The usage edit over recordings and made-up streams, against an obvious implementation.

mod properties;
mod recordings;
