//! What Python's `json` reads beyond JSON by the letter, and servers in Python with it: a byte order mark,
//! `NaN` and `Infinity`, surrogates that stand alone in a string's bytes. The law: every byte keeps its
//! place, so that what is found in the copy is found in the body.

/// The body with something of the same length in the place of each of these; `None` if it has none of
/// them. Whether the rest is JSON is not looked at.
pub(crate) fn as_json(body: &[u8]) -> Option<Vec<u8>> {
    let mut copy = body.to_vec();
    let mut at = 0;
    if body.starts_with(MARK) {
        copy[..MARK.len()].fill(b' ');
        at = MARK.len();
    }
    let mut inside = false;
    while at < body.len() {
        let mut read = 1;
        match body[at] {
            b'"' => inside = !inside,
            b'\\' if inside => read = 2,
            // No name we look for has an x in it.
            0x80.. if inside => copy[at] = b'x',
            b'N' | b'I' if !inside => {
                let known = NUMBERS.iter().find(|(word, _)| body[at..].starts_with(word));
                if let Some((word, number)) = known {
                    copy[at..at + word.len()].copy_from_slice(number);
                    read = word.len();
                }
            }
            _ => {}
        }
        at += read;
    }
    (copy != body).then_some(copy)
}

const MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Numbers that are no flag, either.
const NUMBERS: [(&[u8], &[u8]); 2] = [(b"NaN", b"2.0"), (b"Infinity", b"2.000000")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_keeps_its_place() {
        for (body, expected) in [
            (
                &b"{\"a\":NaN,\"b\":[-Infinity, Infinity]}"[..],
                Some("{\"a\":2.0,\"b\":[-2.000000, 2.000000]}"),
            ),
            (b"\xEF\xBB\xBF{\"a\":1}", Some("   {\"a\":1}")),
            (b"{\"\xED\xA0\x80\\\"NaN\":1}", Some("{\"xxx\\\"NaN\":1}")),
            (b"{\"a\":\"NaN \\\\\",\"b\":NaN}", Some("{\"a\":\"NaN \\\\\",\"b\":2.0}")),
            (b"{\"a\":\"NaN\"}", None),
            (b"{\"a\":Na", None),
            (b"{\xC3\xA9:1}", None),
            (b"\"\\", None),
            (b"", None),
        ] {
            assert_eq!(as_json(body).as_deref(), expected.map(str::as_bytes));
        }
    }
}
