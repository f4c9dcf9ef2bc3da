//! Text functions of several crates: exact decimals, aligned tables, wildcard patterns, untrusted names, and
//! the known word nearest to an unknown one.

mod decimal;
mod glob;
mod nearest;
mod printable;
mod quoted;
mod table;

pub use decimal::{Decimal, group_thousands, money, nano, per_million, quotient};
pub use glob::Glob;
pub use nearest::{nearest, suggestion};
pub use printable::printable;
pub use quoted::quoted;
pub use table::table;
