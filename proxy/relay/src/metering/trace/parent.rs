//! `traceparent` of W3C Trace Context, level 2: read strictly, written as version 00. Of a value of a higher version,
//! the fields of version 00 are read. A value that cannot be read counts as not sent.

/// The contents of a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    /// The trace's id; not all zeros.
    pub(crate) trace_id: [u8; 16],
    /// The caller's span; not all zeros.
    pub(crate) span: [u8; 8],
    /// True if the caller keeps the trace.
    pub(crate) sampled: bool,
    /// True if the lower seven bytes of the trace's id are random.
    pub(crate) random: bool,
}

/// Bytes of a value of version 00.
const BYTES: usize = 55;

const SAMPLED: u8 = 1;
const RANDOM: u8 = 2;

impl TraceParent {
    /// Reads a field's value; `None` if it is not valid.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_first_chunk::<BYTES>()?;
        let [version] = bytes(&known[..2])?;
        let is_whole = match version {
            0xff => false,
            0 => rest.is_empty(),
            _ => rest.first().is_none_or(|&byte| byte == b'-'),
        };
        if !is_whole || [2, 35, 52].iter().any(|&at| known[at] != b'-') {
            return None;
        }
        let (trace_id, span) = (bytes(&known[3..35])?, bytes(&known[36..52])?);
        let [flags] = bytes(&known[53..])?;
        let has_ids = trace_id != [0; 16] && span != [0; 8];
        has_ids.then_some(Self { trace_id, span, sampled: flags & SAMPLED != 0, random: flags & RANDOM != 0 })
    }

    /// Writes a field's value.
    pub(crate) fn format(&self) -> [u8; BYTES] {
        let mut value = [b'-'; BYTES];
        let flags = (u8::from(self.sampled) * SAMPLED) | (u8::from(self.random) * RANDOM);
        write(&mut value[..2], &[0]);
        write(&mut value[3..35], &self.trace_id);
        write(&mut value[36..52], &self.span);
        write(&mut value[53..], &[flags]);
        value
    }
}

/// Reads lower-case hexadecimal, two digits a byte.
fn bytes<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn write(text: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::TraceParent;

    /// Most cases are one of these, somewhat spoilt.
    const VALID: &str = "00-12345678901234567890123456789012-1234567890123456-01";

    /// The obvious reading, by the letter of the specification's grammar.
    fn naive(value: &[u8]) -> Option<TraceParent> {
        let fields: Vec<&[u8]> = value.split(|byte| *byte == b'-').collect();
        let [version, trace_id, span, flags, more @ ..] = &fields[..] else { return None };
        let hex = |field: &[u8], digits: usize| {
            let text = str::from_utf8(field).ok()?;
            let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let sound = text.chars().count() == digits && text.chars().all(is_hex);
            sound.then(|| u128::from_str_radix(text, 16).unwrap())
        };
        let (trace_id, span, flags) = (hex(trace_id, 32)?, hex(span, 16)?, hex(flags, 2)?);
        let version = hex(version, 2)?;
        let known = version != 255 && (version > 0 || more.is_empty());
        (known && trace_id > 0 && span > 0).then(|| TraceParent {
            trace_id: trace_id.to_be_bytes(),
            span: u64::try_from(span).unwrap().to_be_bytes(),
            sampled: flags % 2 == 1,
            random: flags / 2 % 2 == 1,
        })
    }

    /// The cases of the specification's own test suite (w3c/trace-context, `test/test.py`).
    #[test]
    fn the_specifications_own_cases() {
        let same = [
            "00-12345678901234567890123456789012-1234567890123456-00",
            "00-12345678901234567890123456789012-1234567890123456-01",
            "00-12345678901234567890123456789012-1234567890123456-02",
            "00-12345678901234567890123456789012-1234567890123456-ff",
            "cc-12345678901234567890123456789012-1234567890123456-01",
            "cc-12345678901234567890123456789012-1234567890123456-01-what-the-future-will-be-like",
            "fe-12345678901234567890123456789012-1234567890123456-01-",
        ];
        for value in same {
            let parent = TraceParent::parse(value.as_bytes()).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(parent.trace_id[..4], [0x12, 0x34, 0x56, 0x78]);
            assert_eq!(parent.span, [0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56]);
            assert_eq!(Some(parent), naive(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "00",
            "00-12345678901234567890123456789012-1234567890123456-01.",
            "00-12345678901234567890123456789012-1234567890123456-01-what-the-future-will-be-like",
            "cc-12345678901234567890123456789012-1234567890123456-01.what-the-future-will-be-like",
            "ff-12345678901234567890123456789012-1234567890123456-01",
            ".0-12345678901234567890123456789012-1234567890123456-01",
            "0.-12345678901234567890123456789012-1234567890123456-01",
            "000-12345678901234567890123456789012-1234567890123456-01",
            "0000-12345678901234567890123456789012-1234567890123456-01",
            "0-12345678901234567890123456789012-1234567890123456-01",
            "00-00000000000000000000000000000000-1234567890123456-01",
            "00-.2345678901234567890123456789012-1234567890123456-01",
            "00-1234567890123456789012345678901.-1234567890123456-01",
            "00-123456789012345678901234567890123-1234567890123456-01",
            "00-1234567890123456789012345678901-1234567890123456-01",
            "00-12345678901234567890123456789012-0000000000000000-01",
            "00-12345678901234567890123456789012-.234567890123456-01",
            "00-12345678901234567890123456789012-123456789012345.-01",
            "00-12345678901234567890123456789012-12345678901234567-01",
            "00-12345678901234567890123456789012-123456789012345-01",
            "00-12345678901234567890123456789012-1234567890123456-.0",
            "00-12345678901234567890123456789012-1234567890123456-0.",
            "00-12345678901234567890123456789012-1234567890123456-001",
            "00-12345678901234567890123456789012-1234567890123456-1",
            "00-ABCDEF78901234567890123456789012-1234567890123456-01",
            "00-12345678901234567890123456789012-ABCDEF7890123456-01",
            "00-12345678901234567890123456789012-1234567890123456-0F",
            "CC-12345678901234567890123456789012-1234567890123456-01",
            "00_12345678901234567890123456789012_1234567890123456_01",
            " 00-12345678901234567890123456789012-1234567890123456-0",
        ] {
            assert_eq!(TraceParent::parse(value.as_bytes()), None, "{value}");
            assert_eq!(naive(value.as_bytes()), None, "{value}: the naive reading");
        }
    }

    #[test]
    fn traceparent_round_trips_and_nothing_else_parses() {
        let ids = (1..=u128::MAX, 1..=u64::MAX, any::<bool>(), any::<bool>());
        let spoilt = proptest::collection::vec((0..VALID.len(), any::<u8>()), 0..3);
        let bytes = proptest::collection::vec(any::<u8>(), 0..80);
        proptest!(chance::cases(4000), |(ids in ids, spoilt in spoilt, cut in 0..90_usize, bytes in bytes)| {
            let (trace_id, span, sampled, random) = ids;
            let (trace_id, span) = (trace_id.to_be_bytes(), span.to_be_bytes());
            let parent = TraceParent { trace_id, span, sampled, random };
            prop_assert_eq!(TraceParent::parse(&parent.format()), Some(parent));
            prop_assert_eq!(naive(&parent.format()), Some(parent));

            prop_assert_eq!(TraceParent::parse(&bytes), naive(&bytes));
            let mut value = [VALID.as_bytes(), &bytes[..]].concat();
            for (at, byte) in spoilt {
                // A letter that may well be the right one, or any byte.
                value[at] = if byte < 128 { b"0-f1aF."[usize::from(byte % 7)] } else { byte };
            }
            for value in [&value[..], &value[..cut.min(value.len())], &value[..VALID.len()]] {
                prop_assert_eq!(TraceParent::parse(value), naive(value), "{:?}", value);
            }
        });
    }
}
