//! How a path begins, as a server reads it that unescapes paths before it routes them: `%61` is `a`,
//! `//` is `/`, and an escaped slash is a slash. The path is compared in
//! place and never changed, and nothing is unescaped twice (`%2561` is `%61`, no `a`).

use crate::escape::escape;

/// How many bytes of `path` say `prefix`, if what follows is nothing or a segment of its own.
pub(crate) fn covered(path: &str, prefix: &str) -> Option<usize> {
    let mut path = Plain::of(path);
    let mut said = 0;
    for (wanted, _) in Plain::of(prefix) {
        let (byte, until) = path.next()?;
        if byte != wanted {
            return None;
        }
        said = until;
    }
    path.next().is_none_or(|(byte, _)| byte == b'/').then_some(said)
}

/// Returns whether a rule for paths below `prefix` is for all paths below `path`.
pub fn begins_path(path: &str, prefix: &str) -> bool {
    covered(path, prefix).is_some()
}

/// The bytes a path means, each with where in the path it ends.
struct Plain<'a> {
    path: &'a [u8],
    at: usize,
    /// The byte before was a slash.
    slash: bool,
    /// What is left of a character of several bytes.
    rest: Vec<u8>,
}

impl<'a> Plain<'a> {
    fn of(path: &'a str) -> Self {
        Self { path: path.as_bytes(), at: 0, slash: false, rest: Vec::new() }
    }

    /// The byte that is next and how much of the path says it; no byte where an escape means none.
    fn read(&mut self) -> Option<(Option<u8>, usize)> {
        let path = &self.path[self.at..];
        Some(match escape(path) {
            // A byte of a character, or all of it.
            Some((code, 3)) => (u8::try_from(code).ok(), 3),
            Some((code, length)) => {
                let mut bytes = [0; 4];
                // cpp-httplib drops half a surrogate pair.
                let bytes =
                    char::from_u32(code).map_or(&[][..], |meant| meant.encode_utf8(&mut bytes).as_bytes());
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
            let again = self.slash && byte == b'/';
            self.slash = byte == b'/';
            if !again {
                return Some((byte, self.at));
            }
        }
    }
}
