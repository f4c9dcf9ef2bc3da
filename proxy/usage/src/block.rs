//! The lines of one SSE event, as the editor needs them: the lines that belong to the event, and their
//! payload bytes. Lines end in LF, CR or CRLF.

use std::ops::Range;

use memchr::memchr2;

/// One line: its start, the end of its text, and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) from: usize,
    text_to: usize,
    pub(crate) to: usize,
}

/// The lines of `bytes`; the last may lack its line end.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == bytes.len() {
            return None;
        }
        let text_to = memchr2(b'\n', b'\r', &bytes[from..]).map_or(bytes.len(), |n| from + n);
        let end = match bytes[text_to..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        let line = Line { from, text_to, to: text_to + end };
        from = line.to;
        Some(line)
    })
}

impl Line {
    pub(crate) fn is_comment(self, bytes: &[u8]) -> bool {
        bytes[self.from] == b':'
    }

    fn is_blank(self) -> bool {
        self.from == self.text_to
    }

    /// The payload, if this is a data line.
    fn payload(self, bytes: &[u8]) -> Option<Range<usize>> {
        let text = &bytes[self.from..self.text_to];
        let rest = text.strip_prefix(b"data")?;
        let value = match rest {
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            [] => rest,
            _ => return None,
        };
        Some(self.text_to - value.len()..self.text_to)
    }
}

/// Returns the start of the event that `bytes` end with. Empty lines and blocks without data may precede it:
/// they dispatch nothing, and the scanner counts them to the next event. `None` unless the last line is
/// empty, or `bytes` are a JSON object on one line, which is an event of NDJSON.
pub(crate) fn last_event(bytes: &[u8]) -> Option<usize> {
    let (mut from, mut ended) = (0, false);
    for line in lines(bytes) {
        ended = line.is_blank();
        if ended && line.to < bytes.len() {
            from = line.to;
        }
    }
    (ended || from == 0 && bytes.starts_with(b"{") && bytes.ends_with(b"\n")).then_some(from)
}

/// Returns true if `bytes` are the range of an object's member, possibly with line ends in it.
pub(crate) fn is_member(bytes: &[u8]) -> bool {
    let ends_value = || bytes.ends_with(b"}") || bytes.ends_with(b"null");
    match bytes {
        // After another member.
        [b',', ..] => ends_value(),
        // The first one: alone, or up to the next key.
        [b'"', ..] => ends_value() || bytes.contains(&b','),
        _ => false,
    }
}

/// The payload bytes of `bytes`, which begin inside a payload and may go on over several lines.
pub(crate) fn payloads(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    lines(bytes).enumerate().filter_map(|(number, line)| match number {
        0 => Some(line.from..line.text_to),
        _ => line.payload(bytes),
    })
}
