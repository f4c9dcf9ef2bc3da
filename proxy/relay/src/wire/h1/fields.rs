//! The fields of a head, or of trailers, as a map, and their way back to bytes.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http1::{Line, Lines, write_field};

/// Writes the fields to a map. Its values share the memory of `head`, a copy of the parsed bytes, which begin at `base`.
/// `None` if a field is not valid.
pub(super) fn map(map: &mut HeaderMap, lines: Lines<'_, '_>, head: &Bytes, base: *const u8) -> Option<()> {
    map.clear();
    for line in lines.iter() {
        let from = line.value.as_ptr().addr() - base.addr();
        let value = head.slice(from..from + line.value.len());
        map.append(name(line)?, HeaderValue::from_maybe_shared(value).ok()?);
    }
    Some(())
}

/// Reads a trailer section with its empty line; `None` if it is not valid.
pub(super) fn trailers(section: &[u8]) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    if !section.is_empty() {
        for line in http1::trailers(section).ok()? {
            map.append(name(&line)?, HeaderValue::from_bytes(line.value).ok()?);
        }
    }
    Some(map)
}

fn name(line: &Line<'_>) -> Option<HeaderName> {
    HeaderName::from_bytes(line.name.as_bytes()).ok()
}

/// Writes the fields for which `keeps` returns true, in the order of the map. `names`: the received names, whose spelling
/// they get.
pub(super) fn write<'n>(
    out: &mut Vec<u8>,
    fields: &HeaderMap,
    names: impl Iterator<Item = &'n [u8]> + Clone,
    keeps: impl Fn(&HeaderName) -> bool,
) {
    // Most fields have the order in which they were received.
    let mut ahead = names.clone();
    for (name, value) in fields {
        let name_bytes = name.as_str().as_bytes();
        let is_its = |spelled: &&[u8]| spelled.eq_ignore_ascii_case(name_bytes);
        let mut next = ahead.clone();
        let spelled = next.find(is_its).or_else(|| {
            next = names.clone();
            next.find(is_its)
        });
        if spelled.is_some() {
            ahead = next;
        }
        if keeps(name) {
            write_field(out, spelled.unwrap_or(name_bytes), value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use http1::{Table, response};

    use super::*;
    use crate::request::headers;

    #[test]
    fn names_keep_their_spelling() {
        let received = b"HTTP/1.1 200 OK\r\nX-One: 1\r\nSET-cookie: a\r\nx-TWO: 2\r\nSet-Cookie: b\r\n\r\n";
        let mut table = Table::default();
        let head = response(received, &mut table).unwrap().unwrap();
        let mut fields = HeaderMap::new();
        map(&mut fields, head.lines, &Bytes::from_static(received), received.as_ptr()).unwrap();
        headers::take_out(&mut fields, &HeaderName::from_static("x-one"));
        fields.insert("x-two", HeaderValue::from_static("3"));
        fields.insert("x-new", HeaderValue::from_static("4"));
        let mut out = Vec::new();
        write(&mut out, &fields, head.lines.names(), |name| name != "x-left-out");
        let mut lines: Vec<_> = str::from_utf8(&out).unwrap().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["SET-cookie: a", "Set-Cookie: b", "x-TWO: 3", "x-new: 4"]);
    }

    #[test]
    fn trailers_are_whole_and_valid() {
        assert_eq!(trailers(b"").map(|fields| fields.len()), Some(0));
        let fields = trailers(b"X-A: b\r\nContent-Length: 1\r\n\r\n").unwrap();
        assert_eq!(fields.len(), 2);
        assert!(trailers(b"X-A: b\r\n").is_none() && trailers(b"X A: b\r\n\r\n").is_none());
    }
}
