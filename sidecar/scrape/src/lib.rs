//! Other programs' metrics pages: asked for, bounded, and taken apart. Knows HTTP and Prometheus'
//! text format, and nothing of what the names on a page mean: that is its reader's business.
//!
//! [`ask`] fetches a page, [`exposition`] takes it apart.
//!
//! Law: a page is somebody else's text. However long, slow or broken it is, reading it costs a
//! bounded time and memory, and what cannot be read is said.

pub mod ask;
pub mod exposition;
pub mod limits;

pub use ask::{Answer, Asker, Failure};
pub use exposition::{Page, Sample};
