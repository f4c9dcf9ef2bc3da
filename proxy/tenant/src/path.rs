//! The prefix of a path, as a server reads it that decodes paths before routing: `%61` is `a`, `//` is `/`,
//! and an escaped slash is a slash. The path is compared in place and never changed, and nothing is decoded
//! twice (`%2561` is `%61`, not `a`).

use crate::escape::escape;

/// Returns the number of bytes of `path` that form `prefix`, if the end or a new segment follows.
pub(crate) fn covered(path: &str, prefix: &str) -> Option<usize> {
    let mut path = Plain::of(path);
    let mut length = 0;
    for (wanted, _) in Plain::of(prefix) {
        let (byte, until) = path.next()?;
        if byte != wanted {
            return None;
        }
        length = until;
    }
    path.next().is_none_or(|(byte, _)| byte == b'/').then_some(length)
}

/// Returns true if every path below `path` is below `prefix`.
pub fn begins_path(path: &str, prefix: &str) -> bool {
    covered(path, prefix).is_some()
}

/// The decoded bytes of a path, each with the position where it ends.
struct Plain<'a> {
    path: &'a [u8],
    at: usize,
    /// The previous byte was a slash.
    slash: bool,
    /// The remaining bytes of a multi-byte character.
    rest: Vec<u8>,
}

impl<'a> Plain<'a> {
    fn of(path: &'a str) -> Self {
        Self { path: path.as_bytes(), at: 0, slash: false, rest: Vec::new() }
    }

    /// Returns the next byte and its length in the path; no byte for an escape that yields none.
    fn read(&mut self) -> Option<(Option<u8>, usize)> {
        let path = &self.path[self.at..];
        Some(match escape(path) {
            // A byte of a character, or all of it.
            Some((code, 3)) => (u8::try_from(code).ok(), 3),
            Some((code, length)) => {
                let mut bytes = [0; 4];
                // cpp-httplib drops half a surrogate pair.
                let bytes = char::from_u32(code)
                    .map_or(&[][..], |character| character.encode_utf8(&mut bytes).as_bytes());
                self.rest.extend(bytes.iter().skip(1).rev());
                (bytes.first().copied(), length)
            }
            None => (Some(*path.first()?), 1),
        })
    }
}

impl Iterator for Plain<'_> {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<(u8, usize)> {
        loop {
            if let Some(byte) = self.rest.pop() {
                return Some((byte, self.at));
            }
            let (byte, length) = self.read()?;
            self.at += length;
            let Some(byte) = byte else { continue };
            let repeated = self.slash && byte == b'/';
            self.slash = byte == b'/';
            if !repeated {
                return Some((byte, self.at));
            }
        }
    }
}
