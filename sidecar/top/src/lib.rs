//! `tokenmeter top`: the numbers of the live page in a terminal, or once as text.
//!
//! ```text
//! admin (JSON) → poll ─┐
//! keys ────────────────┴→ dashboard → parts → screen · plain
//! ```
//!
//! Laws: names are untrusted, and [`text::printable`] makes them harmless before they are drawn. The terminal is
//! restored at every end: by a key, a signal, an error or a panic.

// Input.
mod admin;
mod keys;
mod poll;
mod scope;

// State.
mod dashboard;
mod trend;

// Text.
mod number;
mod style;
mod table;
mod width;

// Sections.
mod headline;
mod parts;
mod scopes;

// Output.
mod plain;
mod screen;
mod terminal;

#[cfg(test)]
mod tests;

pub use admin::{Admin, AdminError};
pub use terminal::{Ending, TopError, run};

use dashboard::Dashboard;
use live::curve::Curves;

/// Returns the current numbers as text without escape codes.
pub fn text(admin: &Admin) -> Result<String, AdminError> {
    let now = admin.now()?;
    let mut dashboard = Dashboard::default();
    dashboard.read(now);
    // Without curves the other numbers are printed.
    dashboard.curves = admin.curves().unwrap_or_else(|_| Curves::default());
    Ok(plain::text(&dashboard))
}
