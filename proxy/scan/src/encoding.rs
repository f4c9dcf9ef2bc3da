//! The encoding of a JSON body. Python's `json.loads`, and with it `request.json()` of every Starlette
//! server, accepts UTF-8 with a byte order mark, and UTF-16 and UTF-32 of either byte order, with or without
//! a mark, and detects the encoding by the first four bytes. [`Transcoder`] detects the same and passes the
//! body on as UTF-8. A lone surrogate becomes three bytes, as in Python's `surrogatepass`. Ordinary UTF-8
//! passes unchanged; only a split character is kept.

/// Converts a body to UTF-8, slice by slice.
#[derive(Debug)]
pub(crate) struct Transcoder {
    encoding: Encoding,
    /// The first bytes of the body, or the bytes of a split unit.
    torn: [u8; 4],
    torn_len: u8,
    /// The high surrogate, if that was the last unit.
    high: Option<u16>,
    is_broken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// Too few bytes have arrived.
    Undetected,
    Utf8,
    /// Units of two or four bytes.
    Units {
        bytes: u8,
        is_big_endian: bool,
    },
}

/// Bytes of UTF-8 that are passed on at once.
const PIECE_BYTES: usize = 256;

/// Bytes of the longest character in UTF-8.
const CHARACTER_BYTES: usize = 4;

impl Transcoder {
    pub(crate) fn new() -> Self {
        Self { encoding: Encoding::Undetected, torn: [0; 4], torn_len: 0, high: None, is_broken: false }
    }

    /// Returns true if the body is UTF-8 and all bytes before the next slice have been passed on.
    pub(crate) fn is_utf8(&self) -> bool {
        self.encoding == Encoding::Utf8
    }

    /// Passes the next slice on as UTF-8.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut to: impl FnMut(&[u8])) {
        match self.encoding {
            Encoding::Utf8 => to(bytes),
            Encoding::Units { bytes: width, is_big_endian } => {
                self.decode(bytes, usize::from(width), is_big_endian, &mut to);
            }
            Encoding::Undetected => {
                let before = usize::from(self.torn_len);
                let taken = bytes.len().min(self.torn.len() - before);
                self.torn[before..before + taken].copy_from_slice(&bytes[..taken]);
                let head = self.torn;
                let known = before + taken;
                let Some((encoding, mark)) = detect(&head[..known], false) else {
                    self.torn_len = u8::try_from(known).unwrap_or(u8::MAX);
                    return;
                };
                if encoding == Encoding::Utf8 && before == 0 {
                    // In one piece, so that no key is split.
                    self.encoding = encoding;
                    return to(&bytes[mark..]);
                }
                self.begin(encoding, &head[mark..known], &mut to);
                self.feed(&bytes[taken..], to);
            }
        }
    }

    /// Passes on the rest at the end of the body.
    pub(crate) fn end(&mut self, mut to: impl FnMut(&[u8])) {
        if self.encoding == Encoding::Undetected {
            let (head, known) = (self.torn, usize::from(self.torn_len));
            let (encoding, mark) = detect(&head[..known], true).unwrap_or((Encoding::Utf8, 0));
            self.begin(encoding, &head[mark..known], &mut to);
        }
        if let Encoding::Units { .. } = self.encoding {
            self.is_broken |= self.torn_len > 0;
            let mut buffer = Utf8Buffer::new(&mut to);
            if let Some(high) = self.high.take() {
                buffer.push(u32::from(high));
            }
            buffer.flush();
        }
    }

    /// Returns true if the bytes are invalid in their encoding.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn begin(&mut self, encoding: Encoding, head: &[u8], to: &mut impl FnMut(&[u8])) {
        self.encoding = encoding;
        self.torn_len = 0;
        match encoding {
            Encoding::Units { bytes, is_big_endian } => {
                self.decode(head, usize::from(bytes), is_big_endian, to);
            }
            Encoding::Utf8 | Encoding::Undetected => to(head),
        }
    }

    fn decode(&mut self, bytes: &[u8], width: usize, is_big_endian: bool, to: &mut impl FnMut(&[u8])) {
        let mut buffer = Utf8Buffer::new(to);
        for &byte in bytes {
            let at = usize::from(self.torn_len);
            self.torn[at] = byte;
            self.torn_len += 1;
            if at + 1 < width {
                continue;
            }
            self.torn_len = 0;
            let unit = &self.torn[..width];
            let value = match is_big_endian {
                true => unit.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)),
                false => unit.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)),
            };
            match (width, u16::try_from(value)) {
                (2, Ok(unit)) => {
                    for code in pair(&mut self.high, unit).into_iter().flatten() {
                        buffer.push(code);
                    }
                }
                _ if value > u32::from(char::MAX) => self.is_broken = true,
                _ => buffer.push(value),
            }
        }
        buffer.flush();
    }
}

/// Returns the code points that the next unit of UTF-16 completes: none, one, or a lone surrogate and one
/// more.
fn pair(high: &mut Option<u16>, unit: u16) -> [Option<u32>; 2] {
    let alone = |high: u16| Some(u32::from(high));
    match (high.take(), unit) {
        (Some(first), 0xDC00..=0xDFFF) => {
            let code = 0x1_0000 + ((u32::from(first) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
            [Some(code), None]
        }
        (before, 0xD800..=0xDBFF) => {
            *high = Some(unit);
            [before.and_then(alone), None]
        }
        (before, _) => [before.and_then(alone), Some(u32::from(unit))],
    }
}

/// Detects an encoding as Python's `json.detect_encoding` does. Returns it with the length of its byte order
/// mark, or `None` if more bytes are needed.
fn detect(head: &[u8], is_all: bool) -> Option<(Encoding, usize)> {
    let units = |bytes, is_big_endian| Encoding::Units { bytes, is_big_endian };
    let (wide, narrow) = (|is_big| units(4, is_big), |is_big| units(2, is_big));
    Some(match *head {
        [0x00, 0x00, 0xFE, 0xFF] => (wide(true), 4),
        [0xFF, 0xFE, 0x00, 0x00] => (wide(false), 4),
        [0xFF, 0xFE, _, _] => (narrow(false), 2),
        [0xFE, 0xFF, ..] => (narrow(true), 2),
        [0xEF, 0xBB, 0xBF, ..] => (Encoding::Utf8, 3),
        [0x00, 0x00, _, _] => (wide(true), 0),
        [0x00, _, _, _] => (narrow(true), 0),
        [first, 0x00, 0x00, 0x00] if first != 0 => (wide(false), 0),
        [first, 0x00, _, _] if first != 0 => (narrow(false), 0),
        // The ordinary case, determined by two bytes.
        [first, second, ..] if !matches!(first, 0x00 | 0xEF | 0xFE | 0xFF) && second != 0 => {
            (Encoding::Utf8, 0)
        }
        [_, _, _, _] => (Encoding::Utf8, 0),
        [0xFF, 0xFE, ..] if is_all => (narrow(false), 2),
        [0x00, _] if is_all => (narrow(true), 0),
        [_, 0x00] if is_all => (narrow(false), 0),
        _ if is_all => (Encoding::Utf8, 0),
        _ => return None,
    })
}

/// A buffer of UTF-8 to be passed on.
struct Utf8Buffer<'a, F> {
    bytes: [u8; PIECE_BYTES],
    len: usize,
    to: &'a mut F,
}

impl<'a, F: FnMut(&[u8])> Utf8Buffer<'a, F> {
    fn new(to: &'a mut F) -> Self {
        Self { bytes: [0; PIECE_BYTES], len: 0, to }
    }

    /// Adds a code point; a surrogate becomes the three bytes of its bits.
    fn push(&mut self, code: u32) {
        if self.len + CHARACTER_BYTES > PIECE_BYTES {
            self.flush();
        }
        let room = &mut self.bytes[self.len..];
        self.len += match char::from_u32(code) {
            Some(character) => character.encode_utf8(room).len(),
            None => {
                let low = |shift: u32| (code >> shift & 0x3F) as u8 | 0x80;
                room[..3].copy_from_slice(&[0xE0 | (code >> 12) as u8, low(6), low(0)]);
                3
            }
        };
    }

    fn flush(&mut self) {
        if self.len > 0 {
            (self.to)(&self.bytes[..self.len]);
            self.len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body as UTF-8, fed in steps; `None` if it is invalid.
    fn transcoded(body: &[u8], step: usize) -> Option<Vec<u8>> {
        let mut transcoder = Transcoder::new();
        let mut out = Vec::new();
        for slice in body.chunks(step.max(1)) {
            transcoder.feed(slice, |utf8| out.extend_from_slice(utf8));
        }
        transcoder.end(|utf8| out.extend_from_slice(utf8));
        (!transcoder.is_broken()).then_some(out)
    }

    fn encoded(text: &str, encoding: &str) -> Vec<u8> {
        let marked = format!("\u{feff}{text}");
        let text = if encoding.ends_with("mark") { &marked } else { text };
        let big = encoding.contains("be");
        match &encoding[..5] {
            "utf16" => {
                let order = if big { u16::to_be_bytes } else { u16::to_le_bytes };
                text.encode_utf16().flat_map(order).collect()
            }
            "utf32" => {
                let order = if big { u32::to_be_bytes } else { u32::to_le_bytes };
                text.chars().map(u32::from).flat_map(order).collect()
            }
            _ => text.as_bytes().to_vec(),
        }
    }

    const ENCODINGS: [&str; 10] = [
        "utf8 ",
        "utf8 mark",
        "utf16be",
        "utf16le",
        "utf16be mark",
        "utf16le mark",
        "utf32be",
        "utf32le",
        "utf32be mark",
        "utf32le mark",
    ];

    #[test]
    fn every_encoding_of_python_becomes_utf8() {
        let long = format!("{{\"a\":\"{}\"}}", "é\u{1F600}x".repeat(300));
        for text in ["{}", "[1]", "{\"model\":\"m\u{1F600}é\"}", "  {\"a\":1}", long.as_str()] {
            for encoding in ENCODINGS {
                let body = encoded(text, encoding);
                for step in [1, 2, 3, 5, 7, 1000, usize::MAX] {
                    let plain = transcoded(&body, step);
                    assert_eq!(plain.as_deref(), Some(text.as_bytes()), "{text:.20} {encoding} {step}");
                }
            }
        }
    }

    #[test]
    fn short_bodies_are_themselves() {
        for (body, plain) in [
            (&b""[..], &b""[..]),
            (b"5", b"5"),
            (b"{}", b"{}"),
            (b"[1]", b"[1]"),
            (b"\xEF\xBB\xBF", b""),
            (b"\xEF\xBB", b"\xEF\xBB"),
            (b"\xFF\xFE", b""),
            (b"\xFE\xFF", b""),
            (b"5\x00", b"5"),
            (b"\x005", b"5"),
            (b"\x00", b"\x00"),
        ] {
            assert_eq!(transcoded(body, 1).as_deref(), Some(plain), "{body:?}");
            assert_eq!(transcoded(body, 9).as_deref(), Some(plain), "{body:?}");
        }
    }

    #[test]
    fn lone_surrogates_pass_and_torn_units_do_not() {
        let units = [0xD800_u16, 0x0061, 0xDC00, 0xD801, 0xD801, 0xDC37, 0xD900];
        let body: Vec<u8> =
            [0x005B, 0x0022].iter().chain(&units).flat_map(|unit| unit.to_le_bytes()).collect();
        let expected = b"[\"\xED\xA0\x80a\xED\xB0\x80\xED\xA0\x81\xF0\x90\x90\xB7\xED\xA4\x80";
        for step in [1, 2, 3, 100] {
            assert_eq!(transcoded(&body, step).as_deref(), Some(&expected[..]), "{step}");
            assert_eq!(transcoded(&[&body[..], b"x"].concat(), step), None, "half a unit");
        }
        let beyond = [0x7B_u32, 0x0011_0000].map(u32::to_be_bytes).concat();
        assert_eq!(transcoded(&beyond, 3), None);
    }
}
