//! The house rules no compiler knows: which crate may depend on what, how long a file may get,
//! that the documents name what exists.

mod dependencies;
mod documents;
mod files;

use std::path::PathBuf;

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}
