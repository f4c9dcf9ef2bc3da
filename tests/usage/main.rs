//! The usage edit of recorded and generated streams, compared with its oracle.

mod properties;
mod recordings;
