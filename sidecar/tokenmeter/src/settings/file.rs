//! Reads the settings file, within its bound.

use std::fs::File;
use std::io::{self, Read};

use origin::file::{Node, parse};
use origin::{Diagnostic, Origin};

/// Reads the file at `path`.
pub fn read(path: &str) -> Result<Node, Diagnostic> {
    let whole = Origin::File { path: path.into(), line: 0 };
    match bounded_text(path) {
        Ok(text) => parse(path, &text),
        Err(cause) => Err(Diagnostic::at(
            &whole,
            format!("cannot be read: {cause}"),
            "name a readable YAML file of at most 1 MiB with --config",
        )),
    }
}

fn bounded_text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    Ok(text)
}

/// Bytes of a settings file: ten times what a thousand upstreams take.
const FILE_BYTES: u64 = 1024 * 1024;
