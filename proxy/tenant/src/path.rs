//! How a path begins, as a server reads it that unescapes paths before it routes them: `%61` is `a`,
//! `//` is `/`, and an escaped slash is a slash. The path is compared in place and never changed, and
//! nothing is unescaped twice (`%2561` is `%61`, no `a`).

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

/// The bytes a path means, each with where in the path it ends.
struct Plain<'a> {
    path: &'a [u8],
    at: usize,
    /// The byte before was a slash.
    slash: bool,
}

impl<'a> Plain<'a> {
    fn of(path: &'a str) -> Self {
        Self { path: path.as_bytes(), at: 0, slash: false }
    }
}

impl Iterator for Plain<'_> {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<(u8, usize)> {
        loop {
            let (byte, length) = match self.path[self.at..] {
                [b'%', high, low, ..] => match (digit(high), digit(low)) {
                    (Some(high), Some(low)) => (high << 4 | low, 3),
                    _ => (b'%', 1),
                },
                [byte, ..] => (byte, 1),
                [] => return None,
            };
            self.at += length;
            let again = self.slash && byte == b'/';
            self.slash = byte == b'/';
            if !again {
                return Some((byte, self.at));
            }
        }
    }
}

fn digit(hex: u8) -> Option<u8> {
    char::from(hex).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
