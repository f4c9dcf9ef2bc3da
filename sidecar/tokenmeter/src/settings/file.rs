//! Reads the settings file, within its bound.

use std::path::Path;

use origin::file::{Node, parse};
use origin::{Diagnostic, Origin, content};

/// Reads the file at `path`.
pub fn read(path: &str) -> Result<Node, Diagnostic> {
    let whole = Origin::File { path: path.into(), line: 0 };
    match content::bounded_once(Path::new(path), FILE_BYTES).and_then(content::text) {
        Ok(text) => parse(path, &text),
        Err(cause) => Err(Diagnostic::at(
            &whole,
            format!("cannot be read: {cause}"),
            "name a readable YAML file of at most 1 MiB with --config",
        )),
    }
}

/// Bytes of a settings file: ten times what a thousand upstreams take.
const FILE_BYTES: u64 = 1024 * 1024;
