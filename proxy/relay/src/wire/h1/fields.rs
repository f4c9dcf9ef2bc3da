//! The fields of a received head as a map.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http1::Lines;

/// Writes the fields to a map; its values share `head`, a copy of the bytes that the lines lie in, which begin at
/// `base`. `None` if one is not valid.
pub(super) fn map(map: &mut HeaderMap, lines: Lines<'_, '_>, head: &Bytes, base: *const u8) -> Option<()> {
    map.clear();
    for line in lines.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        let from = line.value.as_ptr().addr() - base.addr();
        let value = head.slice(from..from + line.value.len());
        map.append(name, HeaderValue::from_maybe_shared(value).ok()?);
    }
    Some(())
}
