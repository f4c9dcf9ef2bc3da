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

/// The payload bytes of `bytes`, line by line.
pub(crate) fn payloads(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    lines(bytes).filter_map(|line| line.payload(bytes))
}

/// Returns the start of the event that `bytes` end with. Empty lines and blocks without data may precede it:
/// they dispatch nothing, and the scanner counts them to the next event. `None` unless the last line is
/// empty.
pub(crate) fn last_event(bytes: &[u8]) -> Option<usize> {
    let (mut from, mut ended) = (0, false);
    for line in lines(bytes) {
        ended = line.is_blank();
        if ended && line.to < bytes.len() {
            from = line.to;
        }
    }
    ended.then_some(from)
}

/// Returns the range to remove so that the object around the member at `from..to` stays valid: the member
/// and one comma. `None` if there is no such member.
pub(crate) fn removable_range(bytes: &[u8], from: usize, to: usize) -> Option<Range<usize>> {
    let last = to.checked_sub(1)?;
    let is_payload = |at: usize| payloads(bytes).any(|part| part.contains(&at));
    if from >= last || !is_payload(from) || !is_payload(last) || (bytes[from], bytes[last]) != (b'"', b'}') {
        return None;
    }
    let before = last_token(bytes, from)?;
    if bytes[before] == b',' {
        return Some(before..to);
    }
    let after = next_token(bytes, to)?;
    match (bytes[before], bytes[after]) {
        (b'{', b',') => Some(from..next_token(bytes, after + 1)?),
        (b'{', b'}') => Some(from..to),
        _ => None,
    }
}

/// The last payload byte before `at` that is not white space.
fn last_token(bytes: &[u8], at: usize) -> Option<usize> {
    let before = payloads(bytes).take_while(|part| part.start < at);
    let last = |part: Range<usize>| {
        let text = &bytes[part.start..part.end.min(at)];
        text.iter().rposition(|byte| !byte.is_ascii_whitespace()).map(|n| part.start + n)
    };
    before.filter_map(last).last()
}

/// The first payload byte from `at` on that is not white space.
fn next_token(bytes: &[u8], at: usize) -> Option<usize> {
    let first = |part: Range<usize>| {
        let from = part.start.max(at);
        let text = bytes.get(from..part.end)?;
        text.iter().position(|byte| !byte.is_ascii_whitespace()).map(|n| from + n)
    };
    payloads(bytes).find_map(first)
}
